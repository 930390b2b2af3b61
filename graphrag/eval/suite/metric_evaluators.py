"""The evaluators of one metric each, on the project's measures."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar, cast

from graphrag.eval.scorers.entities import graph_connectivity, score_entities
from graphrag.eval.scorers.quotes import phrase_key
from graphrag.eval.scorers.wording import ANY_WORD, aspect_coverage, keyword_relevance, time_score
from graphrag.eval.suite.cases import read_case
from graphrag.eval.suite.evaluation import (
    BaseEvaluator,
    EvaluationMetric,
    EvaluationResult,
    TestCase,
    mapping_of,
)

if TYPE_CHECKING:
    from graphrag.eval.ratings import Rating

DEFAULT_MAX_SECONDS = 5.0


class MetricEvaluator(BaseEvaluator):
    """An evaluator that says which cases it can be asked of.

    Attributes
    ----------
    metric : EvaluationMetric
    compared : str
        The key of the expected output that is compared with.
    """

    version: ClassVar[int] = 1
    needs: ClassVar[tuple[str, ...]] = ("methods",)
    metric: ClassVar[EvaluationMetric]
    compared: ClassVar[str]

    def applies(self, test_case: TestCase, system_output: Mapping[str, Any]) -> bool:
        """Return whether the case names what is compared with."""
        return self.compared in mapping_of(test_case.expected_output)

    def check(self, case: TestCase) -> None:
        """Refuse a case of a project's suite whose question or expectation is missing."""
        _, expected = read_case(case, {"question", "query"}, {"keywords", "aspects"})
        if not getattr(expected, self.compared):
            msg = f"expected_output.{self.compared} is missing"
            raise ValueError(msg)

    def _result(self, score: float, details: dict[str, Any]) -> EvaluationResult:
        return EvaluationResult(self.metric, score, 1.0, details, datetime.now(UTC))


class EntityExtractionEvaluator(MetricEvaluator):
    """F1 of the extracted entity names against the expected ones.

    ``2 P R / (P + R)`` with ``P = tp / (tp + fp)`` and ``R = tp / (tp + fn)``, each 0 where it is
    undefined; all three are 1 when nothing is expected and nothing found. Names are compared as
    ``NameRule`` folds them, each counted once.
    """

    metric = EvaluationMetric.ENTITY_EXTRACTION_ACCURACY
    compared = "entities"

    async def evaluate(
        self, test_case: TestCase, system_output: Mapping[str, Any]
    ) -> EvaluationResult:
        """Compare ``extracted_entities`` with ``expected_output["entities"]``.

        ValueError if the output has no list of entities with names.
        """
        wanted = mapping_of(test_case.expected_output).get("entities")
        expected = _names(wanted or (), "expected entity")
        if system_output.get("extracted_entities") is None:
            msg = "the output has no extracted_entities"
            raise ValueError(msg)
        found = _names(system_output["extracted_entities"], "extracted entity")
        scores = score_entities(found, expected)
        nothing = 1.0 if scores.n_found == scores.n_expected == 0 else 0.0
        f1 = nothing if scores.f1 is None else scores.f1
        details = {
            "precision": nothing if scores.precision is None else scores.precision,
            "recall": nothing if scores.recall is None else scores.recall,
            "f1_score": f1,
            "true_positives": scores.n_matched,
            "false_positives": scores.n_found - scores.n_matched,
            "false_negatives": scores.n_expected - scores.n_matched,
            "expected_entities": expected,
            "extracted_entities": found,
        }
        return self._result(f1, details)


class ResponseRelevanceEvaluator(MetricEvaluator):
    """Share of the expected keywords that the answer names, whole words; 0 without keywords."""

    metric = EvaluationMetric.RESPONSE_RELEVANCE
    compared = "keywords"

    async def evaluate(
        self, test_case: TestCase, system_output: Mapping[str, Any]
    ) -> EvaluationResult:
        """Look for ``expected_output["keywords"]`` in the answer.

        ValueError if the output has no answer, or no keyword has a letter or digit.
        """
        keywords, answer = _texts(test_case, "keywords"), _answer(system_output)
        score = keyword_relevance(keywords, answer) if keywords else 0.0
        if score is None:
            msg = "no keyword has a letter or digit"
            raise ValueError(msg)
        total = len({key for key in map(phrase_key, keywords) if key})
        details = {
            "matched_keywords": round(score * total),
            "total_keywords": total,
            "response_length": len(answer),
            "expected_keywords": keywords,
        }
        return self._result(score, details)


class ResponseCompletenessEvaluator(MetricEvaluator):
    """Share of the expected aspects of which any content word is in the answer; 1 without."""

    metric = EvaluationMetric.RESPONSE_COMPLETENESS
    compared = "aspects"

    async def evaluate(
        self, test_case: TestCase, system_output: Mapping[str, Any]
    ) -> EvaluationResult:
        """Look for ``expected_output["aspects"]`` in the answer.

        ValueError if the output has no answer, or an aspect no content word.
        """
        aspects, answer = _texts(test_case, "aspects"), _answer(system_output)
        shares = [aspect_coverage([aspect], answer, ANY_WORD) for aspect in aspects]
        if None in shares:
            msg = f"the aspect {aspects[shares.index(None)]!r} has no content word"
            raise ValueError(msg)
        covered = sum(share == 1 for share in shares)
        details = {
            "covered_aspects": covered,
            "total_aspects": len(aspects),
            "response_length": len(answer),
            "expected_aspects": aspects,
        }
        return self._result(covered / len(aspects) if aspects else 1.0, details)


class GraphConnectivityEvaluator(MetricEvaluator):
    """Entities of the largest connected part of the graph by all entities."""

    metric = EvaluationMetric.GRAPH_CONNECTIVITY
    needs = ("index",)

    def applies(self, test_case: TestCase, system_output: Mapping[str, Any]) -> bool:
        """Return whether there is a graph."""
        return system_output.get("graph") is not None

    def check(self, case: TestCase) -> None:
        """Refuse an input other than an index; nothing is expected of a graph."""
        if case.expected_output:
            msg = "expected_output: the whole graph is measured, so nothing can be expected"
            raise ValueError(msg)
        read_case(case, (), ())

    async def evaluate(
        self, test_case: TestCase, system_output: Mapping[str, Any]
    ) -> EvaluationResult:
        """Measure ``output["graph"]``: ``entities``, names, and ``relationships``, pairs of them.

        ValueError if there is no graph, no entity in it, or a relationship is no pair of names.
        """
        graph = mapping_of(system_output.get("graph"))
        if "entities" not in graph:
            msg = "the output has no graph with entities and relationships"
            raise ValueError(msg)
        names = _names(graph["entities"], "entity of the graph")
        ends = [_pair(each) for each in graph.get("relationships") or ()]
        found = graph_connectivity(names, [a for a, _ in ends], [b for _, b in ends])
        if found.largest_component_share is None:
            msg = "the graph has no entities"
            raise ValueError(msg)
        details = {
            "connectivity_ratio": found.largest_component_share,
            "isolated_entities": found.n_isolated,
            "largest_component_size": round(found.largest_component_share * found.n_entities),
        }
        return self._result(found.largest_component_share, details)


class ProcessingTimeEvaluator(MetricEvaluator):
    """The time against its limit, see :func:`graphrag.eval.scorers.time_score`."""

    metric = EvaluationMetric.QUERY_PROCESSING_TIME
    compared = "max_processing_time"

    def applies(self, test_case: TestCase, system_output: Mapping[str, Any]) -> bool:
        """Return whether a component ran, and was timed."""
        return system_output.get("processing_time") is not None

    async def evaluate(
        self, test_case: TestCase, system_output: Mapping[str, Any]
    ) -> EvaluationResult:
        """Hold ``processing_time`` (0 where it is not given) against ``max_processing_time``.

        ValueError if the time is negative or the limit not positive.
        """
        seconds = float(system_output.get("processing_time") or 0.0)
        expected = mapping_of(test_case.expected_output)
        limit = float(expected.get("max_processing_time", DEFAULT_MAX_SECONDS))
        score = cast("float", time_score(seconds, limit))
        details = {
            "processing_time": seconds,
            "expected_max_time": limit,
            "within_limit": seconds <= limit,
        }
        return self._result(score, details)


class UserSatisfactionEvaluator(BaseEvaluator):
    """Mean of ``(rating - 1) / 4`` over the ratings of a case.

    Parameters
    ----------
    ratings : iterable of Rating
        Those whose ``question_id`` is the case's id count.
    """

    def __init__(self, ratings: "Iterable[Rating]") -> None:
        self._ratings: dict[str, list[int]] = {}
        for each in ratings:
            self._ratings.setdefault(each.question_id, []).append(each.rating)

    async def evaluate(
        self, test_case: TestCase, system_output: Mapping[str, Any]
    ) -> EvaluationResult:
        """Look up the case's ratings; ValueError if nobody rated it, or one is not from 1 to 5."""
        given = self._ratings.get(test_case.id)
        if not given:
            msg = f"nobody rated the case {test_case.id!r}"
            raise ValueError(msg)
        if not all(1 <= rating <= 5 for rating in given):
            msg = f"a rating of the case {test_case.id!r} is not from 1 to 5"
            raise ValueError(msg)
        mean = fmean(given)
        details = {"mean_rating": mean, "n_ratings": len(given)}
        metric = EvaluationMetric.USER_SATISFACTION
        return EvaluationResult(metric, (mean - 1) / 4, 1.0, details, datetime.now(UTC))


FIVE: tuple[type[MetricEvaluator], ...] = (
    EntityExtractionEvaluator,
    ResponseRelevanceEvaluator,
    ResponseCompletenessEvaluator,
    GraphConnectivityEvaluator,
    ProcessingTimeEvaluator,
)
"""What a framework begins with."""


def _texts(test_case: TestCase, key: str) -> list[str]:
    given: object = mapping_of(test_case.expected_output).get(key) or ()
    # A text is a sequence too, of letters.
    if isinstance(given, str) or not isinstance(given, Iterable):
        msg = f"expected_output.{key} must be a list of texts, not {type(given).__name__}"
        raise ValueError(msg)
    return [str(each) for each in cast("Iterable[object]", given)]


def _names(given: object, what: str) -> list[str]:
    # A text and a mapping can be gone through too, but by letters and keys.
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        msg = f"there must be a list of names, not {type(cast('object', given)).__name__}: {what}"
        raise ValueError(msg)
    return [_name(each, what) for each in cast("Iterable[object]", given)]


def _name(given: object, what: str) -> str:
    held = mapping_of(given).get("name", getattr(given, "name", None))
    name: object = given if isinstance(given, str) else held
    if not isinstance(name, str):
        msg = f"an {what} has no name: {given!r}"
        raise ValueError(msg)
    return name


def _answer(system_output: Mapping[str, Any]) -> str:
    result: object = system_output.get("query_result", system_output)
    answer: object = mapping_of(result).get("answer", getattr(result, "answer", None))
    if not isinstance(answer, str):
        msg = "the output has no answer that is a text"
        raise ValueError(msg)
    return answer


def _pair(given: object) -> tuple[str, str]:
    # Two keys of a mapping, or two letters, unpack as well and join nothing that is there.
    match given:
        case (str(source), str(target)):
            return source, target
        case _:
            msg = f"a relationship of the graph is a pair (source, target) of names, not {given!r}"
            raise ValueError(msg)
