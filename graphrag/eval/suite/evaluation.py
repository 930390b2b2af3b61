"""What suites consist of: metrics, test cases, evaluators, and what they give."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol, cast

from pydantic import BeforeValidator, ConfigDict, Field

if TYPE_CHECKING:
    from graphrag.eval.suite.tools import CaseTools


class EvaluationMetric(StrEnum):
    """What an evaluator scores; each member is also its value as text."""

    ENTITY_EXTRACTION_ACCURACY = "entity_extraction_accuracy"
    RESPONSE_RELEVANCE = "response_relevance"
    RESPONSE_COMPLETENESS = "response_completeness"
    GRAPH_CONNECTIVITY = "graph_connectivity"
    QUERY_PROCESSING_TIME = "query_processing_time"
    USER_SATISFACTION = "user_satisfaction"


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def mapping_of(given: object) -> Mapping[str, Any]:
    """Return a mapping as it is, and an empty one for anything else that a case holds."""
    return cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}


@dataclass
class TestCase:
    """One test case.

    Attributes
    ----------
    id : str
        Unique in its suite.
    name, description : str
        Free text in any language.
    input_data : dict
        ``query`` and ``context``, ``text``, or ``document`` and ``metadata``; also ``index``, a
        key of eval_config.yaml. An evaluator of one's own may take anything.
    expected_output : dict
        What the evaluator looks for: ``entities``, ``keywords``, ``aspects``,
        ``max_processing_time`` (seconds).
    metadata : dict
        Free; it is kept with the run.
    """

    # pytest takes a class of this name in a user's test module for one of its own.
    __test__: ClassVar[bool] = False
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    id: Annotated[str, BeforeValidator(_as_text), Field(min_length=1)]
    name: str = ""
    description: str = ""
    input_data: Any = None
    expected_output: Any = None
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def title(self) -> str:
        """The name, or the id of a case without one."""
        return self.name or self.id

    @property
    def index(self) -> str | None:
        """The index that the case names."""
        named = mapping_of(self.input_data).get("index")
        return None if named is None else str(named)


@dataclass
class EvaluationResult:
    """One metric on one test case.

    Attributes
    ----------
    metric : EvaluationMetric
    score : float
        In [0, ``max_score``].
    max_score : float
        > 0.
    details : dict
        What the score rests on.
    timestamp : datetime
    test_case_id : str or None
        Set by the framework.
    """

    metric: EvaluationMetric
    score: float
    max_score: float
    details: dict[str, Any]
    timestamp: datetime
    test_case_id: str | None = None

    @property
    def share(self) -> float:
        """``score / max_score``, in [0, 1]; ValueError if the score is out of its range."""
        if not (isfinite(self.max_score) and 0 <= self.score <= self.max_score and self.max_score):
            msg = f"a score lies in [0, {self.max_score!r}], not at {self.score!r}"
            raise ValueError(msg)
        return self.score / self.max_score

    def to_dict(self) -> dict[str, Any]:
        """Return the fields; the metric as its value, the time in ISO 8601."""
        at = self.timestamp.isoformat()
        return {**vars(self), "metric": str(self.metric), "timestamp": at}


@dataclass
class EvaluationReport:
    """What a suite came to.

    Attributes
    ----------
    test_suite_name : str
    timestamp : datetime
    results : list of EvaluationResult
        By case, then by metric; what failed is not in it.
    overall_score : float
        Mean of the results' shares, in [0, 1]; 0 without any.
    passed_tests, total_tests : int
        Cases. One passes when the mean of its own shares reaches the framework's passing score
        and nothing of it failed.
    performance_metrics : dict
        ``avg_processing_time`` and ``max_processing_time``, seconds, over the cases that a
        component ran without an error; None without any.
    recommendations : list of str
        Never empty as the framework makes it.
    failures : dict
        Case id -> what kept it, or one of its evaluators, from a result.
    """

    test_suite_name: str
    timestamp: datetime
    results: list[EvaluationResult]
    overall_score: float
    passed_tests: int
    total_tests: int
    performance_metrics: dict[str, Any]
    recommendations: list[str]
    failures: dict[str, str] = field(default_factory=dict[str, str])

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready values, as far as the results' details are."""
        return {
            "test_suite": self.test_suite_name,
            "timestamp": self.timestamp.isoformat(),
            "overall_score": self.overall_score,
            "passed_tests": self.passed_tests,
            "total_tests": self.total_tests,
            "recommendations": list(self.recommendations),
            "performance_metrics": dict(self.performance_metrics),
            "failures": dict(self.failures),
            "results": [result.to_dict() for result in self.results],
        }


class BaseEvaluator(ABC):
    """Scores what a system made of a test case, in one metric."""

    @abstractmethod
    async def evaluate(
        self, test_case: TestCase, system_output: Mapping[str, Any]
    ) -> EvaluationResult:
        """Score a case; what is raised is the failure of this case alone.

        Parameters
        ----------
        test_case : TestCase
        system_output : mapping
            ``success`` (bool), ``processing_time`` (seconds), ``error`` (text, where a component
            raised), ``graph`` (where one is given), and what a component gave:
            ``query_result``, ``extracted_entities`` or ``processed_document``.
        """


@dataclass(frozen=True, slots=True)
class Evaluated:
    """How well a case came out, as an evaluator that works with the tools says it.

    Attributes
    ----------
    score : float
        In [0, 1].
    reason : str
        Why, in a sentence.
    output : str
        What the system gave; "" for what the tools gave last.
    parts : mapping
        Name -> part of the score, in [0, 1].
    findings : mapping
        Kind -> what was found, as "missed entities" -> names; what comes again in several cases
        is recommended to be looked at.
    latency_s : float or None
        Seconds the system took; None for what the tools measured.
    """

    score: float
    reason: str
    output: str = ""
    parts: Mapping[str, float] = field(default_factory=dict[str, float])
    findings: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    latency_s: float | None = None

    def __post_init__(self) -> None:
        for value in (self.score, *self.parts.values()):
            if not 0 <= value <= 1:
                msg = f"a score lies in [0, 1], not at {value!r}"
                raise ValueError(msg)


class ToolEvaluator(Protocol):
    """Scores cases of a project with its tools; any class with this method is one.

    Three more attributes are looked at where it, or a BaseEvaluator, has them. ``needs``, a tuple:
    each case is evaluated by every method ("methods"), built indexes are read ("index"), the
    configured judge is asked ("judge"). ``check(case)`` raises ValueError for a case that can't be
    evaluated, before the run begins. ``version`` is kept with the run.
    """

    async def evaluate(self, case: TestCase, tools: "CaseTools") -> Evaluated:
        """Score a case; what is raised is recorded as the failure of this case alone."""
        ...


Evaluator = BaseEvaluator | ToolEvaluator
