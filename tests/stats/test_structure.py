import runpy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag.eval.stats.intervals import (
    Structure,
    choose_structure,
    cr2_variance,
    degrees_of_freedom,
    mean_binary,
    mean_scale,
)

measure = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "coverage.py"))["measure"]
sizes_of_documents = st.lists(st.integers(1, 9), min_size=2, max_size=8)


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


def test_documents_of_one_size_leave_their_number_less_one():
    assert degrees_of_freedom(np.full(17, 4.0)) == pytest.approx(16)


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


def test_a_document_that_is_not_known_leaves_no_choice():
    assert choose_structure({None: 4, **dict.fromkeys(range(20), 5)}) is Structure.POOLED


@pytest.mark.parametrize("sizes", [[1] * 100, [2] * 60, [5] * 25])
def test_many_small_documents_are_covered_as_often_as_said(sizes):
    rng = np.random.default_rng(4)
    documents = np.repeat(np.arange(len(sizes)), sizes).tolist()
    covered = 0
    for _ in range(150):
        chances = rng.beta(1.4, 0.6, len(sizes))  # .7 on average, correlation 1/3 in a document
        given_scores = rng.random(len(documents)) < np.repeat(chances, sizes)
        estimate = mean_binary(given_scores.tolist(), documents)
        covered += estimate.low <= 0.7 <= estimate.high
        assert estimate.method == "wilson, clustered by document"
    assert covered >= 0.90 * 150


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
    alone, clustered = mean_scale(scores), mean_scale(scores, documents)
    assert clustered.estimate.mean == alone.estimate.mean
    assert (alone.estimate.method, clustered.estimate.method) == ("t", "t, clustered by document")
    assert clustered.estimate.low < alone.estimate.low
    assert clustered.share_at_least_4.method == "wilson, clustered by document"
    assert clustered.share_at_least_4.low < alone.share_at_least_4.low
