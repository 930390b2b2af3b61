"""How far the judge can be trusted: agreement with human labels, and means corrected by them."""

import random
import warnings
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import isfinite
from typing import Any, Literal

import numpy as np

from graphrag.eval.errors import UsageError
from graphrag.eval.estimates import CONFIDENCE, Estimate, Floats, Score, proportion_interval
from graphrag.eval.paired import Pair

MIN_LABELS = 60


@dataclass(frozen=True, slots=True)
class BinaryAgreement:
    """The judge's 0/1 verdicts against human ones.

    Attributes
    ----------
    n, n_dropped : int
        Responses with both, and with a missing one.
    true_positive, false_positive, false_negative, true_negative : int
        Counts; positive means 1, true means that the human says the same.
    sensitivity, specificity : Estimate
        P(judge 1 | human 1) and P(judge 0 | human 0) with Clopper-Pearson limits; None without
        a human 1 (or 0).
    raw_agreement : Estimate
        Share in [0, 1], Wilson limits.
    kappa, ac1, alpha : float or None
        Cohen's kappa, Gwet's AC1, Krippendorff's alpha (nominal), each at most 1. None when
        every verdict and label is the same, and alpha also for unequal weights.
    """

    n: int
    n_dropped: int
    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int
    sensitivity: Estimate
    specificity: Estimate
    raw_agreement: Estimate
    kappa: float | None
    ac1: float | None
    alpha: float | None


@dataclass(frozen=True, slots=True)
class ScaleAgreement:
    """The judge's 1-5 scores against human ones.

    Attributes
    ----------
    n, n_dropped : int
    raw_agreement : Estimate
        Share of equal scores in [0, 1], Wilson limits.
    kappa, alpha : float or None
        Cohen's kappa with quadratic weights, Krippendorff's alpha (ordinal); None when every
        score is the same.
    """

    n: int
    n_dropped: int
    raw_agreement: Estimate
    kappa: float | None
    alpha: float | None


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
    """

    uncorrected: float | None
    estimate: Estimate
    n_labels: int
    refused: str | None


def binary_agreement(
    judge: Sequence[Score], human: Sequence[Score], weights: Sequence[float] | None = None
) -> BinaryAgreement:
    """Compare the judge's 0/1 verdicts with human ones.

    Parameters
    ----------
    judge, human : sequence
        0, 1 or None (left out); same length.
    weights : sequence of float, optional
        Responses that each label stands for, > 0 (1 / chance of having been drawn): needed when
        the labels were not drawn at the same rate everywhere.

    Raises
    ------
    ValueError
        If a value is not 0, 1 or None, a weight is not positive, or the lengths differ.
    UsageError
        If the packages of the extra ``audit`` are missing.

    Notes
    -----
    ``statsmodels...proportion_confint(method="beta")`` on the effective number of labels,
    (sum w)^2 / sum w^2, as in Korn and Graubard 1998; ``sklearn.metrics.cohen_kappa_score``;
    AC1: Gwet 2008, doi:10.1348/000711006X126600; ``krippendorff.alpha``.
    """
    x, y, w = _both(judge, human, weights, (0, 1))
    cells = Counter(zip(x.tolist(), y.tolist(), strict=True))
    constant = len(set(x.tolist()) | set(y.tolist())) < 2
    return BinaryAgreement(
        n=len(x),
        n_dropped=len(judge) - len(x),
        true_positive=cells[(1, 1)],
        false_positive=cells[(1, 0)],
        false_negative=cells[(0, 1)],
        true_negative=cells[(0, 0)],
        sensitivity=_share(x[y == 1] == 1, w[y == 1], "beta"),
        specificity=_share(x[y == 0] == 0, w[y == 0], "beta"),
        raw_agreement=_share(x == y, w, "wilson"),
        kappa=None if constant else _kappa(x, y, w, None),
        ac1=None if constant else _ac1(x, y, w),
        alpha=None if constant or np.ptp(w) > 0 else _alpha(x, y, "nominal"),
    )


def scale_agreement(judge: Sequence[Score], human: Sequence[Score]) -> ScaleAgreement:
    """Compare the judge's whole-number 1-5 scores with human ones.

    Parameters
    ----------
    judge, human : sequence
        1, 2, 3, 4, 5 or None (left out); same length.

    Raises
    ------
    ValueError
        If a value is none of these, or the lengths differ.
    UsageError
        If the packages of the extra ``audit`` are missing.

    Notes
    -----
    ``sklearn.metrics.cohen_kappa_score(weights="quadratic")``,
    ``krippendorff.alpha(level_of_measurement="ordinal")``.
    """
    x, y, w = _both(judge, human, None, (1, 2, 3, 4, 5))
    constant = len(set(x.tolist()) | set(y.tolist())) < 2
    return ScaleAgreement(
        n=len(x),
        n_dropped=len(judge) - len(x),
        raw_agreement=_share(x == y, w, "wilson"),
        kappa=None if constant else _kappa(x, y, w, "quadratic"),
        alpha=None if constant else _alpha(x, y, "ordinal"),
    )


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
    _check(judge, (0, 1))
    _check(human, (0, 1))
    return _correct(
        [None if value is None else float(value) for value in judge],
        [None if value is None else float(value) for value in human],
        strata,
        (0.0, 1.0),
    )


def corrected_difference(
    judge: Sequence[Pair], human: Sequence[Pair], strata: Sequence[Hashable] | None = None
) -> Corrected:
    """Correct a paired difference of 0/1 verdicts by human labels (PPI++).

    Parameters
    ----------
    judge, human : sequence of (a, b)
        One a question. A pair with a None is missing: without verdict, or without label.
    strata : sequence, optional
        The group within which questions were drawn at random (document x verdict on a x verdict
        on b); same length.

    Returns
    -------
    Corrected
        Of ``a - b``, in [-1, 1]; refused as in ``corrected_mean``.

    Raises
    ------
    ValueError, UsageError
        As ``corrected_mean``.
    """
    for pairs in (judge, human):
        _check([score for pair in pairs for score in pair], (0, 1))
    return _correct(
        [_difference(pair) for pair in judge],
        [_difference(pair) for pair in human],
        strata,
        (-1.0, 1.0),
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


def _correct(
    judge: Sequence[float | None],
    human: Sequence[float | None],
    strata: Sequence[Hashable] | None,
    limits: tuple[float, float],
) -> Corrected:
    keys: Sequence[Hashable] = [None] * len(judge) if strata is None else strata
    rows = [
        (verdict, label, key)
        for verdict, label, key in zip(judge, human, keys, strict=True)
        if verdict is not None
    ]
    labelled = [(verdict, label, key) for verdict, label, key in rows if label is not None]
    plain = sum(verdict for verdict, _, _ in rows) / len(rows) if rows else None
    sizes, drawn = Counter(key for _, _, key in rows), Counter(key for _, _, key in labelled)
    refused = None
    if len(labelled) < MIN_LABELS:
        refused = (
            f"{len(labelled)} labelled responses are too few for a correction, "
            f"which needs {MIN_LABELS}"
        )
    elif len(drawn) < len(sizes):
        refused = f"{len(sizes) - len(drawn)} of {len(sizes)} groups have no label"
    if refused is not None:
        nothing = Estimate(None, len(rows), None, None, "ppi++")
        return Corrected(plain, nothing, len(labelled), refused)
    rest = [(verdict, key) for verdict, label, key in rows if label is None]
    left = Counter(key for _, key in rest)
    if len(left) < len(sizes):
        rest, left = [(verdict, key) for verdict, _, key in rows], sizes
    estimate = _ppi(
        _array([label for _, label, _ in labelled]),
        _array([verdict for verdict, _, _ in labelled]),
        _array([sizes[key] / drawn[key] for _, _, key in labelled]),
        _array([verdict for verdict, _ in rest]),
        _array([sizes[key] / left[key] for _, key in rest]),
    )
    mean, low, high = (min(max(value, limits[0]), limits[1]) for value in estimate)
    known = high - low > 1e-9
    return Corrected(
        plain,
        Estimate(
            mean,
            len(rows),
            min(low, mean) if known else None,
            max(high, mean) if known else None,
            "ppi++",
        ),
        len(labelled),
        None,
    )


def _ppi(
    labels: Floats,
    verdicts: Floats,
    weights: Floats,
    other_verdicts: Floats,
    other_weights: Floats,
) -> tuple[float, float, float]:
    """Return the estimate and its limits."""
    ppi = _audit_package("ppi_py")
    constant = len(np.unique(np.concatenate([verdicts, other_verdicts]))) < 2
    weighting = {"w": weights, "w_unlabeled": other_weights}
    # Constant verdicts say nothing about the labels, and the library would divide 0 by 0.
    tuning = {"lam": 0.0} if constant else {}
    mean = ppi.ppi_mean_pointestimate(labels, verdicts, other_verdicts, **weighting, **tuning)
    low, high = ppi.ppi_mean_ci(
        labels, verdicts, other_verdicts, alpha=1 - CONFIDENCE, **weighting, **tuning
    )
    return float(np.squeeze(mean)), float(np.squeeze(low)), float(np.squeeze(high))


def _audit_package(name: str) -> Any:
    try:
        with warnings.catch_warnings():  # ppi_py would silence the warnings of the whole process
            return import_module(name)
    except ImportError as error:
        msg = f"{name} is missing; install the extra: pip install 'gtog[audit]'"
        raise UsageError(msg) from error


def _check(scores: Sequence[Score], allowed: tuple[int, ...]) -> None:
    for score in scores:
        if score is not None and score not in allowed:
            msg = f"a score must be one of {allowed} or None, not {score!r}"
            raise ValueError(msg)


def _both(
    judge: Sequence[Score],
    human: Sequence[Score],
    weights: Sequence[float] | None,
    allowed: tuple[int, ...],
) -> tuple[Floats, Floats, Floats]:
    _check(judge, allowed)
    _check(human, allowed)
    given = [1.0] * len(judge) if weights is None else list(weights)
    if not all(isfinite(weight) and weight > 0 for weight in given):
        msg = "every weight must be a finite number above 0"
        raise ValueError(msg)
    rows = [
        (float(x), float(y), w)
        for x, y, w in zip(judge, human, given, strict=True)
        if x is not None and y is not None
    ]
    table = np.array(rows, dtype=np.float64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


def _share(hits: np.ndarray, weights: Floats, method: Literal["beta", "wilson"]) -> Estimate:
    name = {"beta": "clopper-pearson", "wilson": "wilson"}[method]
    n = len(hits)
    if n == 0:
        return Estimate(None, 0, None, None, name)
    share = float(np.average(hits, weights=weights))
    effective = float(weights.sum() ** 2 / np.square(weights).sum())
    low, high = proportion_interval(share * effective, effective, method)
    return Estimate(share, n, min(low, share), max(high, share), name)


def _kappa(x: Floats, y: Floats, weights: Floats, kind: str | None) -> float:
    metrics = _audit_package("sklearn.metrics")
    value = metrics.cohen_kappa_score(
        x.astype(int), y.astype(int), weights=kind, sample_weight=weights
    )
    return float(value)


def _ac1(x: Floats, y: Floats, weights: Floats) -> float:
    agreed = float(np.average(x == y, weights=weights))
    ones = float(np.average((x + y) / 2, weights=weights))
    by_chance = 2 * ones * (1 - ones)
    return (agreed - by_chance) / (1 - by_chance)


def _alpha(x: Floats, y: Floats, level: str) -> float:
    package = _audit_package("krippendorff")
    return float(package.alpha(reliability_data=[x, y], level_of_measurement=level))


def _difference(pair: Pair) -> float | None:
    a, b = pair
    return None if a is None or b is None else float(a) - float(b)


def _array(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float64)
