"""Two stored runs on every figure: what got worse or better beyond chance."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from graphrag.eval.results.question_figures import Values, read_question_figures
from graphrag.eval.results.rows import QuestionKey
from graphrag.eval.stats.gate import ALPHA
from graphrag.eval.stats.paired import Pair, holm, paired_scale
from graphrag.eval.store.lookup import open_store

LOWER_IS_BETTER = {"latency_s", "tokens", "cost_usd"}
UNTESTED = {"latency_s", "time_score"}
"""What hangs on how busy the machine was: the questions of a run share that."""
ByMethod = Mapping[str, Mapping[str, Values]]


@dataclass(frozen=True, slots=True)
class FigureChange:
    """One figure of one method in two runs, over the questions that both have it for.

    Attributes
    ----------
    method, figure : str
    n_pairs : int
        At least one.
    baseline, new : float
        Means over the pairs, in the unit of the figure.
    difference : float
        New less baseline.
    p, p_holm : float or None
        Two-sided permutation test, and corrected over every method and figure; None of
        ``UNTESTED`` ones, where the test would take a busy hour for a change.
    """

    method: str
    figure: str
    n_pairs: int
    baseline: float
    new: float
    difference: float
    p: float | None
    p_holm: float | None

    @property
    def is_certain(self) -> bool:
        """Whether it changed beyond chance, at 5 % over all figures."""
        return self.p_holm is not None and self.p_holm <= ALPHA and self.difference != 0

    @property
    def is_worse(self) -> bool:
        """Whether the new run is the worse one, surely or not."""
        return (self.difference > 0) == (self.figure in LOWER_IS_BETTER) and self.difference != 0


def compare_figures(new_run: str, baseline_run: str, store_path: Path) -> list[FigureChange]:
    """Compare two runs of a store on all that both have: verdicts, grades, time, tokens, retrieval.

    Exploratory: the gate decides on the primary metrics alone.

    Parameters
    ----------
    new_run, baseline_run : str
        Run ids.
    store_path : Path

    Returns
    -------
    list of FigureChange
        Empty when the store does not hold both.

    Raises
    ------
    UsageError
        If there is no store.
    StoreError
        If another process holds it.
    """
    with open_store(store_path) as store:
        runs = {run.run_id: run for run in store.runs()}
        if new_run not in runs or baseline_run not in runs:
            return []
        new, old = (read_question_figures(store, runs[each]) for each in (new_run, baseline_run))
    joined = {**_join(new.judged, old.judged), **_join(new.measured, old.measured)}
    results = {
        key: paired_scale(
            list(pairs.values()),
            documents=[document or None for document, _ in pairs],
        )
        for key, pairs in joined.items()
    }
    tested = [None if key[1] in UNTESTED else result.p for key, result in results.items()]
    return [
        FigureChange(*key, result.n_pairs, *_means(joined[key]), result.difference, p, p_holm)
        for (key, result), p, p_holm in zip(results.items(), tested, holm(tested), strict=True)
        if result.difference is not None
    ]


def _join(new: ByMethod, old: ByMethod) -> dict[tuple[str, str], dict[QuestionKey, Pair]]:
    """Return (method, figure) -> question -> pair, new and baseline."""
    found: dict[tuple[str, str], dict[QuestionKey, Pair]] = {}
    for method in (m for m in new if m in old):
        for figure in (f for f in new[method] if f in old[method]):
            now, then = new[method][figure], old[method][figure]
            if not (_knows_documents(now) and _knows_documents(then)):
                now, then = _by_id(now), _by_id(then)
            pairs = {key: (now[key], then[key]) for key in now if key in then}
            if any(None not in pair for pair in pairs.values()):
                found[method, figure] = pairs
    return found


def _knows_documents(values: Values) -> bool:
    return all(document for document, _ in values)


def _by_id(values: Values) -> Values:
    """Return the values of a run that may have been kept without its questions."""
    return {("", question): value for (_, question), value in values.items()}


def _means(joined: Mapping[QuestionKey, Pair]) -> tuple[float, float]:
    """Return the baseline's mean and the new one, over the pairs that have both."""
    both = [(a, b) for a, b in joined.values() if a is not None and b is not None]
    return sum(b for _, b in both) / len(both), sum(a for a, _ in both) / len(both)
