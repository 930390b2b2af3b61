"""The release gate: FAIL, PASS or INCONCLUSIVE, decided here and shown everywhere."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import exp, log
from typing import NamedTuple

from graphrag.eval.statistics.estimates import Score, scipy_special, scipy_stats
from graphrag.eval.statistics.paired import Pair, bonett_price, holm, paired_counts

MARGIN = 0.05
ALPHA = 0.05
MIN_COVERAGE = 0.95
MAX_COVERAGE_GAP = 0.02
EARLY_ALPHA = ALPHA / 2  # the other half is left for the test at the end


class GateOutcome(StrEnum):
    """The three answers; INCONCLUSIVE is not a pass."""

    FAIL = "fail"
    PASS = "pass"
    INCONCLUSIVE = "inconclusive"


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
        One-sided 95 % Bonett-Price limit of the difference; None without pairs.
    margin : float
    p : float or None
        One-sided exact test of "newly wrong > newly right"; None without pairs.
    p_holm : float or None
        ``p`` corrected over the primary metrics; ``p`` itself when there is one.
    coverage, baseline_coverage : float or None
        Share of the verdicts that exist, of the new run and of the baseline; None without any.
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


def decide_gates(
    pairs: Mapping[str, Sequence[Pair]],
    *,
    margin: float = MARGIN,
    coverages: Mapping[str, tuple[float | None, float | None]] | None = None,
    stopped: Mapping[str, float] | None = None,
) -> dict[str, GateDecision]:
    """Decide on the primary metrics, the tests of several corrected by Holm.

    Parameters
    ----------
    pairs : dict
        Metric -> pairs (new, baseline), one a question that both runs were to answer; 0, 1 or
        None (verdict missing).
    margin : float
        The loss that is still accepted, in (0, 1).
    coverages : dict, optional
        Metric -> (coverage, baseline coverage), the share of the verdicts that exist; taken from
        the pairs where it is left out.
    stopped : dict, optional
        For a run that was watched while it went on: metric -> the evidence at which
        ``should_stop_early`` said yes, empty when it never did. Such a metric fails, and the
        test at the end has only the level ``EARLY_ALPHA`` left.

    Returns
    -------
    dict
        Metric -> GateDecision. INCONCLUSIVE when a coverage is under 95 %, when the two are more
        than 2 points apart, or without pairs: what is missing may not be missing at random, so
        neither FAIL nor PASS would hold. Else FAIL at p <= .05, else PASS when the lower bound
        lies above -margin, else INCONCLUSIVE. ``combine_outcomes`` makes one answer of them.
        Metrics whose coverage makes them inconclusive stay in the family.

    Raises
    ------
    ValueError
        If a score is not 0, 1 or None, or a parameter is out of range.
    """
    if not 0 < margin < 1:
        msg = f"the margin must lie in (0, 1), not {margin!r}"
        raise ValueError(msg)
    tests = {metric: _test(paired_counts(values)) for metric, values in pairs.items()}
    corrected = dict(zip(tests, holm(list(tests.values())), strict=True))
    decisions = {
        metric: _decide(
            values,
            _Test(
                margin, ALPHA if stopped is None else EARLY_ALPHA, tests[metric], corrected[metric]
            ),
            (coverages or {}).get(metric),
        )
        for metric, values in pairs.items()
    }
    for metric, evidence in (stopped or {}).items():
        decisions[metric] = replace(
            decisions[metric],
            outcome=GateOutcome.FAIL,
            reason=f"stopped early on the evidence of newly wrong answers (e = {evidence:.3g})",
        )
    return decisions


def combine_outcomes(decisions: Sequence[GateDecision]) -> GateOutcome:
    """Return FAIL if any decision fails, PASS if all pass, else INCONCLUSIVE (also for none)."""
    outcomes = {decision.outcome for decision in decisions}
    if GateOutcome.FAIL in outcomes:
        return GateOutcome.FAIL
    return GateOutcome.PASS if outcomes == {GateOutcome.PASS} else GateOutcome.INCONCLUSIVE


def early_stop_evidence(newly_wrong: int, newly_right: int) -> float:
    """Return the evidence for "newly wrong > newly right" so far, as an e-value.

    Parameters
    ----------
    newly_wrong, newly_right : int
        Counts so far, >= 0, the questions in shuffled order.

    Returns
    -------
    float
        1 at the start; cut at the largest float. A run that has not got worse ever reaches 1/a
        with a probability of at most a, however often one looks.

    Raises
    ------
    ValueError
        If a count is negative.

    Notes
    -----
    ``2^(m+1) B(c+1, b+1) P(Beta(c+1, b+1) > 1/2)`` with c newly wrong, b newly right, m = b + c:
    the likelihood ratio against 1/2, averaged over a uniform chance above 1/2 (Ville 1939).
    """
    if newly_wrong < 0 or newly_right < 0:
        msg = "counts must be >= 0"
        raise ValueError(msg)
    special = scipy_special()
    c, b = newly_wrong + 1.0, newly_right + 1.0
    tail = float(special.betaincc(c, b, 0.5))
    if tail == 0:
        return 0.0
    size = (c + b - 1) * log(2) + float(special.betaln(c, b)) + log(tail)
    return exp(min(size, log(sys.float_info.max)))


def should_stop_early(newly_wrong: int, newly_right: int, n_tests: int = 1) -> bool:
    """Return whether a running comparison may stop and FAIL.

    Parameters
    ----------
    newly_wrong, newly_right : int
        Counts so far, >= 0, the questions in shuffled order.
    n_tests : int
        Methods times metrics that are watched; each has its share of ``EARLY_ALPHA``.
    """
    return early_stop_evidence(newly_wrong, newly_right) >= n_tests / EARLY_ALPHA


def _test(counts: tuple[int, int, int]) -> float | None:
    n, right, wrong = counts
    if n == 0:
        return None
    if right + wrong == 0:
        return 1.0
    test = scipy_stats().binomtest(wrong, right + wrong, 0.5, alternative="greater")
    return float(test.pvalue)


class _Test(NamedTuple):
    margin: float
    alpha: float
    p: float | None
    p_holm: float | None


def _decide(
    pairs: Sequence[Pair],
    test: _Test,
    coverages: tuple[float | None, float | None] | None,
) -> GateDecision:
    n, right, wrong = paired_counts(pairs)
    given = coverages or (None, None)
    new = _coverage([pair[0] for pair in pairs]) if given[0] is None else given[0]
    old = _coverage([pair[1] for pair in pairs]) if given[1] is None else given[1]
    lower = bonett_price(right, wrong, n, 1 - 2 * ALPHA)[0] if n else None
    outcome, reason = _answer(test, lower, new, old)
    return GateDecision(
        outcome=outcome,
        reason=reason,
        n_pairs=n,
        n_dropped_pairs=len(pairs) - n,
        newly_wrong=wrong,
        newly_right=right,
        difference=(right - wrong) / n if n else None,
        lower_bound=lower,
        margin=test.margin,
        p=test.p,
        p_holm=test.p_holm,
        coverage=new,
        baseline_coverage=old,
    )


def _answer(
    test: _Test,
    lower: float | None,
    new: float | None,
    old: float | None,
) -> tuple[GateOutcome, str]:
    for name, share in (("coverage", new), ("baseline coverage", old)):
        if share is not None and not 0 <= share <= 1:
            msg = f"the {name} must lie in [0, 1], not {share!r}"
            raise ValueError(msg)
        if share is not None and share < MIN_COVERAGE:
            return GateOutcome.INCONCLUSIVE, f"judge {name} is {share:.1%}, under 95 %"
    if new is not None and old is not None and abs(new - old) > MAX_COVERAGE_GAP + 1e-12:
        gap = 100 * abs(new - old)
        return (
            GateOutcome.INCONCLUSIVE,
            f"judge coverage differs by {gap:.1f} points between the runs, over 2",
        )
    margin, p = test.margin, test.p_holm
    if p is None or lower is None:
        return GateOutcome.INCONCLUSIVE, "there is no question with both verdicts"
    if p <= test.alpha:
        return GateOutcome.FAIL, f"more newly wrong than newly right answers (p = {p:.3g})"
    accepted = f"the accepted loss of {100 * margin:g} points"
    if lower > -margin:
        return GateOutcome.PASS, f"a loss over {100 * max(0.0, -lower):.1f} points is ruled out"
    return (
        GateOutcome.INCONCLUSIVE,
        f"a loss of up to {-100 * lower:.1f} points can't be ruled out, more than {accepted}",
    )


def _coverage(scores: Sequence[Score]) -> float | None:
    return sum(score is not None for score in scores) / len(scores) if scores else None
