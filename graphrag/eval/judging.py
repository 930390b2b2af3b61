"""Asking the judge for the verdicts on one response, as often as the configuration says."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from graphrag.eval.errors import RunStoppedError
from graphrag.eval.metrics.judge import Judge
from graphrag.eval.plan import Unit
from graphrag.eval.records import METRICS, JudgeResult, combine_repeats
from graphrag.eval.stored import StoredResponse


async def ask_verdicts(
    judge: Judge, unit: Unit, found: StoredResponse, metrics: Sequence[str], repeats: int
) -> dict[str, JudgeResult]:
    """Return metric -> verdict, the majority of ``repeats`` verdicts.

    Raises
    ------
    RunStoppedError
        If the judge's service would refuse every further request as well.
    """
    given = await asyncio.gather(*(_ask(judge, unit, found, metrics) for _ in range(repeats)))
    for verdict in (verdict for verdicts in given for verdict in verdicts.values()):
        if verdict.failure is not None and verdict.failure.kind == "refused":
            msg = f"The judge's service refuses the requests: {verdict.failure.message}"
            raise RunStoppedError(msg)
    return {metric: combine_repeats([verdicts[metric] for verdicts in given]) for metric in metrics}


async def _ask(
    judge: Judge, unit: Unit, found: StoredResponse, metrics: Sequence[str]
) -> dict[str, JudgeResult]:
    """Ask the judge once for each metric."""
    question, truth = unit.sample.question, unit.sample.ground_truth
    response, context = found.response, found.context_text
    if set(metrics) == set(METRICS):
        scores = await judge.evaluate_all(
            question=question, ground_truth=truth, predicted=response, context=context
        )
        return {metric: scores.get(metric) for metric in metrics}
    ask: dict[str, Callable[[], Any]] = {
        "correctness": lambda: judge.judge_correctness(question, truth, response),
        "faithfulness": lambda: judge.judge_faithfulness(context, response),
        "relevance": lambda: judge.judge_relevance(question, context),
        "completeness": lambda: judge.judge_completeness(question, response),
    }
    given = await asyncio.gather(*(ask[metric]() for metric in metrics))
    return dict(zip(metrics, given, strict=True))
