"""Two methods, or two runs, on the same questions: difference, test, and what is missing."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import sqrt
from typing import Any, Literal, TypeAlias

import numpy as np

from graphrag.eval.statistics.estimates import (
    CONFIDENCE,
    DocumentView,
    Score,
    present,
    scipy_special,
    scipy_stats,
    t_estimate,
    view_of_totals,
)
from graphrag.eval.statistics.power import ALPHA, detectable_difference

Pair: TypeAlias = tuple[Score, Score]
Alternative: TypeAlias = Literal["two-sided", "less"]
PairCounts: TypeAlias = Mapping[tuple[Score, Score, Hashable], int]
"""(score of a, score of b, document) -> how many times it occurs."""

N_RESAMPLES = 9_999
_BATCH_VALUES = 2_000_000


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Mean of ``a - b`` over the questions that have both scores, each 0 or 1.

    Attributes
    ----------
    n_pairs, n_dropped_pairs : int
        Questions with both scores, and with a missing one.
    n10, n01 : int
        Questions where a alone scores 1, and where b alone does.
    discordance : float or None
        Share ``(n10 + n01) / n_pairs``; None without pairs.
    difference, low, high : float or None
        In [-1, 1], with Bonett-Price limits (95 %); None without pairs.
    p : float or None
        Two-sided exact McNemar test; 1 without a discordant pair, None without pairs.
    p_holm : float or None
        ``p`` corrected over the family of comparisons; None outside the family.
    detectable_at_80 : float or None
        Smallest true difference that the test finds with 80 % power at this discordance; None
        when no difference could be found.
    difference_bounds : tuple of float or None
        The difference over all questions if the missing scores fell as badly for a, and as
        well for a, as they can; None without questions.
    by_document : DocumentView or None
        The differences document by document; None when no documents were given.
    """

    n_pairs: int
    n_dropped_pairs: int
    n10: int
    n01: int
    discordance: float | None
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None
    detectable_at_80: float | None
    difference_bounds: tuple[float, float] | None
    by_document: DocumentView | None


@dataclass(frozen=True, slots=True)
class ScaleDifference:
    """Mean of ``a - b`` over the questions that have both scores, on any scale.

    Attributes
    ----------
    n_pairs, n_dropped_pairs : int
    difference, low, high : float or None
        In the unit of the scores, with t limits (95 %); the difference is None without pairs,
        the limits under two pairs or when all differences are equal.
    p : float or None
        Permutation test, two-sided unless asked otherwise; 1 when all differences are 0, None
        without pairs.
    exact : bool
        Whether every permutation was tried.
    """

    n_pairs: int
    n_dropped_pairs: int
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    exact: bool


def bonett_price(n10: int, n01: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return two-sided limits in [-1, 1] for a paired difference of proportions.

    Parameters
    ----------
    n10, n01, n : int
        Discordant pairs each way, and all pairs; n >= 1.
    confidence : float
        In (0, 1). The lower limit at 0.90 is the one-sided 95 % limit.

    Notes
    -----
    Bonett and Price 2012, doi:10.3102/1076998611411915: p = (n10+1)/(n+2), q = (n01+1)/(n+2),
    ``p - q ± z sqrt((p + q - (p - q)^2) / (n + 2))``.
    """
    p, q = (n10 + 1) / (n + 2), (n01 + 1) / (n + 2)
    z = float(scipy_special().ndtri((1 + confidence) / 2))
    half = z * sqrt((p + q - (p - q) ** 2) / (n + 2))
    difference = (n10 - n01) / n
    return max(-1.0, min(p - q - half, difference)), min(1.0, max(p - q + half, difference))


def paired_counts(pairs: Sequence[Pair]) -> tuple[int, int, int]:
    """Return the pairs with both scores, those of them (1, 0), and those (0, 1).

    Raises
    ------
    ValueError
        If a score is not 0, 1 or None.
    """
    return _count_pairs(Counter((a, b, None) for a, b in pairs))


def _count_pairs(counts: PairCounts) -> tuple[int, int, int]:
    n = n10 = n01 = 0
    for (a, b, _), times in counts.items():
        for score in (a, b):
            if score not in (0, 1, None):
                msg = f"a score must be 0, 1 or None, not {score!r}"
                raise ValueError(msg)
        if a is not None and b is not None:
            n += times
            n10 += times * (a > b)
            n01 += times * (b > a)
    return n, n10, n01


def paired_binary(counts: PairCounts, *, view_documents: bool = False) -> PairedDifference:
    """Compare two 0/1 metrics question by question.

    Parameters
    ----------
    counts : dict
        (a, b, document) -> questions, joined on their ids; a score is 0, 1 or None (missing).
    view_documents : bool
        Whether to take the view document by document.

    Returns
    -------
    PairedDifference
        ``p_holm`` is None until ``holm`` has seen the whole family. The limits pool the
        documents, which for new questions on these documents is never too narrow.

    Raises
    ------
    ValueError
        If a score is not 0, 1 or None.

    Notes
    -----
    ``statsmodels.stats.contingency_tables.mcnemar(exact=True)``, ``bonett_price``,
    ``detectable_difference``.
    """
    n, n10, n01 = _count_pairs(counts)
    dropped = sum(counts.values()) - n
    view = view_of_totals(_difference_totals(counts), (-1.0, 1.0)) if view_documents else None
    bounds = _difference_bounds(counts)
    if n == 0:
        return PairedDifference(
            0, dropped, 0, 0, None, None, None, None, None, None, None, bounds, view
        )
    tables: Any = import_module("statsmodels.stats.contingency_tables")
    test = tables.mcnemar([[n - n10 - n01, n10], [n01, 0]], exact=True)
    low, high = bonett_price(n10, n01, n)
    discordance = (n10 + n01) / n
    return PairedDifference(
        n_pairs=n,
        n_dropped_pairs=dropped,
        n10=n10,
        n01=n01,
        discordance=discordance,
        difference=(n10 - n01) / n,
        low=low,
        high=high,
        p=float(test.pvalue),
        p_holm=None,
        detectable_at_80=detectable_difference(n, discordance),
        difference_bounds=bounds,
        by_document=view,
    )


def holm(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Correct the p values of a family that was fixed beforehand.

    Parameters
    ----------
    p_values : sequence
        In [0, 1]; None stays None and is not counted in the family.

    Raises
    ------
    ValueError
        If a p value is NaN or outside [0, 1].

    Notes
    -----
    Holm 1979, as ``statsmodels.stats.multitest.multipletests(method="holm")``, which collects
    the garbage of the whole process on every call.
    """
    present(p_values, 0, 1)
    corrected = list(p_values)
    family = [(p, place) for place, p in enumerate(p_values) if p is not None]
    least = 0.0
    for rank, (p, place) in enumerate(sorted(family)):
        least = max(least, min(1.0, p * (len(family) - rank)))
        corrected[place] = least
    return tuple(corrected)


def paired_scale(
    pairs: Sequence[Pair], seed: int = 0, alternative: Alternative = "two-sided"
) -> ScaleDifference:
    """Compare two scores on a scale, such as 1-5 or item means, question by question.

    Parameters
    ----------
    pairs : sequence of (a, b)
        One a question; finite numbers or None (missing).
    seed : int
        Of the permutations, when there are too many to try all.
    alternative : {"two-sided", "less"}
        "less": the p value is that of a being lower than b.

    Raises
    ------
    ValueError
        If a score is not finite.

    Notes
    -----
    ``scipy.stats.permutation_test(permutation_type="samples")`` on the mean difference: every
    permutation for up to 13 questions that differ, else 9,999 random ones with
    ``(b + 1) / (B + 1)``. Questions that do not differ can't move it and are left out.
    """
    present([score for pair in pairs for score in pair], -np.finfo(float).max, np.finfo(float).max)
    d = np.array([v for v in map(_difference, pairs) if v is not None], dtype=np.float64)
    estimate = t_estimate(d, None)
    differing = d[d != 0]
    p: float | None = None if len(d) == 0 else 1.0
    exact = 2 ** min(len(differing), 64) <= N_RESAMPLES
    if len(differing) == 1:
        # Of the two permutations both are as extreme, or one; scipy refuses a single observation.
        p = 0.5 if alternative == "less" and differing[0] < 0 else 1.0
    elif len(differing) > 1:
        result = scipy_stats().permutation_test(
            (differing, np.zeros_like(differing)),
            _mean_difference,
            permutation_type="samples",
            n_resamples=N_RESAMPLES,
            batch=max(1, _BATCH_VALUES // len(differing)),
            vectorized=True,
            alternative=alternative,
            rng=np.random.default_rng(seed),
        )
        p = float(result.pvalue)
    return ScaleDifference(
        len(d), len(pairs) - len(d), estimate.mean, estimate.low, estimate.high, p, exact
    )


def verdict_in_words(
    result: PairedDifference, a: str, b: str, alpha: float = ALPHA, points: int = 1
) -> str:
    """Say what a comparison showed.

    Parameters
    ----------
    result : PairedDifference
        Judged by ``p_holm`` when it has one, else by ``p``.
    a, b : str
        Names of the two methods.
    alpha : float
        Level of the test.
    points : int
        Decimals of a difference in percentage points.

    Returns
    -------
    str
        "nothing to compare", "unresolved: ...", "<a> better than <b>" (or the reverse), or
        "no difference shown; would have seen 6.8 points". Unresolved means that the missing
        verdicts could turn the sign of the difference.
    """
    if result.difference is None or result.p is None:
        return "nothing to compare"
    if result.difference_bounds is not None:
        low, high = result.difference_bounds
        if (result.difference > 0 > low) or (result.difference < 0 < high):
            return f"unresolved: {result.n_dropped_pairs} missing pairs could turn it around"
    p = result.p if result.p_holm is None else result.p_holm
    if p <= alpha and result.difference != 0:
        better, worse = (a, b) if result.difference > 0 else (b, a)
        return f"{better} better than {worse}"
    if result.detectable_at_80 is None:
        return "no difference shown; too few questions to see any"
    return f"no difference shown; would have seen {100 * result.detectable_at_80:.{points}f} points"


def _difference(pair: Pair) -> float | None:
    a, b = pair
    return None if a is None or b is None else float(a) - float(b)


def _difference_totals(counts: PairCounts) -> dict[Hashable, tuple[float, int]]:
    totals: dict[Hashable, tuple[float, int]] = {}
    for (a, b, document), times in counts.items():
        difference = _difference((a, b))
        if difference is not None:
            total, size = totals.get(document, (0.0, 0))
            totals[document] = (total + times * difference, size + times)
    return totals


def _difference_bounds(counts: PairCounts) -> tuple[float, float] | None:
    n = sum(counts.values())
    if n == 0:
        return None
    worst = sum(times * ((a or 0) - (1 if b is None else b)) for (a, b, _), times in counts.items())
    best = sum(times * ((1 if a is None else a) - (b or 0)) for (a, b, _), times in counts.items())
    return worst / n, best / n


def _mean_difference(x: Any, y: Any, axis: int) -> Any:
    return (x - y).mean(axis=axis)
