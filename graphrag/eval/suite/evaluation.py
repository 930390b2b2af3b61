"""What an evaluation framework passes on: metrics, test cases, results and reports."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from math import isfinite
from typing import Any, ClassVar, cast


class EvaluationMetric(StrEnum):
    """What an evaluator scores; each member is also its value as text."""

    ENTITY_EXTRACTION_ACCURACY = "entity_extraction_accuracy"
    RESPONSE_RELEVANCE = "response_relevance"
    RESPONSE_COMPLETENESS = "response_completeness"
    GRAPH_CONNECTIVITY = "graph_connectivity"
    QUERY_PROCESSING_TIME = "query_processing_time"
    USER_SATISFACTION = "user_satisfaction"


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
        """``score / max_score``, in [0, 1].

        Raises
        ------
        ValueError
            If the score is not in its range, or not a number.
        """
        if not (isfinite(self.max_score) and 0 <= self.score <= self.max_score and self.max_score):
            msg = f"a score lies in [0, {self.max_score!r}], not at {self.score!r}"
            raise ValueError(msg)
        return self.score / self.max_score

    def to_dict(self) -> dict[str, Any]:
        """Return the fields; the metric as its value, the time in ISO 8601."""
        return {
            "metric": self.metric.value,
            "score": self.score,
            "max_score": self.max_score,
            "details": self.details,
            "timestamp": self.timestamp.isoformat(),
            "test_case_id": self.test_case_id,
        }


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
        What a component is given: ``query`` and ``context``, ``text``, or ``document`` and
        ``metadata``.
    expected_output : dict
        What the evaluators look for: ``entities``, ``keywords``, ``aspects``,
        ``max_processing_time`` (seconds).
    metadata : dict
        Free.
    """

    # pytest takes a class of this name in a user's test module for one of its own.
    __test__: ClassVar[bool] = False

    id: str
    name: str
    description: str
    input_data: dict[str, Any]
    expected_output: dict[str, Any]
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])


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


def mapping_of(given: object) -> Mapping[str, Any]:
    """Return a mapping as it is, and an empty one for anything else that a client's case holds."""
    return cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}


class BaseEvaluator(ABC):
    """Scores what a system made of a test case, in one metric."""

    @abstractmethod
    async def evaluate(
        self, test_case: TestCase, system_output: Mapping[str, Any]
    ) -> EvaluationResult:
        """Score a case.

        Parameters
        ----------
        test_case : TestCase
        system_output : mapping
            ``success`` (bool), ``processing_time`` (seconds), ``error`` (text, where a component
            raised), ``graph`` (where one is given), and what a component gave:
            ``query_result``, ``extracted_entities`` or ``processed_document``.
        """
