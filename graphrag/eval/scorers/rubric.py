"""The rubric judge, and what it says of many answers."""

import asyncio
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag.eval.records import Failure
from graphrag.eval.scorers.asking import JudgeModel, ReplyForm, Unanswered
from graphrag.eval.scorers.evaluable import EvaluableQueryResult
from graphrag.eval.scorers.llm_evaluation import LLMEvaluation, RubricReply
from graphrag.eval.scorers.prompts.rubric import DIMENSIONS, REPLY_SHAPE, RUBRIC_VERSION
from graphrag.eval.scorers.rubric_prompt import LLMEvaluationPrompt
from graphrag.eval.stats.scales import ScaleEstimate, mean_scale

_WANTED = ReplyForm(RubricReply, REPLY_SHAPE)


class RubricJudge:
    """Grades answers on the rubric with a language model, one call an answer.

    Parameters
    ----------
    model, temperature, max_retries
        As of :class:`~graphrag.eval.scorers.judge.LLMJudge`.
    prompt : LLMEvaluationPrompt, optional
        How much of what was retrieved is shown.

    Notes
    -----
    A reply in which a dimension can't be read is asked for again. After the retries the reply
    with most readable dimensions counts; the others have score None and a failure.
    """

    version = RUBRIC_VERSION

    def __init__(
        self,
        model: Any,
        temperature: float = 0.0,
        max_retries: int = 2,
        prompt: LLMEvaluationPrompt | None = None,
    ) -> None:
        self._asked = JudgeModel(model, temperature, max_retries)
        self._prompt = prompt or LLMEvaluationPrompt()

    async def evaluate(self, result: EvaluableQueryResult) -> LLMEvaluation:
        """Grade one answer on the five dimensions; never raises."""
        prompt = self._prompt.generate(result)
        reply = await self._asked.ask(prompt, _WANTED)
        if not isinstance(reply, Unanswered):
            return LLMEvaluation.from_json(reply.model_dump_json())
        read = [_read_evaluation(text, prompt) for text in reply.replies]
        best = max(read, key=lambda evaluation: evaluation.n_scored, default=None)
        if best is None or best.n_scored == 0:
            return LLMEvaluation.unscored(reply.failure)
        return best

    async def evaluate_batch(
        self, results: Iterable[EvaluableQueryResult], concurrency: int = 8
    ) -> list[LLMEvaluation]:
        """Grade answers side by side; one that fails is unscored and the others are not.

        Parameters
        ----------
        results : iterable of EvaluableQueryResult
        concurrency : int
            Most answers that are graded at the same time, >= 1.

        Returns
        -------
        list of LLMEvaluation
            One a result, in their order.

        Raises
        ------
        ValueError
            If ``concurrency`` is below 1.
        """
        if concurrency < 1:
            msg = f"concurrency must be at least 1, not {concurrency}"
            raise ValueError(msg)
        places = asyncio.Semaphore(concurrency)

        async def grade(result: EvaluableQueryResult) -> LLMEvaluation:
            async with places:
                return await self.evaluate(result)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(grade(result)) for result in results]
        return [task.result() for task in tasks]


def _read_evaluation(text: str, shown: str) -> LLMEvaluation:
    try:
        return LLMEvaluation.from_json(text, shown)
    except ValueError as error:
        return LLMEvaluation.unscored(Failure("judge", "unreadable", str(error)))


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
            "ci_method": estimate.method,
            "distribution": {
                str(score): self.scale.distribution.get(float(score), 0) for score in range(1, 6)
            },
            "share_at_least_4": high.mean,
            "share_at_least_4_ci": None if high.low is None else [high.low, high.high],
        }


def summarize_rubric(
    evaluations: Sequence[LLMEvaluation | None], documents: Sequence[Hashable] | None = None
) -> dict[str, DimensionSummary]:
    """Reduce the evaluations of one method to a summary a dimension.

    Parameters
    ----------
    evaluations : sequence
        One an answer; None where there was nothing to judge, as when the search failed. A
        missing grade is left out of the mean and counted, never read as a 1.
    documents : sequence, optional
        The document of each, same length; None: not known.

    Returns
    -------
    dict
        Dimension -> summary, in the order of the rubric.
    """
    summaries: dict[str, DimensionSummary] = {}
    for name in DIMENSIONS:
        scores = [e.grades[name].score if e is not None else None for e in evaluations]
        scored = sum(score is not None for score in scores)
        summaries[name] = DimensionSummary(len(scores), scored, mean_scale(scores, documents))
    return summaries
