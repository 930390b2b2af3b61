"""What a search may take, and what is recorded of the answer or the failure."""

import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import cast

from graphrag.command_lines import config_name
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import AllowanceStop, ServiceDownStop
from graphrag.eval.records import Failure
from graphrag.eval.store.records import StoredResponse, Unit
from graphrag.query.calls import CONTEXT_IS_FULL, CutOffReplyError
from graphrag.query.limits import AllowanceSpentError, CallLimit, CallTime, Spending
from graphrag.query.usage import CallLog, OutputBound, Usage

_OF_JUDGE = "judge.max_output_tokens"
_LEAST_S = 60.0
_SO_RAISE = "of its replies were cut off, so raise"


def search_bound(config: EvaluationConfig) -> OutputBound:
    """Return the bound of the methods' replies."""
    return OutputBound(config.max_output_tokens, f"max_output_tokens in {config_name()}")


def judge_bound(config: EvaluationConfig) -> OutputBound:
    """Return the bound of the judge's replies."""
    setting = f"{_OF_JUDGE} in {config_name()}"
    return OutputBound(config.judge.max_output_tokens, setting)


def search_time(config: EvaluationConfig) -> CallTime:
    """Return what one request of a search may take."""
    given = config.request_timeout_s
    seconds = max(_LEAST_S, config.timeout_s / 2) if given is None else given
    return CallTime(seconds, f"request_timeout_s in {config_name()}")


def judge_time(config: EvaluationConfig) -> CallTime:
    """Return what one request to the judge may take."""
    own = config.judge.timeout_s
    seconds = search_time(config).seconds if own is None else own
    return CallTime(seconds, f"judge.timeout_s in {config_name()}")


def open_limit(
    config: EvaluationConfig, after_others: bool = False, spending: Spending | None = None
) -> CallLimit:
    """Return the limit that all calls of a run keep together; see ``CallLimit``."""
    return CallLimit(
        config.concurrency, config.patience_s, after_others=after_others, spending=spending
    )


def check_asked(log: CallLog) -> None:
    """Stop the run where what was to be asked was not: its service is down, or money is short.

    Raises ServiceDownStop or AllowanceStop: then nothing is recorded of the search or the judging.
    """
    if log.not_asked is not None:
        is_spent = isinstance(log.not_asked, AllowanceSpentError)
        stop = AllowanceStop if is_spent else ServiceDownStop
        raise stop(str(log.not_asked)) from log.not_asked


def search_failure(message: str, cause: BaseException | None, log: CallLog) -> Failure:
    """Return the failure of a search whose engine raised ``cause``; ``message`` is a sentence.

    Replies among the calls of its log that were cut off may be why it could not answer.
    """
    if isinstance(cause, CutOffReplyError):
        return Failure("search", "cut_off", message)
    n_cut = log.usage().cut_replies
    if n_cut and log.bound is not None:
        message += f"; {n_cut} {_SO_RAISE} {log.bound.setting}"
    return Failure("search", "error", message)


def needs_new_run(failure: Failure) -> bool:
    """Say whether a failure names a setting that counts into a run's setup.

    Time-outs and the bound of the judge's replies don't: with these changed, a run goes on.
    """
    if CONTEXT_IS_FULL in failure.message or _SO_RAISE in failure.message:
        return True
    return failure.kind == "cut_off" and _OF_JUDGE not in failure.message


def describe_timeout(seconds: float, log: CallLog) -> str:
    """Say that a search gave no response within so many seconds of its own, and what was slow."""
    given = f"no response within {seconds:g} s"
    if log.waited_s >= 0.1:
        given += f", {log.waited_s:.1f} s of waiting for its turn not counted"
    calls = log.attempts
    if not calls:
        return f"{given}, and no model was asked"
    slowest = max(calls, key=lambda attempt: attempt.latency_s)
    # Calls of one search may go on at the same time: their sum says nothing.
    number = "1 call was made and"
    if len(calls) > 1:
        number = f"{len(calls)} calls were made, the slowest"
    return (
        f"{given}: {number} took {slowest.latency_s:.1f} s ({slowest.phase}); "
        "raise timeout_s or lower concurrency"
    )


def read_response(unit: Unit, result: object, log: CallLog) -> StoredResponse:
    """Read a SearchResult, or any object with its attributes; TypeError if it has no text.

    Figures that are no numbers count as not given: the latency (seconds) is None then. Without
    counters the usage is marked as not counted, unless calls were recorded in the log. The search
    abstained if it says so, or the reply that it counted last is a refusal.
    """
    response: object = getattr(result, "response", None)
    if not isinstance(response, str | Mapping | list):  # the last two: as released searches may
        msg = f"the search answered with {type(response).__name__}, not with text"
        raise TypeError(msg)
    return StoredResponse(
        unit=unit.key,
        sample_id=unit.sample.id,
        method=unit.method,
        response=str(cast("object", response)),
        context_text=_as_text(getattr(result, "context_text", None)),
        latency_s=_number(getattr(result, "completion_time", None)),
        usage=_usage_of(result, log),
        trial=unit.trial,
        abstained=getattr(result, "abstained", None) is True or log.abstained,
    )


def failed_response(unit: Unit, failure: Failure, log: CallLog) -> StoredResponse:
    """Return what is kept of a search that failed."""
    text, usage = f"ERROR: {failure.message}", log.usage()
    place = (unit.key, unit.sample.id, unit.method)
    return StoredResponse(*place, text, "", None, usage, failure, unit.trial)


def _usage_of(result: object, log: CallLog) -> Usage:
    """Return what a search cost: its log, else its own usage or counters."""
    if log.attempts:
        return log.usage()
    own: object = getattr(result, "usage", None)
    if isinstance(own, Usage):
        calls, tokens = (own.llm_calls, own.embedding_calls), (own.prompt_tokens, own.output_tokens)
        if min(*calls, *tokens, own.embedding_tokens, own.cost_usd or 0) >= 0:
            return own
    names = ("llm_calls", "prompt_tokens", "output_tokens")
    counts = [_count(getattr(result, name, None)) for name in names]
    calls, prompt_tokens, output_tokens = (count or 0 for count in counts)
    if None in counts:
        return Usage(calls, prompt_tokens, output_tokens, cost_usd=None, is_counted=False)
    return Usage(calls, prompt_tokens, output_tokens, cost_usd=None if calls else 0.0)


def _count(value: object) -> int | None:
    """Return a count, None for what is none."""
    return None if _number(value) is None or not isinstance(value, Integral) else int(value)


def _number(value: object) -> float | None:
    """Return a finite number that is not negative, None for anything else."""
    if value is True or value is False or not isinstance(value, Real):
        return None
    number = float(value)
    return number if math.isfinite(number) and number >= 0 else None


def _as_text(context: object) -> str:
    if isinstance(context, str):
        return context
    if isinstance(context, Mapping):
        named = cast("Mapping[str, object]", context)
        return "\n\n".join(f"{name}\n{_as_text(part)}" for name, part in named.items())
    if isinstance(context, Sequence):
        return "\n\n".join(_as_text(part) for part in cast("Sequence[object]", context))
    return ""  # None, or what a stand-in made up
