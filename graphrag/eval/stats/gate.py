"""The release gate: FAIL, PASS or INCONCLUSIVE, decided here and shown everywhere."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from math import ceil
from typing import NamedTuple, Protocol

from graphrag.eval.stats.differences import PairCounts, difference_interval, difference_test
from graphrag.eval.stats.estimates import Score
from graphrag.eval.stats.gate_records import (
    PLAIN_BOUND,
    GateCase,
    GateDecision,
    GateOutcome,
    loss_in_points,
    p_in_words,
)
from graphrag.eval.stats.paired import MIN_COVERAGE, Pair, bonett_price, holm, paired_counts
from graphrag.eval.stats.structure import Structure, choose_structure

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
