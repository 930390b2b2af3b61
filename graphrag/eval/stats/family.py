"""Judges a family of comparisons: corrected p, simultaneous intervals, equivalence, verdicts."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import floor, sqrt
from typing import NamedTuple

from graphrag.eval.stats.intervals import mean_real, scipy_special
from graphrag.eval.stats.paired import (
    PairCounts,
    PairedDifference,
    bonett_price,
    count_signs,
    difference_interval,
    has_verdicts,
    holm,
    one_by_one,
    signed_difference,
)
from graphrag.eval.stats.power import ALPHA, detectable_difference

EQUIVALENCE_MARGIN = 0.05
_EDGE = 1e-9
_Limits = Callable[[float], tuple[float, float]]


class Inference(NamedTuple):
    """The limits and the test of one difference.

    ``limits``: takes a confidence in (0, 1) and returns two-sided limits in [-1, 1]. ``outside``:
    takes (lowest, highest) and returns the uncorrected one-sided p of the null that the true
    difference is at most ``lowest`` or at least ``highest``.
    """

    limits: _Limits
    outside: Callable[[float, float], float]


@dataclass(frozen=True, slots=True)
class FamilyFigures:
    """The figures of a comparison as one of a family fixed beforehand; None without pairs.

    - ``low_simultaneous``, ``high_simultaneous``: limits in [-1, 1]. With 95 % confidence, all such
      intervals of the family contain their true differences. 0 lies inside exactly if ``p_holm`` is
      above 5 %, and at an end if only the test rules it out.
    - ``p_equivalence``: p of the null that the true difference is ``equivalence_margin``, in (0,
      1), or more in either direction, corrected by Bonferroni.
    - ``is_equivalent``: whether it is shown to be smaller than the margin, whatever the missing
      scores.
    """

    low_simultaneous: float | None
    high_simultaneous: float | None
    p_equivalence: float | None
    is_equivalent: bool | None
    equivalence_margin: float


def inference_of(result: PairedDifference, counts: PairCounts) -> Inference:
    """Return the limits and the test of a comparison that was planned beforehand.

    ``counts`` are its pairs. The limits are those of ``difference_interval``. The test is Tango's
    score test, see ``score_p``, on as many questions as the interval counts: fewer, if questions of
    one document move together.
    """
    if result.is_graded:
        return _inference_of_items(result.difference or 0.0, counts)

    signs = count_signs(counts)  # two equal means may be any share
    share = 1 / _inflation(result)
    sizes = share * result.n10, share * result.n01, share * result.n_pairs
    return Inference(partial(_limits_of_signs, signs), partial(_outside_signs, *sizes))


def _limits_of_signs(signs: PairCounts, confidence: float) -> tuple[float, float]:
    low, high, _ = difference_interval(signs, confidence)
    return (-1.0, 1.0) if low is None or high is None else (low, high)


def _outside_signs(n10: float, n01: float, n: float, lowest: float, highest: float) -> float:
    return max(score_p(n10, n01, n, highest), score_p(n01, n10, n, -lowest))


def _inference_of_items(difference: float, items: PairCounts) -> Inference:
    """Return the inference on a difference of item means, whose test is its interval inverted."""
    pairs, documents = one_by_one(items)
    limits = partial(_limits_of_items, [signed_difference(pair) for pair in pairs], documents)
    return Inference(limits, partial(_outside_items, limits, difference))


def _limits_of_items(
    differences: Sequence[float | None], documents: Sequence[Hashable], confidence: float
) -> tuple[float, float]:
    mean = mean_real(differences, documents, (-1.0, 1.0), confidence)
    return (-1.0, 1.0) if mean.low is None or mean.high is None else (mean.low, mean.high)


def _outside_items(limits: _Limits, difference: float, lowest: float, highest: float) -> float:
    def beyond(bound: float, end: int) -> float:
        """Return the one-sided p of a true difference at ``bound``, on that side of the mean."""
        gap = (bound - difference) * (1 if end else -1)
        if gap <= 0:
            return 1.0
        low, high = _EDGE, 1 - _EDGE
        while high - low > _EDGE:
            middle = (low + high) / 2
            inside = abs(limits(middle)[end] - difference) < gap
            low, high = (middle, high) if inside else (low, middle)
        return (1 - low) / 2

    return max(beyond(lowest, 0), beyond(highest, 1))


def score_p(n10: float, n01: float, n: float, bound: float) -> float:
    """Return the one-sided p of the null that a paired difference is ``bound`` or more.

    ``n10`` and ``n01`` are the discordant pairs each way, ``n`` > 0 all pairs; they need not be
    whole. The score test of Tango 1998,
    doi:10.1002/(SICI)1097-0258(19980430)17:8<891::AID-SIM780>3.0.CO;2-B. Its spread is that of the
    null. Bonett-Price limits take the spread of the data: with them, a difference of the margin at
    little more discordance was called equivalent in up to 6.8 % of cases instead of 5 %.
    """
    bound = min(max(bound, _EDGE - 1), 1 - _EDGE)
    b = -n10 - n01 + (2 * n - n10 + n01) * bound
    c = -n01 * bound * (1 - bound)
    rarer = (sqrt(max(0.0, b * b - 8 * n * c)) - b) / (4 * n)
    variance = n * (2 * rarer + bound * (1 - bound))
    if variance <= 0:
        return 1.0
    return float(scipy_special().ndtr((n10 - n01 - n * bound) / sqrt(variance)))


def correct_family(results: Sequence[PairedDifference]) -> list[PairedDifference]:
    """Correct the tests of a family, and the differences they can detect, for the family's size.

    Comparisons without p are not counted. ``detectable_at_80`` is computed at the level that Holm's
    method asks of its first test: such a difference is found with at least 80 % power whatever the
    other comparisons show. If the interval is wider than that of independent questions, because the
    questions of a document move together, the questions count as correspondingly fewer.
    """
    tests = [result.p for result in results]
    n_tests = max(1, sum(p is not None for p in tests))
    return [
        replace(result, p_holm=p, detectable_at_80=_detectable(result, ALPHA / n_tests))
        for result, p in zip(results, holm(tests), strict=True)
    ]


def simultaneous_limits(
    results: Sequence[PairedDifference], inferences: Sequence[Inference]
) -> list[tuple[float, float] | tuple[None, None]]:
    """Return limits that hold together for a whole family.

    They are None for a comparison without ``p_holm``. Each interval is computed at confidence ``1 -
    ALPHA / (2 K - 1)`` for K tests. An end that Holm's test contradicts is moved to 0, as Guilbaud
    2008, doi:10.1002/bimj.200710443, and Strassburger and Bretz 2008, doi:10.1002/sim.3338, do for
    one-sided tests. The chance that any moved end is wrong is at most that of Holm's method
    claiming a wrong direction, ``ALPHA / 2``. The other errors add up to ``(K - 1/2) / (2 K - 1) =
    1/2`` of the level. With Bonferroni's ``1 - ALPHA / K`` the sum would be 6.7 % for three
    methods.
    """
    n_tests = max(1, sum(result.p is not None for result in results))
    limits: list[tuple[float, float] | tuple[None, None]] = []
    for result, inference in zip(results, inferences, strict=True):
        if result.difference is None or result.p_holm is None:
            limits.append((None, None))
            continue
        low, high = inference.limits(1 - ALPHA / (2 * n_tests - 1))
        if result.p_holm > ALPHA or result.difference == 0:
            limits.append((min(low, 0.0), max(high, 0.0)))
        elif result.difference > 0:
            limits.append((max(low, 0.0), high))
        else:
            limits.append((low, min(high, 0.0)))
    return limits


def compare_family(
    results: Sequence[PairedDifference],
    inferences: Sequence[Inference],
    margin: float = EQUIVALENCE_MARGIN,
) -> list[FamilyFigures]:
    """Return simultaneous intervals and tests of equivalence for a whole family.

    ``results`` are those of ``correct_family``. Raises ValueError unless the margin is in (0, 1).

    Intervals: see ``simultaneous_limits``.

    Equivalence: two one-sided tests (Schuirmann 1987, doi:10.1007/BF01068419) at ``ALPHA / K``.
    Only one of a pair's two nulls can be true, so that the family counts K tests. Claims of
    equivalence are wrong in at most 5 % of families, and so are claims of a difference; the two are
    not corrected for each other.
    """
    if not 0 < margin < 1:
        raise ValueError(f"the equivalence margin must lie in (0, 1), not {margin!r}")
    n_tests = max(1, sum(result.p is not None for result in results))
    figures: list[FamilyFigures] = []
    together = simultaneous_limits(results, inferences)
    for result, inference, (low, high) in zip(results, inferences, together, strict=True):
        difference = result.difference
        if difference is None or result.p_holm is None:
            figures.append(
                FamilyFigures(
                    low_simultaneous=None,
                    high_simultaneous=None,
                    p_equivalence=None,
                    is_equivalent=None,
                    equivalence_margin=margin,
                )
            )
            continue
        down, up = result.difference_bounds or (difference, difference)
        worst = inference.outside(difference - down - margin, difference - up + margin)
        figures.append(
            FamilyFigures(
                low_simultaneous=low,
                high_simultaneous=high,
                p_equivalence=min(1.0, n_tests * inference.outside(-margin, margin)),
                is_equivalent=min(1.0, n_tests * worst) <= ALPHA and has_verdicts(result),
                equivalence_margin=margin,
            )
        )
    return figures


def _inflation(result: PairedDifference) -> float:
    """Return how much more the difference varies than that of independent questions, >= 1."""
    if result.low is None or result.high is None:
        return 1.0
    low, high = bonett_price(result.n10, result.n01, result.n_pairs)
    return max(1.0, (result.high - result.low) / (high - low)) ** 2


def _detectable(result: PairedDifference, alpha: float) -> float | None:
    # It stays None if the comparison was left out, or if even a difference of 1 is too small.
    if result.detectable_at_80 is None or result.discordance is None:
        return None
    if result.is_graded:
        ndtri = scipy_special().ndtri
        quantiles = [float(ndtri(1 - level / 2)) + float(ndtri(0.8)) for level in (alpha, ALPHA)]
        return result.detectable_at_80 * quantiles[0] / quantiles[1]
    n_independent = int(result.n_pairs / _inflation(result))
    return detectable_difference(n_independent, result.discordance, alpha=alpha)


def shown_sign(result: PairedDifference) -> int:
    """Return which side is shown to be better: 1 for a, -1 for b, 0 for neither.

    It is decided by ``p_holm`` if there is one, otherwise by ``p``. Neither side is better if too
    many scores are missing, or if they could turn the difference around.
    """
    p = result.p if result.p_holm is None else result.p_holm
    if result.difference is None or p is None or p > ALPHA:
        return 0
    if not has_verdicts(result) or _can_turn(result):
        return 0
    return (result.difference > 0) - (result.difference < 0)


def verdict_in_words(
    result: PairedDifference, a: str, b: str, family: FamilyFigures | None = None
) -> str:
    """Return in words what a comparison showed, as one of its family if there is one.

    - "nothing to compare"
    - "undecided: ...", if less than 95 % of the pairs have verdicts
    - "unresolved: ...", if the missing verdicts could turn the answer
    - "<a> better than <b>" (or the reverse), with ", by less than 5 points" if that is shown as
      well
    - "equivalent within ±5 points"
    - "no difference shown; the smallest that this many questions find with 80 % power is 6.8
      points", in a family "unknown: no difference shown; ..."
    """
    if result.difference is None or result.p is None:
        return "nothing to compare"
    if not has_verdicts(result):
        share = f"{floor(100 * (result.coverage or 0) + _EDGE)} %"  # rounded down, so never 95
        return f"undecided: {share} of the pairs that were planned have both verdicts"
    missing = f"unresolved: {result.n_dropped_pairs} missing pairs could"
    sign = shown_sign(result)
    is_equivalent = family is not None and family.is_equivalent is True
    margin = "" if family is None else f"{100 * family.equivalence_margin:g} points"
    if sign:
        better, worse = (a, b) if sign > 0 else (b, a)
        return f"{better} better than {worse}{f', by less than {margin}' if is_equivalent else ''}"
    if is_equivalent:
        return f"equivalent within ±{margin}"
    if _can_turn(result):
        return f"{missing} turn it around"
    if family is not None and family.p_equivalence is not None and family.p_equivalence <= ALPHA:
        return f"{missing} move it past ±{margin}"
    outcome = "no difference shown" if family is None else "unknown: no difference shown"
    if result.detectable_at_80 is None:
        return f"{outcome}; too few questions to see any"
    least = f"{100 * result.detectable_at_80:.1f} points"
    return f"{outcome}; the smallest that this many questions find with 80 % power is {least}"


def _can_turn(result: PairedDifference) -> bool:
    """Return whether the missing scores could give the difference the other sign."""
    if result.difference is None or result.difference_bounds is None:
        return False
    low, high = result.difference_bounds
    return (result.difference > 0 > low) or (result.difference < 0 < high)


def describe_tests(results: Sequence[PairedDifference]) -> list[str]:
    """Return lines to print once, below comparisons: their intervals and p, what p can't show."""
    compared = [result for result in results if result.p is not None]
    if not compared:
        return []
    intervals, tests = (
        ", ".join(dict.fromkeys(names))
        for names in ((r.interval for r in compared), (r.test for r in compared))
    )
    notes = dict.fromkeys(result.note for result in compared if result.note)
    return [f"Intervals: {intervals}; p: {tests}.", *(f"But {note}." for note in notes)]
