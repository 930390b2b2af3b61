"""Means of scores on a scale, and of real-valued differences, for any structure of documents."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from graphrag.eval.stats.estimates import (
    CONFIDENCE,
    Estimate,
    Score,
    group_by_document,
    mean_binary_stratified,
    present,
)
from graphrag.eval.stats.libraries import scipy_special
from graphrag.eval.stats.limits import Moments, effective_size
from graphrag.eval.stats.structure import Structure, choose_structure, name_interval


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
