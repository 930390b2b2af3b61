"""What became of every question between two runs, one record each, as the gate counts it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from graphrag.eval.compare.pairing import Joined, pairs_of_metric
from graphrag.eval.records import measured_latency
from graphrag.eval.results.rows import Row, gate_score

Change: TypeAlias = Literal[
    "newly wrong", "newly right", "unchanged", "search failed", "unscored", "not compared"
]


@dataclass(frozen=True, slots=True)
class QuestionChange:
    """One question of one method on one metric in two runs.

    Attributes
    ----------
    method, metric, document, question_id : str
        The document is "" where neither run knows it.
    question : str or None
        Its text; None where neither run was kept with it.
    change : str
        A search that failed in the new run is that, whatever it was before: the gate counts it
        as not done well. "unscored": a run lacks the verdict. "not compared": a run lacks the
        question, or its accepted answer is another now.
    told : str
        The change in words.
    seconds : float or None
        Of the new run's search; None when it was not measured.
    """

    method: str
    metric: str
    document: str
    question_id: str
    question: str | None
    change: Change
    told: str
    seconds: float | None = None


def changes_of(
    joined: Mapping[str, Joined], metrics: Sequence[str], sides: tuple[str, str]
) -> tuple[QuestionChange, ...]:
    """Return what became of every question, method by method.

    Parameters
    ----------
    joined : dict
        Method -> its rows.
    metrics : sequence of str
    sides : tuple of str
        What the new run and the baseline are called.
    """
    return tuple(
        change
        for method, rows in joined.items()
        for metric in metrics
        for change in _of_method(rows, method, metric, sides)
    )


def _of_method(
    joined: Joined, method: str, metric: str, sides: tuple[str, str]
) -> list[QuestionChange]:
    scores = pairs_of_metric(joined, metric).scores
    found: list[QuestionChange] = []
    for (new, old), (now, then) in zip(joined.pairs, scores, strict=False):
        change, told = _compare(new, old, metric, sides)
        if change not in ("unscored", "search failed") and None in (now, then):
            change, told = "not compared", "its accepted answer is another now"
        found.append(_record(new, old, (method, metric), change, told))
    for rows, side in ((joined.new, sides[0]), (joined.baseline, sides[1])):
        told = f"only in the {side}"
        found += [_record(row, row, (method, metric), "not compared", told) for row in rows]
    return found


def _compare(new: Row, old: Row, metric: str, sides: tuple[str, str]) -> tuple[Change, str]:
    now, then = gate_score(new, metric), gate_score(old, metric)
    if new.censored:
        return "search failed", f"the search failed; {sides[1]}: {_word(old, metric)}"
    for row, score, side in ((new, now, sides[0]), (old, then, sides[1])):
        if score is None:
            return "unscored", f"no verdict in the {side}: {_word(row, metric)}"
    told = f"{metric} {then} -> {now}: {_word(old, metric)} -> {_word(new, metric)}"
    if now == then:
        return "unchanged", told
    return ("newly right" if now else "newly wrong"), told


def _word(row: Row, metric: str) -> str:
    """Return how a question ended, with the judge's score where there is one."""
    score = row.scores[metric]
    state = row.states[metric].value.replace("_", " ")
    return state if score is None else f"judged {score}"


def _record(new: Row, old: Row, key: tuple[str, str], change: Change, told: str) -> QuestionChange:
    return QuestionChange(
        *key,
        new.document or old.document,
        old.question_id,
        new.question or old.question,
        change,
        told,
        None if new is old else measured_latency(new.latency_s),
    )
