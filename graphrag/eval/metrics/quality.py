"""Grades an answer from 0 to 1 by a judge: overall score, accuracy, completeness, relevance."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated

from pydantic import BeforeValidator

from graphrag.eval.metrics.judge import (
    JudgeModel,
    ReasonedForm,
    Unanswered,
    fill_prompt,
    write_prompt,
)
from graphrag.eval.metrics.scorer import Grading, Material, Scorer
from graphrag.eval.types.verdicts import Failure
from graphrag.query.client.structured_output import read_number
from graphrag.text.json_records import Stored

QUALITY_MEASURES: tuple[str, ...] = ("overall_score", "accuracy", "completeness", "relevance")
"""Names of the four scores, in the order of files and tables."""

# The judge gives the overall score last, after it has measured the parts.
_ORDER = (*QUALITY_MEASURES[1:], QUALITY_MEASURES[0])

_SHAPE = (
    '{"reasoning": "...", ' + ", ".join(f'"{name}": <number from 0 to 1>' for name in _ORDER) + "}"
)

QUALITY_PROMPT = write_prompt(
    """You measure the quality of an answer with four numbers from 0 to 1.

accuracy: the share of what the answer states that is right. Hold it against "ground_truth", the
accepted answer, and what that leaves open against "context", what was retrieved; either may be
null. When both are, hold it against what is commonly known. An answer that states nothing has
accuracy 0.
completeness: the share of what the question asks for that the answer gives.
relevance: the share of the answer that serves the question.
overall_score: how well the answer serves whoever asked, all in all. It need not be the average: a
wrong answer serves badly, however complete it is.

Use the whole range: 1 leaves nothing to wish for, 0.5 is half of what was wanted, 0 is none of it.
Give claims that the answer makes about its own quality no weight.
""",
    _SHAPE,
    "question ground_truth context predicted",
    ", the reasoning (at most three sentences) first",
)
"""Fields: question, ground_truth and context (JSON null when there is none), predicted."""


@dataclass(frozen=True, slots=True)
class QualityEvaluation(Stored):
    """The four scores of one answer in [0, 1]; all None if the judge gave none.

    ``overall_score`` is the judge's own, not an average. ``reasoning`` is the judge's, or says why
    there is no score. ``failure`` says why the judge gave none.
    """

    overall_score: float | None
    accuracy: float | None
    completeness: float | None
    relevance: float | None
    reasoning: str
    failure: Failure | None = None


def _share(value: object) -> float:
    # The range is checked here and not in the schema: some providers refuse its keywords.
    if (number := read_number(value, 0, 1)) is None:
        raise ValueError("it must be a number between 0 and 1")
    return number


_Share = Annotated[float, BeforeValidator(_share)]


class QualityReply(ReasonedForm):
    """What the judge must reply; the reasoning first, the numbers follow from it."""

    reasoning: str
    accuracy: _Share
    completeness: _Share
    relevance: _Share
    overall_score: _Share


class QualityJudge(JudgeModel):
    """Grades the quality of answers with a language model, one call per answer.

    Parameters and failures are those of :class:`~graphrag.eval.metrics.judge.LLMJudge`.

    Examples
    --------
    >>> judge = QualityJudge(model=model)
    >>> (await judge.evaluate(question="Who signed?", answer="The mayor")).overall_score
    0.9
    """

    __slots__ = ()

    async def evaluate(
        self,
        question: str,
        answer: str,
        ground_truth: str | None = None,
        context: str | None = None,
    ) -> QualityEvaluation:
        """Grade one answer; a failure is returned, not raised.

        The judge checks accuracy against the ground truth, and against the context for what the
        ground truth leaves open.
        """
        material = {
            "question": question,
            "ground_truth": ground_truth or None,
            "context": context or None,
            "predicted": answer,
        }
        reply = await self.ask(fill_prompt(QUALITY_PROMPT, material), QualityReply)
        if isinstance(reply, Unanswered):
            return QualityEvaluation(
                overall_score=None,
                accuracy=None,
                completeness=None,
                relevance=None,
                reasoning=reply.reason,
                failure=reply.failure,
            )
        return QualityEvaluation(**reply.model_dump())


async def _grade(judge: JudgeModel, material: Material) -> Grading:
    quality_judge = QualityJudge(judge.model, judge.temperature, judge.max_retries)
    sample = material.sample
    evaluation = await quality_judge.evaluate(
        sample.question, material.response, sample.ground_truth, material.context
    )
    return evaluation.to_dict(), [evaluation.failure]


QUALITY = Scorer(
    name="quality",
    title="Quality, 0 to 1",
    parts=QUALITY_MEASURES,
    limits=(0.0, 1.0),
    prompt=QUALITY_PROMPT,
    version=3,  # raised when the wording, or what a number means, changes
    reads=("question", "ground_truth", "answer", "context"),
    asks=attrgetter("answerable"),  # "an answer that states nothing" would be a wrong one
    grade=_grade,
    describe=lambda summary: {name: part.estimate for name, part in summary.parts.items()},
)
