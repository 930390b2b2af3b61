"""Means and their intervals, for any structure of documents."""

import math
import runpy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from graphrag.eval.stats.intervals import (
    Structure,
    choose_structure,
    cr2_variance,
    degrees_of_freedom,
    mean_binary,
    mean_real,
    total_by_document,
    view_of_totals,
)

measure = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "coverage.py"))["measure"]
sizes_of_documents = st.lists(st.integers(1, 9), min_size=2, max_size=8)


def assert_sound(estimate, low, high):
    numbers = [estimate.mean, estimate.low, estimate.high]
    assert not any(number is not None and math.isnan(number) for number in numbers)
    if estimate.low is not None:
        assert low <= estimate.low <= estimate.mean <= estimate.high <= high


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


@given(st.lists(st.tuples(st.sampled_from([0, 1, True, None]), st.sampled_from("abcd"))))
def test_the_binary_mean_is_sound_and_never_certain(rows):
    scores, documents = [score for score, _ in rows], [key for _, key in rows]
    estimate, plain = mean_binary(scores, documents), mean_binary(scores)
    for each in (estimate, plain):
        assert_sound(each, 0, 1)
        assert each.n == sum(score is not None for score in scores)
        assert (each.low is None) == (each.mean is None) == (each.n == 0)
        assert each.low is None or each.low < each.high
    assert estimate.mean == pytest.approx(plain.mean)
    assert mean_binary(scores, ["x"] * len(scores)) == plain


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
    result = mean_real(scores, [None] * len(scores), (1, 5))
    values = [score for score in scores if score is not None]
    assert_sound(result, 1, 5)
    assert result.n == len(values)
    if len(set(values)) < 2:
        assert result.low is None
        return
    low, high = stats.t.interval(
        0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values)
    )
    assert result.low == pytest.approx(max(1, low))
    assert result.high == pytest.approx(min(5, high))


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
    one = view_of_totals({"a": (2.0, 3)})
    assert (one.estimate.low, one.estimate.high) == (None, None)
    empty = view_of_totals(total_by_document([None], ["a"]))
    assert (empty.documents, empty.estimate.mean, empty.n_agreeing) == ((), None, None)


def annihilator(sizes):
    n = sum(sizes)
    return np.eye(n) - np.ones((n, n)) / n


def blocks(sizes):
    ends = np.cumsum(sizes)
    return [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]


def inverse_root(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return vectors @ np.diag(values**-0.5) @ vectors.T


@given(sizes_of_documents, st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_cr2_and_its_degrees_of_freedom_are_those_of_the_matrices(sizes, seed):
    y = np.random.default_rng(seed).random(sum(sizes))
    n, m = len(y), annihilator(sizes)
    residuals = m @ y
    variance, b = 0.0, np.zeros((n, n))
    for block in blocks(sizes):
        adjust = inverse_root(m[block, block])
        variance += (adjust.sum(axis=0) @ residuals[block]) ** 2 / n**2
        column = (m[:, block] @ adjust.sum(axis=1))[:, None] / n
        b += column @ column.T
    totals = np.array([y[block].sum() for block in blocks(sizes)])
    asked = np.array(sizes, dtype=float)
    assert cr2_variance(totals, asked) == pytest.approx(variance)
    assert degrees_of_freedom(asked) == pytest.approx(np.trace(b) ** 2 / np.trace(b @ b))


@pytest.mark.parametrize(
    ("sizes", "chosen"),
    [
        ([], Structure.POOLED),
        ([359], Structure.POOLED),
        ([102, 51, 206], Structure.STRATIFIED),
        ([5] * 9, Structure.STRATIFIED),
        ([5] * 10, Structure.CLUSTERED),
        ([1] * 100, Structure.CLUSTERED),
        ([200, 150, 100] + [1] * 12, Structure.STRATIFIED),  # stragglers beside three documents
        ([500] + [10] * 19, Structure.STRATIFIED),  # one document outweighs the others
    ],
)
def test_the_choice_by_the_number_and_the_sizes_of_documents(sizes, chosen):
    assert choose_structure(dict(enumerate(sizes))) is chosen
    assert choose_structure({None: 4, **dict(enumerate(sizes))}) is Structure.POOLED


def test_all_right_is_no_surer_than_the_documents_allow():
    documents = [number // 10 for number in range(120)]
    clustered = mean_binary([1] * 120, documents)
    twelve = mean_binary([1] * 12, list(range(12)))
    assert clustered.low == pytest.approx(twelve.low)
    assert clustered.high == 1
    assert clustered.low < mean_binary([1] * 120, ["a"] * 120).low


def test_the_benchmark_measures_coverage_and_false_alarms():
    found = measure([10] * 30, correlation=0.3, share=0.7, discordance=0.3, draws=400)
    assert min(found.mean, found.difference) >= 0.92
    assert found.with_failures >= 0.88
    assert found.used <= 0.12 < 0.2 <= found.mcnemar


def test_the_mean_of_a_scale_goes_by_its_documents():
    scores, documents = [5] * 30 + [2, 3] * 15 + [4] * 40, [number // 5 for number in range(100)]
    alone, clustered = (mean_real(scores, of, (1, 5)) for of in ([None] * 100, documents))
    assert clustered.mean == alone.mean
    assert (alone.method, clustered.method) == ("t", "t, clustered by document")
    assert clustered.low < alone.low
