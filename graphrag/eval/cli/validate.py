"""What ``graphrag eval validate`` does: are the built indexes sound."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from graphrag.eval.cli.terminal import DONE, FAILED, explained, open_console, working
from graphrag.eval.errors import StoreError, UsageError
from graphrag.eval.report.table import Line, show
from graphrag.eval.report.validation import answer_validation, list_faults, list_validation
from graphrag.eval.store.whole_files import write_file

if TYPE_CHECKING:
    from graphrag.eval.validation.report import PipelineValidationReport


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


def validate_indexes(
    roots: Mapping[str, Path], console: Console
) -> "dict[str, PipelineValidationReport]":
    """Validate the indexes of an evaluation before it begins, and return key -> report.

    Prints a line for each index and one for each failed check and each warning.

    Raises
    ------
    IndexUnavailableError
        If an index can't be read.
    """
    reports: dict[str, PipelineValidationReport] = {}
    for key, root in roots.items():
        with working(console, f"Checking index {key}"):
            from graphrag.eval.validation.pipeline import validate_index

            reports[key] = validate_index(root)
        show(console, map(Line, list_faults(reports[key])))
    return reports


def _validate(root: Path, options: ValidateOptions) -> int:
    with working(open_console(stderr=True, quiet=options.quiet), f"Checking the index of {root}"):
        from graphrag.eval.validation.pipeline import validate_index

        report = validate_index(root)
    _write(options.json, report.to_json() + "\n")
    _write(options.markdown, report.detailed_report())
    show(open_console(), [answer_validation(report)] if options.quiet else list_validation(report))
    return DONE if report.overall_passed else FAILED


def _write(path: Path | None, content: str) -> None:
    if path is None:
        return
    try:
        write_file(path, content)
    except StoreError as error:
        raise UsageError(str(error)) from error
