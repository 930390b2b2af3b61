"""A family of comparisons: corrected p, intervals that hold together, equivalence, power."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import NamedTuple

from graphrag.eval.stats.differences import PairCounts, difference_interval
from graphrag.eval.stats.estimates import scipy_special
from graphrag.eval.stats.paired import (
    PairedDifference,
    bonett_price,
    graded_limits,
    has_verdicts,
    holm,
)
from graphrag.eval.stats.power import ALPHA, detectable_difference

EQUIVALENCE_MARGIN = 0.05
_EDGE = 1e-9


class Inference(NamedTuple):
    """How one difference is judged.

    Attributes
    ----------
    limits : callable
        Confidence in (0, 1) -> two-sided limits in [-1, 1].
    outside : callable
        (lowest, highest) -> one-sided p of the null that the true difference is as low as the
        first or as high as the second, uncorrected.
    """

    limits: Callable[[float], tuple[float, float]]
    outside: Callable[[float, float], float]


@dataclass(frozen=True, slots=True)
class FamilyFigures:
    """What a comparison says as one of a family that was fixed beforehand.

    Attributes
    ----------
    low_simultaneous, high_simultaneous : float or None
        In [-1, 1]. With 95 % confidence all intervals of the family hold their true differences
        together; 0 lies inside exactly when ``p_holm`` is above 5 %, and at an end when the test
        alone rules it out. None without pairs.
    p_equivalence : float or None
        Of the null that the true difference is ``equivalence_margin`` or more, either way,
        corrected by Bonferroni; None without pairs.
    is_equivalent : bool or None
        Whether the difference is shown to be smaller than the margin, however the missing scores
        fell; None without pairs.
    equivalence_margin : float
        In (0, 1).
    """

    low_simultaneous: float | None
    high_simultaneous: float | None
    p_equivalence: float | None
    is_equivalent: bool | None
    equivalence_margin: float


def inference_of(result: PairedDifference, counts: PairCounts) -> Inference:
    """Return how a comparison that was planned beforehand is judged.

    Parameters
    ----------
    result : PairedDifference
    counts : dict
        What it was computed from.

    Notes
    -----
    Limits of ``difference_interval``; Tango's score test, see ``score_p``, of as many questions
    as the interval counts, where it counts those of a document as fewer.
    """

    def limits(confidence: float) -> tuple[float, float]:
        low, high, _ = difference_interval(counts, confidence)
        return (-1.0, 1.0) if low is None or high is None else (low, high)

    if result.is_graded:
        return _inference_of_items(result.difference or 0.0, counts)
    share = 1 / _inflation(result)
    n, n10, n01 = share * result.n_pairs, share * result.n10, share * result.n01

    def outside(lowest: float, highest: float) -> float:
        return max(score_p(n10, n01, n, highest), score_p(n01, n10, n, -lowest))

    return Inference(limits, outside)


def _inference_of_items(difference: float, counts: PairCounts) -> Inference:
    """Return how a difference of item means is judged: by the interval alone, turned round."""
    limits = graded_limits(counts)

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

    def outside(lowest: float, highest: float) -> float:
        return max(beyond(lowest, 0), beyond(highest, 1))

    return Inference(limits, outside)


def score_p(n10: float, n01: float, n: float, bound: float) -> float:
    """Return the one-sided p of the null that a paired difference is ``bound`` or more.

    Parameters
    ----------
    n10, n01, n : float
        Discordant pairs each way, and all pairs, n > 0; they need not be whole.
    bound : float
        In [-1, 1].

    Notes
    -----
    The score test of Tango 1998,
    doi:10.1002/(SICI)1097-0258(19980430)17:8<891::AID-SIM780>3.0.CO;2-B. Its spread is that of
    the null: with Bonett-Price limits, which take that of the data, a difference of the margin
    at a discordance of little more was called equivalent in up to 6.8 % instead of 5 %.
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
    """Correct the tests of a family, and what they can find, for its size.

    Parameters
    ----------
    results : sequence of PairedDifference
        Those without p are not counted in the family.

    Returns
    -------
    list of PairedDifference
        With ``p_holm``, and ``detectable_at_80`` at the level that Holm's method asks of the
        first of its tests, so that it finds such a difference with at least 80 % power whatever
        the other comparisons show. Where the interval is wider than that of independent
        questions, as these move together within documents, the questions count as so many fewer.
    """
    tests = [result.p for result in results]
    n_tests = max(1, sum(p is not None for p in tests))
    return [
        replace(result, p_holm=p, detectable_at_80=_detectable(result, ALPHA / n_tests))
        for result, p in zip(results, holm(tests), strict=True)
    ]


def compare_family(
    results: Sequence[PairedDifference],
    inferences: Sequence[Inference],
    margin: float = EQUIVALENCE_MARGIN,
) -> list[FamilyFigures]:
    """Return simultaneous intervals and tests of equivalence for a whole family.

    Parameters
    ----------
    results : sequence of PairedDifference
        As ``correct_family`` returned them.
    inferences : sequence of Inference
        Of each of them, see ``inference_of``.
    margin : float
        In (0, 1).

    Raises
    ------
    ValueError
        If the margin is out of range.

    Notes
    -----
    Intervals: each at ``1 - ALPHA / (2 K - 1)`` for K tests. An end that Holm's test contradicts
    moves to 0, as Guilbaud 2008, doi:10.1002/bimj.200710443, and Strassburger and Bretz 2008,
    doi:10.1002/sim.3338, have it for one-sided tests. Ends moved so are wrong together at most
    when Holm's method takes a side wrongly, ``ALPHA / 2``; the other errors then add up to
    ``(K - 1/2) / (2 K - 1) = 1/2`` of the level. With Bonferroni's ``1 - ALPHA / K`` the sum
    would be 6.7 % for three methods.

    Equivalence: two one-sided tests (Schuirmann 1987, doi:10.1007/BF01068419) at ``ALPHA / K``.
    As only one of a pair's two nulls can be true, the family counts K tests. Claims of
    equivalence are wrong in at most 5 %, and so are claims of a difference; the two are not
    corrected for one another.
    """
    if not 0 < margin < 1:
        msg = f"the equivalence margin must lie in (0, 1), not {margin!r}"
        raise ValueError(msg)
    n_tests = max(1, sum(result.p is not None for result in results))
    found: list[FamilyFigures] = []
    for result, inference in zip(results, inferences, strict=True):
        if result.difference is None or result.p_holm is None:
            found.append(FamilyFigures(None, None, None, None, margin))
            continue
        limits_here = inference.limits(1 - ALPHA / (2 * n_tests - 1))
        low, high = agree_with_test(limits_here, result.difference, result.p_holm)
        down, up = result.difference_bounds or (result.difference, result.difference)
        worst = inference.outside(
            result.difference - down - margin, result.difference - up + margin
        )
        found.append(
            FamilyFigures(
                low_simultaneous=low,
                high_simultaneous=high,
                p_equivalence=min(1.0, n_tests * inference.outside(-margin, margin)),
                is_equivalent=min(1.0, n_tests * worst) <= ALPHA and has_verdicts(result),
                equivalence_margin=margin,
            )
        )
    return found


def agree_with_test(
    limits: tuple[float, float], difference: float, p_holm: float
) -> tuple[float, float]:
    """Move an end of an interval to 0 where it contradicts the test at 5 %."""
    low, high = limits
    if p_holm > ALPHA or difference == 0:
        return min(low, 0.0), max(high, 0.0)
    return (max(low, 0.0), high) if difference > 0 else (low, min(high, 0.0))


def _inflation(result: PairedDifference) -> float:
    """Return by how much more the difference varies than that of independent questions, >= 1."""
    if result.low is None or result.high is None:
        return 1.0
    low, high = bonett_price(result.n10, result.n01, result.n_pairs)
    return max(1.0, (result.high - result.low) / (high - low)) ** 2


def _detectable(result: PairedDifference, alpha: float) -> float | None:
    # One that was left out, or that even a difference of 1 would not be, stays so.
    if result.detectable_at_80 is None or result.discordance is None:
        return None
    if result.is_graded:
        ndtri = scipy_special().ndtri
        quantiles = [float(ndtri(1 - level / 2)) + float(ndtri(0.8)) for level in (alpha, ALPHA)]
        return result.detectable_at_80 * quantiles[0] / quantiles[1]
    n_independent = int(result.n_pairs / _inflation(result))
    return detectable_difference(n_independent, result.discordance, alpha=alpha)
