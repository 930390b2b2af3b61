"""What is read out of a search's result, whoever gave it: text, seconds, what it cost."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Protocol, cast

from graphrag.eval.records import Failure, Retrieved
from graphrag.eval.runner.bounds import check_asked
from graphrag.eval.runner.units import Unit
from graphrag.eval.store.records import StoredResponse
from graphrag.query.usage import CallLog, Usage


class HasResponse(Protocol):
    """A SearchResult, or what stands in for one."""

    @property
    def response(self) -> object:
        """Text, or what a released search gives in its place."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it is recorded.

    Attributes
    ----------
    response, context_text : str
    latency_s : float or None
        Seconds, as the search says; None when it does not.
    usage : Usage
    abstained : bool
        Whether the search says so, or the reply that it counted last is a refusal.
    """

    response: str
    context_text: str
    latency_s: float | None
    usage: Usage
    abstained: bool


def read_answer(result: HasResponse, log: CallLog) -> Answer:
    """Read a SearchResult, or any object with its attributes.

    Figures that are no numbers count as not given. Without counters the usage is marked as not
    counted, unless calls were recorded in the log.

    Raises
    ------
    TypeError
        If the response is not text.
    """
    response = result.response
    if not isinstance(response, str | Mapping | list):  # the last two: as released searches may
        msg = f"the search answered with {type(response).__name__}, not with text"
        raise TypeError(msg)
    return Answer(
        response=str(cast("object", response)),
        context_text=_as_text(getattr(result, "context_text", None)),
        latency_s=_number(getattr(result, "completion_time", None)),
        usage=_usage_of(result, log),
        abstained=getattr(result, "abstained", None) is True or log.abstained,
    )


def record_response(
    unit: Unit,
    ending: Answer | Failure,
    latency_s: float,
    log: CallLog,
    retrieved: Retrieved | None,
) -> StoredResponse:
    """Return what is kept of a search that gave an answer or failed.

    ``latency_s`` (seconds) is left out of one that was put together from a run before, or that a
    service which was down held up.

    Raises
    ------
    ServiceDownStop, AllowanceStop
        If it is not known what the search would have given, as a call of it was not made.
    """
    check_asked(log)
    answer = None if isinstance(ending, Failure) else ending
    return StoredResponse(
        unit=unit.key,
        sample_id=unit.sample.id,
        method=unit.method,
        response=f"ERROR: {ending.message}" if isinstance(ending, Failure) else ending.response,
        context_text="" if answer is None else answer.context_text,
        latency_s=None if log.replayed or log.was_held_up else latency_s,
        usage=log.usage() if answer is None else answer.usage,
        failure=ending if isinstance(ending, Failure) else None,
        trial=unit.trial,
        retrieved=retrieved,
        abstained=answer is not None and answer.abstained,
    )


def _usage_of(result: object, log: CallLog) -> Usage:
    """Return what a search cost: its log, else its own usage or counters."""
    if log.attempts:
        return log.usage()
    own: object = getattr(result, "usage", None)
    if isinstance(own, Usage) and min(_counts_of(own)) >= 0:
        return own
    names = ("llm_calls", "prompt_tokens", "output_tokens")
    counts = [_count(getattr(result, name, None)) for name in names]
    calls, prompt_tokens, output_tokens = (count or 0 for count in counts)
    if None in counts:
        return Usage(calls, prompt_tokens, output_tokens, cost_usd=None, is_counted=False)
    return Usage(calls, prompt_tokens, output_tokens, cost_usd=None if calls else 0.0)


def _counts_of(usage: Usage) -> tuple[float, ...]:
    calls = usage.llm_calls, usage.embedding_calls
    tokens = usage.prompt_tokens, usage.output_tokens, usage.embedding_tokens
    return (*calls, *tokens, usage.cost_usd or 0)


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
