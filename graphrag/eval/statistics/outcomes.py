"""Whose fault was it: every question ends in one state, and the states add up to the plan."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from graphrag.eval.statistics.estimates import (
    Estimate,
    Score,
    present,
    share_of_total,
    share_of_totals,
)


class State(StrEnum):
    """How one (question, method, metric) ended.

    ``ABSTAINED`` (the response refuses or says "not found") exists for metrics of the response
    itself, faithfulness and relevance; for correctness an abstention is scored, 0 or 1.
    """

    SCORED = "scored"
    SEARCH_FAILED = "search_failed"
    JUDGE_FAILED = "judge_failed"
    JUDGE_UNPARSEABLE = "judge_unparseable"
    NOT_JUDGED = "not_judged"
    ABSTAINED = "abstained"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one (question, method, metric).

    Attributes
    ----------
    state : State
    score : float or None
        In [0, 1] when scored, else None.
    document : hashable
        The document that the question is about; None when it does not matter.

    Raises
    ------
    ValueError
        If a scored outcome has no score, another one has, or the score is outside [0, 1].
    """

    state: State
    score: Score = None
    document: Hashable = None

    def __post_init__(self) -> None:
        if (self.state is State.SCORED) != (self.score is not None):
            msg = f"an outcome {self.state.value!r} can't have the score {self.score!r}"
            raise ValueError(msg)
        present([self.score], 0, 1)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """One method on one metric: what was planned, what is missing, and the means.

    Attributes
    ----------
    n_planned, n_search_failed, n_judge_failed, n_judge_unparseable, n_not_judged, n_abstained,
    n_scored, n_not_run : int
        The others add up to the first. ``n_not_run`` were planned and not searched: a run that
        was interrupted, or methods that were asked different questions.
    coverage : float or None
        Share in [0, 1] of the verdicts asked of the judge that exist; None when none was asked.
    end_to_end : Estimate or None
        Mean over scored responses and failed searches, which count 0; None for a metric on
        which a failed search has nothing to judge (faithfulness, relevance). Without a mean
        where no response was judged on the metric, because it was not asked or as some were not
        judged: the failed searches alone would make it 0.
    given_answer : Estimate
        Mean over scored responses alone.
    bounds : tuple of float or None
        The mean if every missing verdict were 0, and if every one were 1, over the responses
        of ``end_to_end`` (else of ``given_answer``) and the missing: [k/N, (k+m)/N]; None when
        N is 0.

    Raises
    ------
    ValueError
        If the counts do not add up.
    """

    n_planned: int
    n_search_failed: int
    n_judge_failed: int
    n_judge_unparseable: int
    n_not_judged: int
    n_abstained: int
    n_scored: int
    n_not_run: int
    coverage: float | None
    end_to_end: Estimate | None
    given_answer: Estimate
    bounds: tuple[float, float] | None

    def __post_init__(self) -> None:
        ended = (
            self.n_search_failed
            + self.n_judge_failed
            + self.n_judge_unparseable
            + self.n_not_judged
            + self.n_abstained
            + self.n_scored
            + self.n_not_run
        )
        if ended != self.n_planned:
            msg = f"{self.n_planned} outcomes were planned, {ended} are accounted for"
            raise ValueError(msg)


def summarize_outcomes(
    outcomes: Mapping[Outcome, int],
    *,
    n_planned: int,
    failed_search_is_zero: bool,
    stratified: bool = False,
    is_asked: bool = True,
) -> Outcomes:
    """Count the states of one method on one metric, and average the scores.

    Parameters
    ----------
    outcomes : dict
        Outcome -> questions that ended so. Few outcomes differ: counting equal ones first makes
        a long run quick to add up.
    n_planned : int
        Questions that the plan gave to the method.
    failed_search_is_zero : bool
        True for correctness and completeness; False for faithfulness and relevance, where a
        failed search has no score.
    stratified : bool
        Take the intervals of estimand A, stratified by the outcomes' documents.
    is_asked : bool
        Whether responses were to be judged on the metric.

    Raises
    ------
    ValueError
        If there are more outcomes than were planned, or a metric that counts failed searches as
        0 has an abstention that was not scored.
    """
    counts = Counter[State]()
    for outcome, times in outcomes.items():
        counts[outcome.state] += times
    if counts.total() > n_planned:
        msg = f"{n_planned} outcomes were planned, {counts.total()} are accounted for"
        raise ValueError(msg)
    if failed_search_is_zero and counts[State.ABSTAINED]:
        msg = "an abstention has to be scored on a metric that counts a failed search as 0"
        raise ValueError(msg)
    scored = [entry for entry in outcomes.items() if entry[0].state is State.SCORED]
    failed = [entry for entry in outcomes.items() if entry[0].state is State.SEARCH_FAILED]
    n_scored, n_failed = counts[State.SCORED], counts[State.SEARCH_FAILED]
    missing = counts[State.JUDGE_FAILED] + counts[State.JUDGE_UNPARSEABLE]
    asked = n_scored + missing
    is_judged = asked > 0 or (is_asked and counts[State.NOT_JUDGED] == 0)
    total = sum(float(outcome.score or 0) * times for outcome, times in scored)
    size = asked + n_failed if failed_search_is_zero and is_judged else asked
    return Outcomes(
        n_planned=n_planned,
        n_search_failed=n_failed,
        n_judge_failed=counts[State.JUDGE_FAILED],
        n_judge_unparseable=counts[State.JUDGE_UNPARSEABLE],
        n_not_judged=counts[State.NOT_JUDGED],
        n_abstained=counts[State.ABSTAINED],
        n_scored=n_scored,
        n_not_run=n_planned - counts.total(),
        coverage=n_scored / asked if asked else None,
        end_to_end=_mean(scored + failed if is_judged else [], stratified)
        if failed_search_is_zero
        else None,
        given_answer=_mean(scored, stratified),
        bounds=(total / size, (total + missing) / size) if size else None,
    )


def _mean(outcomes: Iterable[tuple[Outcome, int]], stratified: bool) -> Estimate:
    totals: dict[Hashable, tuple[float, int]] = {}
    for outcome, times in outcomes:  # a failed search has no score, and counts 0
        document = outcome.document if stratified else None
        total, size = totals.get(document, (0.0, 0))
        totals[document] = (total + float(outcome.score or 0) * times, size + times)
    return share_of_totals(totals) if stratified else share_of_total(*totals.get(None, (0.0, 0)))
