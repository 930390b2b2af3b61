"""Whether the rounds of a watch show that a metric fell against its baseline.

What there is to know is in the store: the rounds are runs that name their baseline and their
pass, so a watch goes on after any interruption as if there had been none.
"""

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from graphrag.eval.analysis import Row, RunRows, paired_score, stored_rows
from graphrag.eval.statistics import (
    ALPHA,
    MIN_COVERAGE,
    State,
    early_stop_evidence,
    evidence_needed,
)
from graphrag.eval.store import EvaluationStore, Run

_NEVER_ASKED = {State.SEARCH_FAILED, State.ABSTAINED}


@dataclass(frozen=True, slots=True)
class RoundNote:
    """What a run that is a round of a watch says about itself.

    Attributes
    ----------
    baseline : str
        Id of the run that it is held against, or name and date of a file without one.
    pass_number, round_number : int
        From 1; a pass asks every question once, in one round or several.
    """

    baseline: str
    pass_number: int
    round_number: int

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class WatchedFigure:
    """One method on one metric in one pass, after one of its rounds.

    Attributes
    ----------
    method, metric : str
    run_id : str
        The round.
    pass_number : int
    n_pairs, n_missing : int
        Questions of the pass so far with both verdicts, and with a missing one.
    newly_wrong, newly_right, n_search_failed : int
        Among the pairs; failed searches are wrong in some metrics and missing in others.
    coverage : float
        Share of the verdicts asked for that exist.
    evidence, needed : float
        The e-value for a fall, and the one at which it is an alarm.
    fell : bool
        Whether it is one; never at a coverage under 95 %, as what is missing may not be missing
        at random.
    """

    method: str
    metric: str
    run_id: str
    pass_number: int
    n_pairs: int
    n_missing: int
    newly_wrong: int
    newly_right: int
    n_search_failed: int
    coverage: float
    evidence: float
    needed: float
    fell: bool


@dataclass(frozen=True, slots=True)
class WatchState:
    """A watch after its rounds so far.

    Attributes
    ----------
    baseline : str
        As of :class:`RoundNote`.
    pass_number : int
        The one that the next round belongs to unless all its questions have been asked.
    round_number : int
        Rounds so far.
    asked : frozenset of str
        Ids of the questions that were asked and judged in this pass.
    figures : tuple of WatchedFigure
        Of the latest round.
    falls : tuple of WatchedFigure
        Every method and metric that fell, when it first did; they stand until another baseline
        is taken.
    """

    baseline: str
    pass_number: int
    round_number: int
    asked: frozenset[str]
    figures: tuple[WatchedFigure, ...]
    falls: tuple[WatchedFigure, ...]


@dataclass(frozen=True, slots=True)
class NextRound:
    """The questions of a round, and what its run will say about itself."""

    question_ids: tuple[str, ...]
    note: RoundNote


def baseline_name(baseline: RunRows) -> str:
    """Return the name under which the rounds of a watch know their baseline."""
    told = baseline.metadata
    return told.run_id or f"{told.name} of {told.started_at}"


def read_watch(store: EvaluationStore, baseline: RunRows) -> WatchState:
    """Compute a watch from the rounds that the store holds of it.

    The family that shares the level is every method and metric of the baseline, whatever a round
    asks of it.
    """
    name = baseline_name(baseline)
    rounds = [run for run in reversed(store.runs()) if _note(run).get("baseline") == name]
    # A baseline of an old store may not say what its questions are about.
    by_document = all(row.document for row in baseline.rows)
    known = {_key(row, by_document): row for row in baseline.rows}
    family = [
        (m, metric)
        for m in dict.fromkeys(row.method for row in baseline.rows)
        for metric in baseline.metrics
    ]
    number, rows = 1, dict[tuple[str, str, str], Row]()
    falls: dict[tuple[str, str], WatchedFigure] = {}
    figures: tuple[WatchedFigure, ...] = ()
    for run in rounds:
        if _note(run)["pass_number"] != number:
            number, rows = _note(run)["pass_number"], {}
        for row in stored_rows(store, run):
            if {row.states[metric] for metric in run.setup.metrics or ()} == {State.NOT_JUDGED}:
                continue  # cut off before its verdicts: asked again
            rows.setdefault(_key(row, by_document), row)  # a question counts once a pass
        pairs = [(row, known[key]) for key, row in rows.items() if key in known]
        figures = tuple(
            _figure(pairs, key, run.run_id, (number, len(family)))
            for key in family
            if key[1] in (run.setup.metrics or ()) and any(new.method == key[0] for new, _ in pairs)
        )
        for figure in figures:
            if figure.fell:
                falls.setdefault((figure.method, figure.metric), figure)
    asked = frozenset(question for *_, question in rows)
    return WatchState(name, number, len(rounds), asked, figures, tuple(falls.values()))


def _key(row: Row, by_document: bool) -> tuple[str, str, str]:
    return row.method, row.document if by_document else "", row.question_id


def plan_round(
    state: WatchState, pool: Sequence[str], sample: int | None = None, seed: int = 0
) -> NextRound:
    """Choose the questions of the next round.

    Parameters
    ----------
    state : WatchState
    pool : sequence of str
        Ids of the questions that the baseline holds.
    sample : int or None
        How many are asked; None: all that the pass has left.
    seed : int
        Gives each pass its order; with the same one a watch draws the same questions again.

    Notes
    -----
    A pass draws without replacement, so no question counts twice in it; the last round of a pass
    may be smaller.
    """
    number = state.pass_number
    left = [key for key in pool if key not in state.asked]
    if not left:
        number, left = number + 1, list(pool)
    order = sorted(pool)
    random.Random(f"{seed} {number}").shuffle(order)
    wanted = set(left)
    drawn = [key for key in order if key in wanted][: sample or len(left)]
    return NextRound(tuple(drawn), RoundNote(state.baseline, number, state.round_number + 1))


def _note(run: Run) -> Mapping[str, Any]:
    return (run.details.watch if run.details is not None else None) or {}


def _figure(
    pairs: Iterable[tuple[Row, Row]],
    key: tuple[str, str],
    run_id: str,
    family: tuple[int, int],
) -> WatchedFigure:
    method, metric = key
    of_method = [(new, old) for new, old in pairs if new.method == method]
    scores = [(paired_score(new, metric), paired_score(old, metric)) for new, old in of_method]
    both = [(new, old) for new, old in scores if new is not None and old is not None]
    counts = Counter(new > old for new, old in both if new != old)
    asked = [s for new, _ in of_method if (s := new.states[metric]) not in _NEVER_ASKED]
    coverage = sum(s is State.SCORED for s in asked) / len(asked) if asked else 1.0
    evidence = early_stop_evidence(counts[False], counts[True])
    needed = evidence_needed(*family)
    return WatchedFigure(
        method=method,
        metric=metric,
        run_id=run_id,
        pass_number=family[0],
        n_pairs=len(both),
        n_missing=len(scores) - len(both),
        newly_wrong=counts[False],
        newly_right=counts[True],
        n_search_failed=sum(new.censored for new, _ in of_method),
        coverage=coverage,
        evidence=evidence,
        needed=needed,
        fell=evidence >= needed and coverage >= MIN_COVERAGE,
    )


def describe_figure(figure: WatchedFigure) -> str:
    """Return a figure as a sentence without its full stop."""
    failed = figure.n_search_failed
    lost = f", {failed} searches failed" if failed else ""
    low = ""
    if figure.coverage < MIN_COVERAGE:
        low = (
            f"; not decided, as the judge gave {figure.coverage:.1%} of the verdicts asked of it, "
            "under 95 %"
        )
    return (
        f"{figure.method}, {figure.metric}: {figure.newly_wrong} newly wrong and "
        f"{figure.newly_right} newly right of {figure.n_pairs} pairs{lost}; evidence "
        f"{figure.evidence:.3g} of the {figure.needed:.3g} that an alarm needs{low}"
    )


LEVEL = ALPHA
"""The chance that a watch of a system which never changes ever raises an alarm."""
