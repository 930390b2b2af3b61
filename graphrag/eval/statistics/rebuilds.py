"""A run on a rebuilt index against rebuilds of the index it is held against."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from graphrag.eval.statistics.estimates import Floats, Score, scipy_special, scipy_stats

MIN_REBUILDS = 2
_LEVEL = 0.05  # one-sided, as the gate's


@dataclass(frozen=True, slots=True)
class RebuildComparison:
    """A run less the mean of several runs of an unchanged system, each on its own index.

    Attributes
    ----------
    n_runs, n_questions, n_indexes : int
        Runs of the unchanged system, questions that all of them and the new run have a score
        for, and indexes (of one document or more) that those stand in.
    difference : float
        In [-1, 1].
    standard_error : float or None
        Of the difference by how much rebuilds differ; None when they did not differ at all.
    df : float or None
        Satterthwaite's degrees of freedom; None with the standard error.
    p : float or None
        One-sided: an unchanged system, rebuilt once more, would lie as low; None with the
        standard error.
    lower_bound : float or None
        One-sided 95 % limit, for new questions and new rebuilds; None with the standard error.
    """

    n_runs: int
    n_questions: int
    n_indexes: int
    difference: float
    standard_error: float | None
    df: float | None
    p: float | None
    lower_bound: float | None

    @property
    def in_words(self) -> str:
        """The yardstick in words."""
        return f"the spread of {self.n_runs} rebuilds of the unchanged index"


def compare_with_rebuilds(
    new: Sequence[Score], runs: Sequence[Sequence[Score]], indexes: Sequence[Hashable]
) -> RebuildComparison | None:
    """Hold a run on a rebuilt index against runs of the unchanged system on rebuilt indexes.

    Parameters
    ----------
    new : sequence
        Scores of the new run in [0, 1], one a question; None where one is missing.
    runs : sequence of sequences
        The same of at least two runs, in the same order of questions.
    indexes : sequence
        The index of each question: those of one index are rebuilt together.

    Returns
    -------
    RebuildComparison or None
        None when no question has every score.

    Raises
    ------
    ValueError
        If there are fewer than two runs, or the lengths differ.

    Notes
    -----
    With x_gr the mean of index g in run r and w_g its share of the questions, an unchanged system
    that is rebuilt once more differs from the mean of R rebuilds by a variance of
    ``sum_g w_g^2 s_g^2 (1 + 1/R)``; s_g^2 is the variance of x_g. between the rebuilds, with
    R - 1 degrees of freedom each, together as by Satterthwaite 1946 (doi:10.2307/3002019). The
    questions are the same on both sides, so their choice is no part of the test. The limit adds
    it: the half width of Bonett and Price 2012 (doi:10.3102/1076998611411915), one newly right
    and one newly wrong answer added, for differences anywhere in [-1, 1], combined by squares.
    """
    if len(runs) < MIN_REBUILDS:
        msg = f"at least {MIN_REBUILDS} runs are needed, not {len(runs)}"
        raise ValueError(msg)
    complete = [
        (values, index)
        for *values, index in zip(new, *runs, indexes, strict=True)
        if None not in values
    ]
    if not complete:
        return None
    scores: Floats = np.array([values for values, _ in complete], dtype=np.float64)
    names = {index: place for place, index in enumerate(dict.fromkeys(i for _, i in complete))}
    group = np.array([names[index] for _, index in complete])
    sizes = np.bincount(group)
    sums = np.stack([np.bincount(group, weights=column) for column in scores.T[1:]])
    n_runs, n = len(runs), len(complete)
    # of w_g^2 s_g^2: the weight times the mean is the sum over the document by all questions
    parts = (sums / n).var(axis=0, ddof=1) * (1 + 1 / n_runs)
    differences = scores[:, 0] - scores[:, 1:].mean(axis=1)
    difference = float(differences.mean())
    variance = float(parts.sum())
    if variance <= 1e-18:  # equal means, but for what their sums are rounded by
        return RebuildComparison(n_runs, n, len(sizes), difference, None, None, None, None)
    df = variance**2 / float(np.sum(parts**2 / (n_runs - 1)))
    error = sqrt(variance)
    t = scipy_stats().t
    half = float(np.hypot(float(t.ppf(1 - _LEVEL, df)) * error, bounded_half_width(differences)))
    return RebuildComparison(
        n_runs=n_runs,
        n_questions=n,
        n_indexes=len(sizes),
        difference=difference,
        standard_error=error,
        df=df,
        p=float(t.cdf(difference / error, df)),
        lower_bound=max(-1.0, difference - half),
    )


def bounded_half_width(differences: Floats) -> float:
    """Return how far the one-sided 95 % limit lies below the mean of values in [-1, 1].

    Of values in {-1, 0, 1} it is that of Bonett and Price, so that it is never 0.
    """
    n = len(differences) + 2
    centre = float(differences.sum()) / n
    spread = max(0.0, (float(np.sum(differences**2)) + 2) / n - centre**2)
    z = float(scipy_special().ndtri(1 - _LEVEL))
    return max(0.0, float(differences.mean()) - centre + z * sqrt(spread / n))
