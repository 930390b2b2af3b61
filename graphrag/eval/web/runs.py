"""The runs of a store on one page, each figure over time; served, or written as a file."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from threading import Lock
from typing import TypeVar

from graphrag.eval.errors import EvalError, UsageError
from graphrag.eval.monitoring.collector import MetricPoint, MetricsCollector
from graphrag.eval.report.cells import number
from graphrag.eval.report.comparison import answer_comparison
from graphrag.eval.report.table import Table
from graphrag.eval.results.runs import (
    RunRows,
    StoredRun,
    describe_run,
    pinned_run_id,
    read_rows,
    stored_metadata,
    stored_rows,
)
from graphrag.eval.store.database import PINNED, EvaluationStore, baseline_path, open_store
from graphrag.eval.store.records import Run, now
from graphrag.eval.store.whole_files import run_folder, write_file
from graphrag.eval.web.drawing import Axis, Drawing, Point, Series
from graphrag.eval.web.live import LiveRun, read_live
from graphrag.eval.web.page import NAV, NO_NAV, render
from graphrag.eval.web.server import NotFound
from graphrag.eval.web.two_runs import compare_two, render_two_runs

Kept = TypeVar("Kept")
_GATED = 20
"""Of how many runs, the newest, the gate is asked."""
_KEPT_PAGES = 4
_MOST_DRAWN = 400
_MOST_LISTED = 50
_UNITS = {"latency_s": "seconds", "tokens": "tokens a search", "cost_usd": "US dollars a search"}
_JUDGED = (
    "Means by method, one step a run. A failed search counts 0 where the metric says so; what is "
    "unscored is left out. Lines leave out unfinished runs."
)
_MEASURED = (
    "Means by method, one step a run: latency of searches that answered, tokens, cost, and "
    "retrieval measures where the run kept them."
)


@dataclass(frozen=True, slots=True)
class Panel:
    """A figure over time: a drawing if it has a value, a table, and the ``latest`` values."""

    drawing: Drawing | None
    table: Table
    latest: str


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A run in the list, and what the gate says of it against the baseline, "" if not asked."""

    run: StoredRun
    gate: str
    is_of_suites: bool

    @property
    def metric(self) -> str:
        """The metric by which the list shows it; "" without any."""
        return next((name for means in self.run.means.values() for name in means), "")

    @property
    def scores(self) -> list[tuple[str, str]]:
        """Each method with its mean on that metric, the best first."""
        means = {method: of.get(self.metric) for method, of in self.run.means.items()}
        order = sorted(means, key=lambda method: -(means[method] or 0))
        return [(method, _mean(self.run, method, self.metric)) for method in order]


class StorePages:
    """Reads what the pages show from the store anew, a finished run's figures once.

    ``render_run``: a run's id -> its page. Each method raises UsageError or StoreError if there is
    no store at ``place``, or it can't be read, and NotFound of a run that it does not hold.
    """

    def __init__(self, place: Path, render_run: Callable[[str], str] = lambda _: "") -> None:
        self._place, self._render_run = place, render_run
        self._described: dict[object, StoredRun] = {}
        self._gated: dict[object, str] = {}
        self._drawn: dict[object, str] = {}
        self._pinned: dict[object, str | None] = {}
        self._rendering = Lock()

    @property
    def _baseline(self) -> Path:
        return baseline_path(self._place)

    def _pinned_id(self) -> str | None:
        """Return the pinned run's id; the file with its rows is read when it changed."""
        changed = _changed(self._baseline)
        return _once(self._pinned, changed, lambda: pinned_run_id(self._place))

    def embedded_models(self, run_id: str) -> str | None:
        """Return the label of the embedded models if they had a part in a run."""
        with open_store(self._place) as store:
            return stored_metadata(store, _take(store, run_id)).embedded_models

    def is_whole(self, run_id: str) -> bool:
        """Whether a run is finished and has a page of its own."""
        with open_store(self._place) as store:
            run = _take(store, run_id)
        return run.status == "finished" and not run.setup.is_of_suites

    def live(self, run_id: str) -> LiveRun:
        """Return how far a run is."""
        with open_store(self._place) as store:
            return read_live(store, _take(store, run_id))

    def report(self, run_id: str) -> str:
        """Return the page of a run; raises UsageError if there is nothing to show."""
        with open_store(self._place) as store:
            key = self._key(store, _take(store, run_id))
        return self._draw(key, lambda: self._render_run(run_id)).replace(NO_NAV, NAV, 1)

    def compare(self, new: str, old: str, place: str) -> str:
        """Return the page of a run held against another, or against PINNED."""
        pinned = self._pinned_id() if old == PINNED else None
        with open_store(self._place) as store:
            runs = [_take(store, new)] + ([] if old == PINNED else [_take(store, old)])
            keys = [self._key(store, run) for run in runs]
            if old == PINNED:
                keys.append(("pinned", _changed(self._baseline)))
                runs += [run for run in store.runs() if run.run_id == pinned]
            described = [self._describe(store, run, pinned) for run in runs]

        def draw() -> str:
            sides = read_rows(new, self._place), read_rows(old, self._place)
            return render_two_runs(self._place, sides, described, place)

        return self._draw(None if None in keys else tuple(keys), draw)

    def _draw(self, key: object, draw: Callable[[], str]) -> str:
        with self._rendering:  # it takes the memory of a run with its contexts
            page = _once(self._drawn, key, draw)
            if len(self._drawn) > _KEPT_PAGES:
                del self._drawn[next(iter(self._drawn))]
            return page

    def _runs(self) -> list[ShownRun]:
        with open_store(self._place) as store:
            runs, pinned = store.runs(), self._pinned_id()
            told = [self._describe(store, run, pinned) for run in runs]
            gates = self._ask_gate(store, [run for run in runs if not run.setup.is_of_suites])
        return [
            ShownRun(each, gates.get(run.run_id, ""), run.setup.is_of_suites)
            for run, each in zip(runs, told, strict=True)
        ]

    def page(self, collector: MetricsCollector | None = None, place: str = "") -> str:
        """Return the page of all runs; with ``place``, which is shown, the one that is served."""
        runs = [] if self._place == Path() else self._runs()
        judged = [each.run for each in runs if not each.is_of_suites]
        names = [] if collector is None else collector.names()
        return render(
            "runs.html.j2",
            asks=bool(place),
            place=place,
            written_at=_minute(now()),
            runs=runs,
            has_baseline=bool(runs) and self._baseline.is_file(),
            embedded_models=sorted({r.embedded_models for r in judged if r.embedded_models}),
            parts=[
                ("What was judged", _JUDGED, _run_panels(judged, "means")),
                ("What needs no judge", _MEASURED, _run_panels(judged, "measured")),
                (
                    "What was recorded",
                    "Values that a program recorded, over time.",
                    [] if collector is None else [_series(collector, name) for name in names],
                ),
            ],
        )

    def _describe(self, store: EvaluationStore, run: Run, pinned: str | None) -> StoredRun:
        key, is_pinned = self._key(store, run), run.run_id == pinned
        key = None if key is None else (key, is_pinned)
        return _once(self._described, key, lambda: describe_run(store, run, is_pinned=is_pinned))

    def _key(self, store: EvaluationStore, run: Run) -> object:
        """Return what changes whenever a run's figures do; None while it goes on."""
        finished = store.finished_at(run.run_id)
        if finished is None:
            return None
        return run.run_id, finished, _changed(run_folder(self._place.parent, run.run_id))

    def _ask_gate(self, store: EvaluationStore, runs: Sequence[Run]) -> dict[str, str]:
        """Return run -> the gate's answer against the pinned baseline, or why there is none."""
        if not self._baseline.is_file():
            return {}
        pinned, changed = self._pinned_id(), _changed(self._baseline)

        def gate(run: Run) -> str:
            if run.run_id == pinned:
                return "baseline"
            if run.status != "finished":
                return "unfinished"
            key = (self._key(store, run), changed)
            return _once(self._gated, key, lambda: self._gate(store, run))

        return {run.run_id: gate(run) for run in runs[:_GATED]}

    def _gate(self, store: EvaluationStore, run: Run) -> str:
        new = RunRows(stored_rows(store, run), stored_metadata(store, run))
        try:
            baseline = read_rows(PINNED, self._place)
            return answer_comparison(compare_two(new, baseline, self._place.parent)).chip
        except EvalError as error:  # other questions, or no method in common
            return f"can't be compared: {error}"


def write_dashboard(
    path: Path | str,
    store_path: Path | str | None = None,
    collector: MetricsCollector | None = None,
) -> Path:
    """Write the figures of runs, and what was recorded, as one page, and return its path.

    ``path`` is the HTML file, whose folder is made when missing; ``store_path`` an eval.db: every
    mean of every run, by method, and latency, tokens, cost and retrieval measures, what the
    embedded models made marked; ``collector``: every series of it, one line for each set of labels.
    UsageError if neither is given, or there is no store; StoreError if another process holds the
    store, or the file can't be written.
    """
    if store_path is None and collector is None:
        raise UsageError("There is nothing to show: give a store_path, a collector, or both.")
    written = Path(path)
    write_file(written, StorePages(Path(store_path or "")).page(collector))
    return written


def _run_panels(runs: Sequence[StoredRun], of: str) -> list[Panel]:
    """Draw each figure of the runs, one step a run, the oldest first."""
    by_run: list[tuple[StoredRun, Mapping[str, Mapping[str, float | None]]]]
    by_run = [(run, getattr(run, of)) for run in reversed(runs)]
    names = dict.fromkeys(name for _, means in by_run for found in means.values() for name in found)
    return [_run_panel(name, by_run, of == "means") for name in names]


def _run_panel(
    name: str,
    by_run: Sequence[tuple[StoredRun, Mapping[str, Mapping[str, float | None]]]],
    is_judged: bool,
) -> Panel:
    methods = list(dict.fromkeys(m for _, means in by_run for m in means if name in means[m]))
    shown = [(run, means) for run, means in by_run if any(name in f for f in means.values())]
    labels = list(dict.fromkeys(run.embedded_models for run, _ in by_run))
    # A line through runs with and without embedded models would compare what can't be compared.
    lines: dict[tuple[str, str | None], list[Point]] = {(m, e): [] for e in labels for m in methods}
    for step, (run, means) in enumerate(by_run):
        for method in methods:
            value = means.get(method, {}).get(name)
            if value is not None and run.status == "finished":
                label = f" ({run.embedded_models})" if run.embedded_models else ""
                told = f"{method}: {_text(value)}, {_minute(run.started_at)}, run {run.run_id}"
                point = Point(step, value, told + label, is_hollow=bool(label))
                lines[method, run.embedded_models].append(point)
    series = [
        Series(method, methods.index(method), points, is_joined=True)
        for (method, _), points in lines.items()
        if points
    ]
    limits = ((1.0, 5.0) if name.startswith("rubric.") else (0.0, 1.0)) if is_judged else None
    ends = {0: by_run[0][0], len(by_run) - 1: by_run[-1][0]}
    pinned = [step for step, (run, _) in enumerate(by_run) if run.is_pinned]
    x = Axis("", (0, len(by_run) - 1), [(n, run.started_at[:10]) for n, run in ends.items()])
    cell = partial(_mean, name=name) if is_judged else partial(_measured, name=name)
    return Panel(
        Drawing(
            name,
            f"{name} over time; its values are in the table",
            series,
            x,
            Axis(_UNITS.get(name, ""), limits),
            marked=pinned[0] if pinned else None,
        )
        if series
        else None,
        Table(
            name,
            [("run, from its start", "text"), *((method, "percent") for method in methods)],
            [
                [
                    f"{run.run_id}{' (embedded)' if run.embedded_models else ''}",
                    *(cell(run, method) for method in methods),
                ]
                for run, _ in reversed(shown)
            ],
            _UNITS.get(name, ""),
        ),
        ", ".join(
            f"{m} {cell(shown[-1][0], m)}" for m in methods if name in shown[-1][1].get(m, {})
        ),
    )


def _series(collector: MetricsCollector, name: str) -> Panel:
    points, summary = collector.history(name), collector.summary(name)
    by_labels: dict[str, list[MetricPoint]] = {}
    for point in points:
        by_labels.setdefault(_labels(point), []).append(point)
    interval = ""
    if summary["low"] is not None:
        interval = f" (95 %: {_text(summary['low'])} to {_text(summary['high'])})"
    notes = [f"n = {summary['n']}, mean {_text(summary['mean'])}{interval}"]
    if any(len(of) > _MOST_DRAWN for of in by_labels.values()):
        notes.append("each point of the drawing is a mean of several values")
    if len(points) > _MOST_LISTED:
        notes.append(f"the table has the latest {_MOST_LISTED}")
    ends = [(p.at.timestamp(), f"{p.at:%Y-%m-%d %H:%M}") for p in (points[0], points[-1])]
    return Panel(
        Drawing(
            name,
            f"{name} over time; its values are in the table",
            [
                Series(labels or name, style, _thin(of), is_joined=True)
                for style, (labels, of) in enumerate(by_labels.items())
            ],
            Axis("", ticks=ends[: len(points)]),
            Axis(),
        ),
        Table(
            name,
            [("at (UTC)", "text"), ("value", "percent"), ("labels", "text")],
            [
                [f"{p.at:%Y-%m-%d %H:%M:%S}", _text(p.value), _labels(p)]
                for p in reversed(points[-_MOST_LISTED:])
            ],
            "; ".join(notes),
        ),
        notes[0],
    )


def _thin(points: Sequence[MetricPoint]) -> list[Point]:
    """Return points to draw; of many, means of as many neighbors each."""
    size = -(-len(points) // _MOST_DRAWN)
    groups = [points[n : n + size] for n in range(0, len(points), size)]
    return [
        Point(
            fmean(p.at.timestamp() for p in group),
            value := fmean(p.value for p in group),
            f"{_text(value)}, {group[0].at:%Y-%m-%d %H:%M:%S} UTC",
        )
        for group in groups
    ]


def _labels(point: MetricPoint) -> str:
    return ", ".join(
        f"{key}={json.dumps(value, ensure_ascii=False).strip(chr(34))}"
        for key, value in sorted(point.labels.items())
    )


def _take(store: EvaluationStore, run_id: str | None) -> Run:
    """Return a run by its whole id; what comes from an address leads nowhere else."""
    for run in store.runs():
        if run.run_id == run_id:
            return run
    raise NotFound(f"{store.path} holds no run {(run_id or '')[:60]!r}.")


def _once(kept: dict[object, Kept], key: object, make: Callable[[], Kept]) -> Kept:
    """Return what is kept under a key, else make it, and keep it unless the key is None."""
    if key is None:
        return make()
    if key not in kept:
        kept[key] = make()
    return kept[key]


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _mean(run: StoredRun, method: str, name: str) -> str:
    n = run.n.get(method, {}).get(name)
    behind = f" (n {n:,})" if n and n != run.n_questions else ""
    return number(run.means.get(method, {}).get(name), ".3f") + behind


def _measured(run: StoredRun, method: str, name: str) -> str:
    return _text(run.measured.get(method, {}).get(name))


def _text(value: float | None) -> str:
    return number(value, ".4g")


def _minute(at: str) -> str:
    return at[:16].replace("T", " ")
