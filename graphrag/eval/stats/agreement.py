"""How far the judge can be trusted: its agreement with human labels."""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from math import isfinite
from typing import Any, Literal

import numpy as np

from graphrag.eval.errors import UsageError
from graphrag.eval.stats.estimates import Estimate, Floats, Score, proportion_interval
from graphrag.installation import extra_hint


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
        Cohen's kappa, Gwet's AC1, Krippendorff's alpha (nominal), each at most 1. Without any
        response None; when every verdict and label is the same, kappa and alpha are None and
        AC1 is 1. For unequal weights alpha is None as well.
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
        kappa=None if constant else _kappa(x, y, w, (0, 1)),
        ac1=_ac1(x, y, w) if len(x) else None,
        alpha=None if constant or np.ptp(w) > 0 else _alpha(x, y, "nominal"),
    )


def load_audit_package(name: str) -> Any:
    """Import a package of the extra ``audit``.

    Raises
    ------
    UsageError
        If it is not installed; says how to install it.
    """
    try:
        with warnings.catch_warnings():  # ppi_py would silence the warnings of the whole process
            return import_module(name)
    except ImportError as error:
        msg = f"{name} is missing; the statistics of an audit need: {extra_hint('audit')}"
        raise UsageError(msg) from error


def check_scores(scores: Sequence[Score], allowed: tuple[int, ...]) -> None:
    """Raise ValueError for a score that is neither allowed nor None."""
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
    check_scores(judge, allowed)
    check_scores(human, allowed)
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


def _kappa(x: Floats, y: Floats, weights: Floats, labels: Sequence[int]) -> float:
    metrics = load_audit_package("sklearn.metrics")
    value = metrics.cohen_kappa_score(
        x.astype(int),
        y.astype(int),
        labels=list(labels),  # else a score that nobody gave would be no step between two others
        sample_weight=weights,
    )
    return float(value)


def _ac1(x: Floats, y: Floats, weights: Floats) -> float:
    agreed = float(np.average(x == y, weights=weights))
    ones = float(np.average((x + y) / 2, weights=weights))
    by_chance = 2 * ones * (1 - ones)
    return (agreed - by_chance) / (1 - by_chance)


def _alpha(x: Floats, y: Floats, level: str) -> float:
    package = load_audit_package("krippendorff")
    return float(package.alpha(reliability_data=[x, y], level_of_measurement=level))
