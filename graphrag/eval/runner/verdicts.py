"""Asking the judge for the verdicts on one response, as often as the configuration says."""

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, cast

from graphrag.eval.dataset.samples import Sample
from graphrag.eval.errors import EvalError, RunStoppedError
from graphrag.eval.judged.declaration import DEFAULT_METRICS
from graphrag.eval.judged.discovery import JUDGED_METRICS
from graphrag.eval.records import Failure, JudgeResult, combine_repeats
from graphrag.eval.runner.bounds import check_asked
from graphrag.eval.runner.units import Unit
from graphrag.eval.scorers.asking import NO_REASON, whole_number
from graphrag.eval.scorers.judge import Judge
from graphrag.eval.store.records import StoredResponse
from graphrag.query.calls import describe_error, is_refusal
from graphrag.query.usage import CallLog, current_scope

_NOTHING_TO_JUDGE = JudgeResult(None, "Nothing to judge: no answer was given")


def judgeable(sample: Sample, metrics: Sequence[str]) -> tuple[str, ...]:
    """Return what a response to a sample can be judged on.

    Without an answer that is right, nothing can be said of a metric that reads it.
    """
    if not sample.names_sources_only:
        return tuple(metrics)
    return tuple(name for name in metrics if "ground_truth" not in JUDGED_METRICS[name].fields)


async def ask_verdicts(
    judge: Judge, unit: Unit, found: StoredResponse, metrics: Sequence[str], repeats: int
) -> dict[str, JudgeResult]:
    """Return metric -> verdict, the majority of ``repeats`` verdicts.

    Of an abstention the judge is not asked what reads an answer, as faithfulness.

    Raises
    ------
    RunStoppedError
        If the judge's service would refuse every further request as well or is down, or the
        allowed cost is spent.
    """
    asked = [m for m in metrics if not found.abstained or JUDGED_METRICS[m].judges_abstentions]
    if repeats == 1:  # no task of its own
        given = [await _ask(judge, unit, found, asked)]
    else:
        given = await asyncio.gather(*(_ask(judge, unit, found, asked) for _ in range(repeats)))
    check_asked(current_scope() or CallLog())
    for verdict in (verdict for verdicts in given for verdict in verdicts.values()):
        if verdict.failure is not None and verdict.failure.kind == "refused":
            msg = f"The judge's service refuses the requests: {verdict.failure.message}"
            raise RunStoppedError(msg)
    verdicts = {metric: combine_repeats([each[metric] for each in given]) for metric in asked}
    return {metric: verdicts.get(metric, _NOTHING_TO_JUDGE) for metric in metrics}


async def _ask(
    judge: Judge, unit: Unit, found: StoredResponse, metrics: Sequence[str]
) -> dict[str, JudgeResult]:
    """Ask the judge once for each metric; an error of one's own judge is a verdict's failure."""
    material = {
        "question": unit.sample.question,
        "ground_truth": unit.sample.ground_truth,
        "predicted": found.response,
        "context": found.context_text,
    }
    together = [metric for metric in metrics if metric in DEFAULT_METRICS]
    if set(together) != set(DEFAULT_METRICS) and _judges_singly(judge, together):
        together = []
    singly = [metric for metric in metrics if metric not in together]
    if not singly:
        return await _ask_together(judge, together, material)
    given, single = await asyncio.gather(
        _ask_together(judge, together, material),
        asyncio.gather(*(_ask_one(judge, metric, material) for metric in singly)),
    )
    return {**given, **dict(zip(singly, single, strict=True))}


async def _ask_together(
    judge: Judge, metrics: Sequence[str], material: Mapping[str, str]
) -> dict[str, JudgeResult]:
    if not metrics:
        return {}
    try:
        scores = await _awaited(judge.evaluate_all(**material))
    except Exception as error:
        return dict.fromkeys(metrics, _failed(error))
    return {metric: read_verdict(_part(scores, metric)) for metric in metrics}


async def _ask_one(judge: Any, metric: str, material: Mapping[str, str]) -> JudgeResult:
    own = f"judge_{metric}"
    try:
        if metric in DEFAULT_METRICS or has_method(judge, own):
            read = JUDGED_METRICS[metric].material(**material)
            return read_verdict(await _awaited(getattr(judge, own)(*read.values())))
        return read_verdict(await _awaited(judge.judge_metric(metric, **material)))
    except Exception as error:
        return _failed(error)


def has_method(judge: object, name: str) -> bool:
    """Say whether a judge has a method; an object that answers to every name lists its own."""
    return name in dir(judge) or inspect.iscoroutinefunction(getattr(judge, name, None))


def _judges_singly(judge: object, metrics: Sequence[str]) -> bool:
    """Say whether a judge grades each of the metrics by itself; it need only have evaluate_all.

    An object that answers to every name lists what it was given.
    """
    names = [f"judge_{metric}" for metric in metrics]
    listed = dir(judge)
    if "evaluate_all" in listed:
        return set(names) <= set(listed)
    return all(inspect.iscoroutinefunction(getattr(judge, name, None)) for name in names)


async def _awaited(given: object) -> object:
    return await given if inspect.isawaitable(given) else given


def _failed(error: Exception) -> JudgeResult:
    """Return the verdict of a judge that raised.

    Raises
    ------
    EvalError
        One that concerns the whole run passes through.
    """
    if isinstance(error, EvalError):
        raise error
    message = describe_error(error)
    kind = "refused" if is_refusal(error) else "error"
    return JudgeResult(None, f"Unscored: {message}", Failure("judge", kind, message))


def _part(scores: object, metric: str) -> object:
    """Return a metric's verdict of MetricScores, a mapping, or an object with its attributes."""
    if isinstance(scores, Mapping):
        return cast("Mapping[str, object]", scores).get(metric)
    return getattr(scores, metric, None)


def read_verdict(given: object) -> JudgeResult:
    """Read a verdict: a JudgeResult, or what has a score of 0 or 1 and perhaps a reason.

    Anything else is unscored.
    """
    if isinstance(given, JudgeResult):
        return given
    score, reason = whole_number(_part(given, "score")), _part(given, "reason")
    if type(score) is int and score in (0, 1):
        return JudgeResult(score, reason if reason and isinstance(reason, str) else NO_REASON)
    message = f"the judge gave {type(given).__name__} without a score of 0 or 1"
    return JudgeResult(None, f"Unscored: {message}", Failure("judge", "unreadable", message))
