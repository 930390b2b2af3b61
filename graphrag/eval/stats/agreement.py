"""Measures how far a judge can be trusted: its agreement with human labels, and with itself."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import fsum, isfinite
from typing import Any, Literal

import numpy as np

from graphrag.eval.errors import UsageError
from graphrag.eval.stats.intervals import Estimate, Floats, Score, present, proportion_interval
from graphrag.installation import extra_hint


@dataclass(frozen=True, slots=True)
class BinaryAgreement:
    """The judge's 0/1 verdicts against human labels, over the n responses that have both.

    Positive means 1; true means that the human agrees. ``n_dropped`` responses lack one of
    the two. ``sensitivity``, P(judge 1 | human 1), and ``specificity``, P(judge 0 | human 0), have
    Clopper-Pearson limits; the mean is None without a human 1 (or 0). ``raw_agreement`` has
    Wilson's limits. Cohen's ``kappa``, Gwet's ``ac1`` and Krippendorff's ``alpha`` (nominal) are at
    most 1, and None without responses. If every verdict and label is the same, kappa and alpha are
    None and AC1 is 1. If the weights are unequal, alpha is None.
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
    """Compare the judge's 0/1 verdicts with human labels; a None is left out with its pair.

    ``weights``: the number of responses that each label represents (1 / chance of being drawn), >
    0. They are needed if labels were not drawn at the same rate everywhere.

    ``statsmodels...proportion_confint(method="beta")`` on the effective number of labels, (sum w)^2
    / sum w^2, as in Korn and Graubard 1998; ``sklearn.metrics.cohen_kappa_score``; AC1: Gwet 2008,
    doi:10.1348/000711006X126600; ``krippendorff.alpha``. Raises ValueError if a value is not 0, 1
    or None, a weight is not positive, or the lengths differ. Raises UsageError if the packages of
    the extra ``audit`` are missing.
    """
    check_scores([*judge, *human])
    weighting = [1.0] * len(judge) if weights is None else list(weights)
    if not all(isfinite(weight) and weight > 0 for weight in weighting):
        raise ValueError("every weight must be a finite number above 0")
    rows = [
        (float(x), float(y), w)
        for x, y, w in zip(judge, human, weighting, strict=True)
        if x is not None and y is not None
    ]
    x, y, w = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    cells = Counter(zip(x.tolist(), y.tolist(), strict=True))
    kappa = alpha = None
    if len({*x.tolist(), *y.tolist()}) == 2:
        kappa = _load_package("sklearn.metrics").cohen_kappa_score(
            x.astype(int), y.astype(int), sample_weight=w
        )
        if np.ptp(w) == 0:
            alpha = _load_package("krippendorff").alpha(
                reliability_data=[x, y], level_of_measurement="nominal"
            )
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
        kappa=None if kappa is None else float(kappa),
        ac1=_ac1(x, y, w) if len(x) else None,
        alpha=None if alpha is None else float(alpha),
    )


def _load_package(name: str) -> Any:
    """Import a package of the extra ``audit``.

    Raises UsageError, which says how to install it, if it is missing.
    """
    try:
        return import_module(name)
    except ImportError as error:
        msg = f"{name} is missing; the statistics of an audit need: {extra_hint('audit')}"
        raise UsageError(msg) from error


def check_scores(scores: Iterable[Score]) -> None:
    """Raise ValueError for a score that is neither 0 nor 1 nor None."""
    for score in scores:
        if score not in (0, 1, None):
            raise ValueError(f"a score must be one of (0, 1) or None, not {score!r}")


def _share(hits: np.ndarray, weights: Floats, method: Literal["beta", "wilson"]) -> Estimate:
    name = {"beta": "clopper-pearson", "wilson": "wilson"}[method]
    n = len(hits)
    if n == 0:
        return Estimate(mean=None, n=0, low=None, high=None, method=name)
    share = float(np.average(hits, weights=weights))
    effective = float(weights.sum() ** 2 / np.square(weights).sum())
    low, high = proportion_interval(share * effective, effective, method)
    return Estimate(mean=share, n=n, low=min(low, share), high=max(high, share), method=name)


def _ac1(x: Floats, y: Floats, weights: Floats) -> float:
    agreed = float(np.average(x == y, weights=weights))
    ones = float(np.average((x + y) / 2, weights=weights))
    by_chance = 2 * ones * (1 - ones)
    return (agreed - by_chance) / (1 - by_chance)


def flip_rate(verdicts: Sequence[Sequence[Score]]) -> float | None:
    """Return the chance, in [0, 1], that a repeat changes a verdict; None without repeats.

    For each item it takes the share of its pairs of verdicts that differ, and returns the mean over
    the items. Verdicts are in [0, 1], or None and left out. Raises ValueError if one is NaN or
    outside.
    """
    rates: list[float] = []
    for item in verdicts:
        values = present(item, 0, 1).tolist()
        n = len(values)
        if n > 1:
            alike = sum(times * (times - 1) for times in Counter(values).values())
            rates.append(1 - alike / (n * (n - 1)))
    return fsum(rates) / len(rates) if rates else None
