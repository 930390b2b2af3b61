"""The release gate: FAIL, PASS or INCONCLUSIVE, on verdicts and on other figures."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, inf, sqrt
from statistics import fmean
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from graphrag.eval.stats.correction import Corrected
from graphrag.eval.stats.intervals import (
    Floats,
    Score,
    Structure,
    choose_structure,
    present,
    scale_interval,
    scipy_special,
)
from graphrag.eval.stats.paired import (
    MCNEMAR,
    MIN_COVERAGE,
    Pair,
    PairCounts,
    bonett_price,
    difference_interval,
    difference_test,
    flip_signs,
    holm,
    paired_counts,
)

PLAIN_BOUND = "bonett-price"


class GateOutcome(StrEnum):
    """The three answers; INCONCLUSIVE is not a pass."""

    FAIL = "fail"
    PASS = "pass"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class GateCase:
    """What the gate has to know of a metric beside its pairs.

    Attributes
    ----------
    documents : sequence, optional
        Document of each pair, in their order.
    n_only_new, n_only_baseline, n_other_reference : int
        Questions that only one run holds, those of the baseline being among the pairs with the
        new score missing, and joined ones whose accepted answer changed, missing as well.
    undecided : str, optional
        Why the pairs can't decide, as when the index is another.
    assumed : str, optional
        What the decision takes for granted, said after its reason.
    corrected : Corrected, optional
        The difference as labels of both runs correct it, with a standard error; takes the place
        of the pairs' test and bound.
    """

    documents: Sequence[Hashable] | None = None
    n_only_new: int = 0
    n_only_baseline: int = 0
    n_other_reference: int = 0
    undecided: str | None = None
    assumed: str | None = None
    corrected: Corrected | None = None


@dataclass(frozen=True, slots=True)
class GateDecision:
    """The gate's answer on one metric of one method.

    Attributes
    ----------
    outcome : GateOutcome
    reason : str
        One sentence.
    n_pairs, n_dropped_pairs : int
        Questions with both verdicts, and with a missing one.
    newly_wrong, newly_right : int
    difference : float or None
        New run less baseline, in [-1, 1]; None without pairs.
    lower_bound : float or None
        One-sided 95 % limit of the difference, see ``bound``; None without pairs.
    margin : float
    p : float or None
        One-sided test of "newly wrong > newly right", see ``test``; None without pairs.
    p_holm : float or None
        ``p`` corrected over the primary metrics; ``p`` itself when there is one. Of a metric that
        is not complete the test with every missing verdict in favour of the new run.
    coverage, baseline_coverage : float or None
        Share of the verdicts that exist, of the new run and of the baseline; None without any.
    n_baseline : int
        Questions that the baseline has a score for.
    n_only_new, n_only_baseline, n_other_reference : int
        See ``GateCase``.
    n_without_verdict : int
        Questions of both runs that lack a verdict.
    p_family : float or None
        What this metric entered Holm's family with; None without pairs.
    test, bound : str
        Names of the test and of the limit.
    """

    outcome: GateOutcome
    reason: str
    n_pairs: int
    n_dropped_pairs: int
    newly_wrong: int
    newly_right: int
    difference: float | None
    lower_bound: float | None
    margin: float
    p: float | None
    p_holm: float | None
    coverage: float | None
    baseline_coverage: float | None
    n_baseline: int = 0
    n_only_new: int = 0
    n_only_baseline: int = 0
    n_other_reference: int = 0
    n_without_verdict: int = 0
    p_family: float | None = None
    test: str = MCNEMAR
    bound: str = PLAIN_BOUND


def p_in_words(p: float) -> str:
    """Return "p = 0.0123", or "p < 0.001"."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3g}"


def loss_in_points(lower: float) -> str:
    """Return the loss that a lower limit of a difference leaves, rounded up: it is at most that."""
    return f"{ceil(round(-1000 * min(lower, 0.0), 6)) / 10:.1f}"


MARGIN = 0.05
ALPHA = 0.05
MAX_COVERAGE_GAP = 0.02


def decide_gates(
    pairs: Mapping[str, Sequence[Pair]],
    *,
    margin: float | Mapping[str, float] = MARGIN,
    coverages: Mapping[str, tuple[float | None, float | None]] | None = None,
    cases: Mapping[str, GateCase] | None = None,
    further: Sequence[float | None] = (),
) -> dict[str, GateDecision]:
    """Decide on the primary metrics, the tests of several corrected by Holm.

    Parameters
    ----------
    pairs : dict
        Metric -> pairs (new, baseline), one a question that both runs were to answer; 0, 1 or
        None (verdict missing).
    margin : float or dict
        The loss that is still accepted, in (0, 1), of all or of each metric.
    coverages : dict, optional
        Metric -> (coverage, baseline coverage), the share of the verdicts that exist; taken from
        the pairs where it is left out.
    cases : dict, optional
        Metric -> what else is known of it.
    further : sequence
        p values of other tests of the same family.

    Returns
    -------
    dict
        Metric -> GateDecision. What is missing may not be missing at random: when a coverage is
        under 95 %, when the two are more than 2 points apart, when the pairs are under 95 % of
        the baseline's scored questions, or without pairs, it is INCONCLUSIVE, and FAIL only if
        the test fails with every missing verdict in favour of the new run. Else FAIL at p <= .05,
        else PASS when the lower bound lies above -margin, else INCONCLUSIVE.
        ``combine_outcomes`` makes one answer of them. Metrics that are inconclusive for what is
        missing stay in the family.

    Raises
    ------
    ValueError
        If a score is not 0, 1 or None, or a parameter is out of range.
    """
    margins = dict(margin) if isinstance(margin, Mapping) else dict.fromkeys(pairs, margin)
    for each in margins.values():
        if not 0 < each < 1:
            msg = f"the margin must lie in (0, 1), not {each!r}"
            raise ValueError(msg)
    tested = {
        metric: _test(values, (coverages or {}).get(metric), (cases or {}).get(metric, GateCase()))
        for metric, values in pairs.items()
    }
    family = [*(test.p_family for test in tested.values()), *further]
    return {
        metric: _decide(test, p_holm, margins[metric])
        for (metric, test), p_holm in zip(tested.items(), holm(family)[: len(tested)], strict=True)
    }


class Decided(Protocol):
    """What the gate decided on a metric or a figure."""

    @property
    def outcome(self) -> GateOutcome:
        """The answer."""
        ...


def combine_outcomes(decisions: Sequence[Decided]) -> GateOutcome:
    """Return FAIL if any decision fails, PASS if all pass, else INCONCLUSIVE (also for none)."""
    outcomes = {decision.outcome for decision in decisions}
    if GateOutcome.FAIL in outcomes:
        return GateOutcome.FAIL
    return GateOutcome.PASS if outcomes == {GateOutcome.PASS} else GateOutcome.INCONCLUSIVE


class _Tested(NamedTuple):
    """A metric with its own test, before the family is corrected."""

    counts: tuple[int, int, int]
    n_baseline: int
    n_dropped: int
    case: GateCase
    coverages: tuple[float | None, float | None]
    incomplete: str | None
    p: float | None
    p_family: float | None
    lower: float | None
    test: str
    bound: str


def _test(
    pairs: Sequence[Pair],
    given: tuple[float | None, float | None] | None,
    case: GateCase,
) -> _Tested:
    n, right, wrong = paired_counts(pairs)
    new, old = given or (None, None)
    new = _coverage([pair[0] for pair in pairs]) if new is None else new
    old = _coverage([pair[1] for pair in pairs]) if old is None else old
    n_baseline = sum(then is not None for _, then in pairs)
    incomplete = _incompleteness(new, old, n, n_baseline)
    documents = [document or None for document in case.documents or [None] * len(pairs)]
    known = Counter[tuple[Score, Score, Hashable]](
        (*pair, document)
        for pair, document in zip(pairs, documents, strict=True)
        if None not in pair
    )
    p, test = difference_test(known, "less")
    lower, bound = _lower_bound(known)
    if case.corrected is not None:
        p, lower = case.corrected.p_below, max(-1.0, case.corrected.limits(1 - 2 * ALPHA)[0])
        test = bound = case.corrected.estimate.method
    p_family = p
    if case.undecided is not None:
        p_family = None if p is None else 1.0  # keeps its place in the family and can't fail
    elif incomplete is not None:
        shares = [share for share in (new, old) if share is not None]
        unseen = ceil((1 - min(shares, default=1.0)) * len(pairs) - 1e-9) - (len(pairs) - n)
        p_family = _best_case(pairs, documents, max(0, unseen))
        if case.corrected is not None and p_family is not None and p is not None:
            p_family = max(p_family, p)
    return _Tested(
        counts=(n, right, wrong),
        n_baseline=n_baseline,
        n_dropped=len(pairs) - n,
        case=case,
        coverages=(new, old),
        incomplete=incomplete,
        p=p,
        p_family=p_family,
        lower=lower,
        test=test,
        bound=bound,
    )


def _lower_bound(counts: PairCounts) -> tuple[float | None, str]:
    """Return the one-sided 95 % limit of the difference, and its name.

    Of documents that are many it is clustered. Few documents may only narrow it, which the gate
    does not use: its limit pools them then.
    """
    if not counts:
        return None, PLAIN_BOUND
    confidence = 1 - 2 * ALPHA
    n, right, wrong = _add_up(counts)
    pooled = bonett_price(right, wrong, n, confidence)[0]
    if _structure(counts) is not Structure.CLUSTERED:
        return pooled, PLAIN_BOUND
    low, _, name = difference_interval(counts, confidence)
    return low, name


def _structure(counts: PairCounts) -> Structure:
    sizes = Counter[Hashable]()
    for (_, _, document), times in counts.items():
        sizes[document] += times
    return choose_structure(sizes)


def _add_up(counts: PairCounts) -> tuple[int, int, int]:
    right = sum(n for (new, old, _), n in counts.items() if (new, old) == (1, 0))
    wrong = sum(n for (new, old, _), n in counts.items() if (new, old) == (0, 1))
    return sum(counts.values()), right, wrong


def _best_case(pairs: Sequence[Pair], documents: Sequence[Hashable], unseen: int) -> float | None:
    """Return the test's p with whatever is missing, and ``unseen`` more, as good as it can be.

    The p is the largest that the missing verdicts could have given: each verdict in
    favour of the new run raises it, by question as well as by document.
    """
    if not pairs:
        return None
    counts = Counter[tuple[Score, Score, Hashable]](
        (1 if new is None else new, 0 if old is None else old, document)
        for (new, old), document in zip(pairs, documents, strict=True)
    )
    if unseen:
        counts[1, 0, None] += unseen
    return difference_test(counts, "less")[0]


def _incompleteness(
    new: float | None, old: float | None, n_pairs: int, n_baseline: int
) -> str | None:
    """Return what is missing for a decision on the pairs; None when they are enough."""
    for name, share in (("coverage", new), ("baseline coverage", old)):
        if share is not None and not 0 <= share <= 1:
            msg = f"the {name} must lie in [0, 1], not {share!r}"
            raise ValueError(msg)
    for run, share in (("new run", new), ("baseline", old)):
        if share is not None and share < MIN_COVERAGE:
            return (
                f"the judge gave {share:.1%} of the verdicts asked of it in the {run}, under 95 %"
            )
    if new is not None and old is not None and abs(new - old) > MAX_COVERAGE_GAP + 1e-12:
        return (
            f"the judge gave {new:.1%} of the verdicts asked of it in the new run and {old:.1%} in "
            f"the baseline, {100 * abs(new - old):.1f} points apart, over 2"
        )
    if n_pairs == 0:
        return "there is no question with both verdicts"
    if n_pairs < MIN_COVERAGE * n_baseline:
        return (
            f"{n_pairs:,} of the baseline's {n_baseline:,} scored questions have a verdict to "
            f"hold against it, {n_pairs / n_baseline:.1%}, under 95 %"
        )
    return None


def _decide(tested: _Tested, p_holm: float | None, margin: float) -> GateDecision:
    n, right, wrong = tested.counts
    case = tested.case
    outcome, reason = _answer(tested, p_holm, margin)
    return GateDecision(
        outcome=outcome,
        reason=reason if case.assumed is None else f"{reason}; {case.assumed}",
        n_pairs=n,
        n_dropped_pairs=tested.n_dropped,
        newly_wrong=wrong,
        newly_right=right,
        difference=_shown_difference(case, (right - wrong) / n if n else None),
        lower_bound=tested.lower,
        margin=margin,
        p=tested.p,
        p_holm=None if case.undecided is not None else p_holm,
        coverage=tested.coverages[0],
        baseline_coverage=tested.coverages[1],
        n_baseline=tested.n_baseline,
        n_only_new=case.n_only_new,
        n_only_baseline=case.n_only_baseline,
        n_other_reference=case.n_other_reference,
        n_without_verdict=tested.n_dropped - case.n_only_baseline - case.n_other_reference,
        p_family=tested.p_family,
        test=tested.test,
        bound=tested.bound,
    )


def _shown_difference(case: GateCase, plain: float | None) -> float | None:
    return plain if case.corrected is None else case.corrected.estimate.mean


def _corrected_by(case: GateCase) -> str:
    return "" if case.corrected is None else f", corrected by {case.corrected.n_labels} labels"


def _answer(tested: _Tested, p: float | None, margin: float) -> tuple[GateOutcome, str]:
    case, lower = tested.case, tested.lower
    if case.undecided is not None:
        return GateOutcome.INCONCLUSIVE, case.undecided
    if p is not None and p <= ALPHA:
        said = "more newly wrong than newly right answers"
        if case.corrected is not None:
            said = f"worse{_corrected_by(case)}"
        if tested.incomplete is None:
            return GateOutcome.FAIL, f"{said} ({p_in_words(p)})"
        return (
            GateOutcome.FAIL,
            f"{said} even with all that is missing in favour of the new run ({p_in_words(p)}); "
            f"{tested.incomplete}",
        )
    if tested.incomplete is not None or lower is None:
        return GateOutcome.INCONCLUSIVE, tested.incomplete or "there is nothing to compare"
    by = _corrected_by(case)
    if lower > -margin:
        return (
            GateOutcome.PASS,
            f"a loss over {loss_in_points(lower)} points is ruled out at 95 % confidence{by}",
        )
    return (
        GateOutcome.INCONCLUSIVE,
        f"a loss of up to {loss_in_points(lower)} points can't be ruled out at 95 % confidence"
        f"{by}, more than the accepted loss of {100 * margin:g} points",
    )


def _coverage(scores: Sequence[Score]) -> float | None:
    return sum(score is not None for score in scores) / len(scores) if scores else None


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
    p, test = _worse(_best_values(case, documents) if incomplete else both, case)
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
    outcome, reason = _answer_on_figure(test, margin, p_holm, alpha)
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


def _answer_on_figure(
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


def _best_values(case: FigureCase, documents: Sequence[Hashable]) -> list[_Known]:
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
