"""What ``graphrag eval validate`` does: are the built indexes sound."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from graphrag.eval.errors import UsageError
from graphrag.eval.exit_codes import DONE, FAILED, explained
from graphrag.eval.terminal import open_console

if TYPE_CHECKING:
    from graphrag.eval.validation import PipelineValidationReport
    from graphrag.eval.validation.records import PhaseReport

_STYLES = {"passed": "green", "failed": "bold red", "not applicable": "dim"}


@dataclass(frozen=True, slots=True)
class ValidateOptions:
    """The flags of ``graphrag eval validate``; the paths are files to write."""

    json: Path | None = None
    markdown: Path | None = None
    quiet: bool = False
    verbose: bool = False


def run_validate(root: Path, options: ValidateOptions | None = None) -> int:
    """Validate a project's index, print what was found, and return the exit code.

    0: no check failed; 100: a check failed; 2: no project, not indexed, or a file can't be
    written.
    """
    chosen = options or ValidateOptions()
    return explained(lambda: _validate(root, chosen), chosen.verbose)


def check_indexes(roots: Mapping[str, Path], console: Console) -> bool:
    """Validate the indexes of an evaluation before it begins; say whether none failed.

    Prints a line for each index and one for each failed check and each warning.

    Raises
    ------
    IndexUnavailableError
        If an index can't be read.
    """
    from graphrag.eval.validation import validate_index

    sound = True
    for root in roots.values():
        report = validate_index(root)
        sound = sound and report.overall_passed
        _print(console, report.summary(), "" if report.overall_passed else "red")
        for check in report.checks():
            if check.status == "failed":
                _print(console, f"  {check.name}: {_with_examples(check.reason, check.examples)}")
        for warning in report.all_warnings():
            _print(console, f"  {warning}", "yellow")
    return sound


def _validate(root: Path, options: ValidateOptions) -> int:
    from graphrag.eval.validation import validate_index

    report = validate_index(root)
    _write(options.json, report.to_json() + "\n")
    _write(options.markdown, report.detailed_report())
    _show(open_console(quiet=options.quiet), report)
    return DONE if report.overall_passed else FAILED


def _write(path: Path | None, content: str) -> None:
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        msg = f"{path} can't be written: {error.strerror}."
        raise UsageError(msg) from error


def _show(console: Console, report: "PipelineValidationReport") -> None:
    for phase in report.phases:
        table = Table(title=phase.name, title_justify="left", title_style="bold", expand=False)
        table.add_column("check", no_wrap=True)
        table.add_column("result", no_wrap=True)
        table.add_column("what was found", overflow="fold")
        for check in phase.checks:
            table.add_row(
                check.name,
                Text(check.status, style=_STYLES[check.status]),
                Text(_with_examples(check.reason, tuple(map(_shorten, check.examples)))),
            )
        console.print(table)
        _print(console, _list_metrics(phase))
        for warning in phase.warnings:
            _print(console, f"Warning: {warning}", "yellow")
        console.print()
    _print(console, report.summary(), "green" if report.overall_passed else "bold red")


def _list_metrics(phase: "PhaseReport") -> str:
    from graphrag.eval.validation.report import format_metric

    return ", ".join(f"{name} {format_metric(value)}" for name, value in phase.metrics.items())


def _with_examples(reason: str, examples: tuple[str, ...]) -> str:
    return f"{reason}: {', '.join(examples)}" if examples else reason


def _shorten(name: str) -> str:
    """Cut an id, which may be a hash of 128 digits; the JSON and Markdown files keep it whole."""
    return name if len(name) <= 40 else f"{name[:36]}..."


def _print(console: Console, text: str, style: str = "") -> None:
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
