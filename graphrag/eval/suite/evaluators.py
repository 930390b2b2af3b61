"""Defines the evaluators: five of one metric each, two that weigh parts, and user satisfaction."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, cast, get_args

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from graphrag.config.models.strict_section import StrictSection, as_sentence, nearest
from graphrag.eval.errors import ConfigError
from graphrag.eval.metrics.entities import (
    Extraction,
    NameRule,
    score_entities,
    score_relationships,
)
from graphrag.eval.metrics.keyword_coverage import (
    ANY_WORD,
    aspect_coverage,
    keyword_relevance,
    time_score,
)
from graphrag.eval.metrics.quote_matching import phrase_key
from graphrag.eval.runner.custom_methods import load_method
from graphrag.eval.stats.intervals import grouped
from graphrag.eval.suite.cases import (
    CaseExpected,
    Name,
    Suite,
    check_case,
    explain_values,
    framework_case,
    read_expected,
)
from graphrag.eval.suite.types import (
    BaseEvaluator,
    EvaluationMetric,
    EvaluationResult,
    Output,
    TestCase,
    mapping_of,
)
from graphrag.text.json_records import fields_of
from graphrag.text.languages import find_languages

if TYPE_CHECKING:
    from graphrag.eval.annotation.ratings import Rating

Measure = Literal["f1", "precision", "recall"]
Part = Literal["answer", "keywords", "aspects", "time"]
Scored = tuple[float, dict[str, object]]
"""A score in [0, 1], and the details that it rests on."""
_WEIGHTS: dict[Part, float] = {"answer": 0.5, "keywords": 0.2, "aspects": 0.2, "time": 0.1}
_Values = TypeVar("_Values")
_NAMES, _PAIRS = TypeAdapter(list[Name]), TypeAdapter(list[tuple[str, str]])


class MetricEvaluator(BaseEvaluator):
    """Base class of evaluators that compare an output with a case's expectations, or measure it.

    - ``takes``, ``expects``: keys of a case's input and expected output, in a suite of a project.
    - ``compared``: the one expectation that it uses, if it uses only one.
    - ``measured``: the key of the output that it needs.
    """

    version: ClassVar[int] = 1
    metric: ClassVar[EvaluationMetric]
    takes: ClassVar[tuple[str, ...]] = ("query",)
    expects: ClassVar[tuple[str, ...]] = ("keywords", "aspects")
    compared: ClassVar[str] = ""
    measured: ClassVar[str] = ""

    @property
    def needs(self) -> tuple[str, ...]:
        """The requirement of a suite of a project: a method to ask, or the index to measure."""
        return ("methods",) if self.takes else ("index",)

    def applies(self, test_case: TestCase, system_output: Output) -> bool:
        """Return whether a case has the compared key, or its output the measured one."""
        if self.measured:
            return system_output.get(self.measured) is not None
        return self.compared in mapping_of(test_case.expected_output)

    def check(self, case: TestCase) -> None:
        """Raise ValueError for a case of a project's suite that can't be scored."""
        _, expected = check_case(case, self.takes, self.expects)
        if self.compared and not getattr(expected, self.compared):
            raise ValueError(f"expected_output.{self.compared} is missing")

    async def evaluate(self, test_case: TestCase, system_output: Output) -> EvaluationResult:
        """Score a case; raises ValueError if the case or the output has nothing to score."""
        keys = (self.compared,) if self.compared else (*self.expects, "max_processing_time")
        expected = read_expected(test_case, keys)
        return _result(self.metric, *await self._score(test_case, expected, system_output))

    @abstractmethod
    async def _score(self, case: TestCase, expected: CaseExpected, output: Output) -> Scored: ...


class EntityExtractionEvaluator(MetricEvaluator):
    """Scores the F1 of the names in ``extracted_entities`` against the expected ``entities``.

    ``2 P R / (P + R)`` with ``P = tp / (tp + fp)`` and ``R = tp / (tp + fn)``, each 0 if undefined;
    all three are 1 if nothing is expected and nothing found. Each name counts once. Names are
    compared by ``NameRule`` in the languages of the case's ``text``. For suites of a project use
    :class:`EntityExtraction`, which also compares relationships.

    Examples
    --------
    >>> case = TestCase(id="who", expected_output={"entities": ["Ann", "Bo"]})
    >>> output = {"extracted_entities": ["Ann"]}
    >>> result = await EntityExtractionEvaluator().evaluate(test_case=case, system_output=output)
    >>> result.details["recall"]
    0.5
    """

    metric = EvaluationMetric.ENTITY_EXTRACTION_ACCURACY
    compared = "entities"

    async def _score(self, case: TestCase, expected: CaseExpected, output: Output) -> Scored:
        names = expected.entities or []
        extracted = _read(_NAMES, output.get("extracted_entities"), "extracted_entities")
        text = str(mapping_of(case.input_data).get("text") or "")
        match = score_entities(extracted, names, NameRule(languages=find_languages([text])))
        undefined = float(match.n_found == match.n_expected == 0)
        precision, recall, f1 = (
            undefined if value is None else value
            for value in (match.precision, match.recall, match.f1)
        )
        return f1, {
            "precision": precision,
            "recall": recall,
            "f1_score": f1,
            "true_positives": match.n_matched,
            "false_positives": match.n_found - match.n_matched,
            "false_negatives": match.n_expected - match.n_matched,
            "expected_entities": names,
            "extracted_entities": extracted,
        }


class ResponseRelevanceEvaluator(MetricEvaluator):
    """Scores the share of the expected ``keywords`` that an answer names as whole words.

    0 without keywords.
    """

    metric = EvaluationMetric.RESPONSE_RELEVANCE
    compared = "keywords"

    async def _score(self, case: TestCase, expected: CaseExpected, output: Output) -> Scored:
        keywords, answer = expected.keywords, _answer(output)
        score = keyword_relevance(keywords, answer) if keywords else 0.0
        if score is None:
            raise ValueError("no keyword has a letter or digit")
        total = len({key for key in map(phrase_key, keywords) if key})
        return score, {
            "matched_keywords": round(score * total),
            "total_keywords": total,
            "response_length": len(answer),
            "expected_keywords": keywords,
        }


class ResponseCompletenessEvaluator(MetricEvaluator):
    """Scores the share of the expected ``aspects`` that share any content word with the answer.

    1 without aspects.
    """

    metric = EvaluationMetric.RESPONSE_COMPLETENESS
    compared = "aspects"

    async def _score(self, case: TestCase, expected: CaseExpected, output: Output) -> Scored:
        aspects, answer = expected.aspects, _answer(output)
        shares = [aspect_coverage([aspect], answer, ANY_WORD) for aspect in aspects]
        if None in shares:
            raise ValueError(f"the aspect {aspects[shares.index(None)]!r} has no content word")
        covered = sum(share == 1 for share in shares)
        return covered / len(aspects) if aspects else 1.0, {
            "covered_aspects": covered,
            "total_aspects": len(aspects),
            "response_length": len(answer),
            "expected_aspects": aspects,
        }


class GraphConnectivityEvaluator(MetricEvaluator):
    """Scores the share of the ``graph``'s entities that are in its largest connected part.

    The graph has ``entities``, names, and ``relationships``, pairs of names.
    """

    metric = EvaluationMetric.GRAPH_CONNECTIVITY
    takes = expects = ()
    measured = "graph"

    async def _score(self, case: TestCase, expected: CaseExpected, output: Output) -> Scored:
        from graphrag.eval.validation.graph import graph_connectivity

        graph = mapping_of(output.get("graph"))
        names = _read(_NAMES, graph.get("entities"), "the entities of the graph")
        name = "the relationships of the graph, each a pair (source, target) of names"
        pairs = _read(_PAIRS, graph.get("relationships") or (), name)
        ends = [source for source, _ in pairs], [target for _, target in pairs]
        n, largest, isolated = graph_connectivity(names, *ends)
        if not n:
            raise ValueError("the graph has no entities")
        return largest / n, {
            "connectivity_ratio": largest / n,
            "isolated_entities": isolated,
            "largest_component_size": largest,
        }


class ProcessingTimeEvaluator(MetricEvaluator):
    """Scores the ``processing_time`` (0 if not given) against its limit, by default 5 s.

    A case may set another limit. The score is
    :func:`graphrag.eval.metrics.keyword_coverage.time_score`.
    """

    metric = EvaluationMetric.QUERY_PROCESSING_TIME
    compared = "max_processing_time"
    measured = "processing_time"

    async def _score(self, case: TestCase, expected: CaseExpected, output: Output) -> Scored:
        seconds = _seconds({"processing_time": 0.0, **output})
        if seconds is None:
            raise ValueError("the search has no time")
        limit = expected.max_processing_time or 5.0
        return cast("float", time_score(seconds, limit)), {
            **{"processing_time": seconds, "expected_max_time": limit},
            "within_limit": seconds <= limit,
        }


FIVE: tuple[type[MetricEvaluator], ...] = (
    EntityExtractionEvaluator,
    ResponseRelevanceEvaluator,
    ResponseCompletenessEvaluator,
    GraphConnectivityEvaluator,
    ProcessingTimeEvaluator,
)
"""The evaluators that a framework begins with; each is asked about the cases that it applies to."""


class UserSatisfactionEvaluator(BaseEvaluator):
    """Scores the mean of ``(rating - 1) / 4`` over the ratings of a case.

    The ``ratings`` of a case have its id as question_id.

    Examples
    --------
    >>> evaluator = UserSatisfactionEvaluator(ratings=read_ratings(path="ratings.csv"))
    >>> result = await evaluator.evaluate(test_case=TestCase(id="q1"), system_output={})
    >>> result.details["n_ratings"]
    1
    """

    def __init__(self, ratings: "Iterable[Rating]") -> None:
        self._ratings = grouped((rating.question_id, rating.rating) for rating in ratings)

    async def evaluate(self, test_case: TestCase, system_output: Output) -> EvaluationResult:
        """Look up the case's ratings; raises ValueError if nobody rated it."""
        ratings = self._ratings.get(test_case.id)
        if not ratings:
            raise ValueError(f"nobody rated the case {test_case.id!r}")
        mean = fmean(ratings)
        details: dict[str, object] = {"mean_rating": mean, "n_ratings": len(ratings)}
        return _result(EvaluationMetric.USER_SATISFACTION, (mean - 1) / 4, details)


class EntityExtraction(StrictSection, MetricEvaluator):
    """Scores extracted entities and relationships against the expected ones, in a project's suite.

    The score is the mean of the entities' measure, of the relationships' measure if relationships
    are expected, and of the time score if there is a time limit. Names are compared by ``NameRule``
    in the languages of the text, relationships without direction.

    With ``source`` "text", the project's extraction prompt and model read the case's text. With
    "index", the lists come from the built index: from the text units with that text, from a
    document, or from everything. They are longer than a passage's, so that only a recall means
    something. ``entities`` and ``relationships`` name the measure that counts.
    """

    model_config = ConfigDict(frozen=True)
    metric: ClassVar[EvaluationMetric] = EvaluationMetric.ENTITY_EXTRACTION_ACCURACY
    expects: ClassVar[tuple[str, ...]] = ("entities", "relationships", "aliases")

    source: Literal["text", "index"] = "text"
    entities: Measure = "f1"
    relationships: Measure = "recall"

    @property
    def needs(self) -> tuple[str, ...]:
        """A built index, unless texts are read."""
        return ("index",) if self.source == "index" else ()

    def check(self, case: TestCase) -> None:
        """Raise ValueError for a case that expects nothing, or has no text to read."""
        takes = ("text", "document") if self.source == "index" else ("text",)
        inputs, expected = check_case(case, takes, self.expects)
        if expected.entities is None and expected.relationships is None:
            raise ValueError("expected_output: expects neither entities nor relationships")
        if self.source == "text" and not (inputs.text or "").strip():
            raise ValueError("input_data.text is missing")

    async def _score(self, case: TestCase, expected: CaseExpected, output: Output) -> Scored:
        extraction = cast("Extraction", output["extraction"])
        rule = NameRule(expected.aliases, extraction.languages)
        parts: dict[str, float] = {}
        details: dict[str, object] = {"parts": parts}
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
        time = _time_part(expected, _seconds(output))
        if time is not None:
            parts["time"] = time
            reasons.append(f"time {time:.2f}")
        details["reason"] = "; ".join(reasons)
        return sum(parts.values()) / len(parts), details


class QueryResponse(StrictSection, MetricEvaluator):
    """Scores a method's answer against an expected answer, keywords, aspects and a time limit.

    The score is the weighted mean of the parts that a case expects: the judge's verdict on the
    answer (0 or 1), the share of keywords, the share of aspects, and the time score (see
    ``graphrag.eval.metrics.keyword_coverage``).

    ``weights``: answer, keywords, aspects and time -> weight, >= 0; a part left out counts 0.
    """

    model_config = ConfigDict(frozen=True)
    version: ClassVar[int] = 2
    metric: ClassVar[EvaluationMetric] = EvaluationMetric.RESPONSE_RELEVANCE
    expects: ClassVar[tuple[str, ...]] = ("answer", "keywords", "aspects")

    weights: dict[Part, float] = Field(default_factory=lambda: dict(_WEIGHTS))

    @model_validator(mode="after")
    def _positive(self) -> "QueryResponse":
        if min(self.weights.values(), default=0) < 0 or not 0 < sum(self.weights.values()) < 1e300:
            raise ValueError(f"weights must be at least 0, and one above it, not {self.weights}")
        return self

    @property
    def needs(self) -> tuple[str, ...]:
        """A method to ask, and the judge if the answer counts."""
        return ("methods", "judge") if self.weights.get("answer") else ("methods",)

    def check(self, case: TestCase) -> None:
        """Raise ValueError for a case that expects nothing with a weight."""
        _, expected = check_case(case, self.takes, self.expects)
        judged = 0.0 if expected.answer else None
        if not self._weighed(expected, "", 0.0, judged):
            names = ", ".join(get_args(Part))
            raise ValueError(f"expected_output names nothing that has a weight, of {names}")

    def _weighed(
        self, expected: CaseExpected, answer: str, seconds: float | None, judged: float | None
    ) -> dict[Part, float]:
        """Return the expected parts that have a weight; ``judged`` is the answer's verdict."""
        values: dict[Part, float | None] = {
            "answer": judged,
            "keywords": keyword_relevance(expected.keywords, answer),
            "aspects": aspect_coverage(expected.aspects, answer),
            "time": _time_part(expected, seconds),
        }
        return {k: v for k, v in values.items() if v is not None and self.weights.get(k)}

    async def _score(self, case: TestCase, expected: CaseExpected, output: Output) -> Scored:
        answer, judged = _answer(output), None
        if expected.answer and self.weights.get("answer"):
            judge = cast("Callable[[str, str, str], Awaitable[int]]", output["judge"])
            question = str(mapping_of(case.input_data)["query"])
            judged = float(await judge(question, expected.answer, answer))
        parts = self._weighed(expected, answer, _seconds(output), judged)
        total = reached = 0.0
        for part, value in parts.items():
            total, reached = total + self.weights[part], reached + self.weights[part] * value
        return min(1.0, reached / total), {
            "missed_keywords": [
                w for w in expected.keywords if keyword_relevance([w], answer) == 0
            ],
            "missed_aspects": [a for a in expected.aspects if aspect_coverage([a], answer) == 0],
            "parts": parts,
            "reason": ", ".join(f"{part} {value:.2f}" for part, value in parts.items()),
        }


_BUILT_IN: Mapping[str, type[BaseEvaluator]] = {
    "entity_extraction": EntityExtraction,
    "query_response": QueryResponse,
    **{kind.metric.value: kind for kind in FIVE[1:]},
}


def make_evaluator(suite: Suite, root: Path) -> BaseEvaluator:
    """Return the evaluator of a suite, after it has checked the cases.

    ``root`` is the folder of eval_config.yaml, where ``module:Class`` may be. Raises ConfigError if
    there is no such evaluator, or it refuses its settings or a case.
    """
    name, where = suite.evaluator, f"Suite {suite.name}"
    kind: object = load_method(name, root) if ":" in name else _BUILT_IN.get(name)
    if kind is None:
        hint = nearest(name, list(_BUILT_IN)) or "; write your own as module:Class"
        raise ConfigError(as_sentence(f"{where}: there is no evaluator {name!r}{hint}"))
    # Checked before it is called: a suite may come from anybody.
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
    """Return the needs that an evaluator names."""
    return cast("Sequence[str]", getattr(evaluator, "needs", ()))


def _result(metric: EvaluationMetric, score: float, details: dict[str, object]) -> EvaluationResult:
    return EvaluationResult(
        metric=metric, score=score, max_score=1.0, details=details, timestamp=datetime.now(UTC)
    )


def _read(form: TypeAdapter[_Values], values: object, name: str) -> _Values:
    try:
        return form.validate_python(values)
    except ValidationError as error:
        raise ValueError(f"{name}: {explain_values(error)}") from error


def _answer(output: Output) -> str:
    answer = next(fields_of(output.get("query_result", output), "answer"), None)
    if not isinstance(answer, str):
        raise ValueError("the output has no answer that is a text")
    return answer


def _seconds(output: Output) -> float | None:
    seconds: Any = output.get("processing_time")
    return None if seconds is None else float(seconds)


def _time_part(expected: CaseExpected, seconds: float | None) -> float | None:
    limit_s = expected.max_processing_time
    return None if limit_s is None else time_score(seconds, limit_s)
