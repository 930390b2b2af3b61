"""Repeats: item means, flip rates, and where the variance comes from."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, inf, prod
from typing import Literal, TypeAlias

import numpy as np

from graphrag.eval.statistics.estimates import Floats, Score, present, scipy_special

Preference: TypeAlias = Literal["a", "b", "tie"]
FACTORS: tuple[str, ...] = ("question", "search", "judge")
_LEVEL = 0.05


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
    """Where the variance of a score comes from: verdicts within searches within questions.

    Sources that the design can't tell apart share one name, as "search + judge" where every
    search was judged once, and each of them is None.

    Attributes
    ----------
    n_questions, n_dropped_questions, n_searches, n_judges : int
        The design, and the questions left out because a verdict is missing; ``n_judges`` are the
        verdicts on each search.
    components : dict
        Source ("question", "search", "judge", and what can't be told apart) -> variance in
        squared units of the score, >= 0; None where undefined.
    shares : dict
        The same sources -> share in [0, 1] of the variance of one score; None where undefined.
    variance_of_mean : float or None
        Of the mean over the design, for new questions; None with fewer than two questions.
    variance_if_doubled : dict
        "question", "search", "judge" -> the same with twice as many questions, searches a
        question, or verdicts a search; never below half of ``variance_of_mean``. None where
        undefined.
    best_repeat : str or None
        "search" or "judge", whichever lowers the variance more for what it costs; None where the
        data do not tell at a level of 5 %, or ``cost_ratio`` is not known.
    clipped : tuple of str
        Sources whose estimate came out below 0 and was set to 0.
    cost_ratio : float or None
        What one search costs, in verdicts.
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
    clipped: tuple[str, ...] = ()
    cost_ratio: float | None = None


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


def variance_components(
    scores: Sequence[Sequence[Sequence[Score]]], cost_ratio: float | None = 1.0
) -> VarianceComponents:
    """Split the variance of a score into that of questions, searches and verdicts.

    Parameters
    ----------
    scores : nested sequences, questions x searches x verdicts
        ``scores[q][s][j]``: verdict j on the response of search s to question q; finite numbers
        or None. A question with a None is left out.
    cost_ratio : float or None
        What one search costs, in verdicts, >= 0: by calls or by money. None when not known.

    Raises
    ------
    ValueError
        If the questions differ in shape, a score is not finite, or the ratio is negative.

    Notes
    -----
    Nested analysis of variance with random effects (Searle, Casella and McCulloch 1992, ch. 3):
    each component is the difference of two mean squares by the scores in one of its units, and
    MS_question / (number of scores) is the variance of the mean, without bias. A further search
    brings verdicts of its own, so that it always lowers the variance more than verdicts do: what
    counts is the fall by what it costs. Searches are worth more where
    var_search / var_judge > cost_ratio / n_judges^2 (Cochran 1977, Sampling Techniques, ch. 10),
    which MS_search / MS_judge decides by the F distribution, either way at 5 %.
    """
    if cost_ratio is not None and not 0 <= cost_ratio < inf:
        msg = f"a ratio of costs is finite and >= 0, or None, not {cost_ratio!r}"
        raise ValueError(msg)
    table, dropped, shape = _table(scores)
    sources, design = _sources(shape)
    squares = _mean_squares(table.reshape(design)) if table.size else [None] * len(sources)
    raw = _components(squares, design)
    found = [None if value is None else max(0.0, value) for value in raw]
    known = [value for value in found if value is not None]
    total = sum(known) if len(known) == len(found) else 0.0
    of_mean = None if squares[0] is None else squares[0] / prod(shape)
    names = dict.fromkeys((*FACTORS, *sources))
    return VarianceComponents(
        n_questions=shape[0],
        n_dropped_questions=dropped,
        n_searches=shape[1],
        n_judges=shape[2],
        components={**names, **dict(zip(sources, found, strict=True))},
        shares={
            **names,
            **{
                source: value / total if value is not None and total > 0 else None
                for source, value in zip(sources, found, strict=True)
            },
        },
        variance_of_mean=of_mean,
        variance_if_doubled=_if_doubled(squares, shape),
        best_repeat=_best_repeat(squares, shape, cost_ratio),
        clipped=tuple(
            source
            for source, value in zip(sources, raw, strict=True)
            if value is not None and value < 0
        ),
        cost_ratio=cost_ratio,
    )


def _flip_rate(item: Sequence[float]) -> float | None:
    n = len(item)
    if n < 2:
        return None
    alike = sum(times * (times - 1) for times in Counter(item).values())
    return 1 - alike / (n * (n - 1))


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


def _sources(shape: tuple[int, int, int]) -> tuple[list[str], list[int]]:
    """Return the sources that can be told apart, from the outermost, and their levels."""
    n_questions, n_searches, n_judges = shape
    names, design = ["question"], [n_questions]
    for factor, levels in (("search", n_searches), ("judge", n_judges)):
        if levels > 1:
            names.append(factor)
            design.append(levels)
        else:
            names[-1] += f" + {factor}"
    return names, design


def _mean_squares(table: Floats) -> list[float | None]:
    """Return the mean square of each axis within those before it; None without freedom."""
    inner = [table.mean(axis=tuple(range(axis, table.ndim))) for axis in range(1, table.ndim)]
    means = [table.mean(), *inner, table]
    # What is only rounding would otherwise be tested against other rounding.
    rounding = table.size * (4 * np.finfo(np.float64).eps * float(np.abs(table).max())) ** 2
    found: list[float | None] = []
    for axis, levels in enumerate(table.shape):
        freedom = prod(table.shape[:axis]) * (levels - 1)
        above = np.expand_dims(means[axis], -1)
        inside = prod(table.shape[axis + 1 :])
        total = inside * float(np.sum(np.square(means[axis + 1] - above)))
        found.append((total / freedom if total > rounding else 0.0) if freedom else None)
    return found


def _components(squares: Sequence[float | None], design: Sequence[int]) -> list[float | None]:
    found: list[float | None] = []
    for axis, square in enumerate(squares):
        within = squares[axis + 1] if axis + 1 < len(squares) else 0.0
        inside = prod(design[axis + 1 :])
        found.append(None if square is None or within is None else (square - within) / inside)
    return found


def _if_doubled(
    squares: Sequence[float | None], shape: tuple[int, int, int]
) -> dict[str, float | None]:
    """Return the variance of the mean with twice the levels of one factor.

    The mean square of an inner stratum by the number of scores is what that stratum brings into
    the variance of the mean; doubling its levels halves it.
    """
    doubled: dict[str, float | None] = dict.fromkeys(FACTORS)
    n = prod(shape)
    if squares[0] is None:
        return doubled
    now = squares[0] / n
    doubled["question"] = now / 2
    inner = [square for square in squares[1:] if square is not None]
    if shape[1] > 1:  # searches bring verdicts along: both strata, however they came out
        doubled["search"] = now - min(now, max(inner) / n) / 2
    if shape[2] > 1:
        doubled["judge"] = now - min(now, inner[-1] / n) / 2
    return doubled


def _best_repeat(
    squares: Sequence[float | None], shape: tuple[int, int, int], cost_ratio: float | None
) -> Literal["search", "judge"] | None:
    if len(squares) < 3 or not squares[0] or cost_ratio is None:
        return None
    between, within = squares[1], squares[2]
    n_questions, n_searches, n_judges = shape
    if between is None or within is None or between == within == 0:
        return None
    if within == 0:
        return "search"
    # MS_search / MS_judge is F distributed, times 1 + n_judges * var_search / var_judge
    ratio = between / within / (1 + cost_ratio / n_judges)
    freedom = (n_questions * (n_searches - 1), n_questions * n_searches * (n_judges - 1))
    if float(scipy_special().fdtrc(*freedom, ratio)) <= _LEVEL:
        return "search"
    return "judge" if float(scipy_special().fdtr(*freedom, ratio)) <= _LEVEL else None
