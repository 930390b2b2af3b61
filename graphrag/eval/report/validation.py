"""An index that was validated, as lines and tables."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphrag.eval.report.table import Line, Part, Table

if TYPE_CHECKING:
    from graphrag.eval.validation.report import PipelineValidationReport


def list_validation(report: "PipelineValidationReport") -> Iterator[Part]:
    """Yield the answer, then every phase of a report, a table each."""
    from graphrag.eval.validation.report import format_metric

    yield answer_validation(report)
    for phase in report.phases:
        yield Table(
            phase.name,
            [("check", "text"), ("result", "text"), ("what was found", "text")],
            [
                [
                    check.name,
                    check.status,
                    ": ".join(filter(None, (check.message, ", ".join(map(_cut, check.examples))))),
                ]
                for check in phase.checks
            ],
        )
        metrics = (f"{name} {format_metric(value)}" for name, value in phase.metrics.items())
        yield Line(", ".join(metrics))
        yield from (Line(f"Warning: {warning}", "yellow") for warning in phase.warnings)


def answer_validation(report: "PipelineValidationReport") -> Line:
    """Return the answer alone."""
    return Line(report.summary, "green" if report.overall_passed else "bold red")


def _cut(name: str) -> str:
    """Cut an id, which may be a hash of 128 digits; the JSON and Markdown files keep it whole."""
    return name if len(name) <= 40 else f"{name[:36]}..."
