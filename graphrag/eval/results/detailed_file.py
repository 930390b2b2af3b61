"""Every response of a run with its verdicts, question by question: the detailed file."""

from collections.abc import Iterator, Sequence
from typing import Any

from graphrag.eval.records import METRICS, QueryResult
from graphrag.eval.results.rows import state_of


def list_questions(results: Sequence[QueryResult]) -> Iterator[dict[str, Any]]:
    """Yield each question with every response to it, in the order of the results.

    Responses of further trials stand under ``trials``, repeated verdicts under ``repeats``.
    """
    by_question: dict[tuple[str, str, str], list[QueryResult]] = {}
    for result in results:
        key = (result.imdb_key, result.sample_id, result.question)
        by_question.setdefault(key, []).append(result)
    return (_question(found) for found in by_question.values())


def list_states(result: QueryResult) -> dict[str, str]:
    """Return metric -> the state of its verdict."""
    return {metric: state_of(result, metric).value for metric in METRICS}


def _question(found: Sequence[QueryResult]) -> dict[str, Any]:
    first = found[0]
    entry: dict[str, Any] = {
        "id": first.sample_id,
        "imdb_key": first.imdb_key,
        "question": first.question,
        "ground_truth": first.ground_truth,
        "methods": {},
    }
    for result in found:
        if result.trial == 0:
            entry["methods"][result.method] = _detail(result)
        else:
            entry.setdefault("trials", {}).setdefault(result.method, []).append(_detail(result))
    return entry


def _detail(result: QueryResult) -> dict[str, object]:
    values = result.to_dict()
    names = (
        *("response", "scores", "reasons", "efficiency", "failure"),
        *("cut_replies", "cached_prompt_tokens"),
    )
    repeats = {metric: list(result.scores.get(metric).repeats) for metric in METRICS}
    return {
        **{name: values[name] for name in names},
        "states": list_states(result),
        **({"repeats": repeats} if any(repeats.values()) else {}),
        **result.grades,
    }
