"""Rows of the store, and what is read from them."""

import json
from collections.abc import Sequence
from typing import Any

from graphrag.eval.records import Failure, JudgeResult, Retrieved
from graphrag.eval.store.records import Judgement, StoredResponse, now
from graphrag.query.usage import CallAttempt, Usage


def of_units(run_id: str, units: Sequence[str] | None) -> tuple[str, tuple[str, ...]]:
    """Return the condition and the values that choose a run, or some units of it."""
    if units is None:
        return "run_id = ?", (run_id,)
    return f"run_id = ? AND unit IN ({', '.join('?' * len(units))})", (run_id, *units)


def response_of(row: Sequence[Any]) -> StoredResponse:
    """Return a response of its columns, in the order of the record but usage and failure."""
    return StoredResponse(
        *row[:6],
        usage=usage_of(row[6]),
        failure=_failure(row[7]),
        trial=row[8],
        retrieved=Retrieved.from_dict(json.loads(row[9])) if row[9] else None,
        abstained=bool(row[10]),
    )


def response_row(run_id: str, found: StoredResponse) -> tuple[object, ...]:
    """Return a response as its row."""
    return (
        run_id,
        found.unit,
        found.sample_id,
        found.method,
        found.response,
        found.context_text,
        found.latency_s,
        usage_text(found.usage),
        json.dumps(found.failure.to_dict()) if found.failure else None,
        now(),
        found.trial,
        json.dumps(found.retrieved.to_dict()) if found.retrieved else None,
        found.abstained,
    )


def verdict_row(run_id: str, unit: str, metric: str, verdict: JudgeResult) -> tuple[object, ...]:
    """Return a verdict as its row."""
    failure = json.dumps(verdict.failure.to_dict()) if verdict.failure else None
    repeats = json.dumps(verdict.repeats) if verdict.repeats else None
    return run_id, unit, metric, verdict.score, verdict.reason, failure, now(), repeats


def judgement_row(run_id: str, judged: Judgement) -> tuple[object, ...]:
    """Return a judgement as its row."""
    value, usage = json.dumps(judged.value), usage_text(judged.usage)
    return run_id, judged.subject, judged.kind, value, judged.failed, usage, now()


def verdict_of(
    score: int | None, reason: str, failure: str | None, repeats: str | None
) -> JudgeResult:
    """Return a verdict; one that can't be read is unscored, so that it never hides the others."""
    try:
        return JudgeResult(score, reason, _failure(failure), tuple(json.loads(repeats or "[]")))
    except (TypeError, ValueError) as error:
        message = f"the stored verdict can't be read: {error}"
        return JudgeResult(None, f"Unscored: {message}", Failure("judge", "unreadable", message))


def attempts_of(text: str) -> tuple[CallAttempt, ...]:
    """Return the attempts of a call."""
    return tuple(CallAttempt.from_dict(values) for values in json.loads(text))


def attempts_text(attempts: Sequence[CallAttempt]) -> str:
    """Return the attempts of a call as text."""
    return json.dumps([each.to_dict() for each in attempts])


def usage_text(usage: Usage) -> str:
    """Return what something cost as text."""
    return json.dumps(usage.to_dict())


def usage_of(text: str) -> Usage:
    """Return what something cost."""
    return Usage.from_dict(json.loads(text))


def _failure(text: str | None) -> Failure | None:
    return None if text is None else Failure(**json.loads(text))
