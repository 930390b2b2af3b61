"""What choosing a method by the kind of a question could give, never judged on hindsight."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphrag.eval.stats.intervals import CONFIDENCE, Estimate, Floats, mean_real

_Whole: TypeAlias = NDArray[np.int64]

FOLDS = 10
SPLITS = 20
_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Routing:
    """A router that sends each question to the best method of its kind, beside one method for all.

    ``single``, ``router``: mean score over the ``n`` questions, each scored by a choice that was
    made without it. ``difference``: router less single, question by question, with limits of new
    questions. ``single_cost``, ``router_cost``: mean cost a question, None where one is not known.
    ``best``: the method with the highest mean over all questions; ``picks``: kind -> that of the
    kind.
    """

    n: int
    single: float
    router: float
    difference: Estimate
    single_cost: float | None
    router_cost: float | None
    best: str
    picks: Mapping[str, str]

    @property
    def pays(self) -> bool:
        """Whether the router is shown to score higher."""
        return self.difference.low is not None and self.difference.low > 0


def cross_fit_router(
    scores: Mapping[str, Sequence[float]],
    kinds: Sequence[str],
    documents: Sequence[Hashable],
    costs: Mapping[str, Sequence[float]] | None = None,
    confidence: float = CONFIDENCE,
) -> Routing:
    """Score a router by kind, and one method for all, each on questions it was not fitted on.

    The questions of each kind are split into ten folds; what is chosen on nine is scored on the
    tenth (cross-fitting: Chernozhukov et al. 2018, doi:10.1111/ectj.12097), and the scores of a
    question are averaged over twenty splits. Among methods that are level on a kind the one that
    is better over all is chosen, then the one named first.

    Parameters
    ----------
    scores : mapping
        Method -> one score in [0, 1] a question, in the same order for all.
    kinds, documents : sequence
        One a question.
    costs : mapping, optional
        Method -> one cost a question, >= 0.
    confidence : float
        Of the limits of the difference, in (0, 1).

    Raises
    ------
    ValueError
        Under two methods or two questions, or with sequences of different lengths.
    """
    methods = list(scores)
    lengths = {len(each) for each in (*scores.values(), *(costs or {}).values(), kinds, documents)}
    if len(methods) < 2 or len(lengths) != 1 or len(kinds) < 2:
        msg = "a router needs two methods and two questions or more, and a score of each by each"
        raise ValueError(msg)
    names = list(dict.fromkeys(kinds))
    number = {name: place for place, name in enumerate(names)}
    kind = np.array([number[each] for each in kinds])
    values = np.array([scores[method] for method in methods], dtype=np.float64).T
    prices = None if costs is None else np.array([costs[m] for m in methods], dtype=np.float64).T
    drawn, rows = np.random.default_rng(0), np.arange(len(kind))
    routed, single = np.zeros(len(kind)), np.zeros(len(kind))
    routed_cost = single_cost = 0.0
    for _ in range(SPLITS):
        fold = _split(kind, drawn)
        by_kind, for_all = _choose(values, kind, fold, len(names))
        picked, one = by_kind[kind, fold], for_all[fold]
        routed += values[rows, picked] / SPLITS
        single += values[rows, one] / SPLITS
        if prices is not None:
            routed_cost += float(prices[rows, picked].mean()) / SPLITS
            single_cost += float(prices[rows, one].mean()) / SPLITS
    nowhere = np.full(len(kind), FOLDS)  # no question is in a fold that is left out
    by_kind, for_all = _choose(values, kind, nowhere, len(names))
    gains = [float(each) for each in routed - single]
    return Routing(
        n=len(kind),
        single=float(single.mean()),
        router=float(routed.mean()),
        difference=mean_real(gains, documents, (-1.0, 1.0), confidence),
        single_cost=None if prices is None else single_cost,
        router_cost=None if prices is None else routed_cost,
        best=methods[int(for_all[0])],
        picks={name: methods[int(by_kind[row, 0])] for row, name in enumerate(names)},
    )


def _split(kind: _Whole, drawn: np.random.Generator) -> _Whole:
    """Return the fold of each question, those of a kind spread evenly."""
    order = drawn.permutation(len(kind))
    order = order[np.argsort(kind[order], kind="stable")]
    fold = np.empty(len(kind), dtype=np.int64)
    fold[order] = (np.arange(len(kind)) + int(drawn.integers(FOLDS))) % FOLDS
    return fold


def _choose(values: Floats, kind: _Whole, fold: _Whole, n_kinds: int) -> tuple[_Whole, _Whole]:
    """Return the best method without each fold: of each kind (kind x fold), and over all (fold)."""
    cell, size = kind * (FOLDS + 1) + fold, n_kinds * (FOLDS + 1)
    columns = [values[:, m] for m in range(values.shape[1])]
    sums, n = (
        np.stack([np.bincount(cell, of, size) for of in parts], axis=-1).reshape(
            n_kinds, FOLDS + 1, -1
        )
        for parts in (columns, [None])
    )
    sums, n = (each.sum(axis=1, keepdims=True) - each for each in (sums, n))
    over_all = sums.sum(axis=0) / np.maximum(n.sum(axis=0), 1)
    of_kind = np.divide(sums, n, out=np.zeros_like(sums), where=n > 0).round(12)
    return (of_kind + _TIE * over_all).argmax(axis=-1), over_all.round(12).argmax(axis=-1)
