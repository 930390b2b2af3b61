"""How far the judge can be trusted: agreement with human labels, and with itself."""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from math import fsum, isfinite
from typing import Any, Literal, TypeAlias

import numpy as np

from graphrag.eval.errors import UsageError
from graphrag.eval.stats.intervals import Estimate, Floats, Score, present, proportion_interval
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


Preference: TypeAlias = Literal["a", "b", "tie"]


@dataclass(frozen=True, slots=True)
class Repeats:
    """Repeated verdicts, one mean an item; the means are what is analysed, never the rows.

    Attributes
    ----------
    item_means : tuple
        Mean of the verdicts of each item; None without verdicts.
    flip_rates : tuple
        Share in [0, 1] of the pairs of verdicts of one item that differ; None under two.
    flip_rate : float or None
        Mean of the flip rates: the chance that a repeat changes a verdict; None without any.
    """

    item_means: tuple[float | None, ...]
    flip_rates: tuple[float | None, ...]
    flip_rate: float | None


@dataclass(frozen=True, slots=True)
class OrderedPreferences:
    """Pairwise verdicts in both orders; a flip is a tie.

    Attributes
    ----------
    preferences : tuple
        "a", "b", "tie", or None when a verdict is missing.
    n_flipped : int
        Items whose two orders name different winners, or a winner and a tie.
    flip_rate : float or None
        Share in [0, 1] of the items with both verdicts; None without any.
    """

    preferences: tuple[Preference | None, ...]
    n_flipped: int
    flip_rate: float | None


def summarize_repeats(verdicts: Sequence[Sequence[Score]]) -> Repeats:
    """Reduce repeated verdicts to one mean and one flip rate an item.

    Parameters
    ----------
    verdicts : sequence of sequences
        Per item its verdicts in [0, 1]; None (unscored) is left out.

    Raises
    ------
    ValueError
        If a verdict is NaN or outside [0, 1].
    """
    items = [[float(score) for score in item if score is not None] for item in verdicts]
    present([score for item in items for score in item], 0, 1)
    means = tuple(fsum(item) / len(item) if item else None for item in items)
    flips = tuple(_flip_rate(item) for item in items)
    known = [rate for rate in flips if rate is not None]
    return Repeats(means, flips, fsum(known) / len(known) if known else None)


def combine_orders(
    first: Sequence[Preference | None], second: Sequence[Preference | None]
) -> OrderedPreferences:
    """Combine pairwise verdicts given with a shown first and with b shown first.

    Parameters
    ----------
    first, second : sequence
        "a", "b" or "tie" per item, named by the response and not by its place; None when the
        verdict is missing. Same length.
    """
    combined: list[Preference | None] = []
    flipped = 0
    for one, other in zip(first, second, strict=True):
        if one is None or other is None:
            combined.append(None)
            continue
        flipped += one != other
        combined.append(one if one == other else "tie")
    n = sum(preference is not None for preference in combined)
    return OrderedPreferences(tuple(combined), flipped, flipped / n if n else None)


def _flip_rate(item: Sequence[float]) -> float | None:
    n = len(item)
    if n < 2:
        return None
    alike = sum(times * (times - 1) for times in Counter(item).values())
    return 1 - alike / (n * (n - 1))
