"""What suites consist of: metrics, test cases, evaluators, what they give."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from math import isfinite
from typing import Annotated, Any, ClassVar, cast

from pydantic import ConfigDict, Field

Output = Mapping[str, object]
"""What a system made of a case, as a :class:`BaseEvaluator` is shown it."""


class EvaluationMetric(StrEnum):
    """What an evaluator scores; each member is also its value as text."""

    ENTITY_EXTRACTION_ACCURACY = "entity_extraction_accuracy"
    RESPONSE_RELEVANCE = "response_relevance"
    RESPONSE_COMPLETENESS = "response_completeness"
    GRAPH_CONNECTIVITY = "graph_connectivity"
    QUERY_PROCESSING_TIME = "query_processing_time"
    USER_SATISFACTION = "user_satisfaction"


def mapping_of(value: object) -> Mapping[str, object]:
    """Return a mapping as it is, and an empty one for anything else that a case holds."""
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


@dataclass
class TestCase:
    """One test case."""

    # pytest takes a class of this name in a user's test module for one of its own.
    __test__: ClassVar[bool] = False
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", coerce_numbers_to_str=True
    )

    id: Annotated[str, Field(min_length=1)]
    """Unique in its suite."""
    name: str = ""
    """Free text in any language."""
    description: str = ""
    """Free text in any language."""
    input_data: Any = None
    """What the suite's evaluator takes; ``index`` names one of eval_config.yaml."""
    expected_output: Any = None
    """What the suite's evaluator looks for."""
    metadata: dict[str, object] = field(default_factory=dict[str, object])
    """Free; it is kept with the run."""

    @property
    def title(self) -> str:
        """The name, or the id of a case without one."""
        return self.name or self.id

    @property
    def index(self) -> str | None:
        """The index that the case names."""
        key = mapping_of(self.input_data).get("index")
        return None if key is None else str(key)


@dataclass
class EvaluationResult:
    """One metric on one test case.

    The score lies in [0, ``max_score``], ``details`` say what it rests on, among them, if wanted,
    ``parts`` (name -> score in [0, 1]) and a ``reason``; the framework sets ``test_case_id``.
    """

    metric: EvaluationMetric
    score: float
    max_score: float
    details: dict[str, object]
    timestamp: datetime
    test_case_id: str | None = None

    @property
    def share(self) -> float:
        """``score / max_score``, in [0, 1]; ValueError if the score is out of its range."""
        if not (isfinite(self.max_score) and 0 <= self.score <= self.max_score and self.max_score):
            raise ValueError(f"a score lies in [0, {self.max_score!r}], not at {self.score!r}")
        return self.score / self.max_score

    @property
    def parts(self) -> dict[str, float]:
        """The parts of the score by name, each in [0, 1]; of one without, its metric alone."""
        parts = cast("Mapping[str, float]", mapping_of(self.details.get("parts")))
        for value in parts.values():
            if not 0 <= value <= 1:
                raise ValueError(f"a part of a score lies in [0, 1], not at {value!r}")
        return dict(parts) or {str(self.metric): self.share}

    def to_dict(self) -> dict[str, object]:
        """Return the fields; the metric as its value, the time in ISO 8601."""
        at = self.timestamp.isoformat()
        return {**vars(self), "metric": str(self.metric), "timestamp": at}


@dataclass
class EvaluationReport:
    """What a suite came to.

    ``results`` stand by case, then by metric; what failed is in ``failures``, case id -> text, and
    not in them. ``overall_score`` is the mean of their shares, 0 without any. A case passes when
    the mean of its own shares reaches the passing score and nothing of it failed.
    ``performance_metrics`` are avg_ and max_processing_time, in seconds, over the n_timed cases
    that a component ran without an error; None without any.
    """

    test_suite_name: str
    timestamp: datetime
    results: list[EvaluationResult]
    overall_score: float
    passed_tests: int
    total_tests: int
    performance_metrics: dict[str, float | None]
    recommendations: list[str]
    failures: dict[str, str] = field(default_factory=dict[str, str])

    def to_dict(self) -> dict[str, object]:
        """Return the report as JSON-ready values, as far as the results' details are."""
        results = [result.to_dict() for result in self.results]
        values = {**vars(self), "timestamp": self.timestamp.isoformat(), "results": results}
        return {"test_suite": values.pop("test_suite_name"), **values}


class BaseEvaluator(ABC):
    """Scores what a system made of a test case, in one metric.

    A suite of a project looks at three further attributes where there are any: ``needs``, a tuple
    (each case is asked by every method: "methods"; the built index is read: "index"; the
    configured judge is asked: "judge"); ``check(case)``, which raises ValueError before the run for
    a case that can't be scored; ``version``, kept with the run.
    """

    @abstractmethod
    async def evaluate(self, test_case: TestCase, system_output: Output) -> EvaluationResult:
        """Score a case; what is raised is the failure of this case alone.

        ``system_output`` has ``success``, ``processing_time`` (seconds), ``error`` (text, where a
        component raised), ``graph`` (where one is given), and what a component gave:
        ``query_result``, ``extracted_entities`` or ``processed_document``. In a suite of a project
        also ``extraction``, and ``judge(question, ground_truth, response)``, a coroutine function
        that gives the configured judge's verdict, 0 or 1.
        """


async def score_case(evaluator: BaseEvaluator, case: TestCase, output: Output) -> EvaluationResult:
    """Ask an evaluator about a case; raises if what it gives is no result in its range."""
    result = cast("object", await evaluator.evaluate(case, output))
    if not isinstance(result, EvaluationResult):
        raise TypeError(f"the evaluator gave {type(result).__name__}, not an EvaluationResult")
    _ = result.share, result.parts
    return result
