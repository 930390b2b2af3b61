"""Renders the page of all runs of a store, with figures over time, and the progress of a run."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from graphrag.eval.compare.setup_changes import list_setup_changes
from graphrag.eval.errors import UsageError
from graphrag.eval.metrics.judge import judgeable
from graphrag.eval.monitoring.collector import MetricsCollector
from graphrag.eval.report.formatting import figure, money, points
from graphrag.eval.report.recommendation import Answer
from graphrag.eval.report.run_tables import FailureKind, means_table, name_cause, tabulate_failures
from graphrag.eval.report.table import Table
from graphrag.eval.results.analysis import summarize_rows
from graphrag.eval.results.runs import (
    StoredRun,
    describe_run,
    keep_lines,
    paid_usages,
    pinned_run_id,
    read_rows,
    stored_metadata,
    stored_rows,
)
from graphrag.eval.store.atomic_files import SUMMARY_FILE, run_folder, write_file
from graphrag.eval.store.database import PINNED, EvaluationStore, baseline_path, open_store
from graphrag.eval.store.notes import read_notes
from graphrag.eval.store.records import CLAIMS, Run, now
from graphrag.eval.types.metric_definitions import METRICS
from graphrag.eval.web.gate_cache import GATED, digest_baseline, keep_gates, read_gate
from graphrag.eval.web.page import NAV, NO_NAV, render
from graphrag.eval.web.server import NotFound
from graphrag.eval.web.trends import TOOK, draw_runs, draw_series, mean_of, minute
from graphrag.eval.web.two_runs import render_two_runs
from graphrag.query.client.usage import sum_usages
from graphrag.text.message_phrases import counted, shorten

Kept = TypeVar("Kept")
_KEPT_PAGES = 4
_SLOWEST = 5
_PACE = 200
"""Number of latest answers by whose pace the remaining time is estimated."""
_STILL_S = 120
"""After so many seconds without an answer, no remaining time is shown."""
_CAUSES = 20
_LONGEST_TEXT = 200


class StorePages:
    """Makes the pages of a store: reads it anew for each page, but a finished run's figures once.

    - ``store_path``: the path of the store.
    - ``render_run``: takes a run's id and returns its page.
    - ``state_of``: takes a run's id and returns a text that changes whenever the page does, except
      by changes of the run's folder.

    Each method raises UsageError or StoreError if there is no store or it can't be read, and
    NotFound if the store does not have the run.
    """

    def __init__(
        self,
        store_path: Path,
        render_run: Callable[[str], str] = lambda _: "",
        state_of: Callable[[str], str] = str,
    ) -> None:
        self._store_path, self._render_run, self._state_of = store_path, render_run, state_of
        self._kept: dict[object, Any] = {}
        self._drawn: dict[object, str] = {}
        self._rendering = Lock()

    @property
    def _baseline(self) -> Path:
        return baseline_path(self._store_path)

    def _pinned_id(self) -> str | None:
        """Return the pinned run's id; the file with its rows is read again if it changed."""
        changed = _modified_at(self._baseline)
        return _keep(self._kept, ("pinned", changed), lambda: pinned_run_id(self._store_path))

    def embedded_models(self, run_id: str) -> str | None:
        """Return the label of the embedded models if they were asked in a run."""
        with open_store(self._store_path) as store:
            return stored_metadata(store, _find_run(store, run_id)).embedded_models

    def has_page(self, run_id: str) -> bool:
        """Return whether a run is finished and has a page of its own."""
        with open_store(self._store_path) as store:
            run = _find_run(store, run_id)
        return run.status == "finished" and not run.setup.is_of_suites

    def live(self, run_id: str) -> dict[str, Any]:
        """Return the progress of a run."""
        with open_store(self._store_path) as store:
            return read_live(store, _find_run(store, run_id))

    def report(self, run_id: str) -> str:
        """Return the page of a run; raises UsageError if there is nothing to show."""
        with open_store(self._store_path) as store:
            run = _find_run(store, run_id)
        key = self._key(run, self._state_of(run_id)) if run.finished_at is not None else None
        return self._draw(key, lambda: self._render_run(run_id)).replace(NO_NAV, NAV, 1)

    def compare(self, new: str, old: str, store_name: str) -> str:
        """Return the page that compares a run with another, or with PINNED."""
        pinned = self._pinned_id() if old == PINNED else None
        with open_store(self._store_path) as store:
            runs = [_find_run(store, new)] + ([] if old == PINNED else [_find_run(store, old)])
            keys = [self._key(run) for run in runs]
            if old == PINNED:
                keys.append(("pinned", _modified_at(self._baseline)))
                runs += [run for run in store.runs() if run.run_id == pinned]
            described = [self._describe(store, run, pinned) for run in runs]

        def draw() -> str:
            sides = read_rows(new, self._store_path), read_rows(old, self._store_path)
            return render_two_runs(self._store_path, sides, described, store_name)

        return self._draw(None if None in keys else tuple(keys), draw)

    def _draw(self, key: object, draw: Callable[[], str]) -> str:
        with self._rendering:  # one at a time: it loads a run with its contexts
            page = _keep(self._drawn, key, draw)
            if len(self._drawn) > _KEPT_PAGES:
                del self._drawn[next(iter(self._drawn))]
            return page

    def _runs(self) -> list[dict[str, Any]]:
        """Return the values of each run in the list; see :func:`_list_run`."""
        keep_lines(self._store_path)
        keep_gates(self._store_path)
        with open_store(self._store_path) as store:
            runs, pinned, notes = store.runs(), self._pinned_id(), read_notes(self._store_path)
            described = {
                run.run_id: self._describe(store, run, pinned).with_note(notes.get(run.run_id))
                for run in runs
            }
            gates = self._ask_gate(store, [run for run in runs if not run.setup.is_of_suites])
            answers = {run.run_id: self._answer(store, run) for run in runs}
        listed: list[dict[str, Any]] = []
        for n, run in enumerate(runs):
            against = _find_earlier(run, runs[n + 1 :], [r for r in runs if r.run_id == pinned])
            listed.append(
                {
                    **_list_run(described[run.run_id], against and described[against.run_id]),
                    "gate": gates.get(run.run_id, ""),
                    "is_of_suites": run.setup.is_of_suites,
                    "answer": answers[run.run_id],
                    "changes": [] if against is None else _list_changes(run, against),
                }
            )
        return listed

    def _answer(self, store: EvaluationStore, run: Run) -> Answer | None:
        """Return the answer in a finished run's summary; None if there is none."""
        if run.status != "finished":
            return None

        def read() -> Answer | None:
            path = run_folder(self._store_path.parent, run.run_id) / SUMMARY_FILE
            try:
                section = json.loads(path.read_text(encoding="utf-8"))["answer"]
                return Answer(chip=section["chip"], headline=section["headline"])
            except (OSError, ValueError, TypeError, KeyError):  # of another release, or cut short
                return None

        return _keep(self._kept, self._key(run, "answer"), read)

    def page(
        self, collector: MetricsCollector | None = None, store_name: str = "", notice: str = ""
    ) -> str:
        """Return the page of all runs.

        ``store_name`` is shown, and is given if the page is served. ``notice``: why this page is
        shown instead of the one that was asked for.
        """
        runs = [] if self._store_path == Path() else self._runs()
        tried = [listed for listed in runs if not listed["is_of_suites"]]
        judged = [listed["run"] for listed in tried]
        series = [] if collector is None else [draw_series(collector, n) for n in collector.names()]
        panels = draw_runs(judged, "measured")
        return render(
            "runs.html.j2",
            ["runs.js"],
            asks=bool(store_name),
            store_name=store_name,
            notice=notice,
            written_at=minute(now()),
            runs=runs,
            newest=next((e for e in tried if e["run"].status == "finished"), None),
            has_baseline=bool(runs) and self._baseline.is_file(),
            embedded_models=sorted({r.embedded_models for r in judged if r.embedded_models}),
            parts=[
                (
                    "What was judged",
                    "Means by method in %, rubrics from 1 to 5, quality from 0 to 1. Lines leave "
                    "out unfinished runs.",
                    list(draw_runs(judged, "means").values()),
                ),
                (
                    "What it took",
                    "Seconds of all searches, failed ones as the slowest; tokens and dollars of "
                    "the searches alone.",
                    [panels[name] for name in TOOK if name in panels],
                ),
                (
                    "What was retrieved",
                    "Means in % of measures without a model; combined_score has no unit.",
                    [panel for name, panel in panels.items() if name not in TOOK],
                ),
                ("What was recorded", "Values that a program recorded, over time.", series),
            ],
        )

    def _describe(self, store: EvaluationStore, run: Run, pinned: str | None) -> StoredRun:
        is_pinned = run.run_id == pinned
        key = self._key(run, "described", is_pinned)
        return _keep(self._kept, key, lambda: describe_run(store, run, is_pinned=is_pinned))

    def _key(self, run: Run, *parts: object) -> object:
        """Return a key that changes whenever a run's figures do; None while the run goes on."""
        if run.finished_at is None:
            return None
        changed = _modified_at(run_folder(self._store_path.parent, run.run_id))
        return run.run_id, run.finished_at, changed, *parts

    def _ask_gate(self, store: EvaluationStore, runs: Sequence[Run]) -> dict[str, str]:
        """Return run -> the gate's answer against the pinned baseline, or why there is none."""
        if not self._baseline.is_file():
            return {}
        pinned, baseline = self._pinned_id(), digest_baseline(self._baseline)

        def gate(run: Run) -> str:
            if run.run_id == pinned:
                return "baseline"
            if run.status != "finished":
                return "unfinished"
            key = self._key(run, "gated", baseline)
            return _keep(self._kept, key, lambda: read_gate(store, run, baseline))

        return {run.run_id: gate(run) for run in runs[:GATED]}


def write_dashboard(
    path: Path | str,
    store_path: Path | str | None = None,
    collector: MetricsCollector | None = None,
) -> Path:
    """Write the figures of all runs, and recorded values, as one HTML page; return its path.

    - ``path``: the HTML file; its folder is made if it is missing.
    - ``store_path``: an eval.db. The page has every mean of every run by method, and latency,
      tokens, cost and retrieval measures; results of the embedded models are marked.
    - ``collector``: the page has each of its series, one line for each set of labels.

    Raises UsageError if neither is given or there is no store. Raises StoreError if another process
    has locked the store, or the file can't be written.

    Examples
    --------
    >>> write_dashboard(path="dashboard.html", store_path="eval/results/eval.db")
    PosixPath('dashboard.html')
    """
    if store_path is None and collector is None:
        raise UsageError("There is nothing to show: give a store_path, a collector, or both.")
    written = Path(path)
    write_file(written, StorePages(Path(store_path or "")).page(collector))
    return written


def _find_earlier(run: Run, earlier: Sequence[Run], pinned: Sequence[Run]) -> Run | None:
    """Return the run that a run is compared with: the pinned one, else the finished one before."""
    dataset = run.setup.root.get("dataset")
    if run.setup.is_of_suites or run.status != "finished":
        return None
    for other in (*pinned, *earlier):
        is_alike = not other.setup.is_of_suites and other.setup.root.get("dataset") == dataset
        if is_alike and other.status == "finished" and other.run_id != run.run_id:
            return other
    return None


def _list_run(run: StoredRun, against: StoredRun | None) -> dict[str, Any]:
    """Return a run's figures for the list, with the run that it is compared with.

    ``metric`` is the metric that is shown, "" without any. ``scores`` has one line per method, the
    best first.
    """
    metric = next((name for means in run.means.values() for name in means), "")
    means = {method: figures.get(metric) for method, figures in run.means.items()}
    old_means = {} if against is None else against.means
    scores: list[dict[str, str]] = []
    for method in sorted(means, key=lambda method: -(means[method] or 0)):
        mean, old = means[method], old_means.get(method, {}).get(metric)
        measured = run.measured.get(method, {})
        scores.append(
            {
                "method": method,
                "mean": mean_of(run, method, metric),
                "difference": "" if mean is None or old is None else points(mean - old),
                "tokens": figure("tokens", measured.get("tokens")),
                "seconds": figure("median_latency_s", measured.get("median_latency_s")),
            }
        )
    cost = money(run.cost_usd, "$", "price unknown") if run.cost_usd != 0 else "nothing paid"
    return {"run": run, "metric": metric, "scores": scores, "cost": cost, "against": against}


def _list_changes(run: Run, against: Run) -> list[str]:
    new_methods, old_methods = run.setup.methods, against.setup.methods
    both = [method for method in new_methods if method in old_methods]
    new, gone = ([m for m in methods if m not in both] for methods in (new_methods, old_methods))
    return [
        *([f"new methods: {', '.join(new)}"] if new else []),
        *([f"methods left out: {', '.join(gone)}"] if gone else []),
        *list_setup_changes(
            run.setup, against.setup, both, (run.details.indexes, against.details.indexes)
        ),
    ]


def _find_run(store: EvaluationStore, run_id: str | None) -> Run:
    """Return a run by its full id, which may come from an address."""
    for run in store.runs():
        if run.run_id == run_id:
            return run
    raise NotFound(f"{store.path} has no run {(run_id or '')[:60]!r}.")


def _keep(kept: dict[object, Kept], key: object, make: Callable[[], Kept]) -> Kept:
    """Return the value kept under a key, or make it; it is kept unless the key is None."""
    if key is None:
        return make()
    if key not in kept:
        kept[key] = make()
    return kept[key]


def _modified_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def read_live(store: EvaluationStore, run: Run) -> dict[str, Any]:
    """Read the values that the page of a run shows about its progress.

    ``n_planned`` is the number of searches (None: unknown); ``n_searched`` were answered or failed,
    and ``n_done`` of these wait for no verdict. ``left`` is how long the run may still take, "" if
    unknown; nothing else is an estimate. ``go_on`` is the command that continues the run.
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
        title="Slowest searches",
        columns=[("seconds", "seconds"), ("method", "text"), ("question", "text")],
        rows=[
            [
                seconds,
                f"{response.method} (failed)" if response.failure else response.method,
                shorten(texts.get(response.sample_id, response.sample_id), _LONGEST_TEXT),
            ]
            for seconds, response in sorted(timed, key=lambda pair: -pair[0])[:_SLOWEST]
        ],
    )
    tables = (_means(store, run, metrics), tabulate_failures(causes, _CAUSES), slowest)
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


def _means(store: EvaluationStore, run: Run, metrics: Sequence[str]) -> Table:
    if run.setup.is_of_suites or not metrics:
        return Table()
    all_rows = stored_rows(store, run, every_trial=True, waiting="left out")
    by_method = {m: [row for row in all_rows if row.method == m] for m in run.setup.methods}
    outcomes = {m: summarize_rows(rows, metrics, len(rows), True) for m, rows in by_method.items()}
    title, note = "Mean scores in % (95 % interval)", ""
    if run.status != "finished":
        title += " of what is done so far; not a result"
        note = (
            "Quick answers come first, so this is not a fair sample of the run. Each interval "
            "is valid for one look: don't stop because it looks good."
        )
    return replace(means_table(metrics, outcomes), title=title, note=note) if all_rows else Table()


def _estimate_left(run: Run, store: EvaluationStore, n_done: int) -> str:
    """Return the time that the run still takes at the pace of its latest answers; "" if unknown."""
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
