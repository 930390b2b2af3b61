"""What a rubric judge says of one answer: five dimensions, each from 1 to 5 with a reason."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator, model_validator

from graphrag.eval.records import Failure
from graphrag.eval.scorers.asking import fill_reason, whole_number
from graphrag.eval.scorers.prompts.rubric import DIMENSIONS
from graphrag.query.replies import StructuredReply, UnreadableReplyError, read_reply


@dataclass(frozen=True, slots=True)
class DimensionScore:
    """What one dimension of an answer is worth.

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
    def from_dict(cls, values: Mapping[str, Any]) -> "DimensionScore":
        """Read what :meth:`to_dict` gave."""
        failure: dict[str, Any] | None = values.get("failure")
        return cls(values["score"], values["reasoning"], Failure(**failure) if failure else None)


class DimensionReply(StructuredReply):
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


class RubricReply(StructuredReply):
    """What the judge must reply."""

    model_config = ConfigDict(extra="ignore")

    relevance: DimensionReply
    faithfulness: DimensionReply
    completeness: DimensionReply
    coherence: DimensionReply
    groundedness: DimensionReply
    overall_score: float | None
    summary: str

    @model_validator(mode="before")
    @classmethod
    def _as_a_whole(cls, values: Any) -> Any:
        """Let the dimensions count though what is said of the whole is missing or no grade."""
        if not isinstance(values, Mapping):
            return values
        given = cast("Mapping[str, Any]", values)
        whole = {"overall_score": _overall(given), "summary": _summary(given)}
        return {**given, **whole}


class _AnyObject(BaseModel):
    """A JSON object, whatever is in it."""

    model_config = ConfigDict(extra="allow")


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
    """The grades of one answer, one a dimension.

    Attributes
    ----------
    relevance, faithfulness, completeness, coherence, groundedness : DimensionScore
    overall_score : float or None
        In [1, 5]. None while a dimension is unscored; else the judge's own, and the mean of the
        five where it gave none from 1 to 5.
    summary : str
        The judge's; empty without one.
    """

    relevance: DimensionScore
    faithfulness: DimensionScore
    completeness: DimensionScore
    coherence: DimensionScore
    groundedness: DimensionScore
    overall_score: float | None = None
    summary: str = ""

    def __post_init__(self) -> None:
        scores = [grade.score for grade in self.grades.values() if grade.score is not None]
        overall = _grade_of_whole(self.overall_score)
        if len(scores) < len(DIMENSIONS):
            overall = None
        elif overall is None:
            overall = sum(scores) / len(scores)
        object.__setattr__(self, "overall_score", overall)

    @classmethod
    def from_json(cls, text: str, shown: str = "") -> "LLMEvaluation":
        """Read a judge's reply: a JSON object alone, in a code block, or with prose around it.

        A dimension that is missing, or whose score is no whole number from 1 to 5, has score None
        and a failure that says so, and the others keep their grades.

        Parameters
        ----------
        text : str
        shown : str, optional
            What the judge was shown; an object that stands in it too is taken for a quotation.

        Raises
        ------
        ValueError
            If the text holds no JSON object, or it can't be told which one is the reply.
        """
        try:
            found = read_reply(text, _SomeGrades, shown).model_extra or {}
        except UnreadableReplyError:
            found = read_reply(text, _AnyObject, shown).model_extra or {}
        grades = (_read_grade(name, found.get(name)) for name in DIMENSIONS)
        return cls(*grades, overall_score=_overall(found), summary=_summary(found))

    @classmethod
    def unscored(cls, failure: Failure) -> "LLMEvaluation":
        """Return five dimensions without a score, for one reason."""
        none = _no_grade(failure)
        return cls(none, none, none, none, none)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "LLMEvaluation":
        """Read what :meth:`to_dict` gave, or an earlier release, which kept no overall score."""
        grades = (DimensionScore.from_dict(values[name]) for name in DIMENSIONS)
        return cls(*grades, overall_score=_overall(values), summary=_summary(values))

    @property
    def grades(self) -> dict[str, DimensionScore]:
        """The grades by dimension, in the order of the rubric."""
        return {name: getattr(self, name) for name in DIMENSIONS}

    @property
    def n_scored(self) -> int:
        """Number of dimensions with a score, 0 to 5."""
        return sum(grade.score is not None for grade in self.grades.values())

    def passes_threshold(self, min_score: float) -> bool:
        """Whether the overall score is at least ``min_score``; False while there is none."""
        return self.overall_score is not None and self.overall_score >= min_score

    def weakest_dimension(self) -> tuple[str, DimensionScore] | None:
        """Return name and grade of the lowest score; of equal ones the rubric's first.

        None if no dimension is scored.
        """
        scored = {n: g.score for n, g in self.grades.items() if g.score is not None}
        if not scored:
            return None
        name = min(scored, key=scored.__getitem__)
        return name, self.grades[name]

    def to_dict(self) -> dict[str, Any]:
        """Return dimension -> {score, reasoning, failure}, overall_score and summary."""
        grades: dict[str, Any] = {name: grade.to_dict() for name, grade in self.grades.items()}
        return {**grades, "overall_score": self.overall_score, "summary": self.summary}

    def to_json(self) -> str:
        """Return :meth:`to_dict` as JSON, which :meth:`from_json` reads as a reply."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def report(self) -> str:
        """Return grades, reasons and summary as Markdown, the overall score at its head."""
        overall = self.overall_score
        shown = "not scored in full" if overall is None else f"{overall:.2f}/5.0"
        lines = [f"**Overall: {shown}**", ""]
        for name, grade in self.grades.items():
            score = "unscored" if grade.score is None else f"{grade.score}/5"
            lines.append(f"- {name.capitalize()}: {score}. {' '.join(grade.reasoning.split())}")
        if self.summary:
            lines += ["", " ".join(self.summary.split())]
        if (weakest := self.weakest_dimension()) is not None:
            lines += ["", f"Weakest: {weakest[0]} ({weakest[1].score}/5)"]
        return "\n".join(lines)


def _overall(found: Mapping[str, Any]) -> float | None:
    return _grade_of_whole(found.get("overall_score"))


def _grade_of_whole(value: Any) -> float | None:
    """Return a number from 1 to 5; None for all else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if isfinite(value) and 1 <= value <= 5 else None


def _summary(found: Mapping[str, Any]) -> str:
    value = found.get("summary")
    return value if isinstance(value, str) else ""


def _read_grade(name: str, found: Any) -> DimensionScore:
    if found is None:
        return _no_grade(Failure("judge", "unreadable", f"{name} is missing in the judge's reply"))
    try:
        reply = DimensionReply.model_validate(found)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join([name, *map(str, problem["loc"])])
        return _no_grade(Failure("judge", "unreadable", f"{where}: {problem['msg']}"))
    return DimensionScore(reply.score, reply.reasoning)


def _no_grade(failure: Failure) -> DimensionScore:
    return DimensionScore(None, f"Unscored: {failure.message}", failure)
