"""Paired 0/1 scores looked at again and again: evidence, p and limits that hold at any stop."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from graphrag.eval.statistics.estimates import CONFIDENCE
from graphrag.eval.statistics.family import Inference
from graphrag.eval.statistics.gate import EARLY_ALPHA
from graphrag.eval.statistics.libraries import Floats
from graphrag.eval.statistics.paired import PairedDifference, holm

ANYTIME_TEST, ANYTIME_INTERVAL = "betting e-process", "betting confidence sequence"
_N_BETS = 2048
_EDGE = 1e-9


class PairedCounts(NamedTuple):
    """Pairs so far, those that only a has right, that only b has, and that lack a score.

    The last are not among the first.
    """

    n: int
    n10: int
    n01: int
    missing: int = 0

    def turned(self) -> "PairedCounts":
        """Return the counts of b against a."""
        return PairedCounts(self.n, self.n01, self.n10, self.missing)

    def at_worst(self) -> "PairedCounts":
        """Return the counts as if a had lost wherever a score is missing."""
        return PairedCounts(self.n + self.missing, self.n10, self.n01 + self.missing)


def mean_evidence(counts: PairedCounts, mean: float) -> tuple[float, float]:
    """Return the evidence that the true mean of ``a - b`` is above a value, and below it.

    Parameters
    ----------
    counts : PairedCounts
        The questions in an order that has nothing to do with how they are answered.
    mean : float
        The value that is tried, in (-1, 1).

    Returns
    -------
    above, below : float
        >= 0 and cut at the largest float; 1 at the start. When the true mean is not above the
        value, the first ever reaches 1/a with a probability of at most a, however often one
        looks (Ville 1939); so does the second when it is not below.

    Notes
    -----
    A fortune that grows by ``1 + bet (d - mean)`` with each difference d, averaged over even
    bets as large as it can bear: Waudby-Smith and Ramdas 2024, doi:10.1093/jrsssb/qkad009;
    Orabona and Jun 2024, doi:10.1109/TIT.2023.3330187. Any average of such fortunes is valid,
    that over a grid as well. For a mean of 0 the sum of the two is
    ``2^(m+1) B(n10+1, n01+1)``, as ``gate.early_stop_evidence`` has it.
    """
    ties = counts.n - counts.n10 - counts.n01
    found: list[float] = []
    for bets in (_grid() / (1 + mean), -_grid() / (1 - mean)):
        fortune = (
            counts.n10 * np.log1p(bets * (1 - mean))
            + counts.n01 * np.log1p(bets * (-1 - mean))
            + ties * np.log1p(-bets * mean)
        )
        largest = float(fortune.max())
        average = largest + float(np.log(np.mean(np.exp(fortune - largest))))
        found.append(float(np.exp(min(average, np.log(np.finfo(float).max)))))
    return found[0], found[1]


def anytime_p(counts: PairedCounts) -> float:
    """Return the p value of no difference that holds at any stop: 1 by the mean evidence."""
    return min(1.0, 2 / max(2.0, sum(mean_evidence(counts, 0.0))))


def anytime_limits(counts: PairedCounts, confidence: float) -> tuple[float, float]:
    """Return limits of the mean of ``a - b`` that hold at every look together.

    Parameters
    ----------
    counts : PairedCounts
        Of at least one pair.
    confidence : float
        In (0, 1).

    Returns
    -------
    tuple of float
        In [-1, 1] and around the observed difference: the means against which the evidence,
        averaged over both directions, is below ``1 / (1 - confidence)``.
    """
    observed = (counts.n10 - counts.n01) / counts.n
    needed = float(np.log(1 / (1 - confidence)))

    def beyond(mean: float) -> float:
        above, below = mean_evidence(counts, mean)
        return float(np.log(max(above / 2 + below / 2, np.finfo(float).tiny))) - needed

    optimize: Any = import_module("scipy.optimize")
    middle = min(max(observed, _EDGE - 1), 1 - _EDGE)
    low, high = -1.0, 1.0
    if beyond(_EDGE - 1) > 0 > beyond(middle):
        low = float(optimize.brentq(beyond, _EDGE - 1, middle))
    if beyond(1 - _EDGE) > 0 > beyond(middle):
        high = float(optimize.brentq(beyond, middle, 1 - _EDGE))
    return min(low, observed), max(high, observed)


def at_any_stop(result: PairedDifference) -> PairedDifference:
    """Return a comparison with p and limits (95 %) that hold wherever the run stopped.

    What could have been seen is left out, as it hangs on when the run would have stopped.
    """
    if result.n_pairs == 0:
        return result
    counts = PairedCounts(result.n_pairs, result.n10, result.n01)
    low, high = anytime_limits(counts, CONFIDENCE)
    return replace(
        result,
        low=low,
        high=high,
        p=anytime_p(counts),
        detectable_at_80=None,
        interval=ANYTIME_INTERVAL,
        test=ANYTIME_TEST,
    )


def inference_at_any_stop(result: PairedDifference) -> Inference:
    """Return how a comparison is judged wherever the run stopped."""
    counts = PairedCounts(result.n_pairs, result.n10, result.n01)

    def outside(lowest: float, highest: float) -> float:
        inside = [max(_EDGE - 1, min(1 - _EDGE, bound)) for bound in (lowest, highest)]
        evidence = (mean_evidence(counts, inside[0])[0], mean_evidence(counts, inside[1])[1])
        return 1 / max(1.0, min(evidence))

    def limits(confidence: float) -> tuple[float, float]:
        return anytime_limits(counts, confidence)

    return Inference(limits, outside)


def certain_winner(
    methods: Sequence[str],
    counts: Mapping[tuple[str, str], PairedCounts],
    level: float = EARLY_ALPHA,
) -> str | None:
    """Return the method that has beaten every other one, None while there is none.

    Parameters
    ----------
    methods : sequence of str
        Two or more.
    counts : mapping
        (a, b) -> counts so far, for each pair in the order of the methods.
    level : float
        In (0, 1): chance that any method is ever said to beat one that it does not beat.

    Notes
    -----
    Holm over all pairs, each by ``anytime_p``, which holds at any stop; against the winner every
    missing score counts as a loss.
    """
    for leader in methods:
        own = {
            pair: (found if leader == pair[0] else found.turned()).at_worst()
            for pair, found in counts.items()
            if leader in pair
        }
        if any(found.n10 <= found.n01 for found in own.values()):
            continue
        tested = {**counts, **own}
        corrected = dict(zip(tested, holm([anytime_p(c) for c in tested.values()]), strict=True))
        if all((corrected[pair] or 0.0) <= level for pair in own):
            return leader
    return None


@lru_cache(maxsize=1)
def _grid() -> Floats:
    """Return even bets in (0, 1)."""
    grid: Floats = (np.arange(_N_BETS) + 0.5) / _N_BETS
    grid.setflags(write=False)
    return grid
