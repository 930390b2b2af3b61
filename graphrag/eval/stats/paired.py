"""Two methods, or two runs, on the same questions: difference, test, and what is missing."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from graphrag.eval.stats.differences import (
    BY_QUESTION,
    MCNEMAR,
    Alternative,
    PairCounts,
    Tally,
    difference_interval,
    difference_test,
    flip_signs,
    tally_documents,
)
from graphrag.eval.stats.estimates import (
    CONFIDENCE,
    DocumentView,
    Score,
    present,
    scipy_special,
    view_of_totals,
)
from graphrag.eval.stats.limits import bonett_price_limits
from graphrag.eval.stats.power import detectable_difference
from graphrag.eval.stats.scales import mean_real
from graphrag.eval.stats.structure import warn_of_documents

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
