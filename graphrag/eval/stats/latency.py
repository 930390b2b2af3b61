"""Computes latency quantiles, the cost per correct answer, and which methods no other one beats."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf, isfinite, sqrt
from typing import NamedTuple, TypeAlias

import numpy as np

from graphrag.eval.stats.intervals import CONFIDENCE, Floats, scipy_stats


class Latency(NamedTuple):
    """Seconds, >= 0, until the answer; if ``censored``, until a search that failed was given up."""

    seconds: float
    censored: bool = False


@dataclass(frozen=True, slots=True)
class LatencyQuantile:
    """A quantile of the latency of n searches, in seconds; None without searches.

    ``at_least`` is set instead of ``value`` if the quantile falls among the ``n_censored``
    searches. ``low`` and ``high`` are order-statistic limits (at least 95 %). They are None if
    there are too few searches (the upper limit of p95 needs 72, both limits of the median need 6),
    or if the limit is censored.
    """

    value: float | None
    at_least: float | None
    n: int
    n_censored: int
    low: float | None
    high: float | None
    censored_share: float | None = None


@dataclass(frozen=True, slots=True)
class CostPerCorrect:
    """Money, or any other cost, per correct answer, >= 0, with Fieller limits (95 %).

    ``value`` is None if nothing is correct, or if the cost of an attempt with a verdict is not
    known; the limits are None if they are unbounded. ``n`` attempts have a verdict, ``n_dropped``
    have none.
    """

    value: float | None
    n: int
    n_dropped: int
    n_correct: float
    low: float | None
    high: float | None


Tradeoff: TypeAlias = tuple[float | None, float | None, float | None]
"""A method's correctness (more is better), tokens and seconds (less is better)."""


def latency_quantile(latencies: Sequence[Latency], q: float) -> LatencyQuantile:
    """Return the quantile q, in (0, 1), of the latency; censored searches are the slowest ones.

    Type 7 of Hyndman and Fan 1996; limits by ``scipy.stats.quantile_test``. A censored search
    counts as slower than every finished one. That is exact for a common time limit; otherwise the
    quantile errs on the slow side.
    """
    n = len(latencies)
    censored = sum(entry.censored for entry in latencies)
    if n == 0:
        return LatencyQuantile(value=None, at_least=None, n=0, n_censored=0, low=None, high=None)
    ordered, value = _sort_seconds(latencies), quantile_value(latencies, q)
    at_least = None
    if value is None:
        at_least = _type_7(sorted(entry.seconds for entry in latencies), q)
    test = scipy_stats().quantile_test(np.arange(n), q=0, p=q)
    limits = test.confidence_interval(CONFIDENCE)
    low, high = (
        ordered[int(rank)] if isfinite(rank) and ordered[int(rank)] < inf else None
        for rank in (limits.low, limits.high)
    )
    return LatencyQuantile(
        value=value,
        at_least=at_least,
        n=n,
        n_censored=censored,
        low=low,
        high=high,
        censored_share=censored / n,
    )


def quantile_value(latencies: Sequence[Latency], q: float) -> float | None:
    """Return the quantile q alone; None without latencies, and if it falls among censored ones."""
    return _type_7(_sort_seconds(latencies), q) if latencies else None


def _sort_seconds(latencies: Sequence[Latency]) -> list[float]:
    return sorted(inf if entry.censored else entry.seconds for entry in latencies)


def cost_per_correct(
    costs: Sequence[float | None], correct: Sequence[float | None]
) -> CostPerCorrect:
    """Return the cost of all attempts with a verdict, divided by the number of correct answers.

    ``costs`` has one entry per attempt, failed ones included: finite, >= 0, or None if the price is
    not known. ``correct`` has its verdict, in [0, 1] (between for means over repeats); None if it
    is missing, and the attempt is then left out and counted. Fieller 1954, with t quantiles on n -
    1 degrees of freedom. Raises ValueError if the lengths differ.
    """
    pairs = list(zip(costs, correct, strict=True))
    judged = [(cost, float(verdict)) for cost, verdict in pairs if verdict is not None]
    n, dropped = len(judged), len(pairs) - len(judged)
    n_correct = sum(verdict for _, verdict in judged)
    priced = [(cost, verdict) for cost, verdict in judged if cost is not None]
    if n_correct == 0 or len(priced) < n:
        return CostPerCorrect(
            value=None, n=n, n_dropped=dropped, n_correct=n_correct, low=None, high=None
        )
    value = sum(cost for cost, _ in priced) / n_correct
    low, high = _fieller(np.array(priced, dtype=np.float64))
    if low is not None and high is not None:  # rounding may put both on one side
        low, high = min(low, value), max(high, value)
    return CostPerCorrect(
        value=value, n=n, n_dropped=dropped, n_correct=n_correct, low=low, high=high
    )


def pareto_set(methods: Mapping[str, Tradeoff]) -> tuple[str, ...]:
    """Return the names of the methods that no other one beats, in their order.

    A method is beaten by one that is at least as good in correctness, tokens and latency, and
    better in one of them. A method with a None can't be compared and is left out.
    """
    points = {
        name: (-correctness, tokens, latency)
        for name, (correctness, tokens, latency) in methods.items()
        if correctness is not None and tokens is not None and latency is not None
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
