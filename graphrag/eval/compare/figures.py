"""Two runs on figures beside verdicts: amounts, grades and measures, and the gate on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import NamedTuple, TypeAlias

from graphrag.config.models.strict_section import as_sentence, nearest
from graphrag.eval.compare.changes import changed_indexes, what_is_assumed, why_undecided
from graphrag.eval.errors import UsageError
from graphrag.eval.records import METRICS
from graphrag.eval.results.rows import QuestionKey
from graphrag.eval.results.runs import QuestionFigures, RunRows, Values, read_question_figures
from graphrag.eval.scorers.measuring import list_forms
from graphrag.eval.stats.gates import ALPHA, FigureCase, FigureDecision
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


FigureKey: TypeAlias = tuple[str, str]
"""Method and figure."""
GRADES = (1.0, 5.0)
AMOUNT_MARGIN = 0.05
"""The share of the baseline's mean by which an amount may get worse, unless said otherwise."""
_AMOUNTS = frozenset(LOWER_IS_BETTER)
_OF_THE_HOUR = frozenset({"latency_s", "time_score"})


class Margin(NamedTuple):
    """A worsening that is accepted: in the figure's unit, or a share of the baseline's mean."""

    value: float
    is_relative: bool = False


@dataclass(frozen=True, slots=True)
class FigureComparison:
    """One figure of one method in two runs.

    Attributes
    ----------
    method, figure : str
    decision : FigureDecision
    note : str or None
        What makes the figure weaker than it looks.
    """

    method: str
    figure: str
    decision: FigureDecision
    note: str | None


def read_metric_terms(texts: Sequence[str]) -> dict[str, Margin | None]:
    """Read ``NAME`` and ``NAME=MARGIN``, comma-separated: a share of the mean ends in ``%``.

    Returns
    -------
    dict
        Name -> its margin; None where none is given.

    Raises
    ------
    UsageError
        If a margin is no positive number, or a name is given twice.
    """
    found: dict[str, Margin | None] = {}
    for text in (each.strip() for given in texts for each in given.split(",")):
        name, has_margin, margin = (part.strip() for part in text.partition("="))
        if not name:
            if has_margin:
                msg = f"{text!r} names no metric; write NAME=MARGIN."
                raise UsageError(msg)
            continue
        if name in found:
            msg = f"{name} is named twice; name it once, with its margin."
            raise UsageError(msg)
        found[name] = _read_margin(name, margin) if has_margin else None
    return found


def read_gate_figures(
    new: RunRows,
    baseline: RunRows,
    wanted: Mapping[str, Margin | None],
    store_path: Path,
    margin: float,
) -> dict[FigureKey, FigureCase]:
    """Read figures of two runs of a store, question by question.

    Parameters
    ----------
    new, baseline : RunRows
    wanted : dict
        Figure -> the worsening that is accepted; None: ``margin`` of a share, ``margin`` of the
        scale's four steps of a grade, 5 % of the baseline's mean of an amount.
    store_path : Path
    margin : float
        In (0, 1).

    Returns
    -------
    dict
        (method, figure) -> case, of every method that both runs have the figure for. A failed
        search has no amount: it makes a run neither quick nor cheap.

    Raises
    ------
    UsageError
        If the store does not hold both runs, or not both have a figure.
    StoreError
        If another process holds the store.
    """
    with open_store(store_path) as store:
        runs = {run.run_id: run for run in store.runs()}
        for side, name in ((new, "new run"), (baseline, "baseline")):
            if side.metadata.run_id not in runs:
                msg = (
                    f"{', '.join(wanted)} can't be compared: {store_path} does not hold the {name}"
                    f" ({side.metadata.name}), and its file has the verdicts alone; name a run "
                    "that is in the store."
                )
                raise UsageError(msg)
        now, then = (
            read_question_figures(store, runs[side.metadata.run_id or ""])
            for side in (new, baseline)
        )
    ours, theirs = _all_figures(now), _all_figures(then)
    shared = [key for key in ours if key in theirs]
    names = list(dict.fromkeys(figure for _, figure in shared if figure not in METRICS))
    for figure in wanted:
        if figure not in names:
            msg = f"Not both runs have a figure {figure!r}{nearest(figure, [*METRICS, *names])}"
            said = as_sentence(msg)
            raise UsageError(f"{said} Both have: {', '.join(names) or 'none'}.")
    failed = [
        {(row.method, *row.key) for row in side.rows if row.censored} for side in (new, baseline)
    ]
    cases: dict[FigureKey, FigureCase] = {}
    for method, figure in shared:
        if figure not in wanted:
            continue
        values = [
            {
                key: None if figure in _AMOUNTS and (method, *key) in lost else value
                for key, value in side[method, figure].items()
            }
            for side, lost in zip((ours, theirs), failed, strict=True)
        ]
        cases[method, figure] = _case(figure, values[0], values[1], wanted[figure], margin)
    return cases


def changed_under(key: FigureKey, case: FigureCase, new: RunRows, baseline: RunRows) -> list[str]:
    """Return the documents of a figure whose index changed."""
    documents = {str(document or "") for document in case.documents or ()} or {""}
    return changed_indexes(new.metadata, baseline.metadata, key[0], documents)


def hold_back(case: FigureCase, changed: Sequence[str]) -> FigureCase:
    """Return a case that is undecided where its indexes changed."""
    return replace(case, undecided=why_undecided(changed) if changed else None)


def compared_figure(
    key: FigureKey, decision: FigureDecision, accepted: Sequence[str]
) -> FigureComparison:
    """Return a decision with what makes it weaker than it looks: changed indexes among it."""
    notes = [what_is_assumed(accepted)] if accepted else []
    if key[1] in _OF_THE_HOUR:
        notes.append("the answers of a run share the load of its hour, which no question shows")
    return FigureComparison(*key, decision, "; ".join(notes) or None)


def _read_margin(name: str, text: str) -> Margin:
    is_relative = text.endswith("%")
    try:
        value = float(text.removesuffix("%")) / (100 if is_relative else 1)
    except ValueError:
        value = 0.0
    if not 0 < value < inf:
        msg = (
            f"The margin of {name} must be a number above 0, such as 0.03, or a share of the "
            f"baseline's mean, such as 5%, not {text!r}."
        )
        raise UsageError(msg)
    return Margin(value, is_relative)


def _all_figures(found: QuestionFigures) -> dict[FigureKey, Values]:
    """Return (method, figure) -> values, of those that have any."""
    return {
        (method, figure): values
        for by_method in (found.judged, found.measured)
        for method, figures in by_method.items()
        for figure, values in figures.items()
        if any(value is not None for value in values.values())
    }


def _case(
    figure: str,
    new: Values,
    old: Values,
    wanted: Margin | None,
    margin: float,
) -> FigureCase:
    unbounded = {form.name for form in list_forms(()) if form.measure.kind == "unbounded"}
    is_amount = figure in _AMOUNTS or figure in unbounded
    limits = None if is_amount else GRADES if figure.startswith("rubric.") else (0.0, 1.0)
    if wanted is None and limits is not None:
        wanted = Margin(margin * (limits[1] - limits[0]))
    value, is_relative = wanted or Margin(AMOUNT_MARGIN, is_relative=True)
    return FigureCase(
        pairs=[(new.get(key), value) for key, value in old.items()],
        margin=value,
        is_relative=is_relative,
        lower_is_better=figure in LOWER_IS_BETTER,
        limits=limits,
        documents=[document or None for document, _ in old],
    )
