"""Repeated searches and verdicts: one mean a question, what flips, where the variance comes from.

Only the means of questions are analysed: repeats of one question are not independent rows.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from graphrag.eval.analysis.rows import ZERO_IF_FAILED, state_of
from graphrag.eval.records import QueryResult
from graphrag.eval.statistics import (
    Estimate,
    ScaleDifference,
    State,
    VarianceComponents,
    holm,
    paired_scale,
    summarize_repeats,
    t_estimate,
    variance_components,
)

Cells = list[list[int | None]]
"""Trials x verdicts of one question: 0, 1 or None."""


@dataclass(frozen=True, slots=True)
class RepeatFigures:
    """One method on one metric.

    Attributes
    ----------
    method, metric : str
    mean : Estimate
        Mean over the questions of each one's mean score in [0, 1], t limits; estimand A.
    search_flip_rate : float or None
        Chance in [0, 1] that asking a question again changes the score; None without repeats.
    judge_flip_rate : float or None
        Chance that asking the judge again changes its verdict, over the responses that it was
        asked about (no failed search); None without repeats.
    variance : VarianceComponents
        Over the questions of which no search and no verdict is missing.
    """

    method: str
    metric: str
    mean: Estimate
    search_flip_rate: float | None
    judge_flip_rate: float | None
    variance: VarianceComponents


@dataclass(frozen=True, slots=True)
class RepeatComparison:
    """Two methods on one metric, by the means of their questions.

    ``p_holm`` is corrected over the method pairs on the primary metric; None on the others,
    which are exploratory.
    """

    a: str
    b: str
    metric: str
    result: ScaleDifference
    p_holm: float | None


@dataclass(frozen=True, slots=True)
class RepeatAnalysis:
    """Everything that repeats tell.

    Attributes
    ----------
    n_trials, n_verdicts : int
        How often each question was searched, and each response judged.
    figures : tuple of RepeatFigures
    comparisons : tuple of RepeatComparison
    """

    n_trials: int
    n_verdicts: int
    figures: tuple[RepeatFigures, ...]
    comparisons: tuple[RepeatComparison, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON-ready values."""
        return asdict(self)


def analyse_repeats(
    results: Sequence[QueryResult], methods: Sequence[str], metrics: Sequence[str]
) -> RepeatAnalysis | None:
    """Compute what repeats tell; None when nothing was repeated.

    Parameters
    ----------
    results : sequence of QueryResult
        Every trial of every question.
    methods, metrics : sequence of str
        In the order in which they are reported; the first metric is the primary one.
    """
    n_trials = 1 + max((result.trial for result in results), default=0)
    n_verdicts = max(
        (len(result.scores.get(metric).repeats) for result in results for metric in metrics),
        default=0,
    )
    n_verdicts = max(1, n_verdicts)
    if n_trials == n_verdicts == 1:
        return None
    cells = {
        (method, metric): _cells(
            [result for result in results if result.method == method],
            metric,
            (n_trials, n_verdicts),
        )
        for method in methods
        for metric in metrics
    }
    return RepeatAnalysis(
        n_trials,
        n_verdicts,
        tuple(
            _figures(*key, list(found.values()), _asked(results, *key))
            for key, found in cells.items()
        ),
        tuple(
            compared
            for position, metric in enumerate(metrics)
            for compared in _compare(
                {method: cells[method, metric] for method in methods}, metric, position == 0
            )
        ),
    )


def _cells(results: Sequence[QueryResult], metric: str, shape: tuple[int, int]) -> dict[str, Cells]:
    n_trials, n_verdicts = shape
    found: dict[str, Cells] = {}
    for result in results:
        key = result.sample_id or result.question
        nothing: Cells = [[None] * n_verdicts for _ in range(n_trials)]
        given = _verdicts(result, metric, n_verdicts)
        found.setdefault(key, nothing)[result.trial] = given
    return found


def _verdicts(result: QueryResult, metric: str, n: int) -> list[int | None]:
    state = state_of(result, metric)
    if state is State.SEARCH_FAILED:
        return [0 if metric in ZERO_IF_FAILED else None] * n
    verdict = result.scores.get(metric)
    if state in (State.ABSTAINED, State.NOT_JUDGED):
        return [None] * n
    given = list(verdict.repeats or (verdict.score,))
    return given + [None] * (n - len(given))


def _asked(results: Sequence[QueryResult], method: str, metric: str) -> Cells:
    """Return the repeated verdicts on each response; a failed search was not judged at all."""
    return [
        _verdicts(result, metric, 1)
        for result in results
        if result.method == method and result.failure is None
    ]


def _figures(
    method: str, metric: str, items: list[Cells], asked: list[list[int | None]]
) -> RepeatFigures:
    means = [mean for mean in _item_means(items) if mean is not None]
    by_trial = summarize_repeats([[_majority(trial) for trial in item] for item in items])
    return RepeatFigures(
        method=method,
        metric=metric,
        mean=t_estimate(np.array(means, dtype=np.float64), (0.0, 1.0)),
        search_flip_rate=by_trial.flip_rate,
        judge_flip_rate=summarize_repeats(asked).flip_rate,
        variance=variance_components(items),
    )


def _compare(
    by_method: dict[str, dict[str, Cells]], metric: str, in_family: bool
) -> list[RepeatComparison]:
    means = {
        method: dict(zip(items, _item_means(list(items.values())), strict=True))
        for method, items in by_method.items()
    }
    compared = [
        RepeatComparison(
            a,
            b,
            metric,
            paired_scale([(means[a][key], means[b][key]) for key in means[a] if key in means[b]]),
            None,
        )
        for a, b in combinations(by_method, 2)
    ]
    if not in_family:
        return compared
    corrected = holm([each.result.p for each in compared])
    return [replace(each, p_holm=p) for each, p in zip(compared, corrected, strict=True)]


def _item_means(items: list[Cells]) -> tuple[float | None, ...]:
    """Return the mean over the trials of each one's mean, None without any score."""
    by_trial = [summarize_repeats(item).item_means for item in items]
    return summarize_repeats(by_trial).item_means


def _majority(verdicts: list[int | None]) -> int | None:
    votes = [score for score in verdicts if score is not None]
    if not votes or 2 * sum(votes) == len(votes):
        return None
    return int(2 * sum(votes) > len(votes))
