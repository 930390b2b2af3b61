"""Defines the results of validating an index: checks, phases, thresholds, and the full report."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Literal

Status = Literal["passed", "warning", "failed", "not applicable"]
Metric = int | float | None

MAX_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The limits at which checks fail and warnings are given.

    Beyond ``min_`` and ``max_`` a check fails, beyond ``low_`` and ``high_`` there is a warning.

    - ``min_coverage``: share of each document's text that is in its text units, in [0, 1].
    - ``min_connectivity``, ``low_connectivity``: joined pairs per entity. ``high_density``:
      relationships per entity.
    - ``low_metadata_ratio``: share of the text units with metadata, in [0, 1].
    - ``min_largest_component``: share of the entities in the largest connected part, in [0, 1];
      below it there is a warning.
    - ``max_unindexed_vectors``: how many vectors of a table may be outside its vector index; every
      search compares these one by one.
    - ``of_some_rows``: status of a check that some rows pass and others do not.

    Examples
    --------
    >>> strict = Thresholds(min_coverage=0.99, max_unindexed_vectors=0)
    """

    min_coverage: float = 0.9
    min_entities_per_chunk: float = 0.1
    max_entities_per_chunk: float = 10.0
    min_connectivity: float = 0.1
    low_entities_per_chunk: float = 0.5
    high_entities_per_chunk: float = 5.0
    low_connectivity: float = 0.5
    low_metadata_ratio: float = 0.5
    low_confidence: float = 0.5
    high_density: float = 5.0
    min_largest_component: float = 0.5
    max_unindexed_vectors: int = 2_000
    of_some_rows: Status = "failed"

    def status_of(self, n_broken: int, n: int) -> Status:
        """Return the status of a check that ``n_broken`` of ``n`` rows do not pass."""
        return self.of_some_rows if n_broken < n else "failed"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check; docs/retrieval.md lists the names.

    ``message`` is a sentence about what was found, or why the check does not apply. ``examples``
    are ids of what made it fail, at most 5. A ratio of the graph outside its limits is only a
    ``warning`` in an index.
    """

    name: str
    status: Status
    message: str
    examples: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the check applies and passed."""
        return self.status == "passed"

    def to_dict(self) -> dict[str, object]:
        """Return the result, JSON-ready."""
        return {**asdict(self), "passed": self.passed, "examples": list(self.examples)}


@dataclass(frozen=True, slots=True)
class PhaseValidation:
    """The checks, metrics and warnings of one phase of the indexing.

    A metric is None where it is undefined, such as a mean over nothing.
    """

    name: str
    checks: tuple[CheckResult, ...]
    metrics: Mapping[str, Metric]
    warnings: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return all(check.status != "failed" for check in self.checks)

    def to_dict(self) -> dict[str, object]:
        """Return the phase, JSON-ready."""
        about = {"name": self.name, "passed": self.passed, "metrics": dict(self.metrics)}
        checks = [check.to_dict() for check in self.checks]
        return {**about, "checks": checks, "warnings": list(self.warnings)}


def judge(
    name: str,
    passed: bool,
    message: str,
    examples: tuple[str, ...] = (),
    otherwise: Status = "failed",
) -> CheckResult:
    """Return the result of a check that applies; if it did not pass, ``otherwise`` with examples.

    This asks no model.
    """
    status: Status = "passed" if passed else otherwise
    return CheckResult(
        name=name, status=status, message=message, examples=() if passed else examples
    )


def skip(name: str, message: str) -> CheckResult:
    """Return the result of a check that does not apply."""
    return CheckResult(name=name, status="not applicable", message=message)


def ratio(part: float, whole: float) -> float | None:
    """Return ``part / whole``; None if the whole is 0."""
    return part / whole if whole else None


@dataclass(frozen=True, slots=True)
class PipelineValidationReport:
    """The results of validating an index, or records in memory (``root`` is then empty).

    Examples
    --------
    >>> report = PipelineValidationReport.from_phases(
    ...     phases=[GraphConstructionValidator.validate(documents=1, chunks=4, entities=8,
    ...                                                 relationships=9)]
    ... )
    >>> report.overall_passed, report.total_checks
    (True, 3)
    """

    root: str
    phases: tuple[PhaseValidation, ...]

    @classmethod
    def from_phases(cls, phases: Iterable[PhaseValidation]) -> "PipelineValidationReport":
        """Make one report of the phases that validators returned, in the order given."""
        return cls("", tuple(phases))

    @property
    def overall_passed(self) -> bool:
        """Whether no check failed; warnings do not count."""
        return not self.failed_checks

    @property
    def total_checks(self) -> int:
        """Number of checks, including those that do not apply."""
        return len(self.checks())

    @property
    def passed_checks(self) -> int:
        """Number of checks that passed."""
        return self._count("passed")

    @property
    def failed_checks(self) -> int:
        """Number of checks that failed."""
        return self._count("failed")

    @property
    def not_applicable_checks(self) -> int:
        """Number of checks that do not apply."""
        return self._count("not applicable")

    def _count(self, status: Status) -> int:
        return sum(check.status == status for check in self.checks())

    def checks(self) -> tuple[CheckResult, ...]:
        """Return the checks of all phases in order."""
        return tuple(check for phase in self.phases for check in phase.checks)

    def metrics(self) -> dict[str, Metric]:
        """Return the metrics of all phases; an undefined one is None."""
        return {name: value for phase in self.phases for name, value in phase.metrics.items()}

    def all_warnings(self) -> list[str]:
        """Return the warnings of all phases in order."""
        return [warning for phase in self.phases for warning in phase.warnings]

    def failed_phases(self) -> list[str]:
        """Return the names of the phases with a failed check."""
        return [phase.name for phase in self.phases if not phase.passed]

    @property
    def summary(self) -> str:
        """The outcome in two sentences, with passed checks and all checks as 15/17."""
        outcome = "passed" if self.overall_passed else "failed"
        n_doubtful = self._count("warning")
        doubtful = f"with a warning: {n_doubtful}; " if n_doubtful else ""
        return (
            f"{self.root or 'Records'}: {outcome}. Checks passed: {self.passed_checks}/"
            f"{self.total_checks}; failed: {self.failed_checks}; {doubtful}not applicable: "
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
                escaped = (_flatten(cell).replace("|", "\\|") for cell in cells)
                lines.append(f"| {' | '.join(escaped)} |")
            lines += ["", "| metric | value |", "|---|---:|"]
            lines += [f"| {n} | {format_metric(v)} |" for n, v in phase.metrics.items()]
            if phase.warnings:
                lines += ["", "Warnings:", "", *(f"- {_flatten(w)}" for w in phase.warnings)]
        return "\n".join(lines) + "\n"

    def to_dict(self) -> dict[str, object]:
        """Return the report, JSON-ready; an undefined value is None."""
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
    """Return a figure as text: a whole number, or three decimals, or ``-`` for None."""
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def _flatten(text: str) -> str:
    return " ".join(text.split())
