"""Defines the types of suites: metrics, test cases, evaluators, results and reports."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from math import isfinite
from typing import Annotated, Any, ClassVar, cast

from pydantic import ConfigDict, Field

Output = Mapping[str, object]
"""The output of a system for a case, as a :class:`BaseEvaluator` gets it."""


class EvaluationMetric(StrEnum):
    """The metric of an evaluator; each member equals its value as text."""

    ENTITY_EXTRACTION_ACCURACY = "entity_extraction_accuracy"
    RESPONSE_RELEVANCE = "response_relevance"
    RESPONSE_COMPLETENESS = "response_completeness"
    GRAPH_CONNECTIVITY = "graph_connectivity"
    QUERY_PROCESSING_TIME = "query_processing_time"
    USER_SATISFACTION = "user_satisfaction"


def mapping_of(value: object) -> Mapping[str, object]:
    """Return a mapping as it is, and an empty one for any other value."""
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


@dataclass
class TestCase:
    """One test case of a suite.

    Examples
    --------
    >>> case = TestCase(id="who", input_data={"query": "Who signed?"},
    ...                 expected_output={"keywords": ["mayor"]})
    >>> case.title
    'who'
    """

    # Else pytest would collect a class of this name in a user's test module.
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
    """Input of the suite's evaluator; ``index`` names one of the indexes of eval_config.yaml."""
    expected_output: Any = None
    """The expectation that the suite's evaluator compares with."""
    metadata: dict[str, object] = field(default_factory=dict[str, object])
    """Anything; it is kept with the run."""

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
    """The score of one metric on one test case.

    The score is in [0, ``max_score``]. ``details`` are its basis; they may include ``parts``
    (name -> score in [0, 1]) and a ``reason``. The framework sets ``test_case_id``.

    Examples
    --------
    >>> EvaluationResult(metric=EvaluationMetric.RESPONSE_RELEVANCE, score=2.0, max_score=4.0,
    ...                  details={}, timestamp=datetime.now()).share
    0.5
    """

    metric: EvaluationMetric
    score: float
    max_score: float
    details: dict[str, object]
    timestamp: datetime
    test_case_id: str | None = None

    @property
    def share(self) -> float:
        """``score / max_score``, in [0, 1]; raises ValueError if the score is out of its range."""
        if not (isfinite(self.max_score) and 0 <= self.score <= self.max_score and self.max_score):
            raise ValueError(f"a score lies in [0, {self.max_score!r}], not at {self.score!r}")
        return self.score / self.max_score

    @property
    def parts(self) -> dict[str, float]:
        """The parts of the score by name, each in [0, 1]; without parts, metric -> share.

        Raises ValueError if a part is out of its range.
        """
        parts = cast("Mapping[str, float]", mapping_of(self.details.get("parts")))
        for value in parts.values():
            if not 0 <= value <= 1:
                raise ValueError(f"a part of a score lies in [0, 1], not at {value!r}")
        return dict(parts) or {str(self.metric): self.share}

    def to_dict(self) -> dict[str, object]:
        """Return the fields, with the metric as its value and the time in ISO 8601."""
        at = self.timestamp.isoformat()
        return {**vars(self), "metric": str(self.metric), "timestamp": at}


@dataclass
class EvaluationReport:
    """The results of one suite.

    - ``results``: by case, then by metric, without failures. ``failures``: case id -> its failures.
    - ``overall_score``: the mean of the results' shares, 0 without any.
    - ``passed_tests``: cases in which nothing failed and whose mean share reaches the passing
      score.
    - ``performance_metrics``: avg_ and max_processing_time in seconds, over the n_timed cases that
      a component ran without an error; None without any.
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
        """Return the report as JSON-ready values, as far as the results' details are JSON-ready."""
        results = [result.to_dict() for result in self.results]
        values = {**vars(self), "timestamp": self.timestamp.isoformat(), "results": results}
        return {"test_suite": values.pop("test_suite_name"), **values}


class BaseEvaluator(ABC):
    """Base class of evaluators, which score in one metric the output of a system for a test case.

    In a suite of a project, three more attributes count if an evaluator has them. ``needs`` is a
    tuple with "methods" (every method is asked each case), "index" (the built index is read) or
    "judge" (the configured judge is asked). ``check(case)`` raises ValueError, before the run, for
    a case that can't be scored. ``version`` is kept with the run.
    """

    @abstractmethod
    async def evaluate(self, test_case: TestCase, system_output: Output) -> EvaluationResult:
        """Score a case; an exception counts as the failure of this case alone.

        ``system_output`` has ``success``, ``processing_time`` (seconds), ``error`` (text, if a
        component raised), ``graph`` (if there is one), and what the component returned:
        ``query_result``, ``extracted_entities`` or ``processed_document``. In a suite of a project
        it also has ``extraction``, and ``judge(question, ground_truth, response)``, a coroutine
        function that returns the configured judge's verdict, 0 or 1.

        Examples
        --------
        >>> output = {"success": True, "query_result": {"answer": "The mayor"}}
        >>> (await evaluator.evaluate(test_case=case, system_output=output)).share
        1.0
        """


async def score_case(evaluator: BaseEvaluator, case: TestCase, output: Output) -> EvaluationResult:
    """Let an evaluator score a case; raises if it returns no EvaluationResult within its range."""
    result = cast("object", await evaluator.evaluate(case, output))
    if not isinstance(result, EvaluationResult):
        raise TypeError(f"the evaluator gave {type(result).__name__}, not an EvaluationResult")
    _ = result.share, result.parts
    return result
