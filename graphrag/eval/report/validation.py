"""What the terminal shows of an index that was validated."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from graphrag.eval.report.lines import say

if TYPE_CHECKING:
    from graphrag.eval.validation.report import PhaseValidation, PipelineValidationReport


_STYLES = {"passed": "green", "failed": "bold red", "not applicable": "dim"}


def show_validation(console: Console, report: "PipelineValidationReport") -> None:
    """Print the answer, then every phase of a report, a table each."""
    show_validity(console, report)
    for phase in report.phases:
        table = Table(title=phase.name, title_justify="left", title_style="bold", expand=False)
        table.add_column("check", no_wrap=True)
        table.add_column("result", no_wrap=True)
        table.add_column("what was found", overflow="fold")
        for check in phase.checks:
            table.add_row(
                check.name,
                Text(check.status, style=_STYLES[check.status]),
                Text(_with_examples(check.message, tuple(map(_shorten, check.examples)))),
            )
        console.print(table)
        say(console, _list_metrics(phase))
        for warning in phase.warnings:
            say(console, f"Warning: {warning}", "yellow")
        console.print()


def show_validity(console: Console, report: "PipelineValidationReport") -> None:
    """Print the answer alone."""
    say(console, report.summary, "green" if report.overall_passed else "bold red")


def show_faults(console: Console, report: "PipelineValidationReport") -> None:
    """Print one line for the index, and one for each failed check and each warning."""
    say(console, report.summary, "" if report.overall_passed else "red")
    for check in report.checks():
        if check.status == "failed":
            say(console, f"  {check.name}: {_with_examples(check.message, check.examples)}")
    for warning in report.all_warnings():
        say(console, f"  {warning}", "yellow")


def list_faults(report: "PipelineValidationReport") -> list[str]:
    """Return one line for the index, and one for each failed check and each warning."""
    failed = [check for check in report.checks() if check.status == "failed"]
    return [
        report.summary,
        *(f"{check.name}: {_with_examples(check.message, check.examples)}" for check in failed),
        *report.all_warnings(),
    ]


def _list_metrics(phase: "PhaseValidation") -> str:
    from graphrag.eval.validation.report import format_metric

    return ", ".join(f"{name} {format_metric(value)}" for name, value in phase.metrics.items())


def _with_examples(message: str, examples: tuple[str, ...]) -> str:
    return f"{message}: {', '.join(examples)}" if examples else message


def _shorten(name: str) -> str:
    """Cut an id, which may be a hash of 128 digits; the JSON and Markdown files keep it whole."""
    return name if len(name) <= 40 else f"{name[:36]}..."
