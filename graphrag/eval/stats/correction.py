"""Means of a judge's verdicts, corrected by human labels for the judge's errors (PPI++)."""

import random
import sys
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from graphrag.eval.stats.agreement import check_scores, load_audit_package
from graphrag.eval.stats.clustered import cr2_variance, degrees_of_freedom
from graphrag.eval.stats.estimates import CONFIDENCE, Estimate, Score
from graphrag.eval.stats.libraries import Floats, scipy_special
from graphrag.eval.stats.paired import Pair
from graphrag.eval.stats.power import POWER
from graphrag.eval.stats.structure import Structure, choose_structure, name_interval

MIN_LABELS = 60
_KIND = "ppi++"
_NO_WIDTH = 1e-9


class Spread(NamedTuple):
    """Standard error of a mean, its degrees of freedom (None: normal), and the mean's range."""

    se: float
    df: float | None = None
    limits: tuple[float, float] = (-1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Corrected:
    """A mean of verdicts, corrected for the judge's errors.

    Attributes
    ----------
    uncorrected : float or None
        Plain mean of the judge's verdicts; None without any.
    estimate : Estimate
        Corrected mean with its limits (95 %), n judged responses; None when refused, and the
        limits also when no label and no verdict differs from the others.
    n_labels : int
    refused : str or None
        Why there is no correction.
    se : float or None
        Standard error of the corrected mean, > 0; None without limits.
    df : float or None
        Degrees of freedom of its t distribution; None for the normal one.
    """

    uncorrected: float | None
    estimate: Estimate
    n_labels: int
    refused: str | None
    se: float | None = None
    df: float | None = None

    @property
    def p(self) -> float | None:
        """Two-sided p of a true mean of 0, in (0, 1]; None without limits."""
        if self.p_below is None:
            return None
        return min(1.0, 2 * min(self.p_below, 1 - self.p_below))

    @property
    def p_below(self) -> float | None:
        """One-sided p against a true mean of 0 or more; None without limits."""
        if self.estimate.mean is None or self.se is None:
            return None
        return _tail(self.estimate.mean / self.se, self.df)

    def limits(self, confidence: float) -> tuple[float, float]:
        """Return two-sided limits, not cut at the ends of the range; it needs a standard error.

        Raises
        ------
        ValueError
            Without one.
        """
        if self.estimate.mean is None or self.se is None:
            msg = "what was not corrected has no limits"
            raise ValueError(msg)
        half = self.se * _quantile(confidence, self.df)
        return self.estimate.mean - half, self.estimate.mean + half

    def outside(self, lowest: float, highest: float) -> float:
        """Return the one-sided p of a true mean as low as the first or as high as the second.

        Raises
        ------
        ValueError
            Without a standard error.
        """
        if self.estimate.mean is None or self.se is None:
            msg = "what was not corrected has no test"
            raise ValueError(msg)
        nearest = max(self.estimate.mean - highest, lowest - self.estimate.mean)
        return _tail(nearest / self.se, self.df)

    def detectable(self, alpha: float) -> float | None:
        """Return the true mean found with 80 % power at this level; None when there is none."""
        if self.se is None:
            return None
        found = self.se * (_quantile(1 - alpha, self.df) + _quantile(2 * POWER - 1, self.df))
        return found if found < 1 else None


def corrected_mean(
    judge: Sequence[Score], human: Sequence[Score], strata: Sequence[Hashable] | None = None
) -> Corrected:
    """Correct the mean of 0/1 verdicts by human labels (PPI++).

    Parameters
    ----------
    judge : sequence
        0, 1 or None (the judge failed; left out), one a response.
    human : sequence
        0, 1, or None where there is no label; same length.
    strata : sequence, optional
        The group within which labels were drawn at random (document x verdict); same length.

    Returns
    -------
    Corrected
        Refused under 60 labels, and when a group has verdicts but no label.

    Raises
    ------
    ValueError
        If a value is not 0, 1 or None, or the lengths differ.
    UsageError
        If the packages of the extra ``audit`` are missing.

    Notes
    -----
    ``ppi_py.ppi_mean_ci(alpha=.05)`` (arXiv 2311.01453), every response weighted by the size of
    its group over the number of labelled (or unlabelled) ones in it. When a group is labelled
    completely, all verdicts take the place of the unlabelled ones.
    """
    check_scores(judge, (0, 1))
    check_scores(human, (0, 1))
    return _correct(
        [None if value is None else float(value) for value in judge],
        [None if value is None else float(value) for value in human],
        strata,
        (0.0, 1.0),
    )


def corrected_difference(
    judge: Sequence[Pair],
    human: Sequence[Pair],
    strata: Sequence[Hashable] | None = None,
    documents: Sequence[Hashable] | None = None,
) -> Corrected:
    """Correct a paired difference of 0/1 verdicts by human labels (PPI++).

    Parameters
    ----------
    judge, human : sequence of (a, b)
        One a question. A pair with a None is missing: without verdict, or without label.
    strata : sequence, optional
        The group within which questions were drawn at random (document x verdict on a x verdict
        on b); same length.
    documents : sequence, optional
        The document of each question, same length; None where it is not known.

    Returns
    -------
    Corrected
        Of ``a - b``, in [-1, 1]; refused as in ``corrected_mean``.

    Raises
    ------
    ValueError, UsageError
        As ``corrected_mean``.

    Notes
    -----
    As ``corrected_mean``, which takes questions as independent. Where the documents are many
    enough for ``Structure.CLUSTERED`` each one's total is estimated from its own verdicts and
    labels, and the totals are clustered by ``CR2``: they are independent, as labels are drawn
    within documents.
    """
    for pairs in (judge, human):
        check_scores([score for pair in pairs for score in pair], (0, 1))
    return _correct(
        [_difference(pair) for pair in judge],
        [_difference(pair) for pair in human],
        strata,
        (-1.0, 1.0),
        documents,
    )


def draw_for_labels(strata: Sequence[Hashable], n: int, seed: int = 0) -> tuple[int, ...]:
    """Draw the responses to label: at random within each group, every group at least once.

    Parameters
    ----------
    strata : sequence
        The group of each response (document x verdict).
    n : int
        Labels wanted, >= 1; more are drawn when there are more groups, fewer when there are
        fewer responses.
    seed : int

    Returns
    -------
    tuple of int
        Row numbers, ascending. The groups get shares in proportion to their sizes.
    """
    groups: dict[Hashable, list[int]] = {}
    for row, key in enumerate(strata):
        groups.setdefault(key, []).append(row)
    drawn = dict.fromkeys(groups, 1)
    for _ in range(min(n, len(strata)) - len(groups)):
        key = max(
            (key for key in groups if drawn[key] < len(groups[key])),
            key=lambda key: len(groups[key]) / (drawn[key] + 0.5),
        )
        drawn[key] += 1
    chance = random.Random(seed)
    return tuple(sorted(row for key in groups for row in chance.sample(groups[key], drawn[key])))


def refuse(n_labels: int, n_groups: int, n_unlabelled_groups: int) -> str | None:
    """Return why so many labels do not allow a correction; None when they do."""
    if n_labels < MIN_LABELS:
        return (
            f"{n_labels} labelled responses are too few for a correction, which needs {MIN_LABELS}"
        )
    if n_unlabelled_groups:
        return f"{n_unlabelled_groups} of {n_groups} groups have no label"
    return None


def finish(
    plain: float | None, mean: float, n: int, n_labels: int, spread: Spread, kind: str
) -> Corrected:
    """Return a corrected mean with its limits in [-1, 1], or [0, 1] when ``spread`` says so."""
    lowest, highest = spread.limits
    mean = min(max(mean, lowest), highest)
    if spread.se <= _NO_WIDTH:
        return Corrected(plain, Estimate(mean, n, None, None, kind), n_labels, None)
    half = spread.se * _quantile(CONFIDENCE, spread.df)
    estimate = Estimate(mean, n, max(mean - half, lowest), min(mean + half, highest), kind)
    return Corrected(plain, estimate, n_labels, None, spread.se, spread.df)


def cluster(totals: Mapping[Hashable, float], sizes: Mapping[Hashable, int]) -> Spread:
    """Return the spread of a mean of [-1, 1] from each document's total and its questions."""
    sums, numbers = _array(list(totals.values())), _array([sizes[key] for key in totals])
    return Spread(float(cr2_variance(sums, numbers)) ** 0.5, float(degrees_of_freedom(numbers)))


def _correct(
    judge: Sequence[float | None],
    human: Sequence[float | None],
    strata: Sequence[Hashable] | None,
    limits: tuple[float, float],
    documents: Sequence[Hashable] | None = None,
) -> Corrected:
    places: Sequence[Hashable] = [None] * len(judge) if documents is None else documents
    keys: Sequence[Hashable] = [None] * len(judge) if strata is None else strata
    rows = [
        (verdict, label, (document, key))
        for verdict, label, key, document in zip(judge, human, keys, places, strict=True)
        if verdict is not None
    ]
    labelled = [(verdict, label, key) for verdict, label, key in rows if label is not None]
    plain = sum(verdict for verdict, _, _ in rows) / len(rows) if rows else None
    sizes, drawn = Counter(key for _, _, key in rows), Counter(key for _, _, key in labelled)
    refused = refuse(len(labelled), len(sizes), len(sizes) - len(drawn))
    if refused is not None:
        nothing = Estimate(None, len(rows), None, None, _KIND)
        return Corrected(plain, nothing, len(labelled), refused)
    of_document = Counter(document for _, _, (document, _) in rows)
    structure = choose_structure(of_document)
    if structure is Structure.CLUSTERED:
        totals = dict.fromkeys(of_document, 0.0)
        for verdict, _, (document, _) in rows:
            totals[document] += verdict
        for verdict, label, key in labelled:
            totals[key[0]] += (label - verdict) * sizes[key] / drawn[key]
        spread = cluster(totals, of_document)._replace(limits=limits)
        mean = sum(totals.values()) / len(rows)
        kind = name_interval(_KIND, structure)
        return finish(plain, mean, len(rows), len(labelled), spread, kind)
    rest = [(verdict, key) for verdict, label, key in rows if label is None]
    left = Counter(key for _, key in rest)
    if len(left) < len(sizes):
        rest, left = [(verdict, key) for verdict, _, key in rows], sizes
    mean, low, high = _ppi(
        _array([label for _, label, _ in labelled]),
        _array([verdict for verdict, _, _ in labelled]),
        _array([sizes[key] / drawn[key] for _, _, key in labelled]),
        _array([verdict for verdict, _ in rest]),
        _array([sizes[key] / left[key] for _, key in rest]),
    )
    spread = Spread((high - low) / 2 / _quantile(CONFIDENCE, None), limits=limits)
    return finish(plain, mean, len(rows), len(labelled), spread, _KIND)


def _ppi(
    labels: Floats,
    verdicts: Floats,
    weights: Floats,
    other_verdicts: Floats,
    other_weights: Floats,
) -> tuple[float, float, float]:
    """Return the estimate and its limits."""
    ppi = load_audit_package("ppi_py")
    constant = len(np.unique(np.concatenate([verdicts, other_verdicts]))) < 2
    weighting = {"w": weights, "w_unlabeled": other_weights}
    # Constant verdicts say nothing about the labels, and the library would divide 0 by 0.
    tuning = {"lam": 0.0} if constant else {}
    mean = ppi.ppi_mean_pointestimate(labels, verdicts, other_verdicts, **weighting, **tuning)
    low, high = ppi.ppi_mean_ci(
        labels, verdicts, other_verdicts, alpha=1 - CONFIDENCE, **weighting, **tuning
    )
    return float(np.squeeze(mean)), float(np.squeeze(low)), float(np.squeeze(high))


def _quantile(confidence: float, df: float | None) -> float:
    special, share = scipy_special(), (1 + confidence) / 2
    return float(special.ndtri(share) if df is None else special.stdtrit(df, share))


def _tail(ratio: float, df: float | None) -> float:
    special = scipy_special()
    p = float(special.ndtr(ratio) if df is None else special.stdtr(df, ratio))
    # A chance is never 0 or 1, if too near for a float.
    return min(max(p, sys.float_info.min), 1 - sys.float_info.epsilon / 2)


def _difference(pair: Pair) -> float | None:
    a, b = pair
    return None if a is None or b is None else float(a) - float(b)


def _array(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float64)
