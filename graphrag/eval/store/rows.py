"""Rows of eval.db: records as they are written, and as they are read."""

import json
from collections.abc import Callable

from graphrag.eval.records import Failure, JudgeResult, Retrieved
from graphrag.eval.store.connection import Values
from graphrag.eval.store.records import Judgement, StoredResponse, now
from graphrag.query.usage import MOST_SECONDS, ImpossibleFigureError, Usage


def response_row(run_id: str, response: StoredResponse) -> tuple[object, ...]:
    """Return the row of a response."""
    return (
        run_id,
        response.unit,
        response.sample_id,
        response.method,
        response.response,
        response.context_text,
        response.latency_s,
        text_of(response.usage),
        text_of(response.failure),
        now(),
        response.trial,
        text_of(response.retrieved),
        response.abstained,
    )


def verdict_row(run_id: str, unit: str, metric: str, verdict: JudgeResult) -> tuple[object, ...]:
    """Return the row of a verdict."""
    repeats = json.dumps(verdict.repeats) if verdict.repeats else None
    failure = text_of(verdict.failure)
    return run_id, unit, metric, verdict.score, verdict.reason, failure, now(), repeats


def judgement_row(run_id: str, judgement: Judgement) -> tuple[object, ...]:
    """Return the row of a judgment."""
    value, usage = json.dumps(judgement.value), text_of(judgement.usage)
    return run_id, judgement.subject, judgement.kind, value, judgement.failed, usage, now()


def text_of(record: Failure | Usage | Retrieved | None) -> str | None:
    """Return a record as it is kept; None of none."""
    return None if record is None else json.dumps(record.to_dict())


def usage_of(text: str) -> Usage:
    """Return the usage that was kept; one that can't be, an older release's, is not known."""
    try:
        return Usage.from_json(text)
    except ImpossibleFigureError:
        return Usage(cost_usd=None, is_counted=False)


def _failure_of(text: str | None) -> Failure | None:
    return None if text is None else Failure(**json.loads(text))


def _retrieved_of(text: str | None) -> Retrieved | None:
    return Retrieved.from_dict(json.loads(text)) if text else None


def outline_of(text: str | None) -> Retrieved | None:
    """Return how much a search showed, without which."""
    if not text:
        return None
    told = json.loads(text)
    ids = None if told.get("text_unit_ids") is None else ()
    counts = {name: told.get(name, 0) for name in ("n_sources", "n_unknown_ids")}
    return Retrieved(told["method"], ids, **counts)


def shown_of(row: Values) -> tuple[str, str | None, Retrieved | None]:
    """Return unit, context and what was retrieved."""
    unit, context_text, retrieved = row
    return unit, context_text, _retrieved_of(retrieved)


def response_of(
    row: Values, read_retrieved: Callable[[str | None], Retrieved | None] = _retrieved_of
) -> StoredResponse:
    """Return the response of a row; ``read_retrieved`` reads what was retrieved."""
    return StoredResponse(
        *row[:5],
        latency_s=row[5] if 0 <= (row[5] or 0) <= MOST_SECONDS else None,
        usage=usage_of(row[6]),
        failure=_failure_of(row[7]),
        trial=row[8],
        retrieved=read_retrieved(row[9]),
        abstained=bool(row[10]),
    )


def verdict_of(row: Values) -> tuple[str, str, JudgeResult]:
    """Return unit, metric and verdict; one that can't be read is unscored: it hides no others."""
    unit, metric, score, reason, failure, repeats = row
    try:
        verdict = JudgeResult(
            score, reason, _failure_of(failure), tuple(json.loads(repeats)) if repeats else ()
        )
    except (TypeError, ValueError) as error:
        message = f"the stored verdict can't be read: {error}"
        failed = Failure("judge", "unreadable", message)
        verdict = JudgeResult(None, f"Unscored: {message}", failed)
    return unit, metric, verdict
