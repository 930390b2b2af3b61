"""What the pages show, read from the store anew for each request."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from graphrag.eval.compare.changes import read_both_labels
from graphrag.eval.compare.compare import GateTerms, compare_runs
from graphrag.eval.errors import EvalError, UsageError
from graphrag.eval.records import METRICS
from graphrag.eval.report.cells import money, number
from graphrag.eval.report.gate_lines import word_of
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
from graphrag.eval.store.records import Run
from graphrag.eval.store.whole_files import run_folder
from graphrag.eval.web.live import LiveRun, read_live
from graphrag.eval.web.live_plots import HistoryPoint, plot_history
from graphrag.eval.web.viewed import Viewed

_GATED = 20
"""Of how many runs, the newest, the gate is asked."""


_DRAWN = 4
"""How many pages of finished runs are kept, the latest."""


class NoSuchRun(UsageError):
    """The store holds no run of this id."""


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run in the list."""

    id: str
    started: str
    origin: str
    status: str
    is_pinned: bool
    questions: str
    scores: Sequence[tuple[str, str]]
    cost: str
    embedded_models: str
    is_of_suites: bool


@dataclass(frozen=True, slots=True)
class MetricHistory:
    """A metric over the runs.

    Attributes
    ----------
    name : str
    plots : sequence of (str, dict)
        A heading and a Vega-Lite specification: the runs without embedded models, and those of
        each label apart, as a line through both would compare what can't be compared.
    methods : sequence of str
    rows : sequence of (str, sequence of str, str)
        A run, its mean of each method, and the gate's answer; the newest first.
    """

    name: str
    plots: Sequence[tuple[str, dict[str, object]]]
    methods: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str], str]]


class StorePages:
    """Reads what the pages show; a finished run's figures are read once.

    Parameters
    ----------
    viewed : Viewed

    Raises
    ------
    UsageError, StoreError
        From each method: there is no store, or it can't be read.
    """

    def __init__(self, viewed: Viewed) -> None:
        self._viewed = viewed
        self._place = viewed.place
        self._described: dict[object, StoredRun] = {}
        self._gated: dict[object, str] = {}
        self._drawn: dict[object, str] = {}
        self._rendering = Lock()

    @contextmanager
    def _open(self) -> Generator[EvaluationStore]:
        with open_store(self._place) as store:
            yield store

    def list_runs(self) -> list[RunLine]:
        """Return the runs, the newest first."""
        with self._open() as store:
            runs = store.runs()
            told = [self._describe(store, run) for run in runs]
        pinned = pinned_run_id(self._place)
        return [
            RunLine(
                id=each.run_id,
                started=each.started_at[:16].replace("T", " "),
                origin=each.origin,
                status=each.status,
                is_pinned=each.run_id == pinned,
                questions=f"{each.n_questions:,}",
                scores=[(m, _means_line(each, m)) for m in run.setup.methods],
                cost=money(each.cost_usd),
                embedded_models=each.embedded_models or "",
                is_of_suites=run.setup.is_of_suites,
            )
            for run, each in zip(runs, told, strict=True)
        ]

    def embedded_models(self, run_id: str) -> str | None:
        """Return the label of the embedded models if they had a part in a run."""
        with self._open() as store:
            return stored_metadata(store, _take(store, run_id)).embedded_models

    def has_baseline(self) -> bool:
        """Whether a baseline is pinned."""
        return baseline_path(self._place).is_file()

    def live(self, run_id: str) -> LiveRun:
        """Return how far a run is; raises NoSuchRun."""
        with self._open() as store:
            return read_live(store, _take(store, run_id))

    def report(self, run_id: str, other: str | None = None) -> str:
        """Return the page of a run; raises NoSuchRun, or UsageError if there is nothing to show."""
        with self._open() as store:
            keys = [self._key(store, _take(store, run_id))]
            if other not in (None, PINNED):
                keys.append(self._key(store, _take(store, other)))
        pinned = _changed(baseline_path(self._place)) if other == PINNED else None
        key = (*keys, other, pinned)
        with self._rendering:  # it takes the memory of a run with its contexts
            if key in self._drawn:
                return self._drawn[key]
            page = self._viewed.render(run_id, other)
            if None not in keys:
                self._drawn = {**dict([*self._drawn.items()][1 - _DRAWN :]), key: page}
            return page

    def history(self) -> tuple[list[MetricHistory], str | None, list[str]]:
        """Return each judged metric over the runs, the baseline's id, and what is to be said."""
        notes: list[str] = []
        with self._open() as store:
            runs = [run for run in store.runs() if not run.setup.is_of_suites]
            told = [self._describe(store, run) for run in runs]
            pinned, gates = pinned_run_id(self._place), dict[str, str]()
            if self.has_baseline():
                gates = self._ask_gate(store, runs[:_GATED])
                if len(runs) > _GATED:
                    notes.append(f"The gate was asked of the newest {_GATED} runs alone.")
            else:
                notes.append("No baseline is pinned, so the gate has nothing to decide.")
        names = dict.fromkeys(n for run in told for of in run.means.values() for n in of)
        return [_metric(name, told, pinned, gates) for name in names], pinned, notes

    def _describe(self, store: EvaluationStore, run: Run) -> StoredRun:
        key = self._key(store, run)
        found = self._described.get(key) if key is not None else None
        if found is None:
            found = describe_run(store, run, is_pinned=False)
            if key is not None:
                self._described[key] = found
        return found

    def _key(self, store: EvaluationStore, run: Run) -> object:
        """Return what changes whenever a run's figures do; None while it goes on."""
        finished = store.finished_at(run.run_id)
        if finished is None:
            return None
        return run.run_id, finished, _changed(run_folder(self._place.parent, run.run_id))

    def _ask_gate(self, store: EvaluationStore, runs: Sequence[Run]) -> dict[str, str]:
        """Return run -> the gate's answer against the pinned baseline, or why there is none."""
        baseline = read_rows(PINNED, self._place)
        answers: dict[str, str] = {}
        for run in runs:
            if run.run_id == baseline.metadata.run_id:
                answers[run.run_id] = "baseline"
                continue
            if run.status != "finished":
                answers[run.run_id] = "unfinished"
                continue
            pinned = _changed(baseline_path(self._place))
            key = (self._key(store, run), pinned)
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


def _means_line(run: StoredRun, method: str) -> str:
    names = run.means.get(method, {})
    return ", ".join(f"{name} {_mean(run, method, name)}" for name in names) or "-"


def _mean(run: StoredRun, method: str, name: str) -> str:
    n = run.n.get(method, {}).get(name)
    return number(run.means.get(method, {}).get(name), ".3f") + (f" (n {n:,})" if n else "")


def _metric(
    name: str, told: Sequence[StoredRun], pinned: str | None, gates: Mapping[str, str]
) -> MetricHistory:
    shown = [run for run in told if any(name in means for means in run.means.values())]
    methods = list(dict.fromkeys(m for run in shown for m in run.means if name in run.means[m]))
    points: dict[str, list[HistoryPoint]] = {}
    oldest_first = shown[::-1]
    for run in sorted(oldest_first, key=lambda run: bool(run.embedded_models)):
        points.setdefault(run.embedded_models or "", []).extend(
            HistoryPoint(run.run_id, method, mean, run.run_id == pinned, gates.get(run.run_id, ""))
            for method in methods
            if run.status == "finished"
            and (mean := run.means.get(method, {}).get(name)) is not None
        )
    return MetricHistory(
        name,
        [
            (
                f"Mean {name}, run by run{f' ({label})' if label else ''}",
                plot_history(name, of_kind, methods, is_share=name in METRICS),
            )
            for label, of_kind in points.items()
            if of_kind
        ],
        methods,
        [
            (
                f"{run.run_id}{f' ({run.embedded_models})' if run.embedded_models else ''}",
                [_mean(run, method, name) for method in methods],
                gates.get(run.run_id, "-"),
            )
            for run in shown
        ],
    )
