"""Repeated searches and verdicts: what flips."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from graphrag.eval.records import QueryResult
from graphrag.eval.results.rows import ZERO_IF_FAILED, state_of
from graphrag.eval.stats.outcomes import State
from graphrag.eval.stats.variance import summarize_repeats

Cells: TypeAlias = list[list[int | None]]
"""Trials x verdicts of one question: 0, 1 or None."""
_Key: TypeAlias = tuple[str, str]  # document, id of the question


@dataclass(frozen=True, slots=True)
class RepeatFigures:
    """One method on one metric.

    Attributes
    ----------
    method, metric : str
    search_flip_rate : float or None
        Chance in [0, 1] that asking a question again changes the score; None without repeats.
    judge_flip_rate : float or None
        Chance that asking the judge again changes its verdict, over the responses that it was
        asked about (no failed search); None without repeats.
    """

    method: str
    metric: str
    search_flip_rate: float | None
    judge_flip_rate: float | None


@dataclass(frozen=True, slots=True)
class RepeatAnalysis:
    """Everything that repeats tell.

    Attributes
    ----------
    n_trials, n_verdicts : int
        How often each question was searched, and each response judged.
    figures : tuple of RepeatFigures
    """

    n_trials: int
    n_verdicts: int
    figures: tuple[RepeatFigures, ...]

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
        In the order in which they are reported.
    """
    n_trials = 1 + max((result.trial for result in results), default=0)
    n_verdicts = max(
        (len(result.scores.get(metric).repeats) for result in results for metric in metrics),
        default=0,
    )
    n_verdicts = max(1, n_verdicts)
    if n_trials == n_verdicts == 1:
        return None
    by_method = {method: [r for r in results if r.method == method] for method in methods}
    cells = {
        (method, metric): _cells(found, metric, (n_trials, n_verdicts))
        for method, found in by_method.items()
        for metric in metrics
    }
    return RepeatAnalysis(
        n_trials,
        n_verdicts,
        tuple(
            RepeatFigures(
                method=method,
                metric=metric,
                search_flip_rate=_search_flips(items),
                judge_flip_rate=_judge_flips(by_method[method], metric),
            )
            for (method, metric), found in cells.items()
            for items in [list(found.values())]
        ),
    )


def _cells(
    results: Sequence[QueryResult], metric: str, shape: tuple[int, int]
) -> dict[_Key, Cells]:
    n_trials, n_verdicts = shape
    found: dict[_Key, Cells] = {}
    for result in results:
        key = (result.imdb_key, result.sample_id or result.question)
        if key not in found:
            found[key] = [[None] * n_verdicts for _ in range(n_trials)]
        found[key][result.trial] = _verdicts(result, metric, n_verdicts)
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


def _search_flips(items: Sequence[Cells]) -> float | None:
    return summarize_repeats([[_majority(trial) for trial in item] for item in items]).flip_rate


def _judge_flips(results: Sequence[QueryResult], metric: str) -> float | None:
    """Return how often repeated verdicts differ; a failed search was not judged at all."""
    asked = [_verdicts(result, metric, 1) for result in results if result.failure is None]
    return summarize_repeats(asked).flip_rate


def _majority(verdicts: list[int | None]) -> int | None:
    votes = [score for score in verdicts if score is not None]
    if not votes or 2 * sum(votes) == len(votes):
        return None
    return int(2 * sum(votes) > len(votes))
