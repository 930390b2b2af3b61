"""The runs of a store on one page, each figure over time; served, or written as a file."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from threading import Lock

from graphrag.eval.compare.changes import read_both_labels
from graphrag.eval.compare.compare import GateTerms, compare_runs
from graphrag.eval.errors import EvalError, UsageError
from graphrag.eval.monitoring.collector import MetricPoint, MetricsCollector
from graphrag.eval.report.cells import number
from graphrag.eval.report.comparison import word_of
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
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.lookup import PINNED, baseline_path, open_store
from graphrag.eval.store.records import Run, now
from graphrag.eval.store.whole_files import run_folder, write_file
from graphrag.eval.web.drawing import Axis, Drawing, Point, Series
from graphrag.eval.web.live import LiveRun, read_live
from graphrag.eval.web.page import render

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


class NoSuchRun(UsageError):
    """The store holds no run of this id."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A figure over time: its drawing, if there is a value, and a table, the newest first."""

    drawing: Drawing | None
    table: Table


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A run in the list, and what the gate says of it against the baseline, "" if not asked."""

    run: StoredRun
    gate: str
    is_of_suites: bool

    @property
    def scores(self) -> list[str]:
        """Each method with its means."""
        lines: list[str] = []
        for method, means in self.run.means.items():
            cells = (f"{name} {_mean(self.run, method, name)}" for name in means)
            lines.append(f"{method} {', '.join(cells) or '-'}")
        return lines


class StorePages:
    """Reads what the pages show from the store anew, a finished run's figures once.

    Parameters
    ----------
    place : Path
        The store.
    render_run : callable, optional
        From a run's id and another run's, or None, to the page of the run.

    Raises
    ------
    UsageError, StoreError
        From each method: there is no store, or it can't be read.
    """

    def __init__(
        self, place: Path, render_run: Callable[[str, str | None], str] | None = None
    ) -> None:
        self._place, self._render_run = place, render_run
        self._described: dict[object, StoredRun] = {}
        self._gated: dict[object, str] = {}
        self._drawn: dict[object, str] = {}
        self._rendering = Lock()

    def has_baseline(self) -> bool:
        """Whether a baseline is pinned."""
        return baseline_path(self._place).is_file()

    def embedded_models(self, run_id: str) -> str | None:
        """Return the label of the embedded models if they had a part in a run."""
        with open_store(self._place) as store:
            return stored_metadata(store, _take(store, run_id)).embedded_models

    def live(self, run_id: str) -> LiveRun:
        """Return how far a run is; raises NoSuchRun."""
        with open_store(self._place) as store:
            return read_live(store, _take(store, run_id))

    def report(self, run_id: str, other: str | None = None) -> str:
        """Return the page of a run; raises NoSuchRun, or UsageError if there is nothing to show."""
        with open_store(self._place) as store:
            keys = [self._key(store, _take(store, run_id))]
            if other not in (None, PINNED):
                keys.append(self._key(store, _take(store, other)))
        pinned = _changed(baseline_path(self._place)) if other == PINNED else None
        key = (*keys, other, pinned)
        with self._rendering:  # it takes the memory of a run with its contexts
            if key in self._drawn:
                return self._drawn[key]
            page = "" if self._render_run is None else self._render_run(run_id, other)
            if None not in keys:
                self._drawn = {**dict([*self._drawn.items()][1 - _KEPT_PAGES :]), key: page}
            return page

    def runs(self) -> list[ShownRun]:
        """Return the runs, the newest first."""
        with open_store(self._place) as store:
            runs, pinned = store.runs(), pinned_run_id(self._place)
            told = [self._describe(store, run, pinned) for run in runs]
            gates = self._ask_gate(store, [run for run in runs if not run.setup.is_of_suites])
        return [
            ShownRun(each, gates.get(run.run_id, ""), run.setup.is_of_suites)
            for run, each in zip(runs, told, strict=True)
        ]

    def page(self, collector: MetricsCollector | None = None, place: str = "") -> str:
        """Return the page of all runs; with ``place``, which is shown, the one that is served."""
        runs = [] if self._place == Path() else self.runs()
        judged = [each.run for each in runs if not each.is_of_suites]
        names = [] if collector is None else collector.names()
        return render(
            "runs.html.j2",
            asks=bool(place),
            place=place,
            written_at=_minute(now()),
            runs=runs,
            has_baseline=bool(runs) and self.has_baseline(),
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
        key = (self._key(store, run), run.run_id == pinned)
        if key[0] is None:
            return describe_run(store, run, is_pinned=key[1])
        if key not in self._described:
            self._described[key] = describe_run(store, run, is_pinned=key[1])
        return self._described[key]

    def _key(self, store: EvaluationStore, run: Run) -> object:
        """Return what changes whenever a run's figures do; None while it goes on."""
        finished = store.finished_at(run.run_id)
        if finished is None:
            return None
        return run.run_id, finished, _changed(run_folder(self._place.parent, run.run_id))

    def _ask_gate(self, store: EvaluationStore, runs: Sequence[Run]) -> dict[str, str]:
        """Return run -> the gate's answer against the pinned baseline, or why there is none."""
        if not self.has_baseline():
            return {}
        baseline = read_rows(PINNED, self._place)
        answers = {run.run_id: "unfinished" for run in runs[:_GATED] if run.status != "finished"}
        for run in runs[:_GATED]:
            if run.run_id == baseline.metadata.run_id:
                answers[run.run_id] = "baseline"
            elif run.run_id not in answers:
                key = (self._key(store, run), _changed(baseline_path(self._place)))
                if key not in self._gated:
                    self._gated[key] = self._gate(store, run, baseline)
                answers[run.run_id] = self._gated[key]
        return answers

    def _gate(self, store: EvaluationStore, run: Run, baseline: RunRows) -> str:
        new = RunRows(stored_rows(store, run), stored_metadata(store, run))
        try:
            terms = GateTerms(labels=read_both_labels(new, baseline, self._place.parent))
            return word_of(compare_runs(new, baseline, terms=terms).outcome)
        except EvalError as error:  # other questions, or no method in common
            return f"can't be compared: {error}"


def write_dashboard(
    path: Path | str,
    store_path: Path | str | None = None,
    collector: MetricsCollector | None = None,
) -> Path:
    """Write the figures of runs, and what was recorded, as one page.

    Parameters
    ----------
    path : Path or str
        The HTML file; its folder is made when missing.
    store_path : Path or str, optional
        An eval.db: every mean of every run, by method, and latency, tokens, cost and retrieval
        measures. What the embedded models made is marked.
    collector : MetricsCollector, optional
        Every series of it, one line for each set of labels.

    Returns
    -------
    Path
        Of the file.

    Raises
    ------
    UsageError
        If neither is given, or there is no store.
    StoreError
        If another process holds the store, or the file can't be written.
    """
    if store_path is None and collector is None:
        msg = "There is nothing to show: give a store_path, a collector, or both."
        raise UsageError(msg)
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
    )


def _thin(points: Sequence[MetricPoint]) -> list[Point]:
    """Return points to draw; of many, means of as many neighbours each."""
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
    msg = f"{store.path} holds no run {(run_id or '')[:60]!r}."
    raise NoSuchRun(msg)


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _mean(run: StoredRun, method: str, name: str) -> str:
    n = run.n.get(method, {}).get(name)
    return number(run.means.get(method, {}).get(name), ".3f") + (f" (n {n:,})" if n else "")


def _measured(run: StoredRun, method: str, name: str) -> str:
    return _text(run.measured.get(method, {}).get(name))


def _text(value: float | None) -> str:
    return number(value, ".4g")


def _minute(at: str) -> str:
    return at[:16].replace("T", " ")
