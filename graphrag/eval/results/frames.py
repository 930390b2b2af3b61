"""Verdicts as a tidy table, for pandas and what reads its frames."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from graphrag.eval.records import QueryResult
from graphrag.eval.results.rows import state_of
from graphrag.eval.stats.outcomes import State

if TYPE_CHECKING:
    import pandas as pd

# Types that know a missing value: integers beside None would become floats, and None NaN.
_COLUMNS = {
    "imdb_key": "string",
    "sample_id": "string",
    "question": "string",
    "method": "string",
    "trial": "Int64",
    "metric": "string",
    "score": "Int64",
    "state": "string",
    "reason": "string",
    "latency": "Float64",
    "tokens": "Int64",
    "cost_usd": "Float64",
    "embedded_models": "string",
}


def tidy_frame(
    results: Iterable[QueryResult], metrics: Sequence[str], label: str | None
) -> "pd.DataFrame":
    """Return one row a question, method, trial and metric, in the order of the results.

    Parameters
    ----------
    results : iterable of QueryResult
        Every trial.
    metrics : sequence of str
        What responses were to be judged on.
    label : str or None
        What results that offline baseline models had a part in are labelled with.

    Returns
    -------
    pandas.DataFrame
        ``score`` is 0 or 1, 0 of a search that failed, and missing without a verdict; ``state``
        says why. Its mean, missing ones left out, is what ``by_method`` says (of several trials,
        the mean of each question first); the tables take faithfulness and relevance over the rows
        whose state is ``scored``.
        ``latency`` (seconds), ``tokens`` and ``cost_usd`` are of the search, the same in each of
        its rows: add them up over one metric. ``embedded_models`` is the label.
    """
    import pandas as pd

    rows = [
        {
            "imdb_key": result.imdb_key,
            "sample_id": result.sample_id,
            "question": result.question,
            "method": result.method,
            "trial": result.trial,
            "metric": metric,
            "score": _score(result, metric),
            "state": state_of(result, metric).value,
            "reason": result.scores.get(metric).reason,
            "latency": result.efficiency.to_dict()["latency"],
            "tokens": result.efficiency.tokens,
            "cost_usd": None if result.usage is None else result.usage.cost_usd,
            "embedded_models": label,
        }
        for result in results
        for metric in metrics
    ]
    return pd.DataFrame(rows, columns=list(_COLUMNS)).astype(_COLUMNS)


def _score(result: QueryResult, metric: str) -> int | None:
    counts = state_of(result, metric) in (State.SCORED, State.SEARCH_FAILED)
    return result.scores.get(metric).score if counts else None
