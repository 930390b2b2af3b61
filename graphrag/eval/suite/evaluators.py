"""The evaluators: five of one metric each, satisfaction, two that weigh several parts."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar, cast, get_args

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from graphrag.config.models.strict_section import StrictSection, as_sentence, nearest
from graphrag.eval.errors import ConfigError
from graphrag.eval.metrics.entities import Extraction, NameRule, score_entities, score_relationships
from graphrag.eval.metrics.evidence import phrase_key
from graphrag.eval.metrics.wording import ANY_WORD, aspect_coverage, keyword_relevance, time_score
from graphrag.eval.runner.methods import load_method
from graphrag.eval.stats.intervals import grouped
from graphrag.eval.suite.cases import (
    CaseExpected,
    CaseInput,
    Suite,
    explain_values,
    framework_case,
    read_case,
)
from graphrag.eval.suite.evaluation import (
    BaseEvaluator,
    EvaluationMetric,
    EvaluationResult,
    Output,
    TestCase,
    mapping_of,
)
from graphrag.text.json_records import fields_of

if TYPE_CHECKING:
    from graphrag.eval.annotation.ratings import Rating

Measure = Literal["f1", "precision", "recall"]
Part = Literal["answer", "keywords", "aspects", "time"]
_WEIGHTS: dict[Part, float] = {"answer": 0.5, "keywords": 0.2, "aspects": 0.2, "time": 0.1}


def _name_of(value: object) -> object:
    return value if isinstance(value, str) else next(fields_of(value, "name"), None)


_Listed = TypeVar("_Listed")
_NAMES = TypeAdapter(list[Annotated[str, BeforeValidator(_name_of)]])
_TEXTS = TypeAdapter(list[str], config=ConfigDict(coerce_numbers_to_str=True))
_PAIRS = TypeAdapter(list[tuple[str, str]])


class MetricEvaluator(BaseEvaluator):
    """An evaluator of one metric, asked of the cases that name what it compares with.

    ``compared`` is that key of the expected output; ``measured`` the key of the output that must be
    there instead.
    """

    version: ClassVar[int] = 1
    needs: ClassVar[tuple[str, ...]] = ("methods",)
    metric: ClassVar[EvaluationMetric]
    takes: ClassVar[tuple[str, ...]] = ("query",)
    expects: ClassVar[tuple[str, ...]] = ("keywords", "aspects")
    compared: ClassVar[str] = ""
    measured: ClassVar[str] = ""

    def applies(self, test_case: TestCase, system_output: Output) -> bool:
        """Whether it can be asked of this case."""
        if self.measured:
            return system_output.get(self.measured) is not None
        return self.compared in mapping_of(test_case.expected_output)

    def check(self, case: TestCase) -> None:
        """Refuse a case of a project's suite whose question or expectation is missing."""
        _, expected = read_case(case, self.takes, self.expects)
        if self.compared and not getattr(expected, self.compared):
            raise ValueError(f"expected_output.{self.compared} is missing")


class EntityExtractionEvaluator(MetricEvaluator):
    """F1 of the extracted entity names against the expected ones.

    ``2 P R / (P + R)`` with ``P = tp / (tp + fp)`` and ``R = tp / (tp + fn)``, each 0 where it is
    undefined; all three are 1 when nothing is expected and nothing found. Names are compared as
    ``NameRule`` folds them, each counted once.
    """

    metric = EvaluationMetric.ENTITY_EXTRACTION_ACCURACY
    compared = "entities"

    async def evaluate(self, test_case: TestCase, system_output: Output) -> EvaluationResult:
        """Compare ``extracted_entities``; ValueError without a list of named entities."""
        entities = mapping_of(test_case.expected_output).get("entities")
        expected = _read(_NAMES, entities or (), "the expected entities")
        extracted = _read(_NAMES, system_output.get("extracted_entities"), "extracted_entities")
        scores = score_entities(extracted, expected)
        nothing = 1.0 if scores.n_found == scores.n_expected == 0 else 0.0
        precision, recall, f1 = (
            nothing if value is None else value
            for value in (scores.precision, scores.recall, scores.f1)
        )
        details: dict[str, object] = {
            "precision": precision,
            "recall": recall,
            "f1_score": f1,
            "true_positives": scores.n_matched,
            "false_positives": scores.n_found - scores.n_matched,
            "false_negatives": scores.n_expected - scores.n_matched,
            "expected_entities": expected,
            "extracted_entities": extracted,
        }
        return _result(self.metric, f1, details)


class ResponseRelevanceEvaluator(MetricEvaluator):
    """Share of the expected keywords that the answer names, whole words; 0 without keywords."""

    metric = EvaluationMetric.RESPONSE_RELEVANCE
    compared = "keywords"

    async def evaluate(self, test_case: TestCase, system_output: Output) -> EvaluationResult:
        """Look for the ``keywords``; ValueError without an answer, or a keyword with a letter."""
        keywords, answer = _texts(test_case, "keywords"), _answer(system_output)
        score = keyword_relevance(keywords, answer) if keywords else 0.0
        if score is None:
            raise ValueError("no keyword has a letter or digit")
        total = len({key for key in map(phrase_key, keywords) if key})
        details: dict[str, object] = {
            "matched_keywords": round(score * total),
            "total_keywords": total,
            "response_length": len(answer),
            "expected_keywords": keywords,
        }
        return _result(self.metric, score, details)


class ResponseCompletenessEvaluator(MetricEvaluator):
    """Share of the expected aspects of which any content word is in the answer; 1 without."""

    metric = EvaluationMetric.RESPONSE_COMPLETENESS
    compared = "aspects"

    async def evaluate(self, test_case: TestCase, system_output: Output) -> EvaluationResult:
        """Look for the ``aspects``; ValueError without an answer, or content words in each."""
        aspects, answer = _texts(test_case, "aspects"), _answer(system_output)
        shares = [aspect_coverage([aspect], answer, ANY_WORD) for aspect in aspects]
        if None in shares:
            raise ValueError(f"the aspect {aspects[shares.index(None)]!r} has no content word")
        covered = sum(share == 1 for share in shares)
        details: dict[str, object] = {
            "covered_aspects": covered,
            "total_aspects": len(aspects),
            "response_length": len(answer),
            "expected_aspects": aspects,
        }
        return _result(self.metric, covered / len(aspects) if aspects else 1.0, details)


class GraphConnectivityEvaluator(MetricEvaluator):
    """Entities of the largest connected part of the graph by all entities."""

    metric = EvaluationMetric.GRAPH_CONNECTIVITY
    needs = ("index",)
    takes = expects = ()
    measured = "graph"

    async def evaluate(self, test_case: TestCase, system_output: Output) -> EvaluationResult:
        """Measure ``output["graph"]``: ``entities``, names, and ``relationships``, pairs of them.

        ValueError if there is no graph, no entity in it, or a relationship is no pair of names.
        """
        from graphrag.eval.validation.graph import graph_connectivity

        graph = mapping_of(system_output.get("graph"))
        names = _read(_NAMES, graph.get("entities"), "the entities of the graph")
        what = "the relationships of the graph, each a pair (source, target) of names"
        pairs = _read(_PAIRS, graph.get("relationships") or (), what)
        ends = [source for source, _ in pairs], [target for _, target in pairs]
        n, largest, isolated = graph_connectivity(names, *ends)
        if not n:
            raise ValueError("the graph has no entities")
        details: dict[str, object] = {
            "connectivity_ratio": largest / n,
            "isolated_entities": isolated,
            "largest_component_size": largest,
        }
        return _result(self.metric, largest / n, details)


class ProcessingTimeEvaluator(MetricEvaluator):
    """The time against its limit, see :func:`graphrag.eval.metrics.time_score`."""

    metric = EvaluationMetric.QUERY_PROCESSING_TIME
    compared = "max_processing_time"
    measured = "processing_time"

    async def evaluate(self, test_case: TestCase, system_output: Output) -> EvaluationResult:
        """Hold ``processing_time`` (0 if not given) against the limit, 5 s unless the case has one.

        ValueError if the time is None or negative, or the limit not positive.
        """
        taken = cast("float | None", system_output.get("processing_time", 0.0))
        if taken is None:
            raise ValueError("the search has no time")
        seconds, expected = float(taken), mapping_of(test_case.expected_output)
        limit = float(cast("float", expected.get("max_processing_time", 5.0)))
        score = cast("float", time_score(seconds, limit))
        times = {"processing_time": seconds, "expected_max_time": limit}
        return _result(self.metric, score, {**times, "within_limit": seconds <= limit})


class UserSatisfactionEvaluator(BaseEvaluator):
    """Mean of ``(rating - 1) / 4`` over the ``ratings`` whose question_id is a case's id."""

    def __init__(self, ratings: "Iterable[Rating]") -> None:
        self._ratings = grouped((rating.question_id, rating.rating) for rating in ratings)

    async def evaluate(self, test_case: TestCase, system_output: Output) -> EvaluationResult:
        """Look up the case's ratings; ValueError if nobody rated it."""
        ratings = self._ratings.get(test_case.id)
        if not ratings:
            raise ValueError(f"nobody rated the case {test_case.id!r}")
        mean = fmean(ratings)
        details: dict[str, object] = {"mean_rating": mean, "n_ratings": len(ratings)}
        return _result(EvaluationMetric.USER_SATISFACTION, (mean - 1) / 4, details)


FIVE: tuple[type[MetricEvaluator], ...] = (
    EntityExtractionEvaluator,
    ResponseRelevanceEvaluator,
    ResponseCompletenessEvaluator,
    GraphConnectivityEvaluator,
    ProcessingTimeEvaluator,
)
"""What a framework begins with."""


class EntityExtraction(StrictSection, BaseEvaluator):
    """Extracted entities and relationships against the expected ones.

    The score is the mean of the entities' measure and, where relationships are expected, of
    theirs, and of the time score where a time limit is given. Names are compared as ``NameRule``
    folds them; relationships without direction.

    Of ``source`` "text" the case's text is read by the project's extraction prompt and model, of
    "index" what the built index holds of the text units with that text, of a document, or of all;
    its lists are then longer than a passage's, so that only a recall means something.
    ``entities`` and ``relationships`` say which measure counts.
    """

    model_config = ConfigDict(frozen=True)
    version: ClassVar[int] = 1

    source: Literal["text", "index"] = "text"
    entities: Measure = "f1"
    relationships: Measure = "recall"

    @property
    def needs(self) -> tuple[str, ...]:
        """A built index, unless texts are read."""
        return ("index",) if self.source == "index" else ()

    def check(self, case: TestCase) -> None:
        """Refuse a case whose input or expected output can't be used."""
        inputs, expected = self._read(case)
        if expected.entities is None and expected.relationships is None:
            raise ValueError("expected_output: expects neither entities nor relationships")
        if self.source == "text" and not (inputs.text or "").strip():
            raise ValueError("input_data.text is missing")

    def _read(self, case: TestCase) -> tuple[CaseInput, CaseExpected]:
        takes = ("text", "document") if self.source == "index" else ("text",)
        return read_case(case, takes, ("entities", "relationships", "aliases"))

    async def evaluate(self, test_case: TestCase, system_output: Output) -> EvaluationResult:
        """Compare the ``extraction``."""
        _, expected = self._read(test_case)
        extraction = cast("Extraction", system_output["extraction"])
        rule = NameRule(aliases=expected.aliases)
        parts: dict[str, float] = {}
        details: dict[str, object] = {}
        reasons: list[str] = []
        for name, compare in (("entities", score_entities), ("relationships", score_relationships)):
            names: Any = getattr(expected, name)
            if names is None:
                continue
            match = compare(getattr(extraction, name), names, rule)
            measure: Measure = getattr(self, name)
            value: float | None = getattr(match, measure)
            # Nothing found where nothing is expected is right.
            parts[name] = float(match.n_expected == 0) if value is None else value
            details[f"missed_{name}"] = list(match.missed)
            if measure != "recall":
                details[f"unexpected_{name}"] = list(match.unexpected)
            reasons.append(
                f"{name} {measure} {parts[name]:.2f} ({match.n_matched} of {match.n_expected} "
                f"expected among {match.n_found} found)"
            )
        seconds = cast("float | None", system_output.get("processing_time"))
        if expected.max_processing_time is not None and seconds is not None:
            parts["time"] = cast("float", time_score(seconds, expected.max_processing_time))
            reasons.append(f"time {parts['time']:.2f}")
        details |= {"parts": parts, "reason": "; ".join(reasons)}
        score = sum(parts.values()) / len(parts)
        return _result(EvaluationMetric.ENTITY_EXTRACTION_ACCURACY, score, details)


class QueryResponse(StrictSection, BaseEvaluator):
    """A method's answer against an expected answer, keywords, aspects and a time limit.

    The score is the weighted mean of the parts that a case expects: the judge's verdict on the
    answer (0 or 1), the share of keywords, the share of aspects, and the time score (see
    ``graphrag.eval.metrics.wording``).

    ``weights`` is answer, keywords, aspects and time -> weight, >= 0; one left out counts 0.
    """

    model_config = ConfigDict(frozen=True)
    version: ClassVar[int] = 2

    weights: dict[Part, float] = Field(default_factory=lambda: dict(_WEIGHTS))

    @model_validator(mode="after")
    def _positive(self) -> "QueryResponse":
        if any(weight < 0 for weight in self.weights.values()) or not any(self.weights.values()):
            raise ValueError(f"weights must be at least 0, and one above it, not {self.weights}")
        return self

    @property
    def needs(self) -> tuple[str, ...]:
        """A method to ask, and the judge where the answer counts."""
        return ("methods", "judge") if self.weights.get("answer") else ("methods",)

    def check(self, case: TestCase) -> None:
        """Refuse a case whose input or expected output can't be used."""
        _, expected = self._read(case)
        measured = self._measured(expected, "", 0.0)
        measured["answer"] = 0.0 if expected.answer else None
        if not any(self.weights.get(part) for part, value in measured.items() if value is not None):
            names = ", ".join(get_args(Part))
            raise ValueError(f"expected_output names nothing that has a weight, of {names}")

    def _read(self, case: TestCase) -> tuple[CaseInput, CaseExpected]:
        return read_case(case, ("query",), ("answer", "keywords", "aspects"))

    @staticmethod
    def _measured(
        expected: CaseExpected, answer: str, seconds: float | None
    ) -> dict[Part, float | None]:
        """Return what is measured of the parts without the judge; None of what is not expected."""
        limit = expected.max_processing_time
        return {
            "keywords": keyword_relevance(expected.keywords, answer),
            "aspects": aspect_coverage(expected.aspects, answer),
            "time": None if limit is None else time_score(seconds, limit),
        }

    async def evaluate(self, test_case: TestCase, system_output: Output) -> EvaluationResult:
        """Compare the answer; the ``judge`` is asked where one is expected."""
        inputs, expected = self._read(test_case)
        answer = _answer(system_output)
        seconds = cast("float | None", system_output.get("processing_time"))
        measured = self._measured(expected, answer, seconds)
        if expected.answer and self.weights.get("answer"):
            judge = cast("Callable[[str, str, str], Awaitable[int]]", system_output["judge"])
            measured["answer"] = float(await judge(inputs.query or "", expected.answer, answer))
        parts: dict[str, float] = {}
        total = reached = 0.0
        for part in get_args(Part):
            weight, value = self.weights.get(part), measured.get(part)
            if value is not None and weight:
                parts[part] = value
                total, reached = total + weight, reached + weight * value
        details: dict[str, object] = {
            "missed_keywords": [
                w for w in expected.keywords if keyword_relevance([w], answer) == 0
            ],
            "missed_aspects": [a for a in expected.aspects if aspect_coverage([a], answer) == 0],
            "parts": parts,
            "reason": ", ".join(f"{part} {value:.2f}" for part, value in parts.items()),
        }
        score = min(1.0, reached / total)
        return _result(EvaluationMetric.RESPONSE_RELEVANCE, score, details)


_BUILT_IN: Mapping[str, type[BaseEvaluator]] = {
    "entity_extraction": EntityExtraction,
    "query_response": QueryResponse,
    **{kind.metric.value: kind for kind in FIVE[1:]},
}


def make_evaluator(suite: Suite, root: Path) -> BaseEvaluator:
    """Return the evaluator of a suite, its cases checked.

    ``root`` is the folder of eval_config.yaml, where ``module:Class`` may lie. ConfigError if there
    is no such evaluator, it refuses its settings, or a case.
    """
    name, where = suite.evaluator, f"Suite {suite.name}"
    kind: object = load_method(name, root) if ":" in name else _BUILT_IN.get(name)
    if kind is None:
        hint = nearest(name, list(_BUILT_IN)) or "; write your own as module:Class"
        raise ConfigError(as_sentence(f"{where}: there is no evaluator {name!r}{hint}"))
    # Asked before it is called: a suite may be anybody's.
    if not callable(getattr(kind, "evaluate", None)):
        raise ConfigError(f"{where}: {name} has no method evaluate(test_case, system_output).")
    try:
        evaluator = cast("Callable[..., BaseEvaluator]", kind)(**suite.settings)
    except ValidationError as error:
        raise ConfigError(f"{where}: settings: {explain_values(error)}.") from error
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: {name} refuses its settings: {error}.") from error
    check: Callable[[TestCase], object] = getattr(evaluator, "check", lambda case: None)
    for case in suite.cases:
        try:
            check(framework_case(case))
        except ValueError as error:
            raise ConfigError(f"{where}, case {case.id!r}: {error}.") from error
    return evaluator


def needs_of(evaluator: BaseEvaluator) -> Sequence[str]:
    """Return what an evaluator says it needs."""
    return cast("Sequence[str]", getattr(evaluator, "needs", ()))


def _result(metric: EvaluationMetric, score: float, details: dict[str, object]) -> EvaluationResult:
    return EvaluationResult(metric, score, 1.0, details, datetime.now(UTC))


def _read(form: TypeAdapter[_Listed], values: object, what: str) -> _Listed:
    try:
        return form.validate_python(values)
    except ValidationError as error:
        raise ValueError(f"{what}: {explain_values(error)}") from error


def _texts(test_case: TestCase, key: str) -> list[str]:
    texts = mapping_of(test_case.expected_output).get(key) or ()
    return _read(_TEXTS, texts, f"expected_output.{key}")


def _answer(system_output: Output) -> str:
    answer = next(fields_of(system_output.get("query_result", system_output), "answer"), None)
    if not isinstance(answer, str):
        raise ValueError("the output has no answer that is a text")
    return answer
