"""Computes means with intervals that allow for questions grouped by document.

Functions on arrays have the documents on the last axis, so that ``benchmarks/coverage.py`` can draw
many data sets at once with the same formulas as a report.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import import_module
from math import inf, isfinite
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

K = TypeVar("K")
V = TypeVar("V")
Floats: TypeAlias = NDArray[np.float64]
Limits: TypeAlias = tuple[Floats, Floats]
Score: TypeAlias = bool | int | float | None
Totals: TypeAlias = Mapping[Hashable, tuple[float, int]]
"""Document -> the sum of its scores, and the number of its scores (>= 1)."""

CONFIDENCE = 0.95
FEW_DOCUMENTS = 10
MOST_QUESTIONS = 0.95
LEAST_DF = 5.0
_LEAST_DESIGN_EFFECT = 0.25
_WEIGHT_AS_ONE = 0.3


def scipy_stats() -> Any:
    """Return ``scipy.stats``, loaded on first use: it takes a second, and has no types."""
    return import_module("scipy.stats")


def scipy_special() -> Any:
    """Return ``scipy.special``, loaded on first use."""
    return import_module("scipy.special")


class Structure(StrEnum):
    """How an interval treats the documents of the questions.

    ``POOLED``: it ignores them, because there is one or they are not known. ``STRATIFIED``: they
    are fixed; the interval is for new questions on these documents. ``CLUSTERED``: they are drawn
    as well; the interval is for new questions on documents like these.
    """

    POOLED = "pooled"
    STRATIFIED = "stratified"
    CLUSTERED = "clustered"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean of n scores, in their unit, with 95 % limits around it.

    ``mean`` is None if n is 0. A limit is None if it is undefined. ``method`` names the interval.
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
    """The estimate for new documents, under the name ``label``.

    ``documents`` are in the order of their first value. ``estimate`` is the unweighted mean of
    their means, see ``t_estimate``. ``n_agreeing`` counts the documents whose mean has the sign of
    the mean over all values; None if that is 0. ``note`` is a warning if there are fewer than 10
    documents.
    """

    documents: tuple[DocumentMean, ...]
    estimate: Estimate
    n_agreeing: int | None
    label: str
    note: str | None


def choose_structure(sizes: Mapping[Hashable, int]) -> Structure:
    """Choose a structure by the number of documents and of questions (>= 1) on each.

    ``POOLED`` for one document, or if one is not known (None). ``CLUSTERED`` for ten or more,
    unless fewer than ten have 95 % of the questions, or they are so unequal that fewer than 5
    degrees of freedom are left, where the t approximation fails (Pustejovsky and Tipton 2018,
    doi:10.1080/07350015.2016.1247004). Otherwise ``STRATIFIED``. ``benchmarks/coverage.py``
    measures the choice.
    """
    if len(sizes) < 2 or None in sizes:
        return Structure.POOLED
    if len(sizes) < FEW_DOCUMENTS:
        return Structure.STRATIFIED
    counts = np.sort(np.array(list(sizes.values()), dtype=np.float64))[::-1]
    most = float(counts[: FEW_DOCUMENTS - 1].sum())
    if most >= MOST_QUESTIONS * float(counts.sum()) or float(degrees_of_freedom(counts)) < LEAST_DF:
        return Structure.STRATIFIED
    return Structure.CLUSTERED


def name_interval(kind: str, structure: Structure) -> str:
    """Return the name of an interval, with its structure unless that is ``POOLED``."""
    return kind if structure is Structure.POOLED else f"{kind}, {structure.value} by document"


def warn_of_documents(sizes: Mapping[Hashable, int]) -> str | None:
    """Return a note, without a full stop, on tests between methods if there are few documents.

    None for one document, for unknown documents, for one question on each, and for documents that
    are many enough to be taken as drawn.
    """
    if choose_structure(sizes) is not Structure.STRATIFIED or max(sizes.values()) == 1:
        return None
    return (
        f"p takes the questions as independent: with {len(sizes)} documents a shift that all "
        "questions of a document share can't be told from a difference"
    )


def cr2_variance(totals: Floats, sizes: Floats) -> Floats:
    """Return the variance of the mean over all questions, with documents taken as drawn.

    There are two or more documents. ``totals`` are the sums of each document's values, ``sizes``
    the numbers of its values. CR2 of Bell and McCaffrey 2002 (Survey Methodology 28, 169-181) for a
    mean, ``sum_g s_g^2 / (1 - n_g / N) / N^2`` with s_g the sum of the residuals of document g.
    """
    n = sizes.sum(axis=-1, keepdims=True)
    residuals = totals - sizes * totals.sum(axis=-1, keepdims=True) / n
    scaled: Floats = residuals**2 / (1 - sizes / n)
    variance: Floats = scaled.sum(axis=-1) / n[..., 0] ** 2
    return variance


def degrees_of_freedom(sizes: Floats) -> Floats:
    """Return the degrees of freedom of ``cr2_variance``: from 1 to the documents less one.

    Satterthwaite's approximation of Bell and McCaffrey 2002 for independent values of one variance,
    in closed form for a mean: with p_g = n_g / N, ``1 / df = sum_g p_g^2 + sum_(g != h) p_g^2 p_h^2
    / ((1
    - p_g) (1 - p_h))``.
    """
    share = sizes / sizes.sum(axis=-1, keepdims=True)
    pulls = share**2 / (1 - share)
    crossed = pulls.sum(axis=-1) ** 2 - (pulls**2).sum(axis=-1)
    df: Floats = 1 / ((share**2).sum(axis=-1) + crossed)
    return df


def effective_size(
    totals: Floats,
    squares: Floats,
    sizes: Floats,
    n_off: Floats,
    structure: Structure,
    confidence: float,
) -> tuple[Floats, Floats]:
    """Return how many independent values are worth as much, > 0, and the quantile to use.

    - ``totals``, ``squares``: of shape (..., documents): sums of each document's values and of
      their squares.
    - ``sizes``: of shape (documents): number of values of each, >= 1.
    - ``n_off``: of shape (...): number of values that differ from the most common value.

    The quantile is two-sided at ``confidence`` in (0, 1): of t for ``CLUSTERED``, else normal.

    The size is the number of values divided by the design effect: the variance of their mean
    divided by that of independent values (Kish 1965; Korn and Graubard 1998, Survey Methodology 24,
    193-201; Dean and Pagano 2015, doi:10.1093/jssam/smv024). The variance is CR2 for ``CLUSTERED``.
    For ``STRATIFIED`` it is the sum of the documents' own variances; a document with one value
    counts with the variance of all. Values that are nearly all equal show nothing about a design
    effect. So it is averaged, by ``n_off``, with a cautious one: for ``STRATIFIED`` 1, its maximum
    (Hoeffding 1956), with the weight of one value; for ``CLUSTERED`` that of documents whose values
    are all equal, ``sum_g n_g^2 / N``, with the weight of .3 values. That averaging, and the least
    design effect of 1/4, are this project's choice, by ``benchmarks/coverage.py``.
    """
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


def mean_limits(totals: Floats, sizes: Floats, structure: Structure, confidence: float) -> Limits:
    """Return Wilson's limits, at ``effective_size``, of the mean of scores in [0, 1].

    ``totals`` of shape (..., documents) are sums of scores, ``sizes`` their numbers, >= 1. Scores
    between 0 and 1 are taken to vary as much as 0/1 scores of the same mean: the limits may be
    wider than needed, never narrower.
    """
    total, n = totals.sum(axis=-1), sizes.sum()
    n_off = np.minimum(total, n - total)
    size, quantile = effective_size(totals, totals, sizes, n_off, structure, confidence)
    share, alpha = total / n, 2 * scipy_special().ndtr(-quantile)
    low, high = _confint()(share * size, size, alpha=alpha, method="wilson")
    return np.clip(low, 0.0, share), np.clip(high, share, 1.0)


def proportion_interval(
    count: float, n: float, method: str, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """Return the limits of a proportion ``count / n``, n > 0; they are inside [0, 1] and around it.

    ``method`` is one of ``statsmodels.stats.proportion.proportion_confint``.
    """
    low, high = _confint()(count, n, alpha=1 - confidence, method=method)
    share = count / n
    return max(0.0, min(float(low), share)), min(1.0, max(float(high), share))


def _confint() -> Callable[..., tuple[Floats, Floats]]:
    return import_module("statsmodels.stats.proportion").proportion_confint


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return key -> its values, both in the order of the pairs."""
    groups = defaultdict[K, list[V]](list)
    for key, value in pairs:
        groups[key].append(value)
    return dict(groups)


def present(scores: Sequence[Score], low: float, high: float) -> Floats:
    """Return the scores that are not None; ValueError if one is NaN or outside [low, high]."""
    values = np.array([score for score in scores if score is not None], dtype=np.float64)
    if not bool(np.all((values >= low) & (values <= high))):
        raise ValueError(f"every score must lie in [{low:g}, {high:g}] or be None")
    return values


def group_by_document(
    values: Sequence[Score], documents: Sequence[Hashable]
) -> dict[Hashable, Floats]:
    """Return document -> its values, without None; documents without a value are left out.

    Raises ValueError if the lengths differ or a value is not finite.
    """
    pairs = [(d, float(v)) for v, d in zip(values, documents, strict=True) if v is not None]
    for _, value in pairs:
        if not isfinite(value):
            raise ValueError(f"every value must be a finite number or None, not {value!r}")
    return {key: np.array(group, dtype=np.float64) for key, group in grouped(pairs).items()}


def total_by_document(values: Sequence[Score], documents: Sequence[Hashable]) -> Totals:
    """Add up the values of each document; raises as ``group_by_document`` does."""
    groups = group_by_document(values, documents)
    return {document: (float(group.sum()), len(group)) for document, group in groups.items()}


def mean_binary(scores: Sequence[Score], documents: Sequence[Hashable] | None = None) -> Estimate:
    """Return the mean of a 0/1 metric with the interval that fits its documents.

    ``scores`` are 0, 1, or None (left out). Item means over repeats, in [0, 1], are allowed; their
    interval may be wider than needed. ``documents`` has the document of each score; None: not
    known.

    The limits are inside [0, 1] and never equal: Wilson's for one document
    (``statsmodels...proportion_confint``), else ``mean_limits`` by ``choose_structure``. Raises
    ValueError if a score is NaN or outside [0, 1], or the lengths differ.
    """
    present(scores, 0, 1)
    groups: Sequence[Hashable] = [None] * len(scores) if documents is None else documents
    return share_of_totals(total_by_document(scores, groups))


def share_of_totals(totals: Totals) -> Estimate:
    """Return ``mean_binary`` of scores in [0, 1] with these sums."""
    sizes = {document: size for document, (_, size) in totals.items()}
    total, n = sum(part for part, _ in totals.values()), sum(sizes.values())
    structure = choose_structure(sizes)
    if n == 0:
        return Estimate(mean=None, n=0, low=None, high=None, method="wilson")
    if structure is Structure.POOLED:
        low, high = proportion_interval(total, n, "wilson")
        return Estimate(mean=total / n, n=n, low=low, high=high, method="wilson")
    counts, numbers = np.array(list(totals.values()), dtype=np.float64).T
    lowest, highest = mean_limits(counts, numbers, structure, CONFIDENCE)
    mean, name = float(counts.sum() / numbers.sum()), name_interval("wilson", structure)
    return Estimate(
        mean=mean, n=n, low=min(float(lowest), mean), high=max(float(highest), mean), method=name
    )


def t_estimate(values: Floats, limits: tuple[float, float] | None) -> Estimate:
    """Return the mean with its t interval, cut to the limits.

    The interval is None for fewer than two values, and if all values are equal.
    """
    n = len(values)
    mean = float(values.mean()) if n else None
    if mean is None or n < 2 or float(np.ptp(values)) == 0:
        return Estimate(mean=mean, n=n, low=None, high=None, method="t")
    stats = scipy_stats()
    half = float(stats.sem(values)) * float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1))
    return _clip(Estimate(mean=mean, n=n, low=mean - half, high=mean + half, method="t"), limits)


def _clip(estimate: Estimate, limits: tuple[float, float] | None) -> Estimate:
    """Return an estimate with its interval cut to the limits, and still around its mean."""
    mean, low, high = estimate.mean, estimate.low, estimate.high
    if mean is None or low is None or high is None:
        return estimate
    least, most = (-inf, inf) if limits is None else limits
    return replace(estimate, low=min(max(low, least), mean), high=max(min(high, most), mean))


def view_of_totals(totals: Totals, limits: tuple[float, float] | None = None) -> DocumentView:
    """Return the mean of each document, and their estimate for new documents.

    The values are in ``limits``, to which the interval is cut. t over document means: Ibragimov and
    Mueller 2010, doi:10.1198/jbes.2009.08046.
    """
    means = tuple(
        DocumentMean(document, size, count / size) for document, (count, size) in totals.items()
    )
    estimate = t_estimate(np.array([entry.mean for entry in means], dtype=np.float64), limits)
    total = sum(count for count, _ in totals.values())
    agreeing = None if total == 0 else sum(entry.mean * total > 0 for entry in means)
    label, note = "generalisation to new documents", None
    if len(means) < FEW_DOCUMENTS:
        label += ", low power"
        note = f"only {len(means)} documents: almost nothing can be claimed about new ones"
    return DocumentView(
        documents=means, estimate=estimate, n_agreeing=agreeing, label=label, note=note
    )


def scale_interval(
    differences: Sequence[Score], documents: Sequence[Hashable], confidence: float = CONFIDENCE
) -> tuple[float | None, float | None, str]:
    """Return two-sided limits of the mean of real-valued scores or differences, and their name.

    Each question has one finite score, or None (left out), and a document, None if it is not known.
    The limits are None for fewer than two scores, or if all are equal. ``mean +- t sqrt(s^2 / m)``
    with m the questions that count, see ``effective_size``. The degrees of freedom are n - 1, n
    less the number of documents, or those of CR2. Raises ValueError as ``group_by_document`` does.
    """
    groups = group_by_document(differences, documents)
    structure = choose_structure({key: len(group) for key, group in groups.items()})
    name = name_interval("t", structure)
    values = np.concatenate([*groups.values(), np.empty(0)])
    if len(values) < 2 or float(np.ptp(values)) == 0:
        return None, None, name
    mean = float(values.mean())
    centred = [group - mean for group in groups.values()]
    off = len(values) - int(np.unique(values, return_counts=True)[1].max())
    size, quantile = effective_size(
        np.array([group.sum() for group in centred]),
        np.array([(group**2).sum() for group in centred]),
        np.array([len(group) for group in centred], dtype=np.float64),
        np.array(off, dtype=np.float64),
        structure,
        confidence,
    )
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
    """Return the mean of real-valued scores with ``scale_interval``, cut to the limits."""
    low, high, method = scale_interval(values, documents, confidence)
    scores = [value for value in values if value is not None]
    mean = float(np.mean(scores)) if scores else None
    return _clip(Estimate(mean=mean, n=len(scores), low=low, high=high, method=method), limits)
