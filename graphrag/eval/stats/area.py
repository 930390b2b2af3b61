"""The area under a curve of scores over budgets that double, as one figure."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import log2

from graphrag.eval.stats.estimates import Score


def area_weights(budgets: Sequence[float]) -> tuple[float, ...]:
    """Return the weight of each budget's score in the area under the curve.

    Parameters
    ----------
    budgets : sequence of float
        Two or more, each > 0, ascending.

    Returns
    -------
    tuple of float
        Each > 0; they add up to 1.

    Raises
    ------
    ValueError
        If there are fewer than two budgets, or they do not ascend from above 0.

    Notes
    -----
    The trapezoidal rule over log2 of the budget, by the width of the whole: half the distance
    between a budget's neighbours (at an end: to its one neighbour). So each doubling counts alike,
    and scores in [0, 1] give an area in [0, 1].
    """
    if len(budgets) < 2 or budgets[0] <= 0:
        msg = f"an area needs two budgets or more above 0, not {list(budgets)}"
        raise ValueError(msg)
    places = [log2(budget) for budget in budgets]
    if any(after <= before for before, after in pairwise(places)):
        msg = f"budgets must ascend, unlike {list(budgets)}"
        raise ValueError(msg)
    last = len(places) - 1
    width = 2 * (places[-1] - places[0])
    return tuple(
        (places[min(i + 1, last)] - places[max(i - 1, 0)]) / width for i in range(len(places))
    )


def area_under(scores: Mapping[int, Score], budgets: Sequence[int]) -> float | None:
    """Return the area under one question's curve; None unless every budget has a score.

    As the area is a weighted mean of scores, the mean of the questions' areas is the area under
    the curve of the means, and has the intervals and tests of any other score of a question.
    """
    found = [scores.get(budget) for budget in budgets]
    known = [float(score) for score in found if score is not None]
    if len(known) < len(found):
        return None
    return sum(w * s for w, s in zip(area_weights(budgets), known, strict=True))
