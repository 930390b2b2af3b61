"""The report over all phases of an index."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from graphrag.eval.validation.records import CheckResult, Metric, PhaseValidation


@dataclass(frozen=True, slots=True)
class PipelineValidationReport:
    """What the validation of one index, or of records held in memory, found.

    Attributes
    ----------
    root : str
        The project folder as it was given; empty for records held in memory.
    phases : tuple of PhaseValidation
        document_processing, entity_extraction, relationship_extraction, graph_construction; of
        an index then vector_store.
    """

    root: str
    phases: tuple[PhaseValidation, ...]

    @classmethod
    def from_phases(cls, phases: Iterable[PhaseValidation]) -> "PipelineValidationReport":
        """Put the phases that validators returned into one report, in the order given."""
        return cls("", tuple(phases))

    @property
    def overall_passed(self) -> bool:
        """Whether no check failed; warnings do not count."""
        return not self.failed_checks

    @property
    def total_checks(self) -> int:
        """Number of checks, those that do not apply included."""
        return len(self.checks())

    @property
    def passed_checks(self) -> int:
        """Number of checks that passed."""
        return sum(phase.count("passed") for phase in self.phases)

    @property
    def failed_checks(self) -> int:
        """Number of checks that failed."""
        return sum(phase.count("failed") for phase in self.phases)

    @property
    def not_applicable_checks(self) -> int:
        """Number of checks that say nothing of this index."""
        return sum(phase.count("not applicable") for phase in self.phases)

    def checks(self) -> tuple[CheckResult, ...]:
        """Return the checks of all phases in order."""
        return tuple(check for phase in self.phases for check in phase.checks)

    def metrics(self) -> dict[str, Metric]:
        """Return the metrics of all phases; None where one is undefined."""
        return {name: value for phase in self.phases for name, value in phase.metrics.items()}

    def all_warnings(self) -> list[str]:
        """Return the warnings of all phases in order."""
        return [warning for phase in self.phases for warning in phase.warnings]

    def failed_phases(self) -> list[str]:
        """Return the names of the phases with a failed check."""
        return [phase.name for phase in self.phases if not phase.passed]

    @property
    def summary(self) -> str:
        """The outcome in two sentences; passed checks and all checks stand in it as 15/17."""
        outcome = "passed" if self.overall_passed else "failed"
        return (
            f"{self.root or 'Records'}: {outcome}. Checks passed: {self.passed_checks}/"
            f"{self.total_checks}; failed: {self.failed_checks}; not applicable: "
            f"{self.not_applicable_checks}; warnings: {len(self.all_warnings())}."
        )

    def detailed_report(self) -> str:
        """Return every check, metric and warning as Markdown."""
        lines = ["# Validation", "", self.summary]
        for phase in self.phases:
            lines += ["", f"## {phase.name}: {'passed' if phase.passed else 'failed'}", ""]
            lines += ["| check | result | what was found | examples |", "|---|---|---|---|"]
            for check in phase.checks:
                cells = (check.name, check.status, check.message, ", ".join(check.examples))
                lines.append(f"| {' | '.join(_escape(cell) for cell in cells)} |")
            lines += ["", "| metric | value |", "|---|---:|"]
            lines += [f"| {n} | {format_metric(v)} |" for n, v in phase.metrics.items()]
            if phase.warnings:
                lines += ["", "Warnings:", "", *(f"- {_flatten(w)}" for w in phase.warnings)]
        return "\n".join(lines) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return the report, JSON-ready; what is undefined is None."""
        return {
            "root": self.root,
            "overall_passed": self.overall_passed,
            "total_checks": self.total_checks,
            "passed_checks": self.passed_checks,
            "failed_checks": self.failed_checks,
            "not_applicable_checks": self.not_applicable_checks,
            "failed_phases": self.failed_phases(),
            "phases": [phase.to_dict() for phase in self.phases],
        }

    def to_json(self) -> str:
        """Return the report as JSON without NaN."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)


def format_metric(value: Metric) -> str:
    """Return a figure as text: counts whole, others with three decimals, ``-`` for None."""
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def _escape(cell: str) -> str:
    return _flatten(cell).replace("|", "\\|")


def _flatten(text: str) -> str:
    return " ".join(text.split())
