"""Two methods, or two runs, on the same questions: limits, tests, families, verdicts."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from graphrag.eval.stats.intervals import (
    CONFIDENCE,
    DocumentView,
    Floats,
    Score,
    Structure,
    bonett_price_limits,
    choose_structure,
    difference_limits,
    exact_sign_flip,
    group_by_document,
    mean_real,
    name_interval,
    present,
    scipy_special,
    scipy_stats,
    view_of_totals,
    warn_of_documents,
)
from graphrag.eval.stats.power import ALPHA, detectable_difference

Alternative: TypeAlias = Literal["two-sided", "less"]
PairCounts: TypeAlias = Mapping[tuple[Score, Score, Hashable], int]
"""(score of a, score of b, document) -> how many times it occurs."""

N_RESAMPLES = 9_999
MCNEMAR, BY_DOCUMENT = "mcnemar, exact", "sign-flip by document, exact"
BY_QUESTION = "sign-flip by question"
_BATCH_VALUES = 2_000_000


class Tally(NamedTuple):
    """Pairs on one document: both scores there, and those of them (1, 0) and (0, 1)."""

    n: int
    n10: int
    n01: int


def tally_documents(counts: PairCounts) -> dict[Hashable, Tally]:
    """Count the pairs of each document; documents without any are left out.

    Raises
    ------
    ValueError
        If a score is not 0, 1 or None.
    """
    found: dict[Hashable, Tally] = {}
    for (a, b, document), times in counts.items():
        for score in (a, b):
            if score not in (0, 1, None):
                msg = f"a score must be 0, 1 or None, not {score!r}"
                raise ValueError(msg)
        if a is not None and b is not None and times:
            n, n10, n01 = found.get(document, (0, 0, 0))
            found[document] = Tally(n + times, n10 + times * (a > b), n01 + times * (b > a))
    return found


def structure_of(tallies: Mapping[Hashable, Tally]) -> Structure:
    """Return how the documents of these pairs enter, see ``choose_structure``."""
    return choose_structure({document: tally.n for document, tally in tallies.items()})


def difference_interval(
    counts: PairCounts, confidence: float = CONFIDENCE
) -> tuple[float | None, float | None, str]:
    """Return the limits of a paired difference of 0/1 scores.

    Parameters
    ----------
    counts : dict
        (a, b, document) -> questions; a score is 0, 1 or None (missing, left out). A document
        None is one that is not known.
    confidence : float
        In (0, 1), of both sides: the lower limit at 0.90 is the one-sided 95 % limit.

    Returns
    -------
    low, high : float or None
        In [-1, 1] and around the difference, never of no width; None without pairs.
    name : str
        Of the interval, which says how the documents entered.

    Raises
    ------
    ValueError
        If a score is not 0, 1 or None.

    Notes
    -----
    ``limits.difference_limits`` by ``structure.choose_structure``.
    """
    tallies = tally_documents(counts)
    structure = structure_of(tallies)
    name = name_interval("bonett-price", structure)
    if not tallies:
        return None, None, name
    n, n10, n01 = np.array(list(tallies.values()), dtype=np.float64).T
    low, high = difference_limits(n10, n01, n, structure, confidence)
    mean = sum(t.n10 - t.n01 for t in tallies.values()) / sum(t.n for t in tallies.values())
    return min(float(low), mean), max(float(high), mean), name


def difference_test(
    counts: PairCounts, alternative: Alternative = "two-sided"
) -> tuple[float | None, str]:
    """Test a paired difference of 0/1 scores against none.

    Parameters
    ----------
    counts : dict
        As in ``difference_interval``.
    alternative : {"two-sided", "less"}
        "less": the p value is that of a being lower than b.

    Returns
    -------
    p : float or None
        In (0, 1]; two-sided it is 1 without a discordant pair; None without pairs.
    name : str
        Of the test.

    Raises
    ------
    ValueError
        If a score is not 0, 1 or None.

    Notes
    -----
    Where documents are many enough for ``Structure.CLUSTERED`` and hold more than one question,
    their sums of a - b change sign together (``clustered.exact_sign_flip``), as exact McNemar takes
    questions of one document for independent. Else exact McNemar, which is the same function
    with every pair for itself.
    """
    tallies = tally_documents(counts)
    if not tallies:
        return None, MCNEMAR
    lower = alternative == "less"
    if structure_of(tallies) is Structure.CLUSTERED and max(t.n for t in tallies.values()) > 1:
        sums = Counter(tally.n10 - tally.n01 for tally in tallies.values())
        return exact_sign_flip(sums, lower=lower), BY_DOCUMENT
    n10, n01 = (sum(tally[side] for tally in tallies.values()) for side in (1, 2))
    return exact_sign_flip({1: n10, -1: n01}, lower=lower), MCNEMAR


def flip_signs(
    differences: Sequence[Score],
    documents: Sequence[Hashable],
    alternative: Alternative = "two-sided",
    seed: int = 0,
) -> tuple[float | None, bool, str]:
    """Test the mean of real-valued differences against 0 by flipping signs.

    Parameters
    ----------
    differences : sequence
        One a question; finite numbers or None (left out).
    documents : sequence
        The document of each, same length; None where it is not known.
    alternative : {"two-sided", "less"}
        "less": the p value is that of a mean below 0.
    seed : int
        Of the signs, when there are too many to try all.

    Returns
    -------
    p : float or None
        In (0, 1]; 1 when all differences are 0, None without any.
    exact : bool
        Whether every flip was tried.
    name : str
        Of the test: the signs of a document's differences change together where
        ``difference_test`` takes them together, else each changes alone.

    Raises
    ------
    ValueError
        If the lengths differ or a difference is not finite.

    Notes
    -----
    ``scipy.stats.permutation_test(permutation_type="samples")`` on the sums: every flip for up to
    13 of them that differ from 0, else 9,999 random ones with ``(b + 1) / (B + 1)``. Those
    that are 0 can't move it and are left out.
    """
    groups = group_by_document(differences, documents)
    sizes = {key: len(group) for key, group in groups.items()}
    together = choose_structure(sizes) is Structure.CLUSTERED and max(sizes.values()) > 1
    sums = np.concatenate([*groups.values(), np.empty(0)])
    if together:
        sums = np.array([group.sum() for group in groups.values()])
    moving = sums[sums != 0]
    exact = 2 ** min(len(moving), 64) <= N_RESAMPLES
    kind = BY_DOCUMENT.removesuffix(", exact") if together else BY_QUESTION
    name = kind + (", exact" if exact else f", {N_RESAMPLES:,} resamples")
    if len(sums) == 0:
        return None, exact, name
    return _permute(moving, alternative, seed), exact, name


def _permute(moving: Floats, alternative: Alternative, seed: int) -> float:
    if len(moving) == 0:
        return 1.0
    if len(moving) == 1:
        # Of the two permutations both are as extreme, or one; scipy refuses a single observation.
        return 0.5 if alternative == "less" and moving[0] < 0 else 1.0
    result = scipy_stats().permutation_test(
        (moving, np.zeros_like(moving)),
        _mean_difference,
        permutation_type="samples",
        n_resamples=N_RESAMPLES,
        batch=max(1, _BATCH_VALUES // len(moving)),
        vectorized=True,
        alternative=alternative,
        rng=np.random.default_rng(seed),
    )
    return float(result.pvalue)


def _mean_difference(x: Any, y: Any, axis: int) -> Any:
    return (x - y).mean(axis=axis)


Pair: TypeAlias = tuple[Score, Score]

MIN_COVERAGE = 0.95
"""Share of the planned pairs that must have verdicts before anything is claimed."""
_EDGE = 1e-9
_POWER, _LIMIT = 0.8416, 1.9600  # quantiles of the normal distribution at .80 and .975


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Mean of ``a - b`` over the questions that have both scores, in [0, 1].

    Attributes
    ----------
    n_pairs, n_dropped_pairs : int
        Questions with both scores, and planned pairs with a missing one (of questions that are
        searched more than once, each search makes a pair).
    n10, n01 : int
        Questions where a scores more, and where b does.
    discordance : float or None
        Share ``(n10 + n01) / n_pairs``; None without pairs.
    difference, low, high : float or None
        In [-1, 1], with the limits of ``difference_interval`` (95 %); None without pairs.
    p : float or None
        Two-sided, of ``difference_test``; 1 without a discordant pair, None without pairs.
    p_holm : float or None
        ``p`` corrected over the family of comparisons; None outside the family.
    detectable_at_80 : float or None
        Smallest true difference that the test finds with 80 % power at this discordance, in a
        family at its corrected level; None when no difference could be found.
    difference_bounds : tuple of float or None
        The difference over all questions if the missing scores fell as badly for a, and as
        well for a, as they can; None without questions.
    by_document : DocumentView or None
        The differences document by document; None when no documents were given.
    interval, test : str
        Names of what ``low`` and ``high`` are, and of what ``p`` is; they say how the documents
        entered, see ``choose_structure``.
    note : str or None
        What ``p`` can't know, where documents are few and hold several questions.
    coverage : float or None
        Share of the planned pairs that have both scores; None without any.
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
    interval: str = "bonett-price"
    test: str = MCNEMAR
    note: str | None = None
    coverage: float | None = None

    @property
    def is_graded(self) -> bool:
        """Whether it is of item means, which lie between 0 and 1 as well."""
        return self.interval.partition(",")[0] == "t"


@dataclass(frozen=True, slots=True)
class ScaleDifference:
    """Mean of ``a - b`` over the questions that have both scores, on any scale.

    Attributes
    ----------
    n_pairs, n_dropped_pairs : int
    difference, low, high : float or None
        In the unit of the scores, with t limits (95 %) cut to what the scale allows; the
        difference is None without pairs, the limits under two pairs or when all differences
        are equal.
    p : float or None
        Permutation test, two-sided unless asked otherwise; 1 when all differences are 0, None
        without pairs.
    exact : bool
        Whether every permutation was tried.
    interval, test : str
        Names of what the limits are and of what ``p`` is.
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
    quantile = scipy_special().ndtri((1 + confidence) / 2)
    p, q, size = np.array([n10 / n, n01 / n, n], dtype=np.float64)
    low, high = bonett_price_limits(p, q, size, quantile)
    return float(low), float(high)


def paired_counts(pairs: Sequence[Pair]) -> tuple[int, int, int]:
    """Return the pairs with both scores, those of them (1, 0), and those (0, 1).

    Raises
    ------
    ValueError
        If a score is not 0, 1 or None.
    """
    return _add_up(tally_documents(Counter((a, b, None) for a, b in pairs)))


def _add_up(tallies: Mapping[Hashable, Tally]) -> Tally:
    return Tally(*(sum(tally[part] for tally in tallies.values()) for part in range(3)))


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
        ``p_holm`` is None until ``holm`` has seen the whole family.

    Raises
    ------
    ValueError
        If a score is not 0, 1 or None.

    Notes
    -----
    ``difference_interval``, ``difference_test``, ``detectable_difference``.
    """
    tallies = tally_documents(counts)
    n, n10, n01 = _add_up(tallies)
    dropped = sum(counts.values()) - n
    view = view_of_totals(_difference_totals(counts), (-1.0, 1.0)) if view_documents else None
    bounds = _difference_bounds(counts)
    if n == 0:
        return PairedDifference(
            0, dropped, 0, 0, None, None, None, None, None, None, None, bounds, view
        )
    low, high, interval = difference_interval(counts)
    p, test = difference_test(counts)
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
        p=p,
        p_holm=None,
        detectable_at_80=detectable_difference(n, discordance),
        difference_bounds=bounds,
        by_document=view,
        interval=interval,
        test=test,
        note=warn_of_documents({document: tally.n for document, tally in tallies.items()}),
        coverage=n / (n + dropped),
    )


def paired_items(
    items: PairCounts, searches: PairCounts, *, view_documents: bool = False
) -> PairedDifference:
    """Compare two metrics by the means of questions that may have been searched more than once.

    Parameters
    ----------
    items : dict
        (mean of a, mean of b, document) -> questions, in [0, 1] or None.
    searches : dict
        The same of single searches, 0, 1 or None (missing, or not made): they alone say what is
        missing, and how far it could move the difference.

    Notes
    -----
    ``paired_binary`` where every difference is -1, 0 or 1; else ``scales.mean_real`` and
    ``flip_signs``. The smallest detectable difference is then (z.975 + z.80) / z.975 times
    half of the interval.
    """
    known = {k: n for k, n in items.items() if k[0] is not None and k[1] is not None}
    n_missing = sum(n for (a, b, _), n in searches.items() if a is None or b is None)
    n_planned = sum(searches.values())
    missing = {
        "n_dropped_pairs": n_missing,
        "difference_bounds": _difference_bounds(searches),
        "coverage": 1 - n_missing / n_planned if n_planned else None,
    }
    signs = Counter[tuple[Score, Score, Hashable]]()
    for (a, b, document), times in known.items():
        difference = float(a or 0) - float(b or 0)
        signs[int(difference > 0), int(difference < 0), document] += times
    found = replace(paired_binary(signs, view_documents=view_documents), **missing)
    if all(abs(float(a or 0) - float(b or 0)) in (0, 1) for a, b, _ in known):
        return found
    pairs, documents = _spread(known)
    scaled = paired_scale(pairs, limits=(-1.0, 1.0), documents=documents)
    half = None
    if scaled.low is not None and scaled.high is not None:
        half = (scaled.high - scaled.low) / 2
    return replace(
        found,
        difference=scaled.difference,
        low=scaled.low,
        high=scaled.high,
        p=scaled.p,
        detectable_at_80=half and half * (1 + _POWER / _LIMIT),
        by_document=view_of_totals(_difference_totals(known), (-1.0, 1.0))
        if view_documents
        else None,
        interval=scaled.interval,
        test=scaled.test,
    )


def graded_limits(items: PairCounts) -> Callable[[float], tuple[float, float]]:
    """Return confidence -> limits of the difference of item means, (-1, 1) without any."""
    pairs, documents = _spread(items)
    differences = [_difference(pair) for pair in pairs]

    def limits(confidence: float) -> tuple[float, float]:
        found = mean_real(differences, documents, (-1.0, 1.0), confidence)
        return (-1.0, 1.0) if found.low is None or found.high is None else (found.low, found.high)

    return limits


def has_verdicts(result: PairedDifference) -> bool:
    """Say whether enough of the planned pairs have both scores for anything to be claimed."""
    return result.coverage is None or result.coverage >= MIN_COVERAGE - _EDGE


def _spread(items: PairCounts) -> tuple[list[Pair], list[Hashable]]:
    """Return the scores and the document of each question, one by one."""
    each = [key for key, times in items.items() for _ in range(times)]
    return [(a, b) for a, b, _ in each], [document for _, _, document in each]


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
    pairs: Sequence[Pair],
    seed: int = 0,
    alternative: Alternative = "two-sided",
    limits: tuple[float, float] | None = None,
    documents: Sequence[Hashable] | None = None,
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
    limits : (float, float), optional
        The least and the largest difference that the scale allows: (-1, 1) for scores in [0, 1].
        The interval is cut to them.
    documents : sequence, optional
        The document of each pair; None: not known.

    Raises
    ------
    ValueError
        If a score is not finite, or there is not one document a pair.

    Notes
    -----
    ``differences.mean_real`` and ``differences.flip_signs``.
    """
    present([score for pair in pairs for score in pair], -np.finfo(float).max, np.finfo(float).max)
    asked = [None] * len(pairs) if documents is None else documents
    differences = [_difference(pair) for pair in pairs]
    estimate = mean_real(differences, asked, limits)
    p, exact, test = flip_signs(differences, asked, alternative, seed)
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


def _difference(pair: Pair) -> float | None:
    a, b = pair
    if a is None or b is None:
        return None
    return round(float(a) - float(b), 12)  # 2/3 - 1/3 and 1/3 - 0 are one difference


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


def describe_tests(results: Sequence[PairedDifference]) -> list[str]:
    """Say once, below comparisons, what their intervals and p are and what p can't know.

    Returns
    -------
    list of str
        Sentences; empty when nothing was compared.
    """
    compared = [result for result in results if result.p is not None]
    if not compared:
        return []
    intervals, tests = (
        ", ".join(dict.fromkeys(names))
        for names in ((r.interval for r in compared), (r.test for r in compared))
    )
    notes = dict.fromkeys(result.note for result in compared if result.note)
    return [f"Intervals: {intervals}; p: {tests}.", *(f"But {note}." for note in notes)]


EQUIVALENCE_MARGIN = 0.05


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


def shown_sign(result: PairedDifference, alpha: float = ALPHA) -> int:
    """Return which side is shown to be better: 1 for a, -1 for b, 0 for neither.

    By ``p_holm`` where there is one, else by ``p``; neither when too many scores are missing, or
    they could turn the difference around.
    """
    p = result.p if result.p_holm is None else result.p_holm
    if result.difference is None or p is None or p > alpha:
        return 0
    if not has_verdicts(result) or _can_turn(result):
        return 0
    return (result.difference > 0) - (result.difference < 0)


def verdict_in_words(
    result: PairedDifference,
    a: str,
    b: str,
    alpha: float = ALPHA,
    points: int = 1,
    family: FamilyFigures | None = None,
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
    family : FamilyFigures, optional
        What it says as one of a family. Without it nothing is said to be equivalent.

    Returns
    -------
    str
        "nothing to compare"; "undecided: ...", when less than 95 % of the pairs have verdicts;
        "unresolved: ...", when the missing verdicts could turn the answer;
        "<a> better than <b>" (or the reverse), with ", by less than 5 points" where that is shown
        as well; "equivalent within ±5 points"; or "no difference shown; the smallest that
        this many questions find with 80 % power is 6.8 points", in a family "unknown: no
        difference shown; ...".
    """
    if result.difference is None or result.p is None:
        return "nothing to compare"
    if not has_verdicts(result):
        share = f"{100 * (result.coverage or 0):.0f} %"
        return f"undecided: {share} of the pairs that were planned have both verdicts"
    missing = f"unresolved: {result.n_dropped_pairs} missing pairs could"
    sign = shown_sign(result, alpha)
    is_equivalent = family is not None and family.is_equivalent is True
    margin = "" if family is None else f"{100 * family.equivalence_margin:g} points"
    if sign:
        better, worse = (a, b) if sign > 0 else (b, a)
        return f"{better} better than {worse}{f', by less than {margin}' if is_equivalent else ''}"
    if is_equivalent:
        return f"equivalent within ±{margin}"
    if _can_turn(result):
        return f"{missing} turn it around"
    if family is not None and family.p_equivalence is not None and family.p_equivalence <= alpha:
        return f"{missing} move it past ±{margin}"
    known = "no difference shown" if family is None else "unknown: no difference shown"
    if result.detectable_at_80 is None:
        return f"{known}; too few questions to see any"
    least = f"{100 * result.detectable_at_80:.{points}f} points"
    return f"{known}; the smallest that this many questions find with 80 % power is {least}"


def _can_turn(result: PairedDifference) -> bool:
    """Say whether the missing scores could give the difference the other sign."""
    if result.difference is None or result.difference_bounds is None:
        return False
    low, high = result.difference_bounds
    return (result.difference > 0 > low) or (result.difference < 0 < high)
