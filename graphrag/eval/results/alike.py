"""A stored run counted without a record of each response: questions that ended alike are one."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TypeAlias

from graphrag.eval.dataset.samples import Sample
from graphrag.eval.records import (
    METRICS,
    EfficiencyMetrics,
    Failure,
    JudgeResult,
    MetricScores,
    QueryResult,
    failed_search_scores,
)
from graphrag.eval.results.rows import QuestionKey, Row, item_means, rows_of
from graphrag.eval.scorers.judge import judgeable
from graphrag.eval.stats.intervals import grouped
from graphrag.eval.stats.latency import Latency, quantile_value
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import SearchOutcome, StoredResponse
from graphrag.query.usage import Usage

Alike: TypeAlias = tuple[list[Row], dict[QuestionKey, int]]
"""The rows of one question of each kind, and how many questions are of it."""
_OF_RESPONSES = ("method", "response", "sample_id", "failure", "usage", "trial", "abstained")


def stored_result(
    response: StoredResponse, sample: Sample | None, verdicts: Mapping[str, JudgeResult]
) -> QueryResult:
    """Return what was kept of a response as a result; ``sample`` is None where it is not."""
    sample, scores = sample or Sample("", "", "", ""), MetricScores.of(verdicts)
    if response.failure is not None:
        scores = failed_search_scores(judgeable(sample, METRICS))
    return QueryResult(
        imdb_key=sample.imdb_key,
        question=sample.question,
        ground_truth=sample.ground_truth,
        scores=scores,
        efficiency=EfficiencyMetrics.of(response.latency_s, response.usage),
        **{name: getattr(response, name) for name in _OF_RESPONSES},
    )


def read_alike(store: EvaluationStore, run_id: str) -> dict[str, Alike]:
    """Return method -> its questions, of those that verdicts don't tell apart the first.

    Its rows say nothing of what the searches took.
    """
    verdicts, outcomes = store.judged_alike(run_id), store.outcomes(run_id)
    # Only of a failed search it matters what the question can be judged on.
    samples = {each.id: each for each in store.samples_of_failed(run_id)}
    judged_on = {each.id: (each.lacks_answer, each.answerable) for each in samples.values()}
    found = grouped(((each.method, each.sample_id), each) for each in outcomes)
    kinds: dict[object, list[list[SearchOutcome]]] = {}
    for (method, sample_id), searches in found.items():
        ends = [
            (o.trial > 0, o.failed and judged_on.get(sample_id), o.abstained, id(of))
            for o, of in ((o, verdicts.get(o.unit)) for o in searches)
        ]
        kinds.setdefault((method, *ends), []).append(searches)
    alike: dict[str, Alike] = {}
    for first, *others in kinds.values():
        rows = rows_of(
            [
                stored_result(_outline(o), samples.get(o.sample_id), verdicts.get(o.unit, {}))
                for o in first
            ]
        )
        of, times = alike.setdefault(rows[0].method, ([], {}))
        of += rows
        times[rows[0].key] = 1 + len(others)
    return alike


def _outline(outcome: SearchOutcome) -> StoredResponse:
    return StoredResponse(
        *(outcome.unit, outcome.sample_id, outcome.method, "", "", None, Usage()),
        failure=Failure("search", "error", "") if outcome.failed else None,
        trial=outcome.trial,
        abstained=bool(outcome.abstained),
    )


def measure(outcomes: Sequence[SearchOutcome]) -> dict[str, float | None]:
    """Return what a method's searches took, the mean by question, and their median latency."""
    searches = {
        "latency_s": [None if each.failed else each.latency_s for each in outcomes],
        "tokens": [each.tokens for each in outcomes],
        "cost_usd": [each.cost_usd for each in outcomes],
    }
    if any(each.trial for each in outcomes):
        keys = [("", each.sample_id) for each in outcomes]
        searches = {
            name: list(item_means(zip(keys, values, strict=True)).values())
            for name, values in searches.items()
        }
    known = {n: [v for v in values if v is not None] for n, values in searches.items()}
    latencies = [Latency(o.latency_s, bool(o.failed)) for o in outcomes if o.latency_s is not None]
    return {
        "median_latency_s": quantile_value(latencies, 0.5),
        **{name: fmean(values) if values else None for name, values in known.items()},
    }
