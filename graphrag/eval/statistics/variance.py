"""Repeats: item means, flip rates, and where the variance comes from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Literal, TypeAlias

import numpy as np

from graphrag.eval.statistics.estimates import Floats, Score, present

Preference: TypeAlias = Literal["a", "b", "tie"]
FACTORS: tuple[str, ...] = ("question", "search", "judge")


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


@dataclass(frozen=True, slots=True)
class VarianceComponents:
    """Where the variance of a score comes from, in a crossed question x search x judge design.

    Attributes
    ----------
    n_questions, n_dropped_questions, n_searches, n_judges : int
        The design, and the questions left out because a cell is missing.
    components : dict
        Effect ("question", "question x search", ...) -> variance in squared units of the score,
        estimated >= 0; None when a factor in it has fewer than two levels. The effect of all
        varied factors together contains the remaining error.
    shares : dict
        Factor -> share in [0, 1] of the variance of one score; an interaction counts to the
        last of its factors in the order question, search, judge. None where undefined.
    variance_of_mean : float or None
        Of the mean over the design; None when nothing is defined.
    variance_if_doubled : dict
        Factor -> the same after doubling its levels; None where undefined.
    best_repeat : str or None
        "search" or "judge", whichever doubling lowers the variance more; None when neither
        does or neither is known.
    """

    n_questions: int
    n_dropped_questions: int
    n_searches: int
    n_judges: int
    components: Mapping[str, float | None]
    shares: Mapping[str, float | None]
    variance_of_mean: float | None
    variance_if_doubled: Mapping[str, float | None]
    best_repeat: Literal["search", "judge"] | None


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
    items = [present(item, 0, 1) for item in verdicts]
    means = tuple(float(item.mean()) if len(item) else None for item in items)
    flips = tuple(_flip_rate(item) for item in items)
    known = [rate for rate in flips if rate is not None]
    return Repeats(means, flips, sum(known) / len(known) if known else None)


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


def variance_components(scores: Sequence[Sequence[Sequence[Score]]]) -> VarianceComponents:
    """Split the variance of a score by question, search and judge.

    Parameters
    ----------
    scores : nested sequences, questions x searches x judges
        ``scores[q][s][j]``: repeat j of the judge on the response of search s to question q;
        finite numbers or None. A question with a None is left out.

    Raises
    ------
    ValueError
        If the questions differ in shape, or a score is not finite.

    Notes
    -----
    Method of moments on the three-way random-effects table with one score a cell: from the
    largest effect down, the expected mean square of an effect is the sum over the effects
    that contain it, each times the levels of the factors outside it (Searle, Casella and
    McCulloch 1992, ch. 4). Negative estimates are set to 0.
    """
    table, dropped, shape = _table(scores)
    levels = dict(zip(FACTORS, shape, strict=True))
    varied = tuple(factor for factor in FACTORS if levels[factor] > 1)
    estimated: dict[tuple[str, ...], float] = {}
    if varied and table.size:
        estimated = _components(table.reshape([levels[factor] for factor in varied]), varied)
    names = [effect for size in (1, 2, 3) for effect in combinations(FACTORS, size)]
    total = sum(estimated.values())
    doubled: dict[str, float | None] = {}
    for factor in FACTORS:
        more = {**levels, factor: 2 * levels[factor]}
        doubled[factor] = _variance_of_mean(estimated, more) if factor in varied else None
    return VarianceComponents(
        n_questions=levels["question"],
        n_dropped_questions=dropped,
        n_searches=levels["search"],
        n_judges=levels["judge"],
        components={" x ".join(effect): estimated.get(effect) for effect in names},
        shares={
            factor: sum(v for effect, v in estimated.items() if effect[-1] == factor) / total
            if factor in varied and total > 0
            else None
            for factor in FACTORS
        },
        variance_of_mean=_variance_of_mean(estimated, levels),
        variance_if_doubled=doubled,
        best_repeat=_best_repeat(doubled, _variance_of_mean(estimated, levels)),
    )


def _flip_rate(item: Floats) -> float | None:
    n = len(item)
    if n < 2:
        return None
    differing = sum(bool(x != y) for x, y in combinations(item, 2))
    return differing / (n * (n - 1) / 2)


def _table(
    scores: Sequence[Sequence[Sequence[Score]]],
) -> tuple[Floats, int, tuple[int, int, int]]:
    shapes = {tuple(len(search) for search in question) for question in scores}
    if len(shapes) > 1 or any(len(set(shape)) > 1 for shape in shapes):
        msg = "every question needs the same searches, and every search the same verdicts"
        raise ValueError(msg)
    whole = [
        question
        for question in scores
        if not any(score is None for search in question for score in search)
    ]
    table = np.array(whole, dtype=np.float64)
    if not bool(np.all(np.isfinite(table))):
        msg = "every score must be a finite number or None"
        raise ValueError(msg)
    shape = next(iter(shapes), ())
    n_judges = shape[0] if shape else 0
    return table, len(scores) - len(whole), (len(whole), len(shape), n_judges)


def _components(table: Floats, factors: tuple[str, ...]) -> dict[tuple[str, ...], float]:
    levels = dict(zip(factors, table.shape, strict=True))
    effects = [
        effect
        for size in range(len(factors), 0, -1)
        for effect in combinations(range(len(factors)), size)
    ]
    raw: dict[tuple[str, ...], float] = {}
    for effect in effects:
        names = tuple(factors[axis] for axis in effect)
        outside = prod(n for factor, n in levels.items() if factor not in names)
        freedom = prod(levels[name] - 1 for name in names)
        mean_square = outside * float(np.sum(_deviations(table, effect) ** 2)) / freedom
        larger = sum(
            value * prod(n for factor, n in levels.items() if factor not in other)
            for other, value in raw.items()
            if set(names) < set(other)
        )
        raw[names] = (mean_square - larger) / outside
    return {names: max(0.0, value) for names, value in raw.items()}


def _deviations(table: Floats, effect: tuple[int, ...]) -> Floats:
    """Return the effect of these axes: their means, less the effects of every subset."""
    others = tuple(axis for axis in range(table.ndim) if axis not in effect)
    result = table.mean(axis=others, keepdims=True)
    for axis in effect:
        result = result - result.mean(axis=axis, keepdims=True)
    return result


def _variance_of_mean(
    components: Mapping[tuple[str, ...], float], levels: Mapping[str, int]
) -> float | None:
    if not components:
        return None
    return sum(
        value / prod(levels[name] for name in effect) for effect, value in components.items()
    )


def _best_repeat(
    doubled: Mapping[str, float | None], now: float | None
) -> Literal["search", "judge"] | None:
    search, judge = doubled["search"], doubled["judge"]
    if now is None:
        return None
    if search is not None and search < now and (judge is None or search <= judge):
        return "search"
    return "judge" if judge is not None and judge < now else None
