import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from graphrag.eval.stats.intervals import mean_binary, mean_scale, total_by_document, view_of_totals

binary = st.lists(st.sampled_from([0, 1, True, False, None]), max_size=40)


def assert_sound(estimate, low, high):
    numbers = [estimate.mean, estimate.low, estimate.high]
    assert not any(number is not None and math.isnan(number) for number in numbers)
    if estimate.low is not None:
        assert low <= estimate.low <= estimate.mean <= estimate.high <= high


@given(binary)
def test_the_binary_mean_is_sound_and_never_certain(scores):
    estimate = mean_binary(scores)
    assert_sound(estimate, 0, 1)
    assert estimate.n == sum(score is not None for score in scores)
    assert (estimate.mean is None) == (estimate.n == 0)
    if estimate.n:
        assert estimate.high - estimate.low > 0


@pytest.mark.parametrize(("k", "n"), [(0, 1), (1, 1), (0, 20), (20, 20), (7, 31), (170, 359)])
def test_the_binary_interval_is_wilsons(k, n):
    estimate = mean_binary([1] * k + [0] * (n - k) + [None])
    interval = stats.binomtest(k, n).proportion_ci(method="wilson")
    assert (estimate.low, estimate.high) == pytest.approx((interval.low, interval.high), abs=1e-12)
    assert estimate.mean == pytest.approx(k / n)


@pytest.mark.parametrize("score", [2, -1, math.nan, math.inf])
def test_a_score_that_is_none_is_refused(score):
    with pytest.raises(ValueError, match="must lie in"):
        mean_binary([1, score])
    with pytest.raises(ValueError, match="must lie in"):
        mean_binary([1, score], ["x", "x"])


@given(binary)
def test_one_document_is_the_plain_mean(scores):
    plain, stratified = mean_binary(scores), mean_binary(scores, ["x"] * len(scores))
    assert stratified.n == plain.n
    for name in ("mean", "low", "high"):
        assert getattr(stratified, name) == pytest.approx(getattr(plain, name))


@given(st.lists(st.tuples(st.sampled_from([0, 1, None]), st.sampled_from("abcd")), max_size=40))
def test_the_stratified_mean_is_sound(rows):
    scores, documents = [score for score, _ in rows], [key for _, key in rows]
    estimate = mean_binary(scores, documents)
    assert_sound(estimate, 0, 1)
    assert estimate.mean == pytest.approx(mean_binary(scores).mean)


def test_differences_between_documents_add_no_variance():
    scores = [1] * 90 + [0] * 10 + [1] * 10 + [0] * 90
    stratified = mean_binary(scores, ["easy"] * 100 + ["hard"] * 100)
    plain = mean_binary(scores)
    assert stratified.high - stratified.low < 0.7 * (plain.high - plain.low)


def test_the_stratified_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(3)
    sizes, shares = (102, 51, 206), (0.4, 0.9, 0.65)
    truth = sum(n * p for n, p in zip(sizes, shares, strict=True)) / sum(sizes)
    documents = np.repeat(np.arange(3), sizes).tolist()
    covered = 0
    for _ in range(400):
        drawn = [rng.random(n) < p for n, p in zip(sizes, shares, strict=True)]
        estimate = mean_binary(np.concatenate(drawn).tolist(), documents)
        covered += estimate.low <= truth <= estimate.high
    assert 0.92 <= covered / 400 <= 0.985


@given(st.lists(st.sampled_from([1, 2, 3, 4, 5, None]), max_size=30))
def test_the_scale_mean_is_scipys(scores):
    result = mean_scale(scores)
    values = [score for score in scores if score is not None]
    assert_sound(result.estimate, 1, 5)
    assert sum(result.distribution.values()) == result.estimate.n == len(values)
    if len(set(values)) < 2:
        assert result.estimate.low is None
        return
    low, high = stats.t.interval(
        0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values)
    )
    assert result.estimate.low == pytest.approx(max(1, low))
    assert result.estimate.high == pytest.approx(min(5, high))
    assert result.share_at_least_4.mean == pytest.approx(np.mean(np.array(values) >= 4))


def test_new_documents_are_judged_by_document_means():
    values = [1, 1, -1, 1, 0, 0, None, -1]
    view = view_of_totals(total_by_document(values, list("aaaabbbc")), (-1, 1))
    assert [(entry.n, entry.mean) for entry in view.documents] == [(4, 0.5), (2, 0), (1, -1)]
    means = [0.5, 0, -1]
    low, high = stats.t.interval(0.95, 2, loc=np.mean(means), scale=stats.sem(means))
    assert low < -1
    assert high > 1
    assert (view.estimate.low, view.estimate.high) == (-1, 1)
    assert view.estimate.mean == pytest.approx(np.mean(means))
    assert view.n_agreeing == 1
    assert view.label == "generalisation to new documents, low power"
    assert view.note is not None
    assert view.note.startswith("only 3 documents")


def test_ten_documents_need_no_warning_and_agree_with_scipy():
    rng = np.random.default_rng(0)
    values = rng.normal(1, 1, 50)
    documents = np.repeat(np.arange(10), 5)
    view = view_of_totals(total_by_document(values.tolist(), documents.tolist()))
    means = values.reshape(10, 5).mean(axis=1)
    low, high = stats.t.interval(0.95, 9, loc=means.mean(), scale=stats.sem(means))
    assert (view.estimate.low, view.estimate.high) == pytest.approx((low, high))
    assert (view.label, view.note) == ("generalisation to new documents", None)
    assert view.n_agreeing == int((means > 0).sum())


def test_one_document_says_nothing_of_new_ones():
    view = view_of_totals({"a": (2.0, 3)})
    assert (view.estimate.low, view.estimate.high) == (None, None)
    empty = view_of_totals(total_by_document([None], ["a"]))
    assert (empty.documents, empty.estimate.mean, empty.n_agreeing) == ((), None, None)
