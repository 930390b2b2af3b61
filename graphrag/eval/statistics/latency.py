"""Latency, money, and figures that are medians or ratios: quantiles, bootstrap, Fieller, Pareto."""

import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, inf, isfinite, sqrt
from typing import Any

import numpy as np

from graphrag.eval.statistics.estimates import (
    CONFIDENCE,
    Floats,
    Score,
    group_by_document,
    scipy_stats,
)

N_RESAMPLES = 9_999
_BATCH_VALUES = 2_000_000


@dataclass(frozen=True, slots=True)
class Latency:
    """The latency of one search.

    Attributes
    ----------
    seconds : float
        >= 0; until the answer, or until the search was given up.
    censored : bool
        The search failed or ran into its time limit: it would have taken longer.
    """

    seconds: float
    censored: bool = False


@dataclass(frozen=True, slots=True)
class LatencyQuantile:
    """A quantile of the latency, in seconds.

    Attributes
    ----------
    value : float or None
        None without searches, or when it falls among the censored ones.
    at_least : float or None
        Set instead of ``value`` when it falls among the censored ones.
    n, n_censored : int
        Searches, and those of them that are censored.
    low, high : float or None
        Order-statistic limits (at least 95 %); None when there are too few searches (the upper
        one of p95 needs 72, both of the median need 6) or the limit is censored.
    censored_share : float or None
        ``n_censored / n``; None without searches.
    """

    value: float | None
    at_least: float | None
    n: int
    n_censored: int
    low: float | None
    high: float | None
    censored_share: float | None = None


@dataclass(frozen=True, slots=True)
class BootstrapEstimate:
    """A median or ratio with its BCa limits (95 %), in its own unit.

    Attributes
    ----------
    value : float or None
        None without values, or for a ratio with denominator 0.
    n : int
    low, high : float or None
        None when the bootstrap is degenerate.
    """

    value: float | None
    n: int
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class CostPerCorrect:
    """Money, or any other cost, per correct answer.

    Attributes
    ----------
    value : float or None
        In the unit of the costs; None when nothing is correct, or the cost of an attempt with a
        verdict is not known.
    n, n_dropped : int
    n_correct : float
        Attempts with a verdict, attempts whose verdict is missing, correct answers.
    low, high : float or None
        Fieller limits (95 %), >= 0; None when they are unbounded.
    """

    value: float | None
    n: int
    n_dropped: int
    n_correct: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """What a method reaches (correctness, more is better) and takes (tokens, seconds)."""

    name: str
    correctness: float | None
    tokens: float | None
    latency_s: float | None


def latency_quantile(latencies: Sequence[Latency], q: float) -> LatencyQuantile:
    """Return a quantile of the latency; censored searches stay in, as the slowest ones.

    Parameters
    ----------
    latencies : sequence of Latency
    q : float
        In (0, 1): 0.5 for the median, 0.95 for p95.

    Raises
    ------
    ValueError
        If q is out of range, or a latency negative or not finite.

    Notes
    -----
    Type 7 of Hyndman and Fan 1996; limits by ``scipy.stats.quantile_test``. A censored search
    counts as slower than every finished one, which is exact for a common time limit and
    otherwise errs to the slow side.
    """
    if not 0 < q < 1:
        msg = f"a quantile lies in (0, 1), not at {q!r}"
        raise ValueError(msg)
    if not all(isfinite(entry.seconds) and entry.seconds >= 0 for entry in latencies):
        msg = "every latency must be a finite number of seconds, >= 0"
        raise ValueError(msg)
    n = len(latencies)
    censored = sum(entry.censored for entry in latencies)
    if n == 0:
        return LatencyQuantile(None, None, 0, 0, None, None)
    ordered = sorted(inf if entry.censored else entry.seconds for entry in latencies)
    value = _type_7(ordered, q)
    at_least = None
    if value is None:
        at_least = _type_7(sorted(entry.seconds for entry in latencies), q)
    test = scipy_stats().quantile_test(np.arange(n), q=0, p=q)
    limits = test.confidence_interval(CONFIDENCE)
    low, high = (_at_rank(ordered, float(rank)) for rank in (limits.low, limits.high))
    return LatencyQuantile(value, at_least, n, censored, low, high, censored / n)


def bootstrap_median(
    values: Sequence[Score],
    documents: Sequence[Hashable],
    *,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> BootstrapEstimate:
    """Return the median with its BCa limits, questions resampled within documents.

    Parameters
    ----------
    values : sequence
        Finite numbers in any unit; None is left out.
    documents : sequence
        The document of each value, same length. Documents with a single value are resampled
        together.
    n_resamples, seed : int
        Of the bootstrap. Time grows with the square of the number of values: meant for a few
        thousand.

    Notes
    -----
    ``scipy.stats.bootstrap(method="BCa")`` with one sample a document.
    """
    numbers, strata = _strata(values, documents)

    def median(rows: Any) -> Any:
        return np.median(numbers[rows], axis=-1)

    return _bootstrap(median, len(numbers), strata, n_resamples, seed)


def bootstrap_ratio(
    numerators: Sequence[Score],
    denominators: Sequence[Score],
    documents: Sequence[Hashable],
    *,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> BootstrapEstimate:
    """Return sum of numerators / sum of denominators with its BCa limits.

    Parameters
    ----------
    numerators, denominators : sequence
        Two finite numbers a question; a question with a None is left out.
    documents, n_resamples, seed
        As for ``bootstrap_median``.

    Notes
    -----
    ``scipy.stats.bootstrap(method="BCa")`` with one sample a document. A resample whose
    denominator is 0 makes the limits None.
    """
    pairs = list(zip(numerators, denominators, documents, strict=True))
    whole = [(a, b, key) for a, b, key in pairs if a is not None and b is not None]
    keys = [key for _, _, key in whole]
    above, strata = _strata([a for a, _, _ in whole], keys)
    below, _ = _strata([b for _, b, _ in whole], keys)

    def ratio(rows: Any) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            return above[rows].sum(axis=-1) / below[rows].sum(axis=-1)

    return _bootstrap(ratio, len(above), strata, n_resamples, seed)


def cost_per_correct(
    costs: Sequence[float | None], correct: Sequence[float | None]
) -> CostPerCorrect:
    """Return the cost of all attempts that have a verdict, divided by the correct answers.

    Parameters
    ----------
    costs : sequence
        One an attempt, failed ones included: finite, >= 0, or None (price not known).
    correct : sequence
        In [0, 1], between them for means over repeats, or None (verdict missing: the attempt is
        left out and counted); same length.

    Returns
    -------
    CostPerCorrect

    Raises
    ------
    ValueError
        If a cost is negative or not finite, a verdict outside [0, 1], or the lengths differ.

    Notes
    -----
    Fieller 1954, with t quantiles on n - 1 degrees of freedom.
    """
    pairs = list(zip(costs, correct, strict=True))
    for cost, verdict in pairs:
        out = verdict is not None and not 0 <= verdict <= 1
        if out or (cost is not None and not 0 <= cost < inf):
            msg = f"a cost must be finite and >= 0, a verdict 0 to 1, not {(cost, verdict)!r}"
            raise ValueError(msg)
    judged = [(cost, float(verdict)) for cost, verdict in pairs if verdict is not None]
    n, dropped = len(judged), len(pairs) - len(judged)
    n_correct = sum(verdict for _, verdict in judged)
    known = [(cost, verdict) for cost, verdict in judged if cost is not None]
    if n_correct == 0 or len(known) < n:
        return CostPerCorrect(None, n, dropped, n_correct, None, None)
    total = sum(cost for cost, _ in known)
    low, high = _fieller(np.array(known, dtype=np.float64))
    return CostPerCorrect(total / n_correct, n, dropped, n_correct, low, high)


def pareto_set(methods: Sequence[Tradeoff]) -> tuple[str, ...]:
    """Return the names of the methods that no other one beats, in their order.

    A method is beaten by one that is at least as good in correctness, tokens and latency, and
    better in one of them. A method with a None can't be compared and is left out.
    """
    points = {
        method.name: (-method.correctness, method.tokens, method.latency_s)
        for method in methods
        if method.correctness is not None
        and method.tokens is not None
        and method.latency_s is not None
    }
    return tuple(
        name
        for name, point in points.items()
        if not any(
            other != point and all(x <= y for x, y in zip(other, point, strict=True))
            for other in points.values()
        )
    )


def _type_7(ordered: Sequence[float], q: float) -> float | None:
    position = (len(ordered) - 1) * q
    low, high = ordered[floor(position)], ordered[ceil(position)]
    if high == inf:
        return None
    return low + (high - low) * (position - floor(position))


def _at_rank(ordered: Sequence[float], rank: float) -> float | None:
    if not isfinite(rank) or ordered[int(rank)] == inf:
        return None
    return ordered[int(rank)]


def _strata(
    values: Sequence[Score], documents: Sequence[Hashable]
) -> tuple[Floats, list[np.ndarray]]:
    """Return the values side by side, and the row numbers of each stratum of two or more."""
    groups = list(group_by_document(values, documents).values())
    groups.sort(key=len, reverse=True)
    sizes = [len(group) for group in groups]
    numbers = np.concatenate(groups) if groups else np.array([], dtype=np.float64)
    edges = [0]
    for size in sizes:
        if size > 1:
            edges.append(edges[-1] + size)
    singles = len(numbers) - edges[-1]
    if singles > 1:
        edges.append(len(numbers))
    elif singles == 1:
        edges = [*edges[:-1], len(numbers)] if len(edges) > 1 else [0, 1]
    return numbers, [np.arange(start, stop) for start, stop in pairwise(edges)]


def _bootstrap(
    statistic: Callable[[Any], Any],
    n: int,
    strata: Sequence[np.ndarray],
    n_resamples: int,
    seed: int,
) -> BootstrapEstimate:
    if n == 0:
        return BootstrapEstimate(None, 0, None, None)
    value = float(statistic(np.arange(n)))
    if not isfinite(value):
        return BootstrapEstimate(None, n, None, None)
    if n < 2:
        return BootstrapEstimate(value, n, None, None)

    def of_resamples(*samples: Any, axis: int) -> Any:
        return statistic(np.concatenate(samples, axis=axis))

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # a degenerate distribution warns; it is seen below
        limits = (
            scipy_stats()
            .bootstrap(
                tuple(strata),
                of_resamples,
                n_resamples=n_resamples,
                batch=max(1, _BATCH_VALUES // n),
                vectorized=True,
                axis=-1,
                confidence_level=CONFIDENCE,
                method="BCa",
                rng=np.random.default_rng(seed),
            )
            .confidence_interval
        )
    low, high = float(limits.low), float(limits.high)
    if not (isfinite(low) and isfinite(high)) or low == high:
        return BootstrapEstimate(value, n, None, None)
    return BootstrapEstimate(value, n, min(low, value), max(high, value))


def _fieller(rows: Floats) -> tuple[float | None, float | None]:
    """Return the limits of mean(column 0) / mean(column 1)."""
    n = len(rows)
    if n < 2:
        return None, None
    top, bottom = rows.mean(axis=0)
    t2 = float(scipy_stats().t.ppf((1 + CONFIDENCE) / 2, n - 1)) ** 2 / n
    covariance = np.cov(rows, rowvar=False)
    a = float(bottom**2 - t2 * covariance[1, 1])
    b = float(top * bottom - t2 * covariance[0, 1])
    c = float(top**2 - t2 * covariance[0, 0])
    if a <= 0:
        return None, None
    root = sqrt(max(0.0, b * b - a * c))
    return max(0.0, (b - root) / a), (b + root) / a
