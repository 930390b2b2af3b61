"""What the validation of an index yields: results of checks, figures and warnings of a phase."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["passed", "failed", "not applicable"]
Metric = int | float | None

DOCUMENTS = "document_processing"
ENTITIES = "entity_extraction"
RELATIONSHIPS = "relationship_extraction"
GRAPH = "graph_construction"
VECTORS = "vector_store"
MAX_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Where a check begins to fail or a warning is given.

    Attributes
    ----------
    min_coverage : float
        Smallest share of each document's text that its text units hold, 0 to 1 (check).
    min_entities_per_chunk, max_entities_per_chunk : float
        Smallest and largest number of entities for each text unit (check).
    min_connectivity : float
        Connected pairs for each entity must be more than this (check).
    low_entities_per_chunk, high_entities_per_chunk : float
        Entities for each text unit outside of the two are warned of.
    low_connectivity : float
        Connected pairs for each entity below it are warned of.
    low_metadata_ratio, low_confidence : float
        A share or a mean below it is warned of, 0 to 1.
    high_density : float
        Relationships for each entity above it are warned of.
    min_largest_component : float
        Share of the entities below which the largest connected part makes a sparse graph, 0 to 1.
    max_unindexed_vectors : int
        Vectors of one table that every search may compare one by one before that is warned of.
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


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of one index, or of records held in memory.

    Attributes
    ----------
    name : str
        One of the names of docs/validation.md.
    status : str
        ``passed``, ``failed`` or ``not applicable``.
    message : str
        What was found, or why the check does not apply; one sentence.
    examples : tuple of str
        Ids of what made it fail, at most 5; empty unless it failed.
    """

    name: str
    status: Status
    message: str
    examples: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the check applies and passed."""
        return self.status == "passed"

    def to_dict(self) -> dict[str, Any]:
        """Return the result, JSON-ready."""
        return {
            "name": self.name,
            "status": self.status,
            "passed": self.passed,
            "message": self.message,
            "examples": list(self.examples),
        }


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
        return not self.count("failed")

    def count(self, status: Status) -> int:
        """Return how many checks ended so."""
        return sum(check.status == status for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """Return the phase, JSON-ready."""
        return {
            "name": self.name,
            "passed": self.passed,
            "checks": [check.to_dict() for check in self.checks],
            "metrics": dict(self.metrics),
            "warnings": list(self.warnings),
        }


def judge(
    name: str,
    passed: bool,
    message: str,
    examples: tuple[str, ...] = (),
) -> CheckResult:
    """Return a check that applies; examples are kept only of a failed one."""
    if passed:
        return CheckResult(name, "passed", message)
    return CheckResult(name, "failed", message, examples[:MAX_EXAMPLES])


def skip(name: str, message: str) -> CheckResult:
    """Return a check that does not apply."""
    return CheckResult(name, "not applicable", message)


def ratio(part: float, whole: float) -> float | None:
    """Return ``part / whole``; None when the whole is 0."""
    return part / whole if whole else None
