"""Two runs on figures beside verdicts: what changed in all, and thresholds on amounts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import NamedTuple, TypeAlias

from graphrag.config.models.strict_section import as_sentence, nearest
from graphrag.eval.errors import UsageError
from graphrag.eval.records.judged import METRICS
from graphrag.eval.results.runs import RunRows, Values, read_question_figures
from graphrag.eval.stats.gates import AmountCase, AmountDecision
from graphrag.eval.stats.paired import holm, paired_scale
from graphrag.eval.stats.power import ALPHA
from graphrag.eval.store.database import EvaluationStore, open_store
from graphrag.eval.store.records import Run

FigureKey: TypeAlias = tuple[str, str]
"""Method and figure."""
_Figures: TypeAlias = dict[FigureKey, Values]
LOWER_IS_BETTER = {"latency_s", "tokens", "cost_usd"}
OF_THE_HOUR = {"latency_s", "time_score"}
"""What hangs on how busy the machine was: the questions of a run share that."""
AMOUNT_MARGIN = 0.05
"""The share of the baseline's mean by which an amount may increase, unless said otherwise."""


class Margin(NamedTuple):
    """A loss or an increase that is accepted: as it is, or as a share of the baseline's mean."""

    value: float
    is_relative: bool = False


@dataclass(frozen=True, slots=True)
class FigureChange:
    """One figure of one method in two runs, over the n_pairs >= 1 questions with both values.

    ``baseline`` and ``new`` are means, ``difference`` new less baseline, in the figure's unit.
    ``p``: two-sided permutation test, ``p_holm`` corrected over every method and figure; None of
    what is ``OF_THE_HOUR``, where the test would take a busy hour for a change.
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


@dataclass(frozen=True, slots=True)
class FigureComparison:
    """The gate's decision on one amount of one method; ``note`` is what makes it weaker."""

    method: str
    figure: str
    decision: AmountDecision
    note: str | None

    @property
    def metric(self) -> str:
        """What the gate decided on, as a comparison on a judged metric has it."""
        return self.figure


def compare_figures(new_run: str, baseline_run: str, store_path: Path) -> list[FigureChange]:
    """Compare two runs of a store on all that both have: verdicts, grades, time, tokens, retrieval.

    Exploratory: the gate decides on the primary metrics alone. Empty when the store does not hold
    both. UsageError if there is no store, StoreError if another process holds it.
    """
    ours, theirs = _read_figures(store_path, (new_run, baseline_run))
    if ours is None or theirs is None:
        return []
    changes: list[FigureChange] = []
    for key in (key for key in ours if key in theirs):
        now, then = ours[key], theirs[key]
        pairs = {question: (now[question], then[question]) for question in now if question in then}
        both = [(a, b) for a, b in pairs.values() if a is not None and b is not None]
        places = [document or None for document, _ in pairs]
        result = paired_scale(list(pairs.values()), documents=places)
        if both and result.difference is not None:
            means = (sum(b for _, b in both) / len(both), sum(a for a, _ in both) / len(both))
            p = None if key[1] in OF_THE_HOUR else result.p
            changes.append(FigureChange(*key, len(both), *means, result.difference, p, None))
    corrected = holm([change.p for change in changes])
    return [replace(change, p_holm=p) for change, p in zip(changes, corrected, strict=True)]


def read_metric_terms(texts: Sequence[str]) -> dict[str, Margin | None]:
    """Read ``NAME`` and ``NAME=MARGIN``, comma-separated: a share of the mean ends in ``%``.

    Returns name -> its margin, None where none is given. UsageError if a margin is no positive
    number, or a name is given twice.
    """
    terms: dict[str, Margin | None] = {}
    for text in (term.strip() for line in texts for term in line.split(",")):
        name, has_margin, margin = (part.strip() for part in text.partition("="))
        if not name:
            if has_margin:
                raise UsageError(f"{text!r} names no metric; write NAME=MARGIN.")
            continue
        if name in terms:
            raise UsageError(f"{name} is named twice; name it once, with its margin.")
        terms[name] = _read_margin(name, margin) if has_margin else None
    return terms


def _read_margin(name: str, text: str) -> Margin:
    is_relative = text.endswith("%")
    try:
        value = float(text.removesuffix("%")) / (100 if is_relative else 1)
    except ValueError:
        value = 0.0
    if not 0 < value < inf:
        raise UsageError(
            f"The margin of {name} must be a number above 0, such as 0.03, or a share of the "
            f"baseline's mean, such as 5%, not {text!r}."
        )
    return Margin(value, is_relative)


def read_amounts(
    new: RunRows, baseline: RunRows, margins: Mapping[str, Margin | None], store_path: Path
) -> dict[FigureKey, AmountCase]:
    """Read amounts of two runs of a store, question by question.

    ``margins``: amount -> the increase that is accepted; None: 5 % of the baseline's mean. Returns
    (method, amount) -> case, of every method that both runs have the amount for. A failed search
    has none: it makes a run neither quick nor cheap. UsageError if the store does not hold both
    runs, or not both have the amount, or it is none; StoreError if another process holds the store.
    """
    names = [*METRICS, *sorted(LOWER_IS_BETTER)]
    for name in margins:
        if name not in LOWER_IS_BETTER:
            msg = f"The gate does not decide on {name!r}{nearest(name, names)}"
            raise UsageError(f"{as_sentence(msg)} It decides on: {', '.join(names)}.")
    sides = new.metadata, baseline.metadata
    ours, theirs = _read_figures(store_path, [side.run_id for side in sides])
    if ours is None or theirs is None:
        name, side = ("new run", sides[0]) if ours is None else ("baseline", sides[1])
        raise UsageError(
            f"{', '.join(margins)} can't be compared: {store_path} does not hold the {name} "
            f"({side.name}), and its file has the verdicts alone; name a run that is in the store."
        )
    shared = [key for key in ours if key in theirs]
    both = list(dict.fromkeys(name for _, name in shared if name in LOWER_IS_BETTER))
    for name in margins:
        if name not in both:
            raise UsageError(f"Not both runs have {name}; both have: {', '.join(both) or 'none'}.")
    failed = [
        {(row.method, *row.key) for row in side.rows if row.censored} for side in (new, baseline)
    ]
    cases: dict[FigureKey, AmountCase] = {}
    for method, name in (key for key in shared if key[1] in margins):
        now, then = (
            {key: None if (method, *key) in lost else v for key, v in side[method, name].items()}
            for side, lost in zip((ours, theirs), failed, strict=True)
        )
        margin = margins[name] or Margin(AMOUNT_MARGIN, is_relative=True)
        cases[method, name] = AmountCase(
            pairs=[(now.get(key), value) for key, value in then.items()],
            margin=margin.value,
            is_relative=margin.is_relative,
            documents=[document or None for document, _ in then],
        )
    return cases


def _read_figures(store_path: Path, run_ids: Sequence[str | None]) -> list[_Figures | None]:
    """Return the figures of each of the runs; None of one that the store does not hold."""
    with open_store(store_path) as store:
        runs = {run.run_id: run for run in store.runs()}
        return [_all_figures(store, runs[i]) if i in runs else None for i in run_ids]


def _all_figures(store: EvaluationStore, run: Run) -> _Figures:
    return {
        (method, figure): values
        for by_method in read_question_figures(store, run)
        for method, of_method in by_method.items()
        for figure, values in of_method.items()
        if any(value is not None for value in values.values())
    }
