"""Limits of means and paired differences of 0/1 scores, for any structure of documents.

The functions take arrays whose last axis are the documents, so that ``benchmarks/coverage.py``
draws many data sets at once through the very formulas that a report uses.
"""

from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from graphrag.eval.stats.clustered import cr2_variance, degrees_of_freedom
from graphrag.eval.stats.libraries import Floats, scipy_special
from graphrag.eval.stats.structure import Structure

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
