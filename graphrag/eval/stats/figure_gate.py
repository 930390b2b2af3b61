"""The gate on figures that are no verdicts: amounts as tokens, shares as a hit rate."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from statistics import fmean
from typing import NamedTuple, TypeAlias

import numpy as np

from graphrag.eval.stats.differences import flip_signs
from graphrag.eval.stats.estimates import Floats, present, scipy_special
from graphrag.eval.stats.gate import ALPHA, MIN_COVERAGE
from graphrag.eval.stats.gate_records import GateOutcome, p_in_words
from graphrag.eval.stats.scales import scale_interval
from graphrag.eval.stats.structure import Structure, choose_structure

_Known: TypeAlias = tuple[float, float, Hashable]
MIN_EQUAL = 59
"""Pairs, all alike, from which at 95 % confidence under 5 % of questions differ: .95^59 < .05."""


@dataclass(frozen=True, slots=True)
class FigureCase:
    """One figure of one method in two runs.

    Attributes
    ----------
    pairs : sequence
        (new, baseline) of every question that the baseline holds, and None where one is missing.
    margin : float
        The worsening that is still accepted, > 0, in the unit of the figure.
    is_relative : bool
        Whether the margin is a share of the baseline's mean instead.
    lower_is_better : bool
    limits : tuple of float or None
        Least and largest value that the figure can take; None of an amount, which is >= 0.
    documents : sequence, optional
        Document of each pair, None where it is not known.
    undecided : str, optional
        Why the pairs can't decide, as when the index is another.
    """

    pairs: Sequence[tuple[float | None, float | None]]
    margin: float
    is_relative: bool = False
    lower_is_better: bool = False
    limits: tuple[float, float] | None = None
    documents: Sequence[Hashable] | None = None
    undecided: str | None = None


@dataclass(frozen=True, slots=True)
class FigureDecision:
    """The gate's answer on a figure.

    Attributes
    ----------
    outcome : GateOutcome
    reason : str
        One sentence.
    n_pairs, n_dropped_pairs, n_baseline : int
        Questions with both values, with a missing one, and with one in the baseline.
    baseline, new : float or None
        Means over the pairs, in the unit of the figure; None without pairs.
    worsening : float or None
        How much worse the new mean is, negative when it is better; None without pairs.
    upper_bound : float or None
        One-sided 95 % limit of the worsening; None where it is not known.
    margin : float or None
        In the unit of the figure; None where it is relative to a mean that is not known.
    p, p_holm : float or None
        One-sided permutation test of worsening, and corrected over the family; with the missing
        values in favour of the new run where too many are missing. None without pairs.
    bound, test : str
        Names of the limit and of the test.
    """

    outcome: GateOutcome
    reason: str
    n_pairs: int
    n_dropped_pairs: int
    n_baseline: int
    baseline: float | None
    new: float | None
    worsening: float | None
    upper_bound: float | None
    margin: float | None
    p: float | None
    p_holm: float | None
    bound: str
    test: str


class FigureTest(NamedTuple):
    """A figure with its own test, before the family is corrected; see ``FigureDecision``."""

    case: FigureCase
    means: tuple[float, float] | None
    upper_bound: float | None
    bound: str
    incomplete: str | None
    p: float | None
    test: str

    @property
    def p_family(self) -> float | None:
        """What the figure enters Holm's family with: one that can't be decided keeps its place."""
        return self.p if self.case.undecided is None or self.p is None else 1.0


def check_figure(case: FigureCase) -> FigureTest:
    """Compute the limit of the worsening, and its test.

    Raises
    ------
    ValueError
        If a value is not finite or lies outside the limits, or the margin is not positive.

    Notes
    -----
    Shares have the limit of Bonett and Price 2012 (doi:10.3102/1076998611411915) on differences
    scaled to [-1, 1], amounts that of ``scale_interval``, and shares as well if it is the wider
    one for documents that are many. The test is that of ``flip_signs``.
    """
    if not 0 < case.margin < inf:
        msg = f"the margin must be positive, not {case.margin!r}"
        raise ValueError(msg)
    low, high = case.limits or (0.0, np.finfo(float).max)
    present([value for pair in case.pairs for value in pair], low, high)
    documents = case.documents or [None] * len(case.pairs)
    both = [
        (new, old, document)
        for (new, old), document in zip(case.pairs, documents, strict=True)
        if new is not None and old is not None
    ]
    n_baseline = sum(old is not None for _, old in case.pairs)
    if not both:
        why = "no question has a value in both runs"
        return FigureTest(case, None, None, "none", why, None, "none")
    incomplete = None
    if len(both) < MIN_COVERAGE * n_baseline:
        incomplete = (
            f"{len(both):,} of the {n_baseline:,} questions that the baseline has a value for have "
            f"one in the new run, {len(both) / n_baseline:.1%}, under 95 %"
        )
    bound, name = _upper_bound(both, case)
    p, test = _worse(_best_case(case, documents) if incomplete else both, case)
    return FigureTest(
        case=case,
        means=(fmean(new for new, _, _ in both), fmean(old for _, old, _ in both)),
        upper_bound=bound,
        bound=name,
        incomplete=incomplete,
        p=p,
        test=test,
    )


def decide_figure(test: FigureTest, p_holm: float | None, alpha: float = ALPHA) -> FigureDecision:
    """Decide on a figure.

    Parameters
    ----------
    test : FigureTest
    p_holm : float or None
        Its p, corrected over the family.
    alpha : float
        Level of the test.

    Returns
    -------
    FigureDecision
        PASS when the limit of the worsening lies within the margin and at least 95 % of the
        baseline's values have one to hold against; else FAIL when p_holm <= alpha; else
        INCONCLUSIVE. Amounts always move a little, so that a sure worsening within the margin
        passes: here the margin comes first.
    """
    case = test.case
    margin: float | None = case.margin
    if case.is_relative:
        margin = None if test.means is None else case.margin * test.means[1]
    worsening = None
    if test.means is not None:
        worsening = (test.means[0] - test.means[1]) * (1 if case.lower_is_better else -1)
    outcome, reason = _answer(test, margin, p_holm, alpha)
    return FigureDecision(
        outcome=outcome,
        reason=reason,
        n_pairs=sum(None not in pair for pair in case.pairs),
        n_dropped_pairs=sum(None in pair for pair in case.pairs),
        n_baseline=sum(old is not None for _, old in case.pairs),
        baseline=None if test.means is None else test.means[1],
        new=None if test.means is None else test.means[0],
        worsening=worsening,
        upper_bound=test.upper_bound,
        margin=margin,
        p=test.p,
        p_holm=None if case.undecided is not None else p_holm,
        bound=test.bound,
        test=test.test,
    )


def _answer(
    test: FigureTest, margin: float | None, p: float | None, alpha: float
) -> tuple[GateOutcome, str]:
    upper = test.upper_bound
    if test.case.undecided is not None:
        return GateOutcome.INCONCLUSIVE, test.case.undecided
    if test.incomplete is None and upper is not None and margin is not None and upper <= margin:
        return (
            GateOutcome.PASS,
            f"a worsening over {max(0.0, upper):.4g} is ruled out at 95 % confidence, and "
            f"{margin:.4g} is accepted",
        )
    if p is not None and p <= alpha:
        saved = "" if test.incomplete is None else " even with all that is missing in its favour"
        return GateOutcome.FAIL, f"worse beyond chance{saved} ({p_in_words(p)})"
    if test.incomplete is not None:
        return GateOutcome.INCONCLUSIVE, test.incomplete
    if upper is None or margin is None:
        return GateOutcome.INCONCLUSIVE, "too few pairs to say what is ruled out"
    return (
        GateOutcome.INCONCLUSIVE,
        f"a worsening of up to {upper:.4g} can't be ruled out at 95 % confidence, more than the "
        f"accepted {margin:.4g}",
    )


def _worsening(values: Sequence[_Known], case: FigureCase) -> list[float]:
    sign = 1 if case.lower_is_better else -1
    return [sign * (new - old) for new, old, _ in values]


def _upper_bound(values: Sequence[_Known], case: FigureCase) -> tuple[float | None, str]:
    """Return the one-sided 95 % limit of the mean worsening, and its name."""
    worsening, documents = _worsening(values, case), [document for _, _, document in values]
    _, high, name = scale_interval(worsening, documents, 1 - 2 * ALPHA)
    if case.limits is not None:
        span = case.limits[1] - case.limits[0]
        scaled = np.array(worsening) / span
        bounded = min(span, span * (float(scaled.mean()) + _bounded_half_width(-scaled)))
        clustered = choose_structure(Counter(documents)) is Structure.CLUSTERED
        if not clustered or high is None or high < bounded:
            return bounded, "bonett-price"
        return min(span, high), name
    if high is None and len(worsening) >= MIN_EQUAL:  # all alike: a t limit would be too sure
        return worsening[0], "all pairs alike"
    return high, name


def _bounded_half_width(differences: Floats) -> float:
    """Return how far the one-sided 95 % limit lies below the mean of values in [-1, 1].

    Of values in {-1, 0, 1} it is that of Bonett and Price 2012 (doi:10.3102/1076998611411915), one
    newly right and one newly wrong answer added, so that it is never 0.
    """
    n = len(differences) + 2
    centre = float(differences.sum()) / n
    spread = max(0.0, (float(np.sum(differences**2)) + 2) / n - centre**2)
    z = float(scipy_special().ndtri(1 - ALPHA))
    return max(0.0, float(differences.mean()) - centre + z * sqrt(spread / n))


def _best_case(case: FigureCase, documents: Sequence[Hashable]) -> list[_Known]:
    """Return the pairs with the new value as good as it can be where it is missing."""
    low, high = case.limits or (0.0, None)
    best = low if case.lower_is_better else high
    if best is None:  # an amount of which more is better has no best
        return []
    return [
        (best if new is None else new, old, document)
        for (new, old), document in zip(case.pairs, documents, strict=True)
        if old is not None
    ]


def _worse(values: Sequence[_Known], case: FigureCase) -> tuple[float | None, str]:
    improving = [-value for value in _worsening(values, case)]
    p, _, name = flip_signs(improving, [document for _, _, document in values], "less")
    return p, name
