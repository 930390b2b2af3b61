from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag.eval.stats.intervals import mean_binary
from graphrag.eval.stats.outcomes import Outcome, State, summarize_outcomes

scored = st.builds(Outcome, st.just(State.SCORED), st.sampled_from([0, 1]))
missing = st.builds(
    Outcome,
    st.sampled_from(
        [State.SEARCH_FAILED, State.JUDGE_FAILED, State.JUDGE_UNPARSEABLE, State.NOT_JUDGED]
    ),
)


def outcomes(*, one=0, zero=0, **states):
    made = [Outcome(State.SCORED, 1)] * one + [Outcome(State.SCORED, 0)] * zero
    for name, n in states.items():
        made += [Outcome(State[name.upper()])] * n
    return Counter(made)


def test_a_failed_search_counts_0_where_the_system_is_at_fault():
    made = outcomes(one=6, zero=2, search_failed=2, judge_failed=1, judge_unparseable=1)
    result = summarize_outcomes(made, n_planned=12, failed_search_is_zero=True)
    assert (result.n_scored, result.n_search_failed, result.n_judge_failed) == (8, 2, 1)
    assert result.end_to_end == mean_binary([1] * 6 + [0] * 4)
    assert result.given_answer == mean_binary([1] * 6 + [0] * 2)
    assert result.coverage == pytest.approx(8 / 10)
    assert result.bounds == pytest.approx((6 / 12, 8 / 12))


def test_a_failed_search_has_no_faithfulness():
    made = outcomes(one=3, zero=1, search_failed=5, judge_failed=1, abstained=2, not_judged=1)
    result = summarize_outcomes(made, n_planned=13, failed_search_is_zero=False)
    assert result.mean is result.given_answer
    assert result.given_answer == mean_binary([1] * 3 + [0])
    assert result.end_to_end == mean_binary([1] * 3 + [0] * 6)  # what by_method holds
    assert (result.n_abstained, result.n_not_judged) == (2, 1)
    assert result.bounds == pytest.approx((3 / 5, 4 / 5))


def test_failed_searches_alone_are_no_mean_of_what_was_not_judged():
    made = outcomes(search_failed=2, not_judged=5)
    result = summarize_outcomes(made, n_planned=7, failed_search_is_zero=True, is_asked=False)
    assert result.end_to_end == mean_binary([])
    assert result.bounds is None
    all_failed = summarize_outcomes(
        outcomes(search_failed=2), n_planned=2, failed_search_is_zero=True
    )
    assert all_failed.end_to_end == mean_binary([0, 0])
    not_asked = summarize_outcomes(
        outcomes(search_failed=2), n_planned=2, failed_search_is_zero=True, is_asked=False
    )
    assert (not_asked.end_to_end, not_asked.bounds) == (mean_binary([]), None)
    assert not_asked.n_search_failed == 2


def test_what_was_planned_is_accounted_for():
    result = summarize_outcomes(outcomes(one=2), n_planned=3, failed_search_is_zero=True)
    assert (result.n_planned, result.n_scored, result.n_not_run) == (3, 2, 1)
    with pytest.raises(ValueError, match="1 outcomes were planned, 2 are accounted for"):
        summarize_outcomes(outcomes(one=2), n_planned=1, failed_search_is_zero=True)
    with pytest.raises(ValueError, match="has to be scored"):
        summarize_outcomes(outcomes(abstained=1), n_planned=1, failed_search_is_zero=True)


@given(st.lists(st.one_of(scored, missing), max_size=30), st.booleans())
def test_bounds_enclose_the_mean(made, zero):
    result = summarize_outcomes(Counter(made), n_planned=len(made), failed_search_is_zero=zero)
    estimate = result.mean
    if result.bounds is None:
        assert estimate.mean is None
    else:
        low, high = result.bounds
        assert 0 <= low <= high <= 1
        assert estimate.mean is None or low - 1e-12 <= estimate.mean <= high + 1e-12
        n_missing = result.n_judge_failed + result.n_judge_unparseable
        assert (low == high) == (n_missing == 0)
    assert result.coverage is None or 0 <= result.coverage <= 1


def test_repeats_of_a_question_are_one_mean():
    right, wrong = Outcome(State.SCORED, 1), Outcome(State.SCORED, 0)
    failed, unread = Outcome(State.SEARCH_FAILED), Outcome(State.JUDGE_FAILED)
    asked = [(right, right), (right, wrong), (right, failed), (right, unread), (unread, unread)]
    result = summarize_outcomes(
        Counter(each for question in asked for each in question),
        n_planned=10,
        failed_search_is_zero=True,
        repeated=asked,
    )
    assert (result.n_planned, result.n_scored, result.n_search_failed) == (10, 6, 1)
    assert (result.mean.n, result.mean.mean) == (4, pytest.approx((1 + 0.5 + 0.5 + 1) / 4))
    assert result.mean.method == "t"
    assert result.given_answer.mean == pytest.approx((1 + 0.5 + 1 + 1) / 4)
    alike = [(right, right)] * 3 + [(wrong, wrong)]
    counts = Counter(each for question in alike for each in question)
    result = summarize_outcomes(counts, n_planned=8, failed_search_is_zero=True, repeated=alike)
    assert result.mean == mean_binary([1, 1, 1, 0])


def test_the_stratified_interval_is_taken_when_asked_for():
    made = {Outcome(State.SCORED, 1, "a"): 30, Outcome(State.SEARCH_FAILED, None, "b"): 30}
    result = summarize_outcomes(made, n_planned=60, failed_search_is_zero=True, stratified=True)
    assert result.end_to_end == mean_binary([1] * 30 + [0] * 30, ["a"] * 30 + ["b"] * 30)
