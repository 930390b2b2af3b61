"""Repeats: item means and flip rates."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal, TypeAlias

from graphrag.eval.stats.estimates import Score, present

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
