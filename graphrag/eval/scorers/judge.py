"""The judge: a model that grades one response on one metric at a time."""

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, ClassVar, Literal, Protocol

from pydantic import BeforeValidator

from graphrag.eval.dataset.samples import Sample
from graphrag.eval.judged import JUDGED_METRICS
from graphrag.eval.records import JudgeResult, MetricScores
from graphrag.eval.scorers.asking import (
    JudgeModel,
    ReasonedForm,
    Unanswered,
    fill_prompt,
    whole_number,
)

CORRECTNESS_PROMPT = JUDGED_METRICS["correctness"].prompt
FAITHFULNESS_PROMPT = JUDGED_METRICS["faithfulness"].prompt
RELEVANCE_PROMPT = JUDGED_METRICS["relevance"].prompt
COMPLETENESS_PROMPT = JUDGED_METRICS["completeness"].prompt


class JudgeReply(ReasonedForm):
    """What the judge must reply; the reason comes first, so that the score follows from it."""

    shape: ClassVar[str] = '{"reason": "...", "score": 0 or 1}'

    reason: str
    score: Annotated[Literal[0, 1], BeforeValidator(whole_number)]


class Judge(Protocol):
    """Grades responses: :class:`LLMJudge` or any object with this method.

    Where it has ``judge_<name>`` for a metric that is asked by itself, that is asked, given the
    metric's fields in order.
    """

    async def evaluate_all(
        self, question: str, ground_truth: str, predicted: str, context: str
    ) -> MetricScores:
        """Grade a response on the four metrics that are judged by default; never raises."""
        ...


class LLMJudge:
    """Grades with a language model.

    Parameters
    ----------
    model : LLMCompletion or object
        A graphrag_llm completion, or any object whose ``completion_async`` is a coroutine
        function, asked without streaming for a structured reply; else any object whose
        ``achat_stream(prompt=, history=, model_parameters=)`` yields text.
    temperature : float
        Sampling temperature, 0 to 2.
    max_retries : int
        How often a reply that can't be read is asked for again, >= 0.

    Notes
    -----
    A reply that stays unreadable, and a call that fails, give score None and a reason that
    says so; they are never read as a grade.
    """

    def __init__(self, model: object, temperature: float = 0.0, max_retries: int = 2) -> None:
        JudgeModel(model, temperature, max_retries)  # refuses a model that can't be asked
        self.model = model
        self.temperature = temperature
        self.max_retries = max_retries

    async def judge_correctness(
        self, question: str, ground_truth: str, predicted: str
    ) -> JudgeResult:
        """Score 1 if ``predicted`` means the same as ``ground_truth``, wording aside, else 0."""
        return await self._grade(
            "correctness", question=question, ground_truth=ground_truth, predicted=predicted
        )

    async def judge_faithfulness(self, context: str, answer: str) -> JudgeResult:
        """Score 1 if every claim of ``answer`` can be traced to ``context``, else 0."""
        return await self._grade("faithfulness", context=context, answer=answer)

    async def judge_relevance(self, question: str, context: str) -> JudgeResult:
        """Score 1 if ``context`` helps to answer ``question``, else 0."""
        return await self._grade("relevance", question=question, context=context)

    async def judge_completeness(self, question: str, answer: str) -> JudgeResult:
        """Score 1 if ``answer`` addresses every part of ``question``, else 0."""
        return await self._grade("completeness", question=question, answer=answer)

    async def evaluate_all(
        self, question: str, ground_truth: str, predicted: str, context: str
    ) -> MetricScores:
        """Grade a response on the four default metrics at the same time; never raises."""
        results = await asyncio.gather(
            self.judge_correctness(question, ground_truth, predicted),
            self.judge_faithfulness(context, predicted),
            self.judge_relevance(question, context),
            self.judge_completeness(question, predicted),
        )
        return MetricScores(*results)

    async def judge_metric(
        self, metric: str, question: str, ground_truth: str, predicted: str, context: str
    ) -> JudgeResult:
        """Grade a response on a metric by its name; what the metric does not read is not sent."""
        material = JUDGED_METRICS[metric].material(question, ground_truth, predicted, context)
        return await self._grade(metric, **material)

    async def _grade(self, metric: str, **material: str) -> JudgeResult:
        asked = JudgeModel(self.model, self.temperature, self.max_retries)
        reply = await asked.ask(fill_prompt(_template(metric), material), JudgeReply)
        if isinstance(reply, Unanswered):
            return JudgeResult(None, reply.reason, reply.failure)
        return JudgeResult(reply.score, reply.reason)


@lru_cache
def _template(metric: str) -> str:
    return JUDGED_METRICS[metric].prompt


def judgeable(sample: Sample, metrics: Sequence[str]) -> tuple[str, ...]:
    """Return what a response to a sample can be judged on.

    Without an answer that is right, nothing can be said of a metric that reads it.
    """
    if not sample.names_sources_only:
        return tuple(metrics)
    return tuple(name for name in metrics if "ground_truth" not in JUDGED_METRICS[name].fields)
