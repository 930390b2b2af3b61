"""The evaluators that weigh several parts, and which evaluator scores a suite."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, cast, get_args

from pydantic import ConfigDict, Field, ValidationError, model_validator

from graphrag.config.models.strict_section import StrictSection, as_sentence, nearest
from graphrag.eval.errors import ConfigError
from graphrag.eval.runner.methods import load_method
from graphrag.eval.scorers.entities import (
    MatchScores,
    NameRule,
    score_entities,
    score_relationships,
)
from graphrag.eval.scorers.wording import aspect_coverage, keyword_relevance, time_score
from graphrag.eval.suite.cases import CaseExpected, CaseInput, Suite, explain_values, read_case
from graphrag.eval.suite.evaluation import Evaluated, Evaluator, TestCase
from graphrag.eval.suite.framework import (
    GraphConnectivityEvaluator,
    ProcessingTimeEvaluator,
    ResponseCompletenessEvaluator,
    ResponseRelevanceEvaluator,
)
from graphrag.eval.suite.tools import CaseTools, describe_extraction

Measure = Literal["f1", "precision", "recall"]
Part = Literal["answer", "keywords", "aspects", "time"]
_WEIGHTS: dict[Part, float] = {"answer": 0.5, "keywords": 0.2, "aspects": 0.2, "time": 0.1}


class EntityExtraction(StrictSection):
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
        given, expected = self._read(case)
        if expected.entities is None and expected.relationships is None:
            msg = "expected_output: expects neither entities nor relationships"
            raise ValueError(msg)
        if self.source == "text" and not (given.text or "").strip():
            msg = "input_data.text is missing"
            raise ValueError(msg)

    def _read(self, case: TestCase) -> tuple[CaseInput, CaseExpected]:
        takes = ("text", "document") if self.source == "index" else ("text",)
        return read_case(case, takes, ("entities", "relationships", "aliases"))

    async def evaluate(self, case: TestCase, tools: CaseTools) -> Evaluated:
        """Extract and compare."""
        given, expected = self._read(case)
        if self.source == "text":
            found = await tools.extract(given.text or "")
        else:
            found = await tools.indexed(given.text, given.document)
        rule = NameRule(aliases=expected.aliases)
        scores: dict[str, tuple[Measure, MatchScores]] = {}
        if expected.entities is not None:
            matched = score_entities(found.entities, expected.entities, rule)
            scores["entities"] = (self.entities, matched)
        if expected.relationships is not None:
            pairs = expected.relationships
            matched = score_relationships(found.relationships, pairs, rule, directed=False)
            scores["relationships"] = (self.relationships, matched)
        parts: dict[str, float] = {}
        findings: dict[str, tuple[str, ...]] = {}
        reasons: list[str] = []
        for name, (measure, each) in scores.items():
            value = cast("float | None", getattr(each, measure))
            # Nothing found where nothing is expected is right.
            parts[name] = float(each.n_expected == 0) if value is None else value
            findings[f"missed {name}"] = each.missed
            findings[f"unexpected {name}"] = () if measure == "recall" else each.unexpected
            reasons.append(
                f"{name} {measure} {parts[name]:.2f} ({each.n_matched} of {each.n_expected} "
                f"expected among {each.n_found} found)"
            )
        if expected.max_processing_time is not None:
            seconds = tools.kept.seconds[-1]
            parts["time"] = cast("float", time_score(seconds, expected.max_processing_time))
            reasons.append(f"time {parts['time']:.2f}")
        return Evaluated(
            score=sum(parts.values()) / len(parts),
            reason="; ".join(reasons),
            output=describe_extraction(found),
            parts=parts,
            findings={kind: names for kind, names in findings.items() if names},
        )


class QueryResponse(StrictSection):
    """A method's answer against an expected answer, keywords, aspects and a time limit.

    The score is the weighted mean of the parts that a case expects: the judge's verdict on the
    answer (0 or 1), the share of keywords, the share of aspects, and the time score (see
    ``graphrag.eval.scorers.wording``).

    ``weights`` is answer, keywords, aspects and time -> weight, >= 0; one left out counts 0.
    """

    model_config = ConfigDict(frozen=True)
    version: ClassVar[int] = 2

    weights: dict[Part, float] = Field(default_factory=lambda: dict(_WEIGHTS))

    @model_validator(mode="after")
    def _positive(self) -> "QueryResponse":
        if any(weight < 0 for weight in self.weights.values()) or not any(self.weights.values()):
            msg = f"weights must be at least 0, and one above it, not {self.weights}"
            raise ValueError(msg)
        return self

    @property
    def needs(self) -> tuple[str, ...]:
        """A method to ask, and the judge where the answer counts."""
        return ("methods", "judge") if self.weights.get("answer") else ("methods",)

    def check(self, case: TestCase) -> None:
        """Refuse a case whose input or expected output can't be used."""
        _, expected = self._read(case)
        measured = self._measured(expected, "", 0.0)
        measured["answer"] = expected.answer or None
        if not any(self.weights.get(part) for part, each in measured.items() if each is not None):
            names = ", ".join(get_args(Part))
            msg = f"expected_output names nothing that has a weight, of {names}"
            raise ValueError(msg)

    def _read(self, case: TestCase) -> tuple[CaseInput, CaseExpected]:
        return read_case(case, ("query",), ("answer", "keywords", "aspects"))

    @staticmethod
    def _measured(expected: CaseExpected, answer: str, seconds: float | None) -> dict[Part, Any]:
        """Return what is measured of the parts without the judge; None of what is not expected."""
        limit = expected.max_processing_time
        return {
            "keywords": keyword_relevance(expected.keywords, answer),
            "aspects": aspect_coverage(expected.aspects, answer),
            "time": None if limit is None else time_score(seconds, limit),
        }

    async def evaluate(self, case: TestCase, tools: CaseTools) -> Evaluated:
        """Ask and compare."""
        given, expected = self._read(case)
        question = given.query or ""
        found = await tools.search(question)
        answer = found.response
        measured = self._measured(expected, answer, found.latency_s)
        if expected.answer and self.weights.get("answer"):
            verdict = await tools.judge_correctness(question, expected.answer, answer)
            measured["answer"] = float(verdict)
        parts: dict[str, float] = {}
        total = reached = 0.0
        for part in get_args(Part):
            weight = self.weights.get(part)
            if measured.get(part) is not None and weight:
                parts[part] = measured[part]
                total, reached = total + weight, reached + weight * parts[part]
        missed = {
            "missed keywords": tuple(
                w for w in expected.keywords if keyword_relevance([w], answer) == 0
            ),
            "missed aspects": tuple(
                a for a in expected.aspects if aspect_coverage([a], answer) == 0
            ),
        }
        return Evaluated(
            score=min(1.0, reached / total),
            reason=", ".join(f"{part} {value:.2f}" for part, value in parts.items()),
            output=answer,
            parts=parts,
            findings={kind: names for kind, names in missed.items() if names},
        )


_BUILT_IN: Mapping[str, type[Evaluator]] = {
    "entity_extraction": EntityExtraction,
    "query_response": QueryResponse,
    "response_relevance": ResponseRelevanceEvaluator,
    "response_completeness": ResponseCompletenessEvaluator,
    "query_processing_time": ProcessingTimeEvaluator,
    "graph_connectivity": GraphConnectivityEvaluator,
}


def make_evaluator(
    suite: Suite, root: Path, registered: Mapping[str, Evaluator] | None = None
) -> Evaluator:
    """Return the evaluator of a suite, its cases checked.

    ``root`` is the folder of eval_config.yaml, where ``module:Class`` may lie; ``registered`` is
    name -> evaluator, whose settings are not touched. ConfigError if there is no such evaluator,
    it refuses its settings, or a case.
    """
    given = registered or {}
    evaluator = given[suite.evaluator] if suite.evaluator in given else _make(suite, root, given)
    check = getattr(evaluator, "check", None)
    for case in suite.cases if check is not None else ():
        try:
            cast("Any", check)(case)
        except ValueError as error:
            msg = f"Suite {suite.name}, case {case.id!r}: {error}."
            raise ConfigError(msg) from error
    return evaluator


def needs_of(evaluator: Evaluator) -> Sequence[str]:
    """Return what an evaluator says it needs."""
    return cast("Sequence[str]", getattr(evaluator, "needs", ()))


def is_built_in(evaluator: Evaluator) -> bool:
    """Whether it is one of this project's, each of which reads an index or asks its models."""
    return type(evaluator) in _BUILT_IN.values()


def _make(suite: Suite, root: Path, registered: Mapping[str, Evaluator]) -> Evaluator:
    name = suite.evaluator
    kind: Any = load_method(name, root) if ":" in name else _BUILT_IN.get(name)
    if kind is None:
        hint = nearest(name, [*_BUILT_IN, *registered]) or "; write your own as module:Class"
        raise ConfigError(as_sentence(f"Suite {suite.name}: there is no evaluator {name!r}{hint}"))
    # Asked before it is called: a suite may be anybody's.
    if not callable(getattr(kind, "evaluate", None)):
        raise ConfigError(f"Suite {suite.name}: {name} has no method evaluate(case, tools).")
    try:
        return cast("Evaluator", kind(**suite.settings))
    except ValidationError as error:
        msg = f"Suite {suite.name}: settings: {explain_values(error)}."
        raise ConfigError(msg) from error
    except (TypeError, ValueError) as error:
        msg = f"Suite {suite.name}: {name} refuses its settings: {error}."
        raise ConfigError(msg) from error
