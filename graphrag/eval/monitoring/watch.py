"""Whether the rounds of a watch show that a metric fell against the runs of its baseline.

What there is to know is in the store: the rounds are runs that name their baseline and their
pass, so a watch goes on after any interruption as if there had been none.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TypeAlias

from graphrag.eval.compare.changes import MetricKey, list_setup_changes
from graphrag.eval.results.rows import Row, owes_nothing, paired_score
from graphrag.eval.results.runs import RunRows, stored_rows
from graphrag.eval.stats.gates import percent_below
from graphrag.eval.stats.intervals import grouped
from graphrag.eval.stats.outcomes import NEVER_ASKED, State
from graphrag.eval.stats.paired import MIN_COVERAGE, holm
from graphrag.eval.stats.passes import (
    LOOK_LEVEL,
    LOOKS,
    Answers,
    fall_p,
    next_look,
    steadiness,
    watch_power,
)
from graphrag.eval.stats.power import ALPHA
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import Run, RunSetup, now
from graphrag.text.json_records import Stored
from graphrag.text.phrases import counted

LEVEL = ALPHA
"""The chance that a watch of a system which never changes ever raises an alarm."""
FALLS = (0.10, 0.05)
"""Falls of the mean whose power is told."""
_EARLY_LOOK = 8
_SYSTEM = ("indexes", "judge")
_Question: TypeAlias = tuple[str, str, str]  # method, document, id


@dataclass(frozen=True, slots=True)
class RoundNote(Stored):
    """What a run that is a round of a watch says about itself.

    ``baseline`` is the id of the run that it is held against, or name and date of a file without
    one. A pass asks every question once, in one round or several; both count from 1. A further run
    of the baseline (``of_baseline``) has its own number, from 2, and round 0.
    """

    baseline: str
    pass_number: int
    round_number: int
    of_baseline: bool = False


@dataclass(frozen=True, slots=True)
class WatchedFigure:
    """One method on one metric, over all passes up to one of its rounds, whose run is ``run_id``.

    ``pass_number`` counts the pass that goes on, ``n_runs`` the baseline's runs that asked for it.
    Of ``n_questions`` with a verdict in a pass and in the baseline there are ``n`` verdicts in the
    passes and ``n_baseline``, so many of them right. ``n_search_failed`` in the passes: failed
    searches are wrong in some metrics and missing in others. ``coverage``: share of the verdicts
    asked for that exist, in the passes or in the baseline, the smaller. ``p``: that the baseline is
    as much the better by luck alone, ``p_holm`` over all methods and metrics that are looked at;
    None between two looks. It never ``fell`` at a coverage under 95 %: what is missing may not be
    missing at random.
    """

    method: str
    metric: str
    run_id: str
    pass_number: int
    n_runs: int
    n_questions: int
    n: int
    n_right: int
    n_baseline: int
    n_baseline_right: int
    n_search_failed: int
    coverage: float
    p: float | None = None
    p_holm: float | None = None
    fell: bool = False


@dataclass(frozen=True, slots=True)
class WatchState:
    """A watch after its ``round_number`` rounds so far.

    ``baseline`` is as of :class:`RoundNote`; ``n_runs`` are its runs, the one that goes on
    included, and ``baseline_answers`` (method, metric) -> verdicts and right ones of each question
    in all of them. ``baseline_asked`` and ``questions``: those that were asked and judged in
    its newest further run, and in this pass. ``strayed``: the first further run that is of another
    system than the first, and what differs. The next round belongs to pass ``pass_number`` unless
    all its questions have been asked. ``figures`` are of the latest round; ``falls``, each as it
    first fell, stand until another baseline is taken.
    """

    baseline: str
    n_runs: int
    baseline_asked: frozenset[str]
    strayed: tuple[str, str] | None
    baseline_answers: Mapping[MetricKey, Sequence[tuple[int, int]]]
    pass_number: int
    round_number: int
    questions: frozenset[str]
    figures: tuple[WatchedFigure, ...]
    falls: tuple[WatchedFigure, ...]

    def is_over(self, pool: Collection[str]) -> bool:
        """Whether every look has been taken."""
        is_closed = self.round_number > 0 and set(pool) <= self.questions
        return self.pass_number + is_closed > LOOKS[-1]


@dataclass(frozen=True, slots=True)
class NextRound:
    """The questions of a round, and what its run will say about itself."""

    question_ids: tuple[str, ...]
    note: RoundNote


@dataclass(slots=True)
class _Side:
    """Verdicts of the baseline's runs, or of the passes, on the ``questions`` of the baseline."""

    questions: Mapping[_Question, tuple[Row, Sequence[str]]]
    verdicts: dict[MetricKey, dict[_Question, list[int]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    expected: Counter[MetricKey] = field(default_factory=Counter[MetricKey])
    obtained: Counter[MetricKey] = field(default_factory=Counter[MetricKey])
    failed: Counter[str] = field(default_factory=Counter[str])

    def add(self, rows: Mapping[_Question, tuple[Row, Sequence[str]]]) -> None:
        """Add rows, each with what it was to be judged on."""
        for question in [question for question in rows if question in self.questions]:
            row, metrics = rows[question]
            self.failed[row.method] += row.censored
            for metric in metrics:
                key = row.method, metric
                is_owed = not owes_nothing(row, self.questions[question][0], metric)
                if is_owed and row.states[metric] not in NEVER_ASKED:
                    self.expected[key] += 1
                    self.obtained[key] += row.states[metric] is State.SCORED
                score = paired_score(row, metric)
                if score is not None:
                    counts = self.verdicts[key].setdefault(question, [0, 0])
                    counts[0] += 1
                    counts[1] += score

    def coverage(self, key: MetricKey) -> float:
        """Share of the verdicts asked for that exist; 1 where none was asked for."""
        return self.obtained[key] / self.expected[key] if self.expected[key] else 1.0


def read_watch(store: EvaluationStore, baseline: RunRows, pool: Collection[str]) -> WatchState:
    """Compute a watch from the rounds that the store holds of it.

    ``pool`` holds the ids of the questions that a pass asks. It is looked at after the passes of
    ``LOOKS``, once all their questions have been asked, over everything that was asked until then;
    each look tests every method and metric, by Holm.
    """
    metadata = baseline.metadata
    name = metadata.run_id or f"{metadata.name} of {metadata.started_at}"
    kept = store.runs()
    further, passes = (_by_pass(kept, name, of_baseline) for of_baseline in (True, False))
    pinned = {_key(row): (row, baseline.metrics) for row in baseline.rows}
    old, new = _Side(pinned), _Side(pinned)
    old.add(pinned)
    baseline_asked = frozenset[str]()
    for _, runs in further:
        rows = _first_rows(store, runs)
        old.add(rows)
        baseline_asked = frozenset(question for *_, question in rows)
    falls: dict[MetricKey, WatchedFigure] = {}
    figures: list[WatchedFigure] = []
    number, questions = 1, frozenset[str]()
    for number, runs in passes:
        rows = _first_rows(store, runs)
        new.add(rows)
        questions = frozenset(question for *_, question in rows)
        is_look = number in LOOKS and (number < passes[-1][0] or set(pool) <= questions)
        figures = _figures(new, old, (runs[-1].run_id, number), is_look)
        for figure in figures:
            if figure.fell:
                falls.setdefault((figure.method, figure.metric), figure)
    later = [(run.run_id, _system_changes(run, baseline)) for _, runs in further for run in runs]
    return WatchState(
        baseline=name,
        n_runs=further[-1][0] if further else 1,
        baseline_asked=baseline_asked,
        strayed=next(((run_id, "; ".join(changes)) for run_id, changes in later if changes), None),
        baseline_answers={
            key: [(n, right) for n, right in v.values()] for key, v in old.verdicts.items()
        },
        pass_number=number,
        round_number=sum(len(runs) for _, runs in passes),
        questions=questions,
        figures=tuple(figures),
        falls=tuple(falls.values()),
    )


def plan_round(
    state: WatchState, pool: Sequence[str], sample: int | None = None, seed: int = 0
) -> NextRound:
    """Choose the questions of the next round from those that the baseline holds.

    ``sample`` of them, or all that the pass has left; ``seed`` gives each pass its order. A pass
    draws without replacement, so no question counts twice in it, and its last round may be smaller.
    """
    number = state.pass_number
    left = [key for key in pool if key not in state.questions]
    if not left:
        number, left = number + 1, list(pool)
    order = sorted(pool)
    random.Random(f"{seed} {number}").shuffle(order)
    rest = set(left)
    drawn = [key for key in order if key in rest][: sample or len(left)]
    return NextRound(tuple(drawn), RoundNote(state.baseline, number, state.round_number + 1))


def plan_baseline_run(state: WatchState, n_runs: int, pool: Sequence[str]) -> NextRound | None:
    """Choose the questions of a further run of the baseline.

    None when there are ``n_runs`` with all questions asked, or the watch has begun: from then on
    they could be of a system that has changed.
    """
    if state.round_number:
        return None
    number, left = state.n_runs, [key for key in pool if key not in state.baseline_asked]
    if number == 1 or not left:
        number, left = number + 1, list(pool)
    if number > n_runs:
        return None
    return NextRound(tuple(left), RoundNote(state.baseline, number, 0, of_baseline=True))


def describe_figure(figure: WatchedFigure) -> str:
    """Return a figure as a sentence without its full stop."""
    failed = figure.n_search_failed
    lost = f", {counted(failed, 'search', 'searches')} failed" if failed else ""
    look = next_look(figure.pass_number)
    if figure.p_holm is not None:
        test = f"p = {figure.p_holm:.2g} where an alarm needs {LOOK_LEVEL:.2g} or less"
    elif figure.coverage < MIN_COVERAGE:
        test = (
            f"not decided, as the judge gave {percent_below(figure.coverage)} of the verdicts "
            "asked of it, under 95 %"
        )
    else:
        test = f"looked at after pass {look}" if look else "not looked at any more"
    return (
        f"{figure.method}, {figure.metric}: {_share(figure.n_right, figure.n)} right, "
        f"{_share(figure.n_baseline_right, figure.n_baseline)} in "
        f"{counted(figure.n_runs, 'baseline run')}{lost}; {test}"
    )


def describe_power(state: WatchState, keys: Sequence[MetricKey]) -> list[str]:
    """Say which falls a watch that begins will see, a line each method and metric of ``keys``.

    They share the level.
    """
    lines: list[str] = []
    for key in keys:
        answers = state.baseline_answers.get(key, ())
        system = steadiness(answers)
        if system is None:
            continue
        n_runs = max(n for n, _ in answers)
        chances: list[str] = []
        for fall in FALLS:
            seen = watch_power(len(answers), n_runs, system, fall, n_tests=len(keys))
            size = f"falls of {100 * fall:g} points"
            chances.append(
                f"no {size}, as {system.mean:.1%} are right"
                if seen is None
                else f"{seen[_EARLY_LOOK]:.0%} of {size} by pass {_EARLY_LOOK}, "
                f"{seen[LOOKS[-1]]:.0%} ever"
            )
        lines.append(f"{key[0]}, {key[1]} ({len(answers):,} questions): {'; '.join(chances)}")
    return lines


def _share(right: int, n: int) -> str:
    return f"{right / n:.1%} of {counted(n, 'answer')}" if n else "none of 0 answers"


def _by_pass(runs: Sequence[Run], baseline: str, of_baseline: bool) -> list[tuple[int, list[Run]]]:
    """Return the number and the runs of each pass, or of each further run of the baseline."""
    rounds = [(run.details.watch, run) for run in reversed(runs)]
    notes = [(RoundNote.from_dict(watch), run) for watch, run in rounds if watch is not None]
    by_pass = grouped(
        (note.pass_number, run)
        for note, run in notes
        if (note.baseline, note.of_baseline) == (baseline, of_baseline)
    )
    return list(by_pass.items())


def _system_changes(run: Run, baseline: RunRows) -> list[str]:
    """Name what makes a run one of another system: its indexes, settings, models or judge."""
    new, old = (
        RunSetup({"dataset": {}, "metrics": {}, **{k: root.get(k, {}) for k in _SYSTEM}})
        for root in (run.setup.root, baseline.metadata.setup.root)
    )
    methods = {row.method for row in baseline.rows}
    shared = [method for method in run.setup.methods if method in methods]
    return list_setup_changes(new, old, shared)


def _key(row: Row) -> _Question:
    return row.method, row.document, row.question_id


def _first_rows(
    store: EvaluationStore, runs: Iterable[Run]
) -> dict[_Question, tuple[Row, Sequence[str]]]:
    """Return what the rounds of a pass were answered: a question counts once."""
    rows: dict[_Question, tuple[Row, Sequence[str]]] = {}
    for run in runs:
        metrics = run.setup.metrics or ()
        for row in stored_rows(store, run):
            if {row.states[metric] for metric in metrics} == {State.NOT_JUDGED}:
                continue  # cut off before its verdicts: asked again
            rows.setdefault(_key(row), (row, metrics))
    return rows


def _figures(new: _Side, old: _Side, where: tuple[str, int], is_look: bool) -> list[WatchedFigure]:
    """Return the figures of a round; a look tests those whose verdicts are there, by Holm."""
    figures: list[WatchedFigure] = []
    tested: list[float | None] = []
    for key, before in old.verdicts.items():
        if key not in new.expected.keys() | new.verdicts.keys():
            continue
        answers = [
            Answers(n + before[question][0], right + before[question][1], *before[question])
            for question, (n, right) in new.verdicts[key].items()
            if question in before
        ]
        coverage = min(new.coverage(key), old.coverage(key))
        is_tested = is_look and coverage >= MIN_COVERAGE
        tested.append(fall_p(answers) if is_tested else None)
        figures.append(
            WatchedFigure(
                *key,
                *where,
                n_runs=max((answer.n_baseline for answer in answers), default=0),
                n_questions=len(answers),
                n=sum(answer.n - answer.n_baseline for answer in answers),
                n_right=sum(answer.right - answer.right_baseline for answer in answers),
                n_baseline=sum(answer.n_baseline for answer in answers),
                n_baseline_right=sum(answer.right_baseline for answer in answers),
                n_search_failed=new.failed[key[0]],
                coverage=coverage,
            )
        )
    return [
        replace(figure, p=p, p_holm=p_holm, fell=p_holm is not None and p_holm <= LOOK_LEVEL)
        for figure, p, p_holm in zip(figures, tested, holm(tested), strict=True)
    ]


def describe_alarm(state: WatchState, embedded_models: str | None = None) -> dict[str, object]:
    """Return an alarm as JSON-ready values; ``raised_at`` is ISO 8601 in UTC."""
    fallen = ", ".join(f"{fall.method} {fall.metric}" for fall in state.falls)
    return {
        "alarm": True,
        "message": f"{fallen} fell against run {state.baseline} (level {100 * LEVEL:g} % over all "
        f"looks): {'; '.join(describe_figure(fall) for fall in state.falls)}.",
        "raised_at": now(),
        "baseline": state.baseline,
        "level": LEVEL,
        "round": state.round_number,
        "pass": state.pass_number,
        "falls": [asdict(fall) for fall in state.falls],
        "figures": [asdict(figure) for figure in state.figures],
        "embedded_models": embedded_models,
    }
