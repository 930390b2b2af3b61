"""Plans questions for the exact McNemar test: power, detectable difference, questions needed."""

from bisect import bisect_left
from functools import lru_cache
from math import sqrt

import numpy as np

from graphrag.eval.stats.intervals import Floats, scipy_special, scipy_stats

POWER = 0.8
ALPHA = 0.05
MOST_QUESTIONS = 100_000_000
_STEPS = 2**20  # steps per unit of the difference, which is found to less than 1e-6
_SPREAD = 9.0  # how many standard deviations of the discordant count the sum covers


def mcnemar_power(n: int, difference: float, discordance: float, alpha: float = ALPHA) -> float:
    """Return the power of the two-sided exact McNemar test on n pairs; 0 if n is 0.

    - ``difference``: the true difference of the two means, in [-1, 1].
    - ``discordance``: the share of the pairs on which the two differ, in [``|difference|``, 1].
    - ``alpha``: the level of the test, in (0, 1).

    The number of discordant pairs is binomial(n, discordance). Of m discordant pairs, those in
    favor are binomial(m, (1 + difference / discordance) / 2). The sum over m leaves out less than
    1e-12. Raises ValueError if a parameter is out of range.
    """
    if n < 0 or not abs(difference) <= discordance <= 1 or not 0 < alpha < 1:
        raise ValueError("power needs n >= 0, |difference| <= discordance <= 1 and alpha in (0, 1)")
    if n == 0 or discordance == 0:
        return 0.0
    reach = _SPREAD * sqrt(n * discordance * (1 - discordance)) + 30
    first = max(0, int(n * discordance - reach))
    m = np.arange(first, min(n, int(n * discordance + reach) + 1) + 1)
    favour = (1 + difference / discordance) / 2
    critical = _critical_counts(first, int(m[-1]), alpha)
    tail = scipy_special().bdtr
    count = np.maximum(critical, 0)
    rejects = np.where(critical >= 0, tail(count, m, favour) + tail(count, m, 1 - favour), 0.0)
    return min(1.0, float(np.sum(scipy_stats().binom.pmf(m, n, discordance) * rejects)))


def detectable_difference(
    n: int, discordance: float, power: float = POWER, alpha: float = ALPHA
) -> float | None:
    """Return the smallest true difference that the exact McNemar test finds at this power.

    It is in (0, 1], rounded up by less than 1e-6. None if even a difference of 1 stays below the
    power (fewer than six pairs at the default level). ``discordance`` is the expected one, in [0,
    1]. Because a difference can't exceed the discordance, the discordance is taken to grow with a
    larger one.
    """

    def finds(step: int) -> bool:
        difference = step / _STEPS
        return mcnemar_power(n, difference, max(discordance, difference), alpha) >= power

    return (bisect_left(range(1, _STEPS), True, key=finds) + 1) / _STEPS if finds(_STEPS) else None


def questions_needed(
    difference: float, discordance: float, power: float = POWER, alpha: float = ALPHA
) -> int | None:
    """Return how many paired questions find a true difference at this power.

    ``difference`` is in (0, discordance], ``discordance`` in (0, 1]; ValueError if one is out of
    range. The number returned has the power, and one question less does not. The exact power grows
    in small saw teeth, so that a slightly smaller number may have it too. None above 100 million.
    """
    if not 0 < difference <= discordance <= 1:
        raise ValueError("0 < difference <= discordance <= 1 must hold")
    low, high = 0, 8
    while mcnemar_power(high, difference, discordance, alpha) < power:
        low, high = high, high * 2
        if high > MOST_QUESTIONS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if mcnemar_power(middle, difference, discordance, alpha) < power:
            low = middle
        else:
            high = middle
    return high


@lru_cache(maxsize=64)
def _critical_counts(first: int, last: int, alpha: float) -> Floats:
    """Return the largest count of the rarer side that the test rejects, -1 if there is none.

    There is one entry for each number of discordant pairs from ``first`` to ``last``. The result is
    kept because a search for the smallest difference asks for the same entries repeatedly.
    """
    m = np.arange(first, last + 1)
    counts: Floats = scipy_stats().binom.ppf(alpha / 2, m, 0.5)
    reached: Floats = 2 * scipy_special().bdtr(counts, m, 0.5) <= alpha
    critical: Floats = np.where(reached, counts, counts - 1)
    critical.setflags(write=False)
    return critical
