"""The rubric judge: five dimensions of one answer, each graded from 1 to 5 with a reason."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator, model_validator

from graphrag.eval.metrics.asking import (
    JudgeModel,
    ReplyForm,
    Unanswered,
    fill_reason,
    whole_number,
)
from graphrag.eval.metrics.evaluable import (
    EvaluableEntity,
    EvaluableQueryResult,
    EvaluableQueryResultBuilder,
    EvaluableRelationship,
)
from graphrag.eval.metrics.prompts.rubric import (
    DIMENSIONS,
    REPLY_SHAPE,
    RUBRIC_PROMPT,
    RUBRIC_VERSION,
)
from graphrag.eval.records import Failure
from graphrag.eval.statistics import ScaleEstimate, mean_scale
from graphrag.query.models import UnreadableReplyError, read_reply

__all__ = [
    "DIMENSIONS",
    "RUBRIC_PROMPT",
    "RUBRIC_VERSION",
    "DimensionSummary",
    "EvaluableEntity",
    "EvaluableQueryResult",
    "EvaluableQueryResultBuilder",
    "EvaluableRelationship",
    "Grade",
    "LLMEvaluation",
    "LLMEvaluationPrompt",
    "RubricJudge",
    "summarize_rubric",
]

_WORD = re.compile(r"\w+")
_MIN_WORD_CHARS = 4


@dataclass(frozen=True, slots=True)
class Grade:
    """One dimension's grade.

    Attributes
    ----------
    score : int or None
        1 to 5; None when unscored.
    reasoning : str
        The judge's, or why there is no score.
    failure : Failure or None
        Why the judge gave no grade; None for a grade.
    """

    score: int | None
    reasoning: str
    failure: Failure | None = None

    def __post_init__(self) -> None:
        score: Any = self.score
        if score is not None and (type(score) is not int or not 1 <= score <= 5):
            msg = f"a grade is a whole number from 1 to 5, or None, not {self.score!r}"
            raise ValueError(msg)

    def to_dict(self) -> dict[str, Any]:
        """Return {score, reasoning, failure}."""
        failure = None if self.failure is None else self.failure.to_dict()
        return {"score": self.score, "reasoning": self.reasoning, "failure": failure}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Grade":
        """Read what :meth:`to_dict` gave."""
        failure: dict[str, Any] | None = values["failure"]
        return cls(values["score"], values["reasoning"], Failure(**failure) if failure else None)


class GradeReply(BaseModel):
    """What the judge must reply for a dimension; the reasoning first, the score follows from it."""

    model_config = ConfigDict(extra="ignore")

    reasoning: str
    score: Literal[1, 2, 3, 4, 5]

    @model_validator(mode="before")
    @classmethod
    def _without_reasoning(cls, values: Any) -> Any:
        return fill_reason(values, "reasoning")

    @field_validator("score", mode="before")
    @classmethod
    def _plain_number(cls, value: Any) -> Any:
        return whole_number(value)


class RubricReply(BaseModel):
    """What the judge must reply."""

    model_config = ConfigDict(extra="ignore")

    relevance: GradeReply
    faithfulness: GradeReply
    completeness: GradeReply
    coherence: GradeReply
    groundedness: GradeReply


class _SomeGrades(BaseModel):
    """A reply that names at least one dimension, whatever it says of it."""

    model_config = ConfigDict(extra="allow")

    @model_validator(mode="before")
    @classmethod
    def _names_one(cls, values: Any) -> Any:
        if not any(name in values for name in DIMENSIONS):
            msg = f"it names none of {', '.join(DIMENSIONS)}"
            raise ValueError(msg)
        return values


@dataclass(frozen=True, slots=True)
class LLMEvaluation:
    """The grades of one answer, one a dimension."""

    relevance: Grade
    faithfulness: Grade
    completeness: Grade
    coherence: Grade
    groundedness: Grade

    @classmethod
    def from_json(cls, text: str) -> "LLMEvaluation":
        """Read a judge's reply: a JSON object alone, in a code block, or with prose around it.

        Never raises: a dimension that is missing, or whose score is no whole number from 1 to
        5, has score None and a failure that says so, and the others keep their grades. A text
        with several such objects has no grade.
        """
        return _read_evaluation(text)

    @classmethod
    def unscored(cls, failure: Failure) -> "LLMEvaluation":
        """Return an evaluation without a grade."""
        return cls(*(_no_grade(failure) for _ in DIMENSIONS))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "LLMEvaluation":
        """Read what :meth:`to_dict` gave."""
        return cls(*(Grade.from_dict(values[name]) for name in DIMENSIONS))

    @property
    def grades(self) -> dict[str, Grade]:
        """Dimension -> grade, in the order of the rubric."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def n_scored(self) -> int:
        """Dimensions with a score."""
        return sum(grade.score is not None for grade in self.grades.values())

    @property
    def overall(self) -> float | None:
        """Mean of the five scores, in [1, 5]; None while one is missing."""
        scores = [grade.score for grade in self.grades.values() if grade.score is not None]
        return sum(scores) / len(scores) if len(scores) == len(DIMENSIONS) else None

    def passes_threshold(self, minimum: float) -> bool:
        """Whether every dimension is scored and has at least ``minimum``."""
        scores = [grade.score for grade in self.grades.values()]
        return all(score is not None and score >= minimum for score in scores)

    def weakest_dimension(self) -> str | None:
        """Return the scored dimension with the lowest score; of equal ones the rubric's first."""
        scored = {n: g.score for n, g in self.grades.items() if g.score is not None}
        return min(scored, key=scored.__getitem__) if scored else None

    def to_dict(self) -> dict[str, Any]:
        """Return dimension -> {score, reasoning, failure}."""
        return {name: grade.to_dict() for name, grade in self.grades.items()}

    def report(self) -> str:
        """Return the grades and reasons as a Markdown list, the overall mean at its head."""
        overall = "not scored in full" if self.overall is None else f"{self.overall:.1f} of 5"
        lines = [f"Overall: {overall}"]
        for name, grade in self.grades.items():
            shown = "unscored" if grade.score is None else f"{grade.score} of 5"
            lines.append(f"- {name}: {shown}. {' '.join(grade.reasoning.split())}")
        if self.n_scored:
            lines.append(f"Weakest: {self.weakest_dimension()}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class LLMEvaluationPrompt:
    """The prompt about one result; the method's name is not in it.

    Parameters
    ----------
    result : EvaluableQueryResult
    n_entities, n_relationships, n_texts : int
        How many of each are shown, from the top.
    preview_chars : int
        Length of a text's preview in characters (>= 1): the passage that shares most words
        with question and answer, as the part that bears an answer out seldom comes first.
    """

    result: EvaluableQueryResult
    n_entities: int = 10
    n_relationships: int = 10
    n_texts: int = 5
    preview_chars: int = 600

    def material(self) -> dict[str, Any]:
        """Return what the judge is shown, field by field."""
        shown = self.result
        wanted = _words(f"{shown.question} {shown.answer}")
        return {
            "question": shown.question,
            "answer": shown.answer,
            "entities": [
                {"name": entity.name, "type": entity.type or None}
                for entity in shown.entities[: self.n_entities]
            ],
            "relationships": [asdict(edge) for edge in shown.relationships[: self.n_relationships]],
            "texts": [
                preview(text, wanted, self.preview_chars) for text in shown.texts[: self.n_texts]
            ],
        }

    def render(self) -> str:
        """Return the prompt; everything that is judged stands in it as JSON."""
        quoted = {
            name: json.dumps(value, ensure_ascii=False) for name, value in self.material().items()
        }
        return RUBRIC_PROMPT.format(**quoted)


_WANTED = ReplyForm(RubricReply, REPLY_SHAPE)


class RubricJudge:
    """Grades answers on the rubric with a language model, one call an answer.

    Parameters
    ----------
    model, temperature, max_retries
        As of :class:`~graphrag.eval.metrics.judge.LLMJudge`.

    Notes
    -----
    A reply in which a dimension can't be read is asked for again. After the retries the reply
    with most readable dimensions counts; the others have score None and a failure.
    """

    version = RUBRIC_VERSION

    def __init__(self, model: Any, temperature: float = 0.0, max_retries: int = 2) -> None:
        self._asked = JudgeModel(model, temperature, max_retries)

    async def evaluate(self, result: EvaluableQueryResult) -> LLMEvaluation:
        """Grade one answer on the five dimensions; never raises."""
        prompt = LLMEvaluationPrompt(result).render()
        reply = await self._asked.ask(prompt, _WANTED)
        if not isinstance(reply, Unanswered):
            return LLMEvaluation.from_json(reply.model_dump_json())
        read = [_read_evaluation(text, prompt) for text in reply.replies]
        best = max(read, key=lambda evaluation: evaluation.n_scored, default=None)
        if best is None or best.n_scored == 0:
            return LLMEvaluation.unscored(reply.failure)
        return best


@dataclass(frozen=True, slots=True)
class DimensionSummary:
    """A dimension over many answers.

    Attributes
    ----------
    n_planned, n_scored : int
        Answers, and those with a grade.
    scale : ScaleEstimate
        Mean in [1, 5] with its t interval, distribution, share of 4 and 5.
    """

    n_planned: int
    n_scored: int
    scale: ScaleEstimate

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values; ``distribution`` has a count for each of "1" to "5"."""
        estimate, high = self.scale.estimate, self.scale.share_at_least_4
        ends = [estimate.low, estimate.high]
        return {
            "n_planned": self.n_planned,
            "n_scored": self.n_scored,
            "mean": estimate.mean,
            "ci": None if estimate.low is None else ends,
            "distribution": {
                str(score): self.scale.distribution.get(float(score), 0) for score in range(1, 6)
            },
            "share_at_least_4": high.mean,
            "share_at_least_4_ci": None if high.low is None else [high.low, high.high],
        }


def summarize_rubric(evaluations: Sequence[LLMEvaluation | None]) -> dict[str, DimensionSummary]:
    """Reduce the evaluations of one method to a summary a dimension.

    Parameters
    ----------
    evaluations : sequence
        One an answer; None where there was nothing to judge, as when the search failed. A
        missing grade is left out of the mean and counted, never read as a 1.

    Returns
    -------
    dict
        Dimension -> summary, in the order of the rubric.
    """
    summaries: dict[str, DimensionSummary] = {}
    for name in DIMENSIONS:
        scores = [e.grades[name].score if e is not None else None for e in evaluations]
        scored = sum(score is not None for score in scores)
        summaries[name] = DimensionSummary(len(scores), scored, mean_scale(scores))
    return summaries


def preview(text: str, wanted: Iterable[str], max_chars: int) -> str:
    """Return the passage of a text that holds most of the wanted words.

    Parameters
    ----------
    text : str
    wanted : iterable of str
        Case-folded words.
    max_chars : int
        Longest passage in characters (>= 1), ellipses aside; the first of equal ones is taken.
    """
    flat = " ".join(text.split())
    if len(flat) <= max_chars:
        return flat
    found = frozenset(wanted)
    starts = [match.start() for match in _WORD.finditer(flat)]
    last = len(flat) - max_chars
    step = max(1, max_chars // 4)
    places = [0]
    for start in starts:
        if places[-1] + step <= start <= last:
            places.append(start)
    places.append(next((start for start in starts if start >= last), last))
    at = max(places, key=lambda place: len(_words(flat[place : place + max_chars]) & found))
    passage = flat[at : at + max_chars]
    end = at + max_chars
    if end < len(flat) and not flat[end].isspace() and " " in passage:
        passage = passage[: passage.rindex(" ")]
    return f"{'… ' if at else ''}{passage.rstrip()}{' …' if end < len(flat) else ''}"


def _words(text: str) -> frozenset[str]:
    words = (word.casefold() for word in _WORD.findall(text))
    return frozenset(word for word in words if len(word) >= _MIN_WORD_CHARS or word.isdigit())


def _read_evaluation(text: str, shown: str = "") -> LLMEvaluation:
    """Read a reply; ``shown`` as of :func:`read_reply`."""
    try:
        found = read_reply(text, _SomeGrades, shown).model_extra or {}
    except UnreadableReplyError as error:
        return LLMEvaluation.unscored(Failure("judge", "unreadable", str(error)))
    return LLMEvaluation(*(_read_grade(name, found.get(name)) for name in DIMENSIONS))


def _read_grade(name: str, found: Any) -> Grade:
    if found is None:
        return _no_grade(Failure("judge", "unreadable", f"{name} is missing in the judge's reply"))
    try:
        reply = GradeReply.model_validate(found)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join([name, *map(str, problem["loc"])])
        return _no_grade(Failure("judge", "unreadable", f"{where}: {problem['msg']}"))
    return Grade(reply.score, reply.reasoning)


def _no_grade(failure: Failure) -> Grade:
    return Grade(None, f"Unscored: {failure.message}", failure)
