"""A run as far as it is, by what the store holds of it and nothing else."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from graphrag.eval.metrics.judge import judgeable
from graphrag.eval.records.judged import METRICS
from graphrag.eval.report.cells import money
from graphrag.eval.report.run_tables import FailureKind, means_table, name_cause, tabulate_failures
from graphrag.eval.report.table import Table
from graphrag.eval.results.analysis import summarize_rows
from graphrag.eval.results.runs import paid_usages, stored_metadata, stored_rows
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import CLAIMS, Run, StoredResponse
from graphrag.query.usage import sum_usages
from graphrag.text.phrases import counted, shorten

_SLOWEST = 5
_PACE = 200
"""Of the latest answers, by whose pace the time that is left is told."""
_STILL_S = 120
"""Without an answer for so long, nothing is said of the time that is left."""
_CAUSES = 20
_LONGEST_TEXT = 200


def read_live(store: EvaluationStore, run: Run) -> dict[str, Any]:
    """Read what the page of a run shows of how far it is.

    Of ``n_planned`` searches (None: unknown) ``n_searched`` answered or failed, of which ``n_done``
    wait for no verdict; ``left``: how long it may go on, "" where that is unknown. Else nothing is
    an estimate of what is still to come. ``go_on``: the command that goes on with it.
    """
    responses = store.outlines(run.run_id)
    verdicts, samples = store.verdicts(run.run_id), store.samples(run.run_id)
    metrics = [metric for metric in run.setup.metrics or () if metric in METRICS]
    by_claim = CLAIMS in run.setup.further
    waits = not (run.details.skip_judge or run.setup.is_of_suites)
    expected = {sample.id: {*judgeable(sample, metrics, by_claim)} for sample in samples}
    done = [
        response
        for unit, response in responses.items()
        if response.failure is not None
        or not waits
        or expected.get(response.sample_id, {*metrics}) <= verdicts.get(unit, {}).keys()
    ]
    failed = [(r, r.failure) for r in responses.values() if r.failure is not None]
    judgements = [judgement for judgement in store.judgements(run.run_id) if judgement.failed]
    unscored = [
        (responses[unit].method, metric, verdict.failure)
        for unit, by_metric in verdicts.items()
        for metric, verdict in by_metric.items()
        if verdict.failure is not None and unit in responses
    ]
    causes = Counter[FailureKind](
        [
            *((response.method, None, name_cause(failure)) for response, failure in failed),
            *((method, metric, name_cause(failure)) for method, metric, failure in unscored),
            *(("", judgement.kind, "") for judgement in judgements),
        ]
    )
    timed = [(r.latency_s, r) for r in responses.values() if r.latency_s is not None]
    texts = {sample.id: sample.question for sample in samples}
    slowest = Table(
        "Slowest searches",
        [("seconds", "seconds"), ("method", "text"), ("question", "text")],
        [
            [
                seconds,
                f"{response.method} (failed)" if response.failure else response.method,
                shorten(texts.get(response.sample_id, response.sample_id), _LONGEST_TEXT),
            ]
            for seconds, response in sorted(timed, key=lambda pair: -pair[0])[:_SLOWEST]
        ],
    )
    tables = (_means(store, run, metrics, done), tabulate_failures(causes, _CAUSES), slowest)
    begun = run.details.command or "graphrag eval"
    return {
        "run": run,
        "n_planned": run.details.n_units,
        "n_searched": len(responses),
        "n_done": len(done),
        "n_failed": len(failed),
        "n_unscored": len(unscored) + len(judgements),
        "n_in_flight": store.calls_in_flight(run.run_id),
        "tables": [table for table in tables if table.rows],
        "spent": _describe_spent(store, run),
        "left": _estimate_left(run, store, len(done)),
        "recorded_at": store.recorded_at(run.run_id),
        "embedded_models": stored_metadata(store, run).embedded_models,
        "go_on": begun if "--resume" in begun.split() else f"{begun} --resume",
    }


def _means(
    store: EvaluationStore, run: Run, metrics: Sequence[str], done: Sequence[StoredResponse]
) -> Table:
    if run.setup.is_of_suites or not metrics:
        return Table()
    keys = {(response.method, response.sample_id) for response in done if not response.trial}
    all_rows = [row for row in stored_rows(store, run) if (row.method, row.question_id) in keys]
    by_method = {m: [row for row in all_rows if row.method == m] for m in run.setup.methods}
    outcomes = {m: summarize_rows(rows, metrics, len(rows), True) for m, rows in by_method.items()}
    title, note = "Mean scores in % (95 % interval)", ""
    if run.status != "finished":
        title += " of what is done so far; not a result"
        note = (
            "Quick answers come first, so this is not a fair sample of the run. Each interval "
            "holds for one look: don't stop because it looks good."
        )
    return replace(means_table(metrics, outcomes), title=title, note=note) if all_rows else Table()


def _estimate_left(run: Run, store: EvaluationStore, n_done: int) -> str:
    """Return how long the run goes on at the pace of its latest answers; "" where none is seen."""
    times = store.latest_times(run.run_id, _PACE)
    if run.status == "finished" or len(times) < 3:
        return ""
    first, last = (datetime.fromisoformat(at) for at in (times[-1], times[0]))
    since = (datetime.now(UTC) - last).total_seconds()
    seconds = (last - first).total_seconds() / (len(times) - 1) * (run.details.n_units - n_done)
    if since > _STILL_S or seconds <= 0:
        return ""
    if seconds < 90:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"


def _describe_spent(store: EvaluationStore, run: Run) -> str:
    usages = paid_usages(store, run)
    total = sum_usages(usages)
    if not (total.llm_calls or total.embedding_calls or total.prompt_tokens):
        return "nothing"
    least = "" if total.is_counted else "at least "
    n_calls = total.llm_calls + total.embedding_calls
    calls = f"{least}{counted(n_calls, 'call')}, {total.tokens:,} tokens"
    if total.cost_usd is not None:
        return f"{money(total.cost_usd, '$')}, {calls}"
    spent = sum(usage.cost_usd for usage in usages if usage.cost_usd is not None)
    return f"{money(spent, '$')} and calls of unknown price, {calls}"
