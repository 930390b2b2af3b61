"""Counts how searches and verdicts ended, adding up to the plan, and averages the scores."""

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

from graphrag.eval.stats.intervals import Estimate, Score, mean_real, share_of_totals


class State(StrEnum):
    """How one (question, method, metric) ended.

    ``ABSTAINED`` (the method says that it has no answer) exists for faithfulness alone, which has
    nothing to judge then; on the other metrics an abstention is scored, 0 or 1.
    """

    SCORED = "scored"
    SEARCH_FAILED = "search_failed"
    JUDGE_FAILED = "judge_failed"
    JUDGE_UNPARSEABLE = "judge_unparseable"
    NOT_JUDGED = "not_judged"
    ABSTAINED = "abstained"


NEVER_ASKED = {State.SEARCH_FAILED, State.ABSTAINED}
"""The states in which no judge was asked."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one (question, method, metric).

    ``score`` is in [0, 1] if the state is scored, otherwise None (``Row`` ensures it). ``document``
    is None if it does not matter.
    """

    state: State
    score: Score = None
    document: Hashable = None


@dataclass(frozen=True, slots=True)
class Outcomes:
    """One method on one metric: what was planned, what is missing, and the means.

    Counts are of searches and add up to ``n_planned``. ``n_not_run`` searches were planned and not
    made: the run was interrupted, or methods were asked different questions. Means are of
    questions; if a question was searched more than once, its value is the mean of its scores.

    - ``coverage``: share of the verdicts asked of the judge that exist; None if none was asked.
    - ``end_to_end``: mean over scored responses and failed searches, which count 0; ``by_method``
      has it. It has no mean if no response was judged on the metric, because it was not asked or
      some still wait: failed searches alone would make it 0.
    - ``given_answer``: mean over scored responses alone.
    - ``failed_search_is_zero``: whether tables show ``end_to_end``. Otherwise a failed search has
      nothing to judge (faithfulness, relevance), and they show ``given_answer``. They show both
      where the two differ.
    - ``bounds``: the mean that tables show if every missing verdict were 0, and if every one were
      1: [k/N, (k+m)/N]; None if N is 0.
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
    end_to_end: Estimate
    given_answer: Estimate
    failed_search_is_zero: bool
    bounds: tuple[float, float] | None

    @property
    def mean(self) -> Estimate:
        """The mean that every table shows."""
        return self.end_to_end if self.failed_search_is_zero else self.given_answer


def summarize_outcomes(
    outcomes: Mapping[Outcome, int],
    *,
    n_planned: int,
    failed_search_is_zero: bool,
    stratified: bool = False,
    is_asked: bool = True,
    repeated: Collection[Sequence[Outcome]] = (),
) -> Outcomes:
    """Count the states of one method on one metric, and average the scores.

    - ``outcomes``: outcome -> number of searches that ended so, of ``n_planned``. Counting equal
      ones first makes a long run quick to add up.
    - ``failed_search_is_zero``: True for correctness and completeness.
    - ``stratified``: whether intervals allow for the documents, see ``choose_structure``.
    - ``is_asked``: whether no response waits to be judged on the metric.
    - ``repeated``: the same outcomes by question, if questions were searched more than once.

    Raises ValueError if there are more outcomes than planned, or if an abstention was not scored on
    a metric that counts failed searches as 0.
    """
    counts = Counter[State]()
    for outcome, times in outcomes.items():
        counts[outcome.state] += times
    if counts.total() > n_planned:
        raise ValueError(f"{n_planned} outcomes were planned, {counts.total()} are accounted for")
    if failed_search_is_zero and counts[State.ABSTAINED]:
        raise ValueError("an abstention has to be scored where a failed search counts as 0")
    questions = Counter(map(tuple, repeated)) or {(o,): times for o, times in outcomes.items()}
    n_scored, n_failed = counts[State.SCORED], counts[State.SEARCH_FAILED]
    missing = counts[State.JUDGE_FAILED] + counts[State.JUDGE_UNPARSEABLE]
    n_asked = n_scored + missing
    is_judged = n_asked > 0 or is_asked
    total = sum(float(outcome.score or 0) * times for outcome, times in outcomes.items())
    counted = {State.SCORED, State.SEARCH_FAILED} if is_judged else set[State]()
    size = n_asked + n_failed if failed_search_is_zero and is_judged else n_asked
    return Outcomes(
        n_planned=n_planned,
        n_search_failed=n_failed,
        n_judge_failed=counts[State.JUDGE_FAILED],
        n_judge_unparseable=counts[State.JUDGE_UNPARSEABLE],
        n_not_judged=counts[State.NOT_JUDGED],
        n_abstained=counts[State.ABSTAINED],
        n_scored=n_scored,
        n_not_run=n_planned - counts.total(),
        coverage=n_scored / n_asked if n_asked else None,
        end_to_end=_mean(questions, counted, stratified),
        given_answer=_mean(questions, {State.SCORED}, stratified),
        failed_search_is_zero=failed_search_is_zero,
        bounds=(total / size, (total + missing) / size) if size else None,
    )


def _mean(
    questions: Mapping[tuple[Outcome, ...], int], counted: Collection[State], stratified: bool
) -> Estimate:
    """Return the mean over questions; a question's value is the mean of its outcomes that count."""
    values = Counter[tuple[float, Hashable]]()
    for outcomes, times in questions.items():
        scores = [float(outcome.score or 0) for outcome in outcomes if outcome.state in counted]
        if scores:  # a failed search has no score, and counts 0
            values[fmean(scores), outcomes[0].document if stratified else None] += times
    if any(score not in (0, 1) for score, _ in values):
        scores, documents = zip(*values.elements(), strict=True)
        estimate = mean_real(scores, documents, (0.0, 1.0))
        if estimate.low is not None:
            return estimate
    totals: dict[Hashable, tuple[float, int]] = {}
    for (score, document), times in values.items():
        total, size = totals.get(document, (0.0, 0))
        totals[document] = (total + score * times, size + times)
    return share_of_totals(totals)
