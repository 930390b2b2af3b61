"""Means with their intervals: the two estimands, question by question and document by document."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import isfinite
from typing import Any, TypeAlias

import numpy as np

from graphrag.eval.stats.libraries import Floats, scipy_special, scipy_stats
from graphrag.eval.stats.limits import mean_limits
from graphrag.eval.stats.structure import FEW_DOCUMENTS, Structure, choose_structure, name_interval

__all__ = [
    "CONFIDENCE",
    "DocumentMean",
    "DocumentView",
    "Estimate",
    "Floats",
    "Score",
    "mean_binary",
    "mean_binary_stratified",
    "scipy_special",
    "scipy_stats",
    "t_estimate",
]

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
