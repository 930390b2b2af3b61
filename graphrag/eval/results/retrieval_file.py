"""The retrieval measures as a file of their own: summary, and every question's results."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from graphrag.eval.config.sections import SuccessCriterion
from graphrag.eval.dataset.samples import Sample
from graphrag.eval.records import QueryResult, ReadWhole, Retrieved
from graphrag.eval.results.criteria import check_criteria
from graphrag.eval.scorers.measuring import MeasuredAnswer, summarize_measures
from graphrag.eval.scorers.response import Answered, MeasureSettings
from graphrag.text.json_pieces import json_pieces


def retrieval_report(
    samples: Iterable[Sample],
    responses: Sequence[tuple[Answered, MeasuredAnswer]],
    *,
    criteria: Sequence[SuccessCriterion] = (),
    settings: MeasureSettings | None = None,
    means: Mapping[str, Mapping[str, float | None]] | None = None,
    metadata: Mapping[str, Any] | None = None,
    timestamp: datetime | None = None,
    tells_retrieved: bool = True,
) -> dict[str, Any]:
    """Put the measures of a run together.

    Parameters
    ----------
    samples : iterable of Sample
        The questions that were asked.
    responses : sequence of (Answered, MeasuredAnswer)
        One for each question and method, of these samples.
    criteria : sequence of SuccessCriterion
        Held against each method's means.
    settings : MeasureSettings or None
        Those that the responses were measured with.
    means : mapping or None
        Method -> name -> mean of what criteria may name beside these measures.
    metadata : mapping or None
        JSON-ready; written as it is, beside the settings.
    timestamp : datetime or None
        With a time zone; now when None.
    tells_retrieved : bool
        Whether each response has what it retrieved; if not, :func:`retrieval_pieces` adds it.

    Returns
    -------
    dict
        ``timestamp``, ``num_questions``, ``summary`` {averages: method -> measure -> {mean, n,
        low, high, interval, n_excluded}; totals: method -> counts}, ``success_criteria``,
        ``metadata`` and ``results``: one entry a question, methods beneath it. Undefined is None.
    """
    settings = settings or MeasureSettings()
    by_method = summarize_measures([measured for _, measured in responses], settings)
    results = {sample.id: _question(sample) for sample in samples}
    for answered, measured in responses:
        entry = _response(answered, measured)
        if tells_retrieved:
            entry = _with_retrieved(entry, answered.retrieved)
        results[answered.sample_id]["methods"][answered.method] = entry
    averages = {
        method: {
            name: {**_estimate(asdict(summary.estimate)), "n_excluded": summary.n_excluded}
            for name, summary in found.measures.items()
        }
        for method, found in by_method.items()
    }
    totals: dict[str, dict[str, Any]] = {}
    for method, found in by_method.items():
        given = [answered for answered, _ in responses if answered.method == method]
        totals[method] = {
            "responses": len(given),
            "failed": sum(answered.failed for answered in given),
            "without_list": found.n_without_list,
            "with_unmatched_sources": found.n_with_unmatched_sources,
            "without_matched_sources": found.n_without_matched_sources,
            "tokens": _total([answered.tokens for answered in given]),
            "latency_s": _total([answered.latency_s for answered in given]),
            "combined": asdict(found.combined),
        }
    held = {
        method: {**found.means(), **(means or {}).get(method, {})}
        for method, found in by_method.items()
    }
    return {
        "timestamp": (timestamp or datetime.now(UTC)).isoformat(),
        "num_questions": len(results),
        "summary": {"averages": averages, "totals": totals},
        "success_criteria": [asdict(result) for result in check_criteria(criteria, held)],
        "metadata": {**(metadata or {}), "settings": asdict(settings)},
        "results": list(results.values()),
    }


def render_retrieval_report(report: Mapping[str, Any]) -> str:
    """Return a report as JSON; raises ValueError if a value is NaN or infinite."""
    return json.dumps(report, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def retrieval_pieces(
    report: Mapping[str, Any], results: Iterable[QueryResult], read_whole: ReadWhole
) -> Iterator[str]:
    """Yield a report as JSON, a question a piece, with what each response retrieved.

    Parameters
    ----------
    report : mapping
        Made without it.
    results : iterable of QueryResult
        Those that it is of, at least.
    read_whole : callable
        Gives them with what they retrieved.

    Raises
    ------
    ValueError
        If a value is NaN or infinite.
    """
    entries: list[dict[str, Any]] = report["results"]
    by_answer = {(r.sample_id, r.method): r for r in results if r.trial == 0}
    whole = iter(read_whole(by_answer[e["id"], name] for e in entries for name in e["methods"]))
    questions = (
        {
            **entry,
            "methods": {
                name: _with_retrieved(told, next(whole).retrieved)
                for name, told in entry["methods"].items()
            },
        }
        for entry in entries
    )
    yield from json_pieces({**report, "results": questions}, indent=2)
    yield "\n"


def _with_retrieved(response: Mapping[str, Any], found: Retrieved | None) -> dict[str, Any]:
    return {
        "measures": response["measures"],
        "retrieved": None if found is None else found.to_dict(),
        **response,
    }


def _estimate(values: dict[str, Any]) -> dict[str, Any]:
    return {"interval" if name == "method" else name: value for name, value in values.items()}


def _total(values: Sequence[float | None]) -> float | None:
    """Return the sum, None as soon as one is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _question(sample: Sample) -> dict[str, Any]:
    return {
        "id": sample.id,
        "imdb_key": sample.imdb_key,
        "question": sample.question,
        "expected_sources": list(sample.expected_sources or sample.evidence),
        "methods": {},
    }


def _response(answered: Answered, measured: MeasuredAnswer) -> dict[str, Any]:
    return {
        "measures": dict(measured.values),
        "n_unmatched_sources": measured.n_unmatched,
        "correctness": answered.correctness,
        "quality": answered.quality,
        "tokens": answered.tokens,
        "latency_s": answered.latency_s,
        "failed": answered.failed,
    }
