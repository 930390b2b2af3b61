"""Turns records into rows of eval.db, and rows back into records."""

import json
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Annotated, TypeAlias, TypeVar, cast

from pydantic import BeforeValidator, TypeAdapter

from graphrag.eval.store.records import Judgement, StoredResponse, now
from graphrag.eval.store.sqlite import Values
from graphrag.eval.types.query_results import Retrieved
from graphrag.eval.types.verdicts import Failure, JudgeResult
from graphrag.query.client.checked_numbers import MOST_SECONDS, ImpossibleFigureError
from graphrag.query.client.usage import UNCOUNTED, Usage

_T = TypeVar("_T")
Models: TypeAlias = tuple[tuple[str, ...] | None, ...]
"""The models of a usage: all of them, those of completions, those of embeddings."""
Shown: TypeAlias = tuple[str | None, Retrieved | None]
"""The context of a response, and what was retrieved for it."""
_COUNTS = {"llm_calls", "prompt_tokens", "output_tokens"}
"""The counts that every release keeps in a usage."""


def _with_counts(values: object) -> dict[str, object]:
    """Return the values of a usage; ValueError without its counts, which would be read as 0."""
    if not isinstance(values, dict) or not values.keys() >= _COUNTS:
        raise ValueError(f"a usage has no {', '.join(sorted(_COUNTS))}")
    return cast("dict[str, object]", values)


_USAGES = TypeAdapter(list[Annotated[Usage, BeforeValidator(_with_counts)]])
_AT_ONCE = 256
"""Number of rows whose texts are in memory together."""


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
    """Return a record as JSON text; None for None."""
    return None if record is None else json.dumps(record.to_dict())


def usage_of(text: str) -> Usage:
    """Return the usage in a text; UNCOUNTED if it is impossible, as an older release's may be."""
    try:
        return Usage.from_dict(_with_counts(json.loads(text)))
    except ImpossibleFigureError:
        return UNCOUNTED


def _usages_of(texts: list[str]) -> list[Usage]:
    distinct = list(dict.fromkeys(texts))  # a judge's repeat themselves
    try:
        usages = _USAGES.validate_json(f"[{','.join(distinct)}]")
    except ValueError:  # one can't be, or is damaged
        usages = [usage_of(text) for text in distinct]
    by_text = dict(zip(distinct, usages, strict=True))
    return [by_text[text] for text in texts]


def models_of(usage: Usage) -> Models:
    """Return the models that a usage names."""
    return usage.models, usage.completion_models, usage.embedding_models


def usage_of_models(models: Models) -> Usage:
    """Return a usage that names models and nothing else."""
    every, completion, embedding = models
    return Usage(models=every or (), completion_models=completion, embedding_models=embedding)


def each_of(make: Callable[[Values], _T]) -> Callable[[Iterable[Values]], list[_T]]:
    """Return a function that applies ``make`` to each row of several."""
    return lambda rows: [make(row) for row in rows]


def judgings_of(rows: Iterable[Values]) -> dict[str, list[Usage]]:
    """Return unit -> usages, one for each time it was judged."""
    every, usages = list(rows), dict[str, list[Usage]]()
    for (unit, _), usage in zip(every, _usages_of([text for _, text in every]), strict=True):
        usages.setdefault(unit, []).append(usage)
    return usages


def _failure_of(text: str | None) -> Failure | None:
    return None if text is None else Failure(**json.loads(text))


def _retrieved_of(text: str | None) -> Retrieved | None:
    return Retrieved.from_dict(json.loads(text)) if text else None


def outlines_of(rows: Iterable[Values]) -> dict[str, StoredResponse]:
    """Return unit -> response, with how much was retrieved, but not what."""
    left, outlines = iter(rows), dict[str, StoredResponse]()
    while block := list(islice(left, _AT_ONCE)):
        for row, usage in zip(block, _usages_of([row[6] for row in block]), strict=True):
            outlines[row[0]] = _response_of(row, usage, _outline_of(row[9]))
    return outlines


def _outline_of(text: str | None) -> Retrieved | None:
    if not text:
        return None
    values = json.loads(text)
    ids = None if values.get("text_unit_ids") is None else ()
    counts = {name: values.get(name, 0) for name in ("n_sources", "n_unknown_ids")}
    return Retrieved(
        method=values["method"], text_unit_ids=ids, **counts, note=values.get("note", "")
    )


def contexts_of(rows: Iterable[Values]) -> dict[str, Shown]:
    """Return unit -> its context, and what was retrieved."""
    return {unit: (context, _retrieved_of(retrieved)) for unit, context, retrieved in rows}


def response_of(row: Values) -> StoredResponse:
    """Return the response in a row."""
    return _response_of(row, usage_of(row[6]), _retrieved_of(row[9]))


def _response_of(row: Values, usage: Usage, retrieved: Retrieved | None) -> StoredResponse:
    return StoredResponse(
        *row[:5],
        latency_s=row[5] if 0 <= (row[5] or 0) <= MOST_SECONDS else None,  # else none that can be
        usage=usage,
        failure=_failure_of(row[7]),
        trial=row[8],
        retrieved=retrieved,
        abstained=bool(row[10]),
    )


def verdicts_of(rows: Iterable[Values]) -> dict[str, dict[str, JudgeResult]]:
    """Return unit -> metric -> verdict."""
    verdicts: dict[str, dict[str, JudgeResult]] = {}
    equal: dict[tuple[object, ...], JudgeResult] = {}  # a judge repeats itself
    for unit, metric, *kept in rows:
        verdict = equal.get(key := tuple(kept))
        if verdict is None:
            verdict = equal[key] = _verdict_of(*kept)
        verdicts.setdefault(unit, {})[metric] = verdict
    return verdicts


def _verdict_of(
    score: int | None, reason: str, failure: str | None, repeats: str | None
) -> JudgeResult:
    """Return a verdict; one that can't be read is unscored, so that it hides no others."""
    try:
        if failure is None and not repeats:
            return JudgeResult(score=score, reason=reason)
        scores = tuple(json.loads(repeats)) if repeats else ()
        return JudgeResult(score=score, reason=reason, failure=_failure_of(failure), repeats=scores)
    except (TypeError, ValueError) as error:
        message = f"the stored verdict can't be read: {error}"
        failed = Failure(stage="judge", kind="unreadable", message=message)
        return JudgeResult(score=None, reason=f"Unscored: {message}", failure=failed)
