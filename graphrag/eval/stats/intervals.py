"""Means with their intervals, for any structure of documents."""

import sys
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from math import inf, isfinite
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]


def scipy_stats() -> Any:
    """Return ``scipy.stats``, loaded on first use: it takes a second, and has no types."""
    return import_module("scipy.stats")


def scipy_special() -> Any:
    """Return ``scipy.special``, loaded on first use."""
    return import_module("scipy.special")


FEW_DOCUMENTS = 10
MOST_QUESTIONS = 0.95
LEAST_DF = 5.0


class Structure(StrEnum):
    """How the documents of the questions enter an interval.

    ``POOLED``: not at all, as there is one or they are not known. ``STRATIFIED``: they are fixed,
    and the questions on each are drawn: new questions on these documents. ``CLUSTERED``: they
    are drawn as well: new questions on documents like these.
    """

    POOLED = "pooled"
    STRATIFIED = "stratified"
    CLUSTERED = "clustered"


def choose_structure(sizes: Mapping[Hashable, int]) -> Structure:
    """Choose by the number of documents and of questions on each.

    Parameters
    ----------
    sizes : dict
        Document -> questions on it, >= 1. A document None is one that is not known.

    Returns
    -------
    Structure
        ``POOLED`` for one document, or when one is not known. ``CLUSTERED`` for ten documents or
        more, unless fewer than ten hold 95 % of the questions or they are so unequal that fewer
        than 5 degrees of freedom are left. Else ``STRATIFIED``.

    Notes
    -----
    With fewer than 4 to 5 degrees of freedom the t approximation fails: Pustejovsky and Tipton
    2018, doi:10.1080/07350015.2016.1247004. ``benchmarks/coverage.py`` measures the choice.
    """
    if len(sizes) < 2 or None in sizes:
        return Structure.POOLED
    if len(sizes) < FEW_DOCUMENTS:
        return Structure.STRATIFIED
    asked = np.sort(np.array(list(sizes.values()), dtype=np.float64))[::-1]
    most = float(asked[: FEW_DOCUMENTS - 1].sum())
    if most >= MOST_QUESTIONS * float(asked.sum()) or float(degrees_of_freedom(asked)) < LEAST_DF:
        return Structure.STRATIFIED
    return Structure.CLUSTERED


def name_interval(kind: str, structure: Structure) -> str:
    """Return the name of an interval, with how the documents enter unless there is one."""
    return kind if structure is Structure.POOLED else f"{kind}, {structure.value} by document"


def warn_of_documents(sizes: Mapping[Hashable, int]) -> str | None:
    """Say what a test between methods can't know where documents are few.

    Parameters
    ----------
    sizes : dict
        As in ``choose_structure``.

    Returns
    -------
    str or None
        A sentence without a full stop; None for one document, for documents that are not known,
        of one question each, or many enough to be taken as drawn.
    """
    few = choose_structure(sizes) is Structure.STRATIFIED and max(sizes.values()) > 1
    if not few:
        return None
    return (
        f"p takes the questions as independent: with {len(sizes)} documents a shift that all "
        "questions of a document share can't be told from a difference"
    )


def cr2_variance(totals: Floats, sizes: Floats) -> Floats:
    """Return the variance of the mean over all questions, documents taken as drawn.

    Parameters
    ----------
    totals, sizes : array of shape (..., documents)
        The sum of each document's values, and how many they are; two documents or more.

    Returns
    -------
    array of shape (...)
        In the squared unit of the values, >= 0.

    Notes
    -----
    CR2 of Bell and McCaffrey 2002 (Survey Methodology 28, 169-181) for a mean,
    ``sum_g s_g^2 / (1 - n_g / N) / N^2`` with s_g the sum of the residuals of document g.
    """
    n = sizes.sum(axis=-1, keepdims=True)
    residuals = totals - sizes * totals.sum(axis=-1, keepdims=True) / n
    scaled: Floats = residuals**2 / (1 - sizes / n)
    variance: Floats = scaled.sum(axis=-1) / n[..., 0] ** 2
    return variance


def degrees_of_freedom(sizes: Floats) -> Floats:
    """Return the degrees of freedom of ``cr2_variance``.

    Parameters
    ----------
    sizes : array of shape (..., documents)
        Questions on each; two documents or more.

    Returns
    -------
    array of shape (...)
        From 1 to the documents less one, which it is when all are of one size.

    Notes
    -----
    Satterthwaite's approximation of Bell and McCaffrey 2002 for independent values of one
    variance, in closed form for a mean: with p_g = n_g / N, ``1 / df = sum_g p_g^2 +
    sum_(g != h) p_g^2 p_h^2 / ((1 - p_g) (1 - p_h))``.
    """
    share = sizes / sizes.sum(axis=-1, keepdims=True)
    pulls = share**2 / (1 - share)
    crossed = pulls.sum(axis=-1) ** 2 - (pulls**2).sum(axis=-1)
    df: Floats = 1 / ((share**2).sum(axis=-1) + crossed)
    return df


def exact_sign_flip(totals: Mapping[int, int], *, lower: bool) -> float:
    """Return the exact p of flipping the signs of documents' whole-numbered sums.

    Parameters
    ----------
    totals : dict
        Sum of a - b over a document's questions -> documents with that sum.
    lower : bool
        Whether only sums as low as the one seen count, else those as far from 0.

    Returns
    -------
    float
        In (0, 1]; 1 when no sum differs from 0 and the test is two-sided.

    Notes
    -----
    Fisher's randomisation test on the documents' sums; with sums of -1, 0 and 1 it is the exact
    McNemar test. m documents of the absolute sum k add ``k (2 B - m)`` with B binomial(m, 1/2), and
    the distributions of the different k are convolved: nothing is resampled.
    """
    sizes: dict[int, int] = {}
    for total, times in totals.items():
        sizes[abs(total)] = sizes.get(abs(total), 0) + times
    special, chances = scipy_special(), np.ones(1)
    for step, times in sizes.items():
        if step:
            heads = np.arange(times + 1.0)
            half = np.diff(special.bdtr(heads, times, 0.5), prepend=0.0)
            spaced = np.zeros(step * times + 1)
            spaced[::step] = np.where(2 * heads > times, half[::-1], half)  # so that none is lost
            chances = np.convolve(chances, spaced)
    seen = sum(total * times for total, times in totals.items())
    most = len(chances) - 1  # the largest sum of all; place h stands for the sum 2 h - most
    extreme = seen if lower else -abs(seen)
    tail = float(chances[: (most + extreme) // 2 + 1].sum())
    p = tail if lower else 2 * tail
    return min(1.0, max(p, sys.float_info.min))  # a chance is never 0, if too small for a float


Limits: TypeAlias = tuple[Floats, Floats]

_LEAST_DESIGN_EFFECT = 0.25
_WEIGHT_AS_ONE = 0.3


class Moments(NamedTuple):
    """What a design effect is made of.

    Attributes
    ----------
    totals, squares : array of shape (..., documents)
        Sums of each document's values and of their squares.
    sizes : array of shape (documents)
        Values on each document, >= 1.
    n_off : array of shape (...)
        Values that are not the most common one, >= 0.
    """

    totals: Floats
    squares: Floats
    sizes: Floats
    n_off: Floats


def effective_size(
    moments: Moments, structure: Structure, confidence: float
) -> tuple[Floats, Floats]:
    """Return how many independent values tell as much as these, and the quantile to use.

    Parameters
    ----------
    moments : Moments
    structure : Structure
    confidence : float
        In (0, 1), of a two-sided interval.

    Returns
    -------
    tuple of two arrays of shape (...)
        The size, above 0; and the normal quantile, or that of t for ``CLUSTERED``.

    Notes
    -----
    The number of values divided by the design effect: the variance of their mean by what it
    would be for independent ones (Kish 1965; Korn and Graubard 1998, Survey Methodology 24,
    193-201; Dean and Pagano 2015, doi:10.1093/jssam/smv024). The variance is CR2 for
    ``CLUSTERED``, and the sum of the documents' own for ``STRATIFIED``, where a document with
    one value counts by the variance of all. Values that are nearly all alike tell nothing of a
    design effect, so that it is averaged, by ``n_off``, with a cautious one: for ``STRATIFIED``
    1, which it can't exceed (Hoeffding 1956), with the weight of one value; for ``CLUSTERED``
    that of documents which answer as one, ``sum_g n_g^2 / N``, with the weight of .3 values.
    That averaging, and the least design effect of 1/4, are this project's and were chosen by
    ``benchmarks/coverage.py``.
    """
    totals, squares, sizes, n_off = moments
    n = sizes.sum()
    normal = scipy_special().ndtri((1 + confidence) / 2)
    if structure is Structure.POOLED:
        return n + 0 * n_off, normal
    mean = totals.sum(axis=-1) / n
    variance = squares.sum(axis=-1) / n - mean**2
    independent = np.where(variance > 1e-12, variance, 1.0) / n
    if structure is Structure.STRATIFIED:
        own = sizes / np.maximum(1.0, sizes - 1) * (squares - totals**2 / sizes)
        seen = (own.sum(axis=-1) + (sizes == 1).sum() * variance) / n**2 / independent
        return n / np.clip((n_off * seen + 1) / (n_off + 1), _LEAST_DESIGN_EFFECT, 1.0), normal
    seen, as_one = cr2_variance(totals, sizes) / independent, (sizes**2).sum() / n
    effect = (n_off * seen + _WEIGHT_AS_ONE * as_one) / (n_off + _WEIGHT_AS_ONE)
    quantile = scipy_special().stdtrit(degrees_of_freedom(sizes), (1 + confidence) / 2)
    return n / np.maximum(effect, _LEAST_DESIGN_EFFECT), quantile


def wilson_limits(share: Floats, size: Floats, quantile: Floats) -> Limits:
    """Return Wilson limits in [0, 1] and around the share, for sizes that need not be whole."""
    proportion: Any = import_module("statsmodels.stats.proportion")
    alpha = 2 * scipy_special().ndtr(-quantile)
    low, high = proportion.proportion_confint(share * size, size, alpha=alpha, method="wilson")
    return np.clip(low, 0.0, share), np.clip(high, share, 1.0)


def bonett_price_limits(p: Floats, q: Floats, size: Floats, quantile: Floats) -> Limits:
    """Return Bonett-Price limits of ``p - q``, for sizes that need not be whole.

    Parameters
    ----------
    p, q : array
        Shares in [0, 1] of the pairs (1, 0) and (0, 1).
    size, quantile : array
        Pairs, above 0, and the normal quantile or that of t.

    Notes
    -----
    See ``paired.bonett_price``.
    """
    difference = p - q
    p, q = (p * size + 1) / (size + 2), (q * size + 1) / (size + 2)
    half = quantile * np.sqrt((p + q - (p - q) ** 2) / (size + 2))
    return np.clip(p - q - half, -1.0, difference), np.clip(p - q + half, difference, 1.0)


def mean_limits(totals: Floats, sizes: Floats, structure: Structure, confidence: float) -> Limits:
    """Return the limits of the mean of scores in [0, 1]: Wilson's of their effective number.

    Parameters
    ----------
    totals : array of shape (..., documents)
        Sum of the scores on each document.
    sizes : array of shape (documents)
        Scores on each, >= 1.
    structure : Structure
        See ``choose_structure``.
    confidence : float
        In (0, 1).

    Returns
    -------
    tuple of two arrays of shape (...)
        In [0, 1] and around the mean; never of no width.

    Notes
    -----
    Scores between 0 and 1 are taken to vary as much as 0/1 scores of that mean: the limits are
    wider than needed, never narrower.
    """
    total, n = totals.sum(axis=-1), sizes.sum()
    moments = Moments(totals, totals, sizes, np.minimum(total, n - total))
    size, quantile = effective_size(moments, structure, confidence)
    return wilson_limits(total / n, size, quantile)


def difference_limits(
    n10: Floats, n01: Floats, sizes: Floats, structure: Structure, confidence: float
) -> Limits:
    """Return the limits of a paired difference of 0/1 scores: Bonett-Price of the effective size.

    Parameters
    ----------
    n10, n01 : array of shape (..., documents)
        Pairs (1, 0) and (0, 1) on each document.
    sizes : array of shape (documents)
        Pairs on each, >= 1.
    structure : Structure
        See ``choose_structure``.
    confidence : float
        In (0, 1).

    Returns
    -------
    tuple of two arrays of shape (...)
        In [-1, 1] and around the difference; never of no width.
    """
    n = sizes.sum()
    p, q = n10.sum(axis=-1) / n, n01.sum(axis=-1) / n
    n_off = n * (1 - np.maximum(np.maximum(p, q), 1 - p - q))
    size, quantile = effective_size(
        Moments(n10 - n01, n10 + n01, sizes, n_off), structure, confidence
    )
    return bonett_price_limits(p, q, size, quantile)


Score: TypeAlias = bool | int | float | None
Totals: TypeAlias = Mapping[Hashable, tuple[float, int]]
"""Document -> the sum of its scores, and how many they are (>= 1)."""

CONFIDENCE = 0.95
_NEW_DOCUMENTS = "generalisation to new documents"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and how sure it is.

    Attributes
    ----------
    mean : float or None
        In the unit of the scores; None when n is 0.
    n : int
        Scores behind it.
    low, high : float or None
        95 % confidence limits, ``low <= mean <= high``; None when undefined.
    method : str
        Name of the interval.
    """

    mean: float | None
    n: int
    low: float | None
    high: float | None
    method: str


@dataclass(frozen=True, slots=True)
class DocumentMean:
    """The mean of the values of one document; n is at least 1."""

    document: Hashable
    n: int
    mean: float


@dataclass(frozen=True, slots=True)
class DocumentView:
    """What may be said of new documents (estimand B).

    Attributes
    ----------
    documents : tuple of DocumentMean
        In the order of their first value.
    estimate : Estimate
        Unweighted mean of the document means, n documents, t interval with n - 1 degrees
        of freedom; the limits are None under two documents or when all means are equal.
    n_agreeing : int or None
        Documents whose mean has the sign of the mean over all values; None when that is 0 or
        there are no values. Meant for differences.
    label : str
        How the estimate must be named.
    note : str or None
        A warning when there are fewer than 10 documents.
    """

    documents: tuple[DocumentMean, ...]
    estimate: Estimate
    n_agreeing: int | None
    label: str
    note: str | None


def proportion_interval(
    count: float, n: float, method: str, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """Return the limits of a proportion, n > 0, inside [0, 1] and around ``count / n``.

    ``method`` is one of ``statsmodels.stats.proportion.proportion_confint``.
    """
    proportion: Any = import_module("statsmodels.stats.proportion")
    low, high = proportion.proportion_confint(count, n, alpha=1 - confidence, method=method)
    share = count / n
    return max(0.0, min(float(low), share)), min(1.0, max(float(high), share))


def present(scores: Sequence[Score], low: float, high: float) -> Floats:
    """Return the scores that are there, as an array.

    Raises
    ------
    ValueError
        If one is NaN or outside [low, high].
    """
    values = np.array([score for score in scores if score is not None], dtype=np.float64)
    if not bool(np.all((values >= low) & (values <= high))):
        msg = f"every score must lie in [{low:g}, {high:g}] or be None"
        raise ValueError(msg)
    return values


def mean_binary(scores: Sequence[Score]) -> Estimate:
    """Return the mean of a 0/1 metric with its Wilson interval.

    Parameters
    ----------
    scores : sequence
        0, 1, or None (left out). Item means over repeated verdicts, anywhere in [0, 1], are
        taken as well; for them the interval is wider than needed, never narrower.

    Returns
    -------
    Estimate
        Everything None when no score is there. All ones gives an upper limit of 1 and a lower
        one below 1.

    Raises
    ------
    ValueError
        If a score is NaN or outside [0, 1].

    Notes
    -----
    ``statsmodels.stats.proportion.proportion_confint(method="wilson")``.
    """
    values = present(scores, 0, 1)
    return share_of_total(float(values.sum()), len(values))


def share_of_total(total: float, n: int, confidence: float = CONFIDENCE) -> Estimate:
    """Return what ``mean_binary`` does for n scores in [0, 1] with this sum."""
    if n == 0:
        return Estimate(None, 0, None, None, "wilson")
    low, high = proportion_interval(total, n, "wilson", confidence)
    return Estimate(total / n, n, low, high, "wilson")


def mean_binary_stratified(
    scores: Sequence[Score], documents: Sequence[Hashable], confidence: float = CONFIDENCE
) -> Estimate:
    """Return the mean of a 0/1 metric with the interval that fits its documents.

    Parameters
    ----------
    scores : sequence
        As in ``mean_binary``.
    documents : sequence
        The document of each score, same length; None where it is not known.
    confidence : float
        In (0, 1).

    Returns
    -------
    Estimate
        Mean over all questions; limits inside [0, 1]; all None when no score is there.
        ``method`` says how the documents entered, see ``structure.choose_structure``: of few,
        the limits are for new questions on them; of ten or more, for new questions on documents
        like them; of one, it is ``mean_binary``.

    Raises
    ------
    ValueError
        If the lengths differ or a score is outside [0, 1].

    Notes
    -----
    ``limits.mean_limits``.
    """
    present(scores, 0, 1)
    return share_of_totals(total_by_document(scores, documents), confidence)


def share_of_totals(totals: Totals, confidence: float = CONFIDENCE) -> Estimate:
    """Return what ``mean_binary_stratified`` does for scores in [0, 1] with these sums."""
    sizes = {document: size for document, (_, size) in totals.items()}
    structure = choose_structure(sizes)
    if structure is Structure.POOLED:
        pooled = [sum(part) for part in zip(*totals.values(), strict=True)] or [0, 0]
        return share_of_total(pooled[0], int(pooled[1]), confidence)
    counts, asked = np.array(list(totals.values()), dtype=np.float64).T
    low, high = mean_limits(counts, asked, structure, confidence)
    mean, n = float(counts.sum() / asked.sum()), sum(sizes.values())
    return Estimate(
        mean, n, min(float(low), mean), max(float(high), mean), name_interval("wilson", structure)
    )


def t_estimate(values: Floats, limits: tuple[float, float] | None) -> Estimate:
    """Return the mean with its t interval, cut to the limits.

    The interval is None for fewer than two values and for values that are all equal.
    """
    n = len(values)
    if n == 0:
        return Estimate(None, 0, None, None, "t")
    mean = float(values.mean())
    if n < 2 or float(np.ptp(values)) == 0:
        return Estimate(mean, n, None, None, "t")
    stats = scipy_stats()
    half = float(stats.sem(values)) * float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1))
    low, high = mean - half, mean + half
    if limits is not None:
        low, high = max(low, limits[0]), min(high, limits[1])
    return Estimate(mean, n, min(low, mean), max(high, mean), "t")


def view_of_totals(totals: Totals, limits: tuple[float, float] | None = None) -> DocumentView:
    """Return the mean of each document and what they say of new documents (estimand B).

    Parameters
    ----------
    totals : dict
        Document -> (sum of its values, number of its values).
    limits : tuple of float, optional
        Where the values must lie; the interval is cut to it.

    Notes
    -----
    t over document means: Ibragimov and Mueller 2010, doi:10.1198/jbes.2009.08046. There is
    no cluster bootstrap: with three documents its interval is their smallest and largest mean.
    """
    means = tuple(
        DocumentMean(document, size, count / size) for document, (count, size) in totals.items()
    )
    estimate = t_estimate(np.array([entry.mean for entry in means], dtype=np.float64), limits)
    total = sum(count for count, _ in totals.values())
    agreeing = None if total == 0 else sum(entry.mean * total > 0 for entry in means)
    label, note = _NEW_DOCUMENTS, None
    if len(means) < FEW_DOCUMENTS:
        label += ", low power"
        note = f"only {len(means)} documents: almost nothing can be claimed about new ones"
    return DocumentView(means, estimate, agreeing, label, note)


def total_by_document(values: Sequence[Score], documents: Sequence[Hashable]) -> Totals:
    """Add up the values of each document; raises as ``group_by_document`` does."""
    groups = group_by_document(values, documents)
    return {document: (float(group.sum()), len(group)) for document, group in groups.items()}


def group_by_document(
    values: Sequence[Score], documents: Sequence[Hashable]
) -> dict[Hashable, Floats]:
    """Return the values of each document, None left out, documents without any left out.

    Raises
    ------
    ValueError
        If the lengths differ or a value is not finite.
    """
    groups: dict[Hashable, list[float]] = {}
    for value, document in zip(values, documents, strict=True):
        if value is None:
            continue
        if not isfinite(value):
            msg = f"every value must be a finite number or None, not {value!r}"
            raise ValueError(msg)
        groups.setdefault(document, []).append(float(value))
    return {key: np.array(group, dtype=np.float64) for key, group in groups.items()}


@dataclass(frozen=True, slots=True)
class ScaleEstimate:
    """The mean of a 1-5 score and what the mean hides.

    Attributes
    ----------
    estimate : Estimate
        Mean in [1, 5] with the interval of ``mean_real``.
    distribution : dict
        Score -> how many.
    share_at_least_4 : Estimate
        Share in [0, 1] with the interval of ``mean_binary_stratified``.
    """

    estimate: Estimate
    distribution: Mapping[float, int]
    share_at_least_4: Estimate


def mean_scale(
    scores: Sequence[Score], documents: Sequence[Hashable] | None = None
) -> ScaleEstimate:
    """Return the mean of a 1-5 score with its t interval, distribution and share of 4 and 5.

    Parameters
    ----------
    scores : sequence
        In [1, 5] or None (left out).
    documents : sequence, optional
        The document of each score, same length; None: not known.

    Returns
    -------
    ScaleEstimate
        The interval is cut to [1, 5]. It is None for fewer than two scores, and when all are
        equal: the t interval would have no width, which nobody may claim.

    Raises
    ------
    ValueError
        If a score is NaN or outside [1, 5], or there is not one document a score.

    Notes
    -----
    ``mean_real``, ``mean_binary_stratified``.
    """
    values = present(scores, 1, 5)
    asked = [None] * len(scores) if documents is None else documents
    return ScaleEstimate(
        mean_real(scores, asked, (1.0, 5.0)),
        dict(sorted(Counter(float(value) for value in values).items())),
        mean_binary_stratified([None if s is None else s >= 4 for s in scores], asked),
    )


def scale_interval(
    differences: Sequence[Score], documents: Sequence[Hashable], confidence: float = CONFIDENCE
) -> tuple[float | None, float | None, str]:
    """Return the limits of the mean of real-valued scores or differences.

    Parameters
    ----------
    differences : sequence
        One a question; finite numbers or None (left out).
    documents : sequence
        The document of each, same length; None where it is not known.
    confidence : float
        In (0, 1), of both sides.

    Returns
    -------
    low, high : float or None
        In the unit of the differences; None under two differences or when all are equal.
    name : str
        Of the interval.

    Raises
    ------
    ValueError
        If the lengths differ or a difference is not finite.

    Notes
    -----
    ``mean +- t sqrt(s^2 / m)`` with m the questions that count, see ``limits.effective_size``;
    degrees of freedom n - 1, n less the documents, or those of CR2.
    """
    groups = group_by_document(differences, documents)
    structure = choose_structure({key: len(group) for key, group in groups.items()})
    name = name_interval("t", structure)
    values = np.concatenate([*groups.values(), np.empty(0)])
    if len(values) < 2 or float(np.ptp(values)) == 0:
        return None, None, name
    mean = float(values.mean())
    sizes = np.array([len(group) for group in groups.values()], dtype=np.float64)
    centred = [group - mean for group in groups.values()]
    off = len(values) - int(np.unique(values, return_counts=True)[1].max())
    moments = Moments(
        np.array([group.sum() for group in centred]),
        np.array([(group**2).sum() for group in centred]),
        sizes,
        np.array(off, dtype=np.float64),
    )
    size, quantile = effective_size(moments, structure, confidence)
    if structure is not Structure.CLUSTERED:
        df = max(1, len(values) - len(groups)) if None not in groups else len(values) - 1
        quantile = scipy_special().stdtrit(df, (1 + confidence) / 2)
    half = float(quantile * np.sqrt(values.var(ddof=1) / size))
    return mean - half, mean + half, name


def mean_real(
    values: Sequence[Score],
    documents: Sequence[Hashable],
    limits: tuple[float, float] | None = None,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Return the mean of real-valued scores, or differences, with ``scale_interval``.

    Parameters
    ----------
    values, documents, confidence
        As there.
    limits : tuple of float, optional
        Where the mean must lie; the interval is cut to it.

    Raises
    ------
    ValueError
        As there.
    """
    low, high, method = scale_interval(values, documents, confidence)
    known = [value for value in values if value is not None]
    mean = float(np.mean(known)) if known else None
    if mean is None or low is None or high is None:
        return Estimate(mean, len(known), None, None, method)
    least, most = (-inf, inf) if limits is None else limits
    low, high = max(low, least), min(high, most)
    return Estimate(mean, len(known), min(low, mean), max(high, mean), method)
