"""What scores a case: the evaluators of this project, and how one's own is found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, TypeVar, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from graphrag.config.models.strict_section import StrictSection
from graphrag.eval.measures import (
    Extraction,
    MatchScores,
    NameRule,
    aspect_coverage,
    keyword_relevance,
    score_entities,
    score_relationships,
    time_score,
)
from graphrag.eval.suite.cases import SuiteCase, explain_values
from graphrag.eval.suite.tools import CaseTools, describe_extraction

Need = Literal["methods", "index", "judge"]
Form = TypeVar("Form", bound=BaseModel)
Part = Literal["answer", "keywords", "aspects", "time"]
_WEIGHTS: dict[Part, float] = {"answer": 0.5, "keywords": 0.2, "aspects": 0.2, "time": 0.1}


@dataclass(frozen=True, slots=True)
class Evaluated:
    """How well a case came out.

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


class Evaluator(Protocol):
    """Scores cases; any class with this method is one.

    Notes
    -----
    Three more attributes are looked at where a class has them. ``needs``, a tuple, says that
    each case is evaluated by every method ("methods"), that built indexes are read ("index"), or
    that the configured judge is asked ("judge"). ``check(case)`` raises ValueError for a case
    that can't be evaluated, before the run begins. ``version`` is kept with the run.
    """

    async def evaluate(self, case: SuiteCase, tools: CaseTools) -> Evaluated:
        """Score a case; what is raised is recorded as the failure of this case alone."""
        ...


class CaseInput(StrictSection):
    """What every case may give: its index, and what is only kept."""

    index: str | None = None
    context: dict[str, Any] | None = None
    language: str | None = None


class _ExtractionInput(CaseInput):
    text: str | None = None
    document: str | None = None


class _ExtractionExpected(StrictSection):
    entities: list[str] | None = None
    relationships: list[tuple[str, str]] | None = None
    aliases: dict[str, str] = Field(default_factory=dict[str, str])
    max_processing_time: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _any(self) -> "_ExtractionExpected":
        if self.entities is None and self.relationships is None:
            msg = "expects neither entities nor relationships"
            raise ValueError(msg)
        return self


class EntityExtraction(StrictSection):
    """Extracted entities and relationships against the expected ones.

    The score is the mean of the entities' measure and, where relationships are expected, of
    theirs, and of the time score where a time limit is given. Names are compared as
    ``graphrag.eval.measures.entities`` normalises them; relationships without direction.

    Attributes
    ----------
    source : {"text", "index"}
        "text": the case's text is read by the project's extraction prompt and model. "index":
        what the built index holds of the text units with that text, of a document, or of all;
        its lists are then longer than a passage's, so that only a recall means something.
    entities, relationships : {"f1", "precision", "recall"}
        Which measure counts.
    """

    model_config = ConfigDict(frozen=True)
    version: ClassVar[int] = 1

    source: Literal["text", "index"] = "text"
    entities: Literal["f1", "precision", "recall"] = "f1"
    relationships: Literal["f1", "precision", "recall"] = "recall"

    @property
    def needs(self) -> tuple[Need, ...]:
        """A built index, unless texts are read."""
        return ("index",) if self.source == "index" else ()

    def check(self, case: SuiteCase) -> None:
        """Refuse a case whose input or expected output can't be used."""
        given = read_values(_ExtractionInput, case.input_data, "input_data")
        read_values(_ExtractionExpected, case.expected_output, "expected_output")
        if self.source == "text" and not (given.text or "").strip():
            msg = "input_data.text is missing"
            raise ValueError(msg)
        if self.source == "text" and given.document is not None:
            msg = "input_data.document is only for the source index"
            raise ValueError(msg)

    async def evaluate(self, case: SuiteCase, tools: CaseTools) -> Evaluated:
        """Extract and compare."""
        given = read_values(_ExtractionInput, case.input_data, "input_data")
        expected = read_values(_ExtractionExpected, case.expected_output, "expected_output")
        if self.source == "text":
            found = await tools.extract(given.text or "")
        else:
            found = await tools.indexed(given.text, given.document)
        rule = NameRule(aliases=expected.aliases)
        scores: dict[str, MatchScores] = {}
        if expected.entities is not None:
            scores["entities"] = score_entities(found.entities, expected.entities, rule)
        if expected.relationships is not None:
            scores["relationships"] = score_relationships(
                found.relationships, expected.relationships, rule, directed=False
            )
        in_time = None
        if expected.max_processing_time is not None:
            in_time = time_score(tools.kept.seconds[-1], expected.max_processing_time)
        return self._evaluated(found, scores, in_time)

    def _evaluated(
        self, found: Extraction, scores: Mapping[str, MatchScores], in_time: float | None
    ) -> Evaluated:
        measures = {"entities": self.entities, "relationships": self.relationships}
        parts = {name: _value(each, measures[name]) for name, each in scores.items()}
        findings = {f"missed {name}": each.missed for name, each in scores.items()}
        for name, each in scores.items():
            if measures[name] != "recall":
                findings[f"unexpected {name}"] = each.unexpected
        reasons = [
            f"{name} {measures[name]} {parts[name]:.2f} ({each.n_matched} of {each.n_expected} "
            f"expected among {each.n_found} found)"
            for name, each in scores.items()
        ]
        if in_time is not None:
            parts["time"] = in_time
            reasons.append(f"time {in_time:.2f}")
        return Evaluated(
            score=sum(parts.values()) / len(parts),
            reason="; ".join(reasons),
            output=describe_extraction(found),
            parts=parts,
            findings={kind: names for kind, names in findings.items() if names},
        )


class QueryInput(CaseInput):
    """A case's question, under either of its two names."""

    question: str | None = Field(default=None, min_length=1)
    query: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _one(self) -> "QueryInput":
        if (self.question is None) == (self.query is None):
            is_missing = self.question is None
            msg = "question: is missing" if is_missing else "give question or query, not both"
            raise ValueError(msg)
        return self

    @property
    def text(self) -> str:
        """The question."""
        return self.question or self.query or ""


class _QueryExpected(StrictSection):
    answer: str | None = None
    keywords: list[str] = Field(default_factory=list[str])
    aspects: list[str] = Field(default_factory=list[str])
    time_limit_s: float | None = Field(default=None, gt=0)
    max_processing_time: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _one_limit(self) -> "_QueryExpected":
        if self.time_limit_s is not None and self.max_processing_time is not None:
            msg = "give time_limit_s or max_processing_time, not both"
            raise ValueError(msg)
        return self

    @property
    def limit_s(self) -> float | None:
        """The time limit, under either of its two names."""
        return self.max_processing_time if self.time_limit_s is None else self.time_limit_s


class QueryResponse(StrictSection):
    """A method's answer against an expected answer, keywords, aspects and a time limit.

    The score is the weighted mean of the parts that a case expects: the judge's verdict on the
    answer (0 or 1), the share of keywords, the share of aspects, and the time score (see
    ``graphrag.eval.measures.wording``).

    Attributes
    ----------
    weights : dict
        answer, keywords, aspects and time -> weight, >= 0; one left out counts 0.
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
    def needs(self) -> tuple[Need, ...]:
        """A method to ask, and the judge where the answer counts."""
        return ("methods", "judge") if self.weights.get("answer") else ("methods",)

    def check(self, case: SuiteCase) -> None:
        """Refuse a case whose input or expected output can't be used."""
        read_values(QueryInput, case.input_data, "input_data")
        expected = read_values(_QueryExpected, case.expected_output, "expected_output")
        wanted: dict[Part, bool] = {
            "answer": bool(expected.answer),
            "keywords": keyword_relevance(expected.keywords, "") is not None,
            "aspects": aspect_coverage(expected.aspects, "") is not None,
            "time": expected.limit_s is not None,
        }
        if not any(self.weights.get(part) for part, is_wanted in wanted.items() if is_wanted):
            names = ", ".join(get_args(Part))
            msg = f"expected_output names nothing that has a weight, of {names}"
            raise ValueError(msg)

    async def evaluate(self, case: SuiteCase, tools: CaseTools) -> Evaluated:
        """Ask and compare."""
        given = read_values(QueryInput, case.input_data, "input_data")
        expected = read_values(_QueryExpected, case.expected_output, "expected_output")
        found = await tools.search(given.text)
        answer = found.response
        measured: dict[Part, float | None] = {
            "keywords": keyword_relevance(expected.keywords, answer),
            "aspects": aspect_coverage(expected.aspects, answer),
        }
        if expected.limit_s is not None:
            measured["time"] = time_score(found.latency_s, expected.limit_s)
        if expected.answer and self.weights.get("answer"):
            measured["answer"] = float(
                await tools.judge_correctness(given.text, expected.answer, answer)
            )
        parts = {
            part: value
            for part in get_args(Part)
            if (value := measured.get(part)) is not None and self.weights.get(part)
        }
        total = sum(self.weights[part] for part in parts)
        findings = {
            "missed keywords": tuple(
                word for word in expected.keywords if keyword_relevance([word], answer) == 0
            ),
            "missed aspects": tuple(
                aspect for aspect in expected.aspects if aspect_coverage([aspect], answer) == 0
            ),
        }
        return Evaluated(
            score=min(1.0, sum(self.weights[part] * parts[part] for part in parts) / total),
            reason=", ".join(f"{part} {value:.2f}" for part, value in parts.items()),
            output=answer,
            parts=cast("dict[str, float]", parts),
            findings={kind: names for kind, names in findings.items() if names},
        )


def read_values(form: type[Form], values: object, where: str) -> Form:
    """Check values by a form; a ValueError says where what is wrong."""
    try:
        return form.model_validate({} if values is None else values)
    except ValidationError as error:
        msg = f"{where}: {explain_values(error)}"
        raise ValueError(msg) from error


def _value(scores: MatchScores, measure: str) -> float:
    """Return a measure; nothing found where nothing is expected is right."""
    value = cast("float | None", getattr(scores, measure))
    if value is not None:
        return value
    return float(scores.n_expected == 0)
