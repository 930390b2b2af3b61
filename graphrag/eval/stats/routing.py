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

    ``scores``: two methods or more -> one score in [0, 1] a question, in the same order for all;
    ``kinds``, ``documents``: one a question; ``costs``: method -> one cost a question, >= 0;
    ``confidence``: of the limits of the difference, in (0, 1).
    """
    methods, names = list(scores), list(dict.fromkeys(kinds))
    kind = np.array([names.index(each) for each in kinds])
    values = np.array([scores[method] for method in methods], dtype=np.float64).T
    paid = np.zeros_like(values)
    if costs is not None:
        paid = np.array([costs[method] for method in methods], dtype=np.float64).T
    both = np.stack([values, paid])
    drawn = np.random.default_rng(0)
    routed, single = np.zeros((2, len(kind))), np.zeros((2, len(kind)))  # scores, costs
    for _ in range(SPLITS):
        fold = _split(kind, drawn)
        for number in range(FOLDS):
            out = np.flatnonzero(fold == number)
            picks, best = _choose(values, kind, fold != number, len(names))
            routed[:, out] += both[:, out, picks[kind[out]]] / SPLITS
            single[:, out] += both[:, out, best] / SPLITS
    picks, best = _choose(values, kind, kind >= 0, len(names))
    (router, router_cost), (one, one_cost) = routed.mean(axis=1), single.mean(axis=1)
    return Routing(
        n=len(kind),
        single=float(one),
        router=float(router),
        difference=mean_real((routed - single)[0].tolist(), documents, (-1.0, 1.0), confidence),
        single_cost=None if costs is None else float(one_cost),
        router_cost=None if costs is None else float(router_cost),
        best=methods[best],
        picks={name: methods[int(pick)] for name, pick in zip(names, picks, strict=True)},
    )


def _split(kind: _Whole, drawn: np.random.Generator) -> _Whole:
    """Return the fold of each question, those of a kind spread evenly."""
    order = drawn.permutation(len(kind))
    order = order[np.argsort(kind[order], kind="stable")]
    fold = np.empty(len(kind), dtype=np.int64)
    fold[order] = (np.arange(len(kind)) + int(drawn.integers(FOLDS))) % FOLDS
    return fold


def _choose(
    values: Floats, kind: _Whole, known: NDArray[np.bool_], n_kinds: int
) -> tuple[_Whole, int]:
    """Return the best method of each kind, and over all, by the questions that are known."""
    over_all = values[known].mean(axis=0)
    means = np.zeros((n_kinds, len(over_all)))
    for each in range(n_kinds):
        inside = known & (kind == each)
        if inside.any():
            means[each] = values[inside].mean(axis=0).round(12)
    return (means + _TIE * over_all).argmax(axis=1), int(over_all.round(12).argmax())
