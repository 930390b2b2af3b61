"""Compares two methods, or two runs, on the same questions: limits and tests of the difference.

Families of comparisons and verdicts in words are in family.py.
"""

import sys
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from graphrag.eval.stats.intervals import (
    CONFIDENCE,
    DocumentView,
    Floats,
    Limits,
    Score,
    Structure,
    choose_structure,
    degrees_of_freedom,
    effective_size,
    group_by_document,
    mean_real,
    name_interval,
    present,
    scipy_special,
    scipy_stats,
    view_of_totals,
    warn_of_documents,
)
from graphrag.eval.stats.power import detectable_difference

Alternative: TypeAlias = Literal["two-sided", "less"]
"""The alternative of a test; for "less", p is small if a is lower than b."""
Pair: TypeAlias = tuple[Score, Score]
PairCounts: TypeAlias = Mapping[tuple[Score, Score, Hashable], int]
"""(score of a, score of b, document or None if not known) -> number of questions."""

N_RESAMPLES = 9_999
MCNEMAR, BY_DOCUMENT = "mcnemar, exact", "sign-flip by document"
BY_QUESTION = "sign-flip by question"
PLAIN_BOUND = "bonett-price"
MIN_COVERAGE = 0.95
"""Share of the planned pairs that must have both verdicts before anything is claimed."""
_BATCH_VALUES = 2_000_000
_EDGE = 1e-9
_POWER, _LIMIT = 0.8416, 1.9600  # quantiles of the normal distribution at .80 and .975


class Tally(NamedTuple):
    """The number of pairs with both scores, of pairs (1, 0), and of pairs (0, 1)."""

    n: int = 0
    n10: int = 0
    n01: int = 0


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Mean of ``a - b`` over the questions that have both scores, in [0, 1]; None without pairs.

    - ``n_pairs``: questions with both scores. ``n_dropped_pairs``: planned pairs that lack one; if
      questions are searched more than once, each search makes a pair. ``coverage``: the share of
      the pairs that have both.
    - ``n10``, ``n01``: questions on which a scores more, and b. ``discordance``: their share.
    - ``difference``: in [-1, 1]. ``low``, ``high``: its 95 % limits by ``difference_interval``,
      named by ``interval``.
    - ``p``: two-sided, by ``difference_test``, named by ``test``. ``note``: what p can't know, if
      there are few documents with several questions. ``p_holm``: corrected over the family; None
      outside one.
    - ``detectable_at_80``: the smallest true difference found with 80 % power at this discordance,
      in a family at its corrected level; None if none can be found.
    - ``difference_bounds``: the difference over all questions if the missing scores were the worst,
      and the best, for a.
    - ``by_document``: None unless it was asked for.
    - ``is_graded``: whether the scores are item means, which may lie between 0 and 1.
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
    interval: str = PLAIN_BOUND
    test: str = MCNEMAR
    note: str | None = None
    coverage: float | None = None
    is_graded: bool = False


@dataclass(frozen=True, slots=True)
class ScaleDifference:
    """Mean of ``a - b`` over the questions that have both scores, on any scale, with t limits.

    The names are those of ``PairedDifference``. The limits are None for fewer than two pairs, or if
    all differences are equal. ``p`` is that of ``flip_signs``, ``exact`` if every flip was tried.
    """

    n_pairs: int
    n_dropped_pairs: int
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    exact: bool
    interval: str = "t"
    test: str = BY_QUESTION


def tally_documents(counts: PairCounts) -> dict[Hashable, Tally]:
    """Return document -> its pairs; raises ValueError if a score is not 0, 1 or None."""
    tallies: dict[Hashable, Tally] = {}
    for (a, b, document), times in counts.items():
        for score in (a, b):
            if score not in (0, 1, None):
                raise ValueError(f"a score must be 0, 1 or None, not {score!r}")
        if a is not None and b is not None and times:
            n, n10, n01 = tallies.get(document, Tally())
            tallies[document] = Tally(n + times, n10 + times * (a > b), n01 + times * (b > a))
    return tallies


def add_up(tallies: Mapping[Hashable, Tally]) -> Tally:
    """Return the sum of the tallies of all documents."""
    return Tally(*(sum(tally[part] for tally in tallies.values()) for part in range(3)))


def structure_of(tallies: Mapping[Hashable, Tally]) -> Structure:
    """Return how an interval treats the documents of these pairs, see ``choose_structure``."""
    return choose_structure({document: tally.n for document, tally in tallies.items()})


def bonett_price_spread(p: Floats, q: Floats, size: Floats) -> tuple[Floats, Floats]:
    """Return center and standard error of Bonett-Price limits of ``p - q``.

    ``p`` and ``q`` in [0, 1] are the shares of the pairs (1, 0) and (0, 1); ``size`` is the number
    of pairs, above 0 and not always whole. Bonett and Price 2012, doi:10.3102/1076998611411915: p =
    (n10+1)/(n+2), q = (n01+1)/(n+2), ``p - q ± z sqrt((p + q - (p - q)^2) / (n + 2))``.
    """
    p, q = (p * size + 1) / (size + 2), (q * size + 1) / (size + 2)
    return p - q, np.sqrt((p + q - (p - q) ** 2) / (size + 2))


def bonett_price_limits(p: Floats, q: Floats, size: Floats, quantile: Floats) -> Limits:
    """Return Bonett-Price limits in [-1, 1] around ``p - q``, see ``bonett_price_spread``."""
    center, se = bonett_price_spread(p, q, size)
    difference, half = p - q, quantile * se
    return np.clip(center - half, -1.0, difference), np.clip(center + half, difference, 1.0)


def bonett_price(n10: int, n01: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return two-sided limits in [-1, 1] for n >= 1 pairs, see ``bonett_price_limits``.

    The lower limit at a confidence of 0.90 is the one-sided 95 % limit.
    """
    quantile = scipy_special().ndtri((1 + confidence) / 2)
    p, q, size = np.array([n10 / n, n01 / n, n], dtype=np.float64)
    low, high = bonett_price_limits(p, q, size, quantile)
    return float(low), float(high)


def difference_limits(
    n10: Floats, n01: Floats, sizes: Floats, structure: Structure, confidence: float
) -> Limits:
    """Return Bonett-Price limits, at ``effective_size``, of a paired difference of 0/1 scores.

    ``n10`` and ``n01`` of shape (..., documents) are the pairs (1, 0) and (0, 1) on each document,
    ``sizes`` all pairs, >= 1. The limits are in [-1, 1], around the difference, and never equal.
    """
    return bonett_price_limits(*_effective(n10, n01, sizes, structure, confidence))


def _effective(
    n10: Floats, n01: Floats, sizes: Floats, structure: Structure, confidence: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the shares of the pairs (1, 0) and (0, 1), how many pairs count, and the quantile."""
    n = sizes.sum()
    p, q = n10.sum(axis=-1) / n, n01.sum(axis=-1) / n
    n_off = n * (1 - np.maximum(np.maximum(p, q), 1 - p - q))
    return p, q, *effective_size(n10 - n01, n10 + n01, sizes, n_off, structure, confidence)


def difference_spread(counts: PairCounts) -> tuple[float, float, float | None]:
    """Return center, standard error and degrees of freedom of ``difference_interval``.

    The degrees of freedom are those of t; None for the normal distribution. Raises ValueError
    without pairs, or if a score is not 0, 1 or None.
    """
    tallies = tally_documents(counts)
    if not tallies:
        raise ValueError("without pairs there is no spread")
    n, n10, n01 = np.array(list(tallies.values()), dtype=np.float64).T
    structure = structure_of(tallies)
    p, q, size, _ = _effective(n10, n01, n, structure, CONFIDENCE)
    center, se = bonett_price_spread(p, q, size)
    df = float(degrees_of_freedom(n)) if structure is Structure.CLUSTERED else None
    return float(center), float(se), df


def difference_interval(
    counts: PairCounts, confidence: float = CONFIDENCE
) -> tuple[float | None, float | None, str]:
    """Return ``difference_limits`` by ``choose_structure``, None without pairs, and their name.

    A score of None is missing and left out. Raises ValueError if a score is not 0, 1 or None.
    """
    tallies = tally_documents(counts)
    structure = structure_of(tallies)
    name = name_interval(PLAIN_BOUND, structure)
    if not tallies:
        return None, None, name
    n, n10, n01 = np.array(list(tallies.values()), dtype=np.float64).T
    low, high = difference_limits(n10, n01, n, structure, confidence)
    total = add_up(tallies)
    mean = (total.n10 - total.n01) / total.n
    return min(float(low), mean), max(float(high), mean), name


def exact_sign_flip(totals: Mapping[int, int], *, lower: bool) -> float:
    """Return the exact p, in (0, 1], of flipping the signs of documents' whole-numbered sums.

    ``totals``: sum of a - b over a document's questions -> number of documents with that sum.
    ``lower``: whether only sums at most as high as the observed one count; otherwise those at least
    as far from 0. Fisher's randomization test; with sums of -1, 0 and 1 it is the exact McNemar
    test. m documents of the absolute sum k add ``k (2 B - m)`` with B binomial(m, 1/2), and the
    distributions of the different k are convolved: nothing is resampled.
    """
    sizes = Counter[int]()
    for total, times in totals.items():
        sizes[abs(total)] += times
    special, chances = scipy_special(), np.ones(1)
    for step, times in sizes.items():
        if step:
            heads = np.arange(times + 1.0)
            half = np.diff(special.bdtr(heads, times, 0.5), prepend=0.0)
            spaced = np.zeros(step * times + 1)
            spaced[::step] = np.where(2 * heads > times, half[::-1], half)  # so that none is lost
            chances = np.convolve(chances, spaced)
    seen = sum(total * times for total, times in totals.items())
    most = len(chances) - 1  # the largest sum; position h means the sum 2 h - most
    extreme = seen if lower else -abs(seen)
    tail = float(chances[: (most + extreme) // 2 + 1].sum())
    p = tail if lower else 2 * tail
    return min(1.0, max(p, sys.float_info.min))  # never 0, even if too small for a float


def difference_test(
    counts: PairCounts, alternative: Alternative = "two-sided"
) -> tuple[float | None, str]:
    """Test a paired difference of 0/1 scores against 0; return p and the name of the test.

    p is in (0, 1], None without pairs. If the documents are many enough for ``Structure.CLUSTERED``
    and have more than one question, the questions of a document change sign together
    (``exact_sign_flip``), because exact McNemar takes them for independent. Otherwise it is the
    exact McNemar test: the same function with every pair for itself. Raises ValueError if a score
    is not 0, 1 or None.
    """
    tallies = tally_documents(counts)
    if not tallies:
        return None, MCNEMAR
    lower = alternative == "less"
    if structure_of(tallies) is Structure.CLUSTERED and max(t.n for t in tallies.values()) > 1:
        sums = Counter(tally.n10 - tally.n01 for tally in tallies.values())
        return exact_sign_flip(sums, lower=lower), f"{BY_DOCUMENT}, exact"
    total = add_up(tallies)
    return exact_sign_flip({1: total.n10, -1: total.n01}, lower=lower), MCNEMAR


def flip_signs(
    differences: Sequence[Score],
    documents: Sequence[Hashable],
    alternative: Alternative = "two-sided",
) -> tuple[float | None, bool, str]:
    """Test the mean of real-valued differences against 0 by flipping signs.

    Each question has one difference, finite or None (left out), and a document, None if it is not
    known. The alternative "less" is a mean below 0. Returns p in (0, 1], which is 1 if all
    differences are 0 and None without any; whether every flip was tried; and the name of the test.
    The differences of a document change sign together if ``difference_test`` takes them together,
    otherwise each alone.

    ``scipy.stats.permutation_test(permutation_type="samples")`` on the sums: every flip for up to
    13 sums that differ from 0, else 9,999 random flips with ``(b + 1) / (B + 1)``. Sums of 0 can't
    change the mean and are left out.
    """
    groups = group_by_document(differences, documents)
    sizes = {key: len(group) for key, group in groups.items()}
    together = choose_structure(sizes) is Structure.CLUSTERED and max(sizes.values()) > 1
    sums = np.concatenate([*groups.values(), np.empty(0)])
    if together:
        sums = np.array([group.sum() for group in groups.values()])
    moving = sums[sums != 0]
    exact = 2 ** min(len(moving), 64) <= N_RESAMPLES
    kind = BY_DOCUMENT if together else BY_QUESTION
    name = kind + (", exact" if exact else f", {N_RESAMPLES:,} resamples")
    return (_permute(moving, alternative) if len(sums) else None), exact, name


def _permute(moving: Floats, alternative: Alternative) -> float:
    if len(moving) == 0:
        return 1.0
    if len(moving) == 1:
        # Both of the two permutations are as extreme, or one; scipy refuses a single observation.
        return 0.5 if alternative == "less" and moving[0] < 0 else 1.0

    def mean_difference(x: Floats, y: Floats, axis: int) -> Floats:
        # 1/3 + 1/3 is as far from 0 as 2/3, whatever their last digits are.
        means: Floats = (x - y).mean(axis=axis).round(7)
        return means

    moving = moving / np.abs(moving).max()
    result = scipy_stats().permutation_test(
        (moving, np.zeros_like(moving)),
        mean_difference,
        permutation_type="samples",
        n_resamples=N_RESAMPLES,
        batch=max(1, _BATCH_VALUES // len(moving)),
        vectorized=True,
        alternative=alternative,
        rng=np.random.default_rng(0),
    )
    return float(result.pvalue)


def paired_binary(counts: PairCounts, *, view_documents: bool = False) -> PairedDifference:
    """Compare two 0/1 metrics question by question; None is a missing score.

    ``view_documents``: whether to add the view by document. ``p_holm`` is None until ``holm`` has
    seen the whole family. Raises ValueError if a score is not 0, 1 or None.
    """
    tallies = tally_documents(counts)
    n, n10, n01 = add_up(tallies)
    dropped = sum(counts.values()) - n
    low, high, interval = difference_interval(counts)
    p, test = difference_test(counts)
    discordance = (n10 + n01) / n if n else None
    return PairedDifference(
        n_pairs=n,
        n_dropped_pairs=dropped,
        n10=n10,
        n01=n01,
        discordance=discordance,
        difference=(n10 - n01) / n if n else None,
        low=low,
        high=high,
        p=p,
        p_holm=None,
        detectable_at_80=None if discordance is None else detectable_difference(n, discordance),
        difference_bounds=_difference_bounds(counts),
        by_document=_by_document(counts) if view_documents else None,
        interval=interval,
        test=test,
        note=warn_of_documents({document: tally.n for document, tally in tallies.items()}),
        coverage=n / (n + dropped) if n else None,
    )


def count_signs(items: PairCounts) -> PairCounts:
    """Count the pairs with both scores by which is higher, as (1, 0), (0, 1) and (0, 0)."""
    signs = Counter[tuple[Score, Score, Hashable]]()
    for (a, b, document), times in items.items():
        if a is not None and b is not None:
            signs[int(a > b), int(b > a), document] += times
    return signs


def paired_items(
    items: PairCounts, searches: PairCounts, *, view_documents: bool = False
) -> PairedDifference:
    """Compare two metrics by the means of questions that may have been searched more than once.

    ``items`` counts the means of questions, in [0, 1] or None. ``searches`` counts the scores of
    single searches, 0, 1 or None (missing, or not made); only these show what is missing, and how
    far it could move the difference. If every difference is -1, 0 or 1, the result is
    ``paired_binary``. Otherwise it is ``mean_real`` and ``flip_signs``, and the smallest detectable
    difference is (z.975 + z.80) / z.975 times half of the interval.
    """
    scored = {k: n for k, n in items.items() if k[0] is not None and k[1] is not None}
    n_missing = sum(n for (a, b, _), n in searches.items() if a is None or b is None)
    n_planned = sum(searches.values())
    result = replace(
        paired_binary(count_signs(items), view_documents=view_documents),
        n_dropped_pairs=n_missing,
        difference_bounds=_difference_bounds(searches),
        coverage=1 - n_missing / n_planned if n_planned else None,
    )
    if all(abs(float(a or 0) - float(b or 0)) in (0, 1) for a, b, _ in scored):
        return result
    pairs, documents = one_by_one(scored)
    scaled = paired_scale(pairs, limits=(-1.0, 1.0), documents=documents)
    half = None
    if scaled.low is not None and scaled.high is not None:
        half = (scaled.high - scaled.low) / 2
    return replace(
        result,
        difference=scaled.difference,
        low=scaled.low,
        high=scaled.high,
        p=scaled.p,
        detectable_at_80=half and half * (1 + _POWER / _LIMIT),
        by_document=_by_document(scored) if view_documents else None,
        interval=scaled.interval,
        test=scaled.test,
        is_graded=True,
    )


def paired_scale(
    pairs: Sequence[Pair],
    alternative: Alternative = "two-sided",
    limits: tuple[float, float] | None = None,
    documents: Sequence[Hashable] | None = None,
) -> ScaleDifference:
    """Compare two scores on a scale, such as 1-5 or item means.

    The interval is that of ``mean_real``, the test ``flip_signs``. ``pairs`` are finite numbers, or
    None if missing. ``limits`` are the least and the largest difference that the scale allows; the
    interval is cut to them. Raises ValueError if a score is not finite, or there is not one
    document per pair.
    """
    present([score for pair in pairs for score in pair], -np.finfo(float).max, np.finfo(float).max)
    groups: Sequence[Hashable] = [None] * len(pairs) if documents is None else documents
    differences = [signed_difference(pair) for pair in pairs]
    estimate = mean_real(differences, groups, limits)
    p, exact, test = flip_signs(differences, groups, alternative)
    return ScaleDifference(
        n_pairs=estimate.n,
        n_dropped_pairs=len(pairs) - estimate.n,
        difference=estimate.mean,
        low=estimate.low,
        high=estimate.high,
        p=p,
        exact=exact,
        interval=estimate.method,
        test=test,
    )


def has_verdicts(result: PairedDifference) -> bool:
    """Return whether enough of the planned pairs have both scores for anything to be claimed."""
    return result.coverage is None or result.coverage >= MIN_COVERAGE - _EDGE


def holm(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Correct the p values of a family fixed beforehand; None is not in the family and stays None.

    Holm 1979, as ``statsmodels.stats.multitest.multipletests(method="holm")``, which is not called
    because it collects the garbage of the whole process every time. Raises ValueError if a p value
    is outside [0, 1].
    """
    present(p_values, 0, 1)
    corrected = list(p_values)
    family = [(p, place) for place, p in enumerate(p_values) if p is not None]
    least = 0.0
    for rank, (p, place) in enumerate(sorted(family)):
        least = max(least, min(1.0, p * (len(family) - rank)))
        corrected[place] = least
    return tuple(corrected)


def one_by_one(items: PairCounts) -> tuple[list[Pair], list[Hashable]]:
    """Return the scores and the document of each question, one entry per question."""
    keys = [key for key, times in items.items() for _ in range(times)]
    return [(a, b) for a, b, _ in keys], [document for _, _, document in keys]


def signed_difference(pair: Pair) -> float | None:
    """Return ``a - b``, rounded so that equal differences are equal; None if a score is missing."""
    a, b = pair
    if a is None or b is None:
        return None
    return round(float(a) - float(b), 12)  # 2/3 - 1/3 and 1/3 - 0 are one difference


def _by_document(counts: PairCounts) -> DocumentView:
    totals: dict[Hashable, tuple[float, int]] = {}
    for (a, b, document), times in counts.items():
        difference = signed_difference((a, b))
        if difference is not None:
            total, size = totals.get(document, (0.0, 0))
            totals[document] = (total + times * difference, size + times)
    return view_of_totals(totals, (-1.0, 1.0))


def _difference_bounds(counts: PairCounts) -> tuple[float, float] | None:
    n = sum(counts.values())
    if n == 0:
        return None
    worst = sum(times * ((a or 0) - (1 if b is None else b)) for (a, b, _), times in counts.items())
    best = sum(times * ((1 if a is None else a) - (b or 0)) for (a, b, _), times in counts.items())
    return worst / n, best / n
