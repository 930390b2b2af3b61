"""Turns results into rows: how each question ended on each metric, and what it counts."""

import gc
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from math import isfinite
from statistics import fmean
from typing import Any, TypeAlias

from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.stats.intervals import grouped
from graphrag.eval.stats.outcomes import State
from graphrag.eval.types.metric_definitions import JUDGED_METRICS, METRICS
from graphrag.eval.types.query_results import QueryResult
from graphrag.eval.types.verdicts import NOT_JUDGED, JudgeResult
from graphrag.text.message_phrases import fold_line

QuestionKey: TypeAlias = tuple[str, str]
"""A document and the id of a question on it; two documents may use the same ids."""
Section: TypeAlias = dict[str, Any]
"""A part of a results file, JSON-ready; docs/files.md describes it."""

NOT_KEPT = Sample(id="", imdb_key="", question="", ground_truth="")
"""Replaces a question that a store does not have."""
FAILED_AS_0 = ", failed as 0"
"""Added to the name of a metric for the mean in which failed searches count 0."""


@contextmanager
def many_records() -> Generator[None]:
    """Switch off the search for garbage cycles while many records, which have none, are made."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@dataclass(frozen=True, slots=True)
class Row:
    """One question answered by one method in one trial, as far as figures need it.

    - ``states``: metric -> State. ``scores``: metric -> 0 or 1, or None unless its state is scored.
    - ``latency_s``: seconds, None if not measured. ``censored``: the search failed, so that its
      answer would have taken longer.
    - ``tokens``: prompt and output tokens of its completions, None if not counted. ``cost_usd``: of
      the search, None if a price is not known.
    - ``question``, ``reference``: its text and a hash of the accepted answer, None if not kept.
    - ``trial``: which repeat of the search it is, from 0.
    - ``answerable``: False if the documents are known to have no answer.

    Raises ValueError if a state and its score do not fit, or a count is negative, NaN or infinite.
    """

    question_id: str
    document: str
    method: str
    states: Mapping[str, State]
    scores: Mapping[str, int | None]
    latency_s: float | None = None
    censored: bool = False
    tokens: int | None = 0
    cost_usd: float | None = None
    question: str | None = None
    reference: str | None = None
    trial: int = 0
    answerable: bool = True

    def __post_init__(self) -> None:
        for metric, state in self.states.items():
            score = self.scores.get(metric)
            if (state is State.SCORED) != (score is not None) or score not in (0, 1, None):
                raise ValueError(f"{metric} is {state.value!r}, and its score can't be {score!r}")
        for name in ("latency_s", "tokens", "cost_usd"):
            value: float | None = getattr(self, name)
            if value is not None and not (isfinite(value) and value >= 0):
                msg = f"the {name} of {self.method} on {self.question_id!r} can't be {value!r}"
                raise ValueError(msg)

    @property
    def key(self) -> QuestionKey:
        """The document and question id by which rows are joined."""
        return self.document, self.question_id

    @property
    def end(self) -> tuple[object, ...]:
        """How the row ended: its document, then every state and score by the metric's name."""
        return self.document, *sorted(self.states.items()), *sorted(self.scores.items())


def states_and_scores(
    has_failed: bool, abstained: bool, verdicts: Mapping[str, JudgeResult]
) -> tuple[dict[str, State], dict[str, int | None]]:
    """Return metric -> state and metric -> score; without a verdict a metric was not judged."""
    every = {metric: verdicts.get(metric, NOT_JUDGED) for metric in METRICS}
    states = {m: state_of_verdict(has_failed, abstained, m, v) for m, v in every.items()}
    scores = {m: v.score if states[m] is State.SCORED else None for m, v in every.items()}
    return states, scores


def rows_of(results: Sequence[QueryResult]) -> list[Row]:
    """Return a row for each result, in their order."""
    rows: list[Row] = []
    for result in results:
        verdicts = {metric: result.scores.get(metric) for metric in METRICS}
        rows.append(
            Row(
                result.sample_id or result.question,
                result.imdb_key,
                result.method,
                *states_and_scores(result.failure is not None, result.abstained, verdicts),
                latency_s=result.efficiency.latency,
                censored=result.failure is not None,
                tokens=result.efficiency.tokens,
                cost_usd=result.usage.cost_usd if result.usage is not None else None,
                question=result.question or None,
                reference=digest_reference(result.ground_truth),
                trial=result.trial,
            )
        )
    return rows


def with_every_metric(row: Row) -> Row:
    """Return a row that was kept when there were fewer metrics, as not judged on the new ones."""
    missing = State.SEARCH_FAILED if row.censored else State.NOT_JUDGED
    return replace(
        row,
        states={**dict.fromkeys(METRICS, missing), **row.states},
        scores={**dict.fromkeys(METRICS), **row.scores},
    )


def state_of(result: QueryResult, metric: str) -> State:
    """Return how a result ended on a metric."""
    has_failed = result.failure is not None
    return state_of_verdict(has_failed, result.abstained, metric, result.scores.get(metric))


def state_of_verdict(has_failed: bool, abstained: bool, metric: str, verdict: JudgeResult) -> State:
    """Return how a result ended on a metric, given its verdict."""
    if has_failed:
        # Only what can't be judged at all, for want of an answer to compare with, has no score.
        return State.NOT_JUDGED if verdict.score is None else State.SEARCH_FAILED
    if abstained and not JUDGED_METRICS[metric].judges_abstentions:
        return State.ABSTAINED
    if verdict.failure is not None:
        unreadable = verdict.failure.kind in ("unreadable", "cut_off")
        return State.JUDGE_UNPARSEABLE if unreadable else State.JUDGE_FAILED
    return State.NOT_JUDGED if verdict.score is None else State.SCORED


def paired_score(row: Row, metric: str) -> int | None:
    """Return a row's score in a comparison; a failed search is 0 if the metric counts it so."""
    if row.states[metric] is State.SEARCH_FAILED and JUDGED_METRICS[metric].zero_if_failed:
        return 0
    return row.scores[metric]


def owes_nothing(new: Row, old: Row, metric: str) -> bool:
    """Return whether a question that a run did not judge lacks no verdict that was due.

    That is so if neither run judged it, or if the documents have no answer and the metric is not
    judged then. Until 1.0.0 such questions were judged on every metric.
    """
    states = {new.states[metric], old.states[metric]}
    by_answer = metric == "faithfulness" or not JUDGED_METRICS[metric].of_unanswerable
    is_left_out = by_answer and not (new.answerable and old.answerable)
    return State.NOT_JUDGED in states and (is_left_out or len(states) == 1)


def has_nothing_to_judge(row: Row, metric: str) -> bool:
    """Return whether a row has no score on a metric, and is not to get one."""
    state = row.states[metric]
    if state is State.SEARCH_FAILED:
        return not JUDGED_METRICS[metric].zero_if_failed
    return state in (State.NOT_JUDGED, State.ABSTAINED)


def item_scores(rows: Sequence[Row], metric: str) -> dict[QuestionKey, float | None]:
    """Return the mean score of each question over its searches; None if none has a score."""
    return item_means((row.key, paired_score(row, metric)) for row in rows)


def item_means(
    values: Iterable[tuple[QuestionKey, float | None]],
) -> dict[QuestionKey, float | None]:
    """Return the mean of the values that each question has; None if it has none."""
    return {
        key: mean_known([v for v in trials if v is not None]) if len(trials) > 1 else trials[0]
        for key, trials in grouped(values).items()
    }


def mean_known(values: Sequence[float]) -> float | None:
    """Return the mean of values; None if there are none."""
    return fmean(values) if values else None


def gate_score(row: Row, metric: str) -> int | None:
    """Return a row's score in the gate: whether the search did well on a metric.

    It is 0 for a failed search, whatever the metric. An abstention that leaves nothing to judge is
    1 if it was judged correct because the documents don't say, else 0. If such searches were left
    out, a run whose searches fail would pass on the few that did not. Only a missing verdict is
    None.
    """
    state = row.states[metric]
    if state is State.SEARCH_FAILED:
        return 0
    if state is State.ABSTAINED:
        return int(row.scores.get("correctness") == 1)
    return row.scores[metric]


@lru_cache(maxsize=2**12)  # the methods of a run answer the same questions
def digest_reference(text: str) -> str | None:
    """Return a hash of an accepted answer that ignores case and blanks; None if it is empty."""
    return blake2b(fold_line(text).encode(), digest_size=8).hexdigest() if text else None
