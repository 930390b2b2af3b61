"""The release gate: FAIL, PASS or INCONCLUSIVE, on verdicts and on other figures of two runs."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil, sqrt
from statistics import fmean
from typing import NamedTuple, Self, TypeAlias, TypeVar

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
    PLAIN_BOUND,
    Pair,
    PairCounts,
    add_up,
    bonett_price,
    difference_interval,
    difference_test,
    flip_signs,
    holm,
    structure_of,
    tally_documents,
)
from graphrag.eval.stats.power import ALPHA

MARGIN = 0.05
MAX_COVERAGE_GAP = 0.02
MIN_EQUAL = 59
"""Pairs, all alike, from which at 95 % confidence under 5 % of questions differ: .95^59 < .05."""
_Key = TypeVar("_Key", bound=Hashable)
_Known: TypeAlias = tuple[float, float, Hashable]


class GateOutcome(StrEnum):
    """The three answers; INCONCLUSIVE is not a pass."""

    FAIL = "fail"
    PASS = "pass"
    INCONCLUSIVE = "inconclusive"


def combine_outcomes(outcomes: Iterable[GateOutcome]) -> GateOutcome:
    """Return FAIL if any answer is, PASS if all are, else INCONCLUSIVE (also for none)."""
    answers = set(outcomes)
    if GateOutcome.FAIL in answers:
        return GateOutcome.FAIL
    return GateOutcome.PASS if answers == {GateOutcome.PASS} else GateOutcome.INCONCLUSIVE


class Reason(str):
    """Why a gate answers as it does: the words with the figures in their places.

    ``kind``: the words, with {} for each of the ``figures``, which are written as they are shown.
    """

    kind: str
    figures: tuple[str, ...]

    def __new__(cls, kind: str, figures: tuple[str, ...] = ()) -> Self:
        """Return the text of both, which knows them."""
        reason = super().__new__(cls, kind.format(*figures))
        reason.kind, reason.figures = kind, figures
        return reason

    def __reduce__(self) -> tuple[type["Reason"], tuple[str, tuple[str, ...]]]:
        """Return what a copy is made from."""
        return Reason, (self.kind, self.figures)

    def and_also(self, other: "Reason") -> "Reason":
        """Return both as one."""
        return Reason(f"{self.kind}; {other.kind}", (*self.figures, *other.figures))


_OPEN = Reason("")


@dataclass(frozen=True, slots=True)
class GateCase:
    """One metric of one method in two runs.

    ``pairs``: (new, baseline), one a question that both runs were to answer; 0, 1 or None (verdict
    missing), with their ``documents``. ``margin``: the loss that is still accepted, in (0, 1).
    ``coverages`` of new run and baseline: the share of the verdicts that exist, else taken from the
    pairs. ``undecided``: why the pairs can't decide, as when the index is another. ``assumed``:
    what the decision takes for granted. ``corrected``: the difference as labels of both runs
    correct it, with a standard error; replaces the pairs' test and bound.
    """

    pairs: Sequence[Pair]
    margin: float = MARGIN
    coverages: tuple[float | None, float | None] = (None, None)
    documents: Sequence[Hashable] | None = None
    undecided: Reason | None = None
    assumed: Reason | None = None
    corrected: Corrected | None = None


@dataclass(frozen=True, slots=True)
class GateDecision:
    """The gate's answer on one metric of one method; figures of the pairs are None without any.

    ``n_pairs`` questions have both verdicts, ``n_dropped_pairs`` lack
    one, ``n_baseline`` have a score in the baseline. ``difference``: new run less baseline, in
    [-1, 1]; ``lower_bound``: its one-sided 95 % limit, named by ``bound``; ``margin``: the loss
    that is accepted. ``p``: one-sided of "newly wrong > newly right", named by ``test``.
    ``p_family``: what this metric entered Holm's family with: of one that is not complete the p
    with every missing verdict in favor of the new run; ``p_holm``: that one corrected.
    ``coverage``, ``baseline_coverage``: share of the verdicts that exist. ``is_complete``: more
    questions would decide, as nothing else keeps the pairs from it.
    """

    outcome: GateOutcome
    reason: Reason
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
    p_family: float | None = None
    test: str = MCNEMAR
    bound: str = PLAIN_BOUND
    is_complete: bool = False


def decide_gates(
    cases: Mapping[_Key, GateCase], further: Sequence[float | None] = ()
) -> dict[_Key, GateDecision]:
    """Decide on the primary metrics, the tests of several corrected by Holm.

    ``further``: p of other tests of the family.

    What is missing may not be missing at random: when a coverage is under 95 %, when the two are
    more than 2 points apart, when the pairs are under 95 % of the baseline's scored questions, or
    without pairs, it is INCONCLUSIVE, and FAIL only if the test fails with every missing verdict in
    favor of the new run; the metric stays in the family. Else FAIL at p <= .05, else PASS when the
    lower bound lies above -margin, else INCONCLUSIVE.

    ValueError if a score is not 0, 1 or None.
    """
    tested = {metric: _test(case) for metric, case in cases.items()}
    family = holm([*(draft.p_family for draft, _ in tested.values()), *further])
    return {
        metric: _decide(draft, cases[metric], incomplete, p_holm)
        for (metric, (draft, incomplete)), p_holm in zip(tested.items(), family, strict=False)
    }


def _test(case: GateCase) -> tuple[GateDecision, Reason | None]:
    """Return a decision without the family's part and the answer, and what is missing for one."""
    pairs = case.pairs
    documents = [document or None for document in case.documents or [None] * len(pairs)]
    known = Counter[tuple[Score, Score, Hashable]](
        (*pair, document)
        for pair, document in zip(pairs, documents, strict=True)
        if None not in pair
    )
    n, right, wrong = add_up(tally_documents(known))
    new, old = (
        _coverage([pair[side] for pair in pairs]) if share is None else share
        for side, share in enumerate(case.coverages)
    )
    n_baseline = sum(then is not None for _, then in pairs)
    incomplete = _incompleteness(new, old, n, n_baseline)
    p, test = difference_test(known, "less")
    lower, bound = _lower_bound(known)
    if (corrected := case.corrected) is not None:
        p, lower = corrected.p_below, max(-1.0, corrected.limits(1 - 2 * ALPHA)[0])
        test = bound = corrected.estimate.method
    p_family = p
    if case.undecided is not None:
        p_family = None if p is None else 1.0  # keeps its place in the family and can't fail
    elif incomplete is not None:
        shares = [share for share in (new, old) if share is not None]
        unseen = ceil((1 - min(shares, default=1.0)) * len(pairs) - 1e-9) - (len(pairs) - n)
        p_family = _best_case(pairs, documents, max(0, unseen))
        if corrected is not None and p_family is not None and p is not None:
            p_family = max(p_family, p)
    draft = GateDecision(
        outcome=GateOutcome.INCONCLUSIVE,
        reason=_OPEN,
        n_pairs=n,
        n_dropped_pairs=len(pairs) - n,
        newly_wrong=wrong,
        newly_right=right,
        difference=corrected.estimate.mean if corrected else (right - wrong) / n if n else None,
        lower_bound=lower,
        margin=case.margin,
        p=p,
        p_holm=None,
        coverage=new,
        baseline_coverage=old,
        n_baseline=n_baseline,
        p_family=p_family,
        test=test,
        bound=bound,
        is_complete=incomplete is None and case.undecided is None and lower is not None,
    )
    return draft, incomplete


def _lower_bound(counts: PairCounts) -> tuple[float | None, str]:
    """Return the one-sided 95 % limit of the difference, and its name.

    Of documents that are many it is clustered. Few documents may only narrow it, which the gate
    does not use: its limit pools them then.
    """
    tallies = tally_documents(counts)
    if not tallies:
        return None, PLAIN_BOUND
    confidence = 1 - 2 * ALPHA
    n, right, wrong = add_up(tallies)
    if structure_of(tallies) is not Structure.CLUSTERED:
        return bonett_price(right, wrong, n, confidence)[0], PLAIN_BOUND
    low, _, name = difference_interval(counts, confidence)
    return low, name


def _best_case(pairs: Sequence[Pair], documents: Sequence[Hashable], unseen: int) -> float | None:
    """Return the test's p with whatever is missing, and ``unseen`` more, as good as it can be.

    The p is the largest that the missing verdicts could have given: each verdict in
    favor of the new run raises it, by question as well as by document.
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
) -> Reason | None:
    """Return what is missing for a decision on the pairs; None when they are enough."""
    known = {run: s for run, s in (("new run", new), ("baseline", old)) if s is not None}
    for run, share in known.items():
        if share < MIN_COVERAGE:
            return Reason(
                f"the judge gave {{}} of the verdicts asked of it in the {run}, under 95 %",
                (f"{share:.1%}",),
            )
    if new is not None and old is not None and abs(new - old) > MAX_COVERAGE_GAP + 1e-12:
        return Reason(
            "the judge gave {} of the verdicts asked of it in the new run and {} in the baseline, "
            "{} points apart, over 2",
            (f"{new:.1%}", f"{old:.1%}", f"{100 * abs(new - old):.1f}"),
        )
    if n_pairs == 0:
        return Reason("there is no question with both verdicts")
    if n_pairs < MIN_COVERAGE * n_baseline:
        return Reason(
            "{} of the baseline's {} scored questions have a verdict to hold against it, {}, under "
            "95 %",
            (f"{n_pairs:,}", f"{n_baseline:,}", f"{n_pairs / n_baseline:.1%}"),
        )
    return None


def _decide(
    draft: GateDecision, case: GateCase, incomplete: Reason | None, p: float | None
) -> GateDecision:
    if case.undecided is not None:
        p, outcome, reason = None, GateOutcome.INCONCLUSIVE, case.undecided
    else:
        outcome, reason = _answer(draft, case, incomplete, p)
    if case.assumed is not None:
        reason = reason.and_also(case.assumed)
    return replace(draft, outcome=outcome, reason=reason, p_holm=p)


def _answer(
    draft: GateDecision, case: GateCase, incomplete: Reason | None, p: float | None
) -> tuple[GateOutcome, Reason]:
    by, n_labels = "", ()
    if case.corrected is not None:
        by, n_labels = ", corrected by {} labels", (str(case.corrected.n_labels),)
    if p is not None and p <= ALPHA:
        worse = f"worse{by}" if by else "more newly wrong than newly right answers"
        figures = (*n_labels, _p_in_words(p))
        if incomplete is None:
            return GateOutcome.FAIL, Reason(f"{worse} ({{}})", figures)
        saved = "even with all that is missing in favor of the new run"
        return GateOutcome.FAIL, Reason(f"{worse} {saved} ({{}})", figures).and_also(incomplete)
    lower = draft.lower_bound
    if incomplete is not None or lower is None:
        return GateOutcome.INCONCLUSIVE, incomplete or Reason("there is nothing to compare")
    loss = f"{ceil(round(-1000 * min(lower, 0.0), 6)) / 10:.1f}"  # it is at most that
    if lower > -draft.margin:
        ruled_out = f"a loss over {{}} points is ruled out at 95 % confidence{by}"
        return GateOutcome.PASS, Reason(ruled_out, (loss, *n_labels))
    return GateOutcome.INCONCLUSIVE, Reason(
        f"a loss of up to {{}} points can't be ruled out at 95 % confidence{by}, more than the "
        "accepted loss of {} points",
        (loss, *n_labels, f"{100 * draft.margin:g}"),
    )


def _p_in_words(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3g}"


def _coverage(scores: Sequence[Score]) -> float | None:
    return sum(score is not None for score in scores) / len(scores) if scores else None


@dataclass(frozen=True, slots=True)
class FigureCase:
    """One figure of one method in two runs: amounts as tokens, shares as a hit rate.

    ``pairs``: (new, baseline) of every question that the baseline holds, None where one is missing,
    with their ``documents``. ``margin``: the worsening that is still accepted, > 0, in the unit of
    the figure; ``is_relative``: as a share of the baseline's mean. ``limits``: least and largest
    value of the figure; None of an amount, which is >= 0. ``undecided``: why the pairs can't
    decide.
    """

    pairs: Sequence[tuple[float | None, float | None]]
    margin: float
    is_relative: bool = False
    lower_is_better: bool = False
    limits: tuple[float, float] | None = None
    documents: Sequence[Hashable] | None = None
    undecided: Reason | None = None


@dataclass(frozen=True, slots=True)
class FigureDecision:
    """The gate's answer on a figure, in its unit; None without pairs.

    ``n_pairs`` questions have both values, ``n_dropped_pairs`` lack one, ``n_baseline`` have one in
    the baseline. ``baseline``, ``new``: means over the pairs; ``worsening``: how much worse the new
    one is; ``upper_bound``: its one-sided 95 % limit, named by ``bound``, None where it is not
    known; ``margin`` as it is held against that. ``p``: one-sided permutation ``test`` of
    worsening, with missing values in favor of the new run where too many are missing; ``p_holm``
    corrected over the family.
    """

    outcome: GateOutcome
    reason: Reason
    n_pairs: int
    n_dropped_pairs: int
    n_baseline: int
    baseline: float | None = None
    new: float | None = None
    worsening: float | None = None
    upper_bound: float | None = None
    margin: float | None = None
    p: float | None = None
    p_holm: float | None = None
    bound: str = "none"
    test: str = "none"


class FigureTest(NamedTuple):
    """A figure with its own test: all of a decision but the family's part and the answer."""

    case: FigureCase
    draft: FigureDecision
    incomplete: Reason | None

    @property
    def p_family(self) -> float | None:
        """What the figure enters Holm's family with: one that can't be decided keeps its place."""
        return self.draft.p if self.case.undecided is None or self.draft.p is None else 1.0


def check_figure(case: FigureCase) -> FigureTest:
    """Compute the limit of the worsening, and its test, ``flip_signs``.

    Shares have the limit of Bonett and Price 2012 (doi:10.3102/1076998611411915) on differences
    scaled to [-1, 1], amounts that of ``scale_interval``, and shares as well if it is the wider
    one for documents that are many. ValueError if a value is not finite or lies outside the limits.
    """
    low, high = case.limits or (0.0, np.finfo(float).max)
    present([value for pair in case.pairs for value in pair], low, high)
    documents = case.documents or [None] * len(case.pairs)
    both = [
        (new, old, document)
        for (new, old), document in zip(case.pairs, documents, strict=True)
        if new is not None and old is not None
    ]
    draft = FigureDecision(
        outcome=GateOutcome.INCONCLUSIVE,
        reason=_OPEN,
        n_pairs=len(both),
        n_dropped_pairs=len(case.pairs) - len(both),
        n_baseline=sum(old is not None for _, old in case.pairs),
        margin=None if case.is_relative else case.margin,
    )
    if not both:
        return FigureTest(case, draft, Reason("no question has a value in both runs"))
    incomplete, tested = None, both
    if len(both) < MIN_COVERAGE * draft.n_baseline:
        share = len(both) / draft.n_baseline
        incomplete = Reason(
            "{} of the {} questions that the baseline has a value for have one in the new run, {}, "
            "under 95 %",
            (f"{len(both):,}", f"{draft.n_baseline:,}", f"{share:.1%}"),
        )
        tested = _best_values(case, documents)
    bound, name = _upper_bound(both, case)
    better = [-value for value in _worsening(tested, case)]
    p, _, test = flip_signs(better, [document for _, _, document in tested], "less")
    new, baseline = fmean(new for new, _, _ in both), fmean(old for _, old, _ in both)
    draft = replace(
        draft,
        baseline=baseline,
        new=new,
        worsening=(new - baseline) * (1 if case.lower_is_better else -1),
        upper_bound=bound,
        margin=case.margin * baseline if case.is_relative else case.margin,
        p=p,
        bound=name,
        test=test,
    )
    return FigureTest(case, draft, incomplete)


def decide_figure(test: FigureTest, p_holm: float | None) -> FigureDecision:
    """Decide on a figure; ``p_holm`` is its p, corrected over the family.

    PASS when the limit of the worsening lies within the margin and at least 95 % of the baseline's
    values have one to hold against; else FAIL when p_holm <= .05; else INCONCLUSIVE. Amounts always
    move a little, so that a sure worsening within the margin passes.
    """
    if test.case.undecided is not None:
        return replace(test.draft, reason=test.case.undecided)
    outcome, reason = _answer_on_figure(test, p_holm)
    return replace(test.draft, outcome=outcome, reason=reason, p_holm=p_holm)


def _answer_on_figure(test: FigureTest, p: float | None) -> tuple[GateOutcome, Reason]:
    upper, margin = test.draft.upper_bound, test.draft.margin
    if test.incomplete is None and upper is not None and margin is not None and upper <= margin:
        return GateOutcome.PASS, Reason(
            "a worsening over {} is ruled out at 95 % confidence, and {} is accepted",
            (f"{max(0.0, upper):.4g}", f"{margin:.4g}"),
        )
    if p is not None and p <= ALPHA:
        saved = "" if test.incomplete is None else " even with all that is missing in its favor"
        return GateOutcome.FAIL, Reason(f"worse beyond chance{saved} ({{}})", (_p_in_words(p),))
    if test.incomplete is not None:
        return GateOutcome.INCONCLUSIVE, test.incomplete
    if upper is None or margin is None:
        return GateOutcome.INCONCLUSIVE, Reason("too few pairs to say what is ruled out")
    return GateOutcome.INCONCLUSIVE, Reason(
        "a worsening of up to {} can't be ruled out at 95 % confidence, more than the accepted {}",
        (f"{upper:.4g}", f"{margin:.4g}"),
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
            return bounded, PLAIN_BOUND
        return min(span, high), name
    if high is None and len(worsening) >= MIN_EQUAL:  # all alike: a t limit would be too sure
        return worsening[0], "all pairs alike"
    return high, name


def _bounded_half_width(differences: Floats) -> float:
    """Return how far the one-sided 95 % limit lies below the mean of values in [-1, 1].

    Of values in {-1, 0, 1} it is that of ``bonett_price``, one newly right and one newly wrong
    answer added, so that it is never 0.
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
