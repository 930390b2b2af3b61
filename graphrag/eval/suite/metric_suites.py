"""Evaluators of a suite that score one metric alone, by the framework's own evaluators."""

from typing import ClassVar

from pydantic import ConfigDict, Field

from graphrag.config.models.strict_section import StrictSection
from graphrag.eval.suite.cases import SuiteCase
from graphrag.eval.suite.evaluation import EvaluationResult, TestCase, mapping_of
from graphrag.eval.suite.evaluators import CaseInput, Evaluated, Need, QueryInput, read_values
from graphrag.eval.suite.metric_evaluators import (
    GraphConnectivityEvaluator,
    MetricEvaluator,
    ProcessingTimeEvaluator,
    ResponseCompletenessEvaluator,
    ResponseRelevanceEvaluator,
)
from graphrag.eval.suite.tools import CaseTools


class _MetricExpected(StrictSection):
    keywords: list[str] = Field(default_factory=list[str])
    aspects: list[str] = Field(default_factory=list[str])
    max_processing_time: float | None = Field(default=None, gt=0)


class _MetricOfAnswer(StrictSection):
    """A method's answer, scored in one metric."""

    model_config = ConfigDict(frozen=True)
    version: ClassVar[int] = 1
    needs: ClassVar[tuple[Need, ...]] = ("methods",)
    scored_by: ClassVar[MetricEvaluator]
    expects: ClassVar[str]

    def check(self, case: SuiteCase) -> None:
        """Refuse a case whose question or expectation is missing."""
        read_values(QueryInput, case.input_data, "input_data")
        expected = read_values(_MetricExpected, case.expected_output, "expected_output")
        if not getattr(expected, self.expects):
            msg = f"expected_output.{self.expects} is missing"
            raise ValueError(msg)

    async def evaluate(self, case: SuiteCase, tools: CaseTools) -> Evaluated:
        """Ask and score."""
        question = read_values(QueryInput, case.input_data, "input_data").text
        found = await tools.search(question)
        output = {
            "success": True,
            "processing_time": found.latency_s,
            "query_result": {"answer": found.response},
        }
        if found.latency_s is None and isinstance(self.scored_by, ProcessingTimeEvaluator):
            msg = "the search has no time"
            raise ValueError(msg)
        result = await self.scored_by.evaluate(_test_case(case), output)
        return _evaluated(result, found.response)


class ResponseRelevance(_MetricOfAnswer):
    """Share of ``expected_output.keywords`` that the answer names."""

    scored_by = ResponseRelevanceEvaluator()
    expects = "keywords"


class ResponseCompleteness(_MetricOfAnswer):
    """Share of ``expected_output.aspects`` of which a content word is in the answer."""

    scored_by = ResponseCompletenessEvaluator()
    expects = "aspects"


class ProcessingTime(_MetricOfAnswer):
    """The search's seconds against ``expected_output.max_processing_time``."""

    scored_by = ProcessingTimeEvaluator()
    expects = "max_processing_time"


class GraphConnectivity(StrictSection):
    """Entities of the largest connected part of a built index by all of its entities."""

    model_config = ConfigDict(frozen=True)
    version: ClassVar[int] = 1
    needs: ClassVar[tuple[Need, ...]] = ("index",)

    def check(self, case: SuiteCase) -> None:
        """Refuse an input other than an index; nothing is expected of a graph."""
        read_values(CaseInput, case.input_data, "input_data")
        if case.expected_output:
            msg = "expected_output: the whole graph is measured, so nothing can be expected"
            raise ValueError(msg)

    async def evaluate(self, case: SuiteCase, tools: CaseTools) -> Evaluated:
        """Measure the graph of the case's index."""
        found = await tools.indexed()
        graph = {"entities": found.entities, "relationships": found.relationships}
        result = await GraphConnectivityEvaluator().evaluate(_test_case(case), {"graph": graph})
        n = len(set(found.entities))
        text = (
            f"{n} entities, {result.details['largest_component_size']} in the largest part, "
            f"{result.details['isolated_entities']} alone"
        )
        return _evaluated(result, text)


def _test_case(case: SuiteCase) -> TestCase:
    given, expected = dict(mapping_of(case.input_data)), dict(mapping_of(case.expected_output))
    return TestCase(case.id, case.name, case.description, given, expected, case.metadata)


def _evaluated(result: EvaluationResult, output: str) -> Evaluated:
    details = ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in result.details.items()
        if not isinstance(value, list)
    )
    return Evaluated(
        score=result.share,
        reason=f"{result.metric.value} {result.share:.2f} ({details})",
        output=output,
        parts={result.metric.value: result.share},
    )
