import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar

from graphrag.eval.stats.family import describe_tests
from graphrag.eval.stats.intervals import scale_interval
from graphrag.eval.stats.paired import (
    bonett_price,
    difference_interval,
    difference_test,
    exact_sign_flip,
    flip_signs,
    paired_binary,
    paired_scale,
)

scores = st.sampled_from([0, 1, None])
some_pairs = st.lists(st.tuples(scores, scores, st.integers(0, 14)), max_size=60)


@given(some_pairs, st.sampled_from([0.8, 0.95]))
@settings(deadline=None)
def test_the_interval_is_sound_for_any_documents(pairs, confidence):
    counts = Counter(pairs)
    low, high, _ = difference_interval(counts, confidence)
    d = [a - b for a, b, _ in pairs if None not in (a, b)]
    if not d:
        assert (low, high) == (None, None)
        return
    assert -1 <= low <= np.mean(d) <= high <= 1
    assert high - low > 1e-3
    swapped = difference_interval(Counter((b, a, doc) for a, b, doc in pairs), confidence)
    assert (low, high) == pytest.approx((-swapped[1], -swapped[0]))
    wider = difference_interval(counts, 0.99)
    assert wider[0] <= low
    assert high <= wider[1]


def test_one_document_or_unknown_ones_are_pooled():
    one = Counter({(1, 0, "a"): 12, (0, 1, "a"): 3, (1, 1, "a"): 40})
    unknown = Counter({(1, 0, None): 12, (0, 1, "a"): 3, (1, 1, "b"): 40})
    for counts in (one, unknown):
        assert difference_interval(counts) == (*bonett_price(12, 3, 55), "bonett-price")
        assert difference_test(counts)[1] == "mcnemar, exact"
        assert paired_binary(counts).note is None


def test_few_documents_are_stratified_and_the_test_warns():
    counts = Counter(
        {(1, 0, "a"): 30, (1, 1, "a"): 30, (0, 1, "b"): 20, (1, 1, "b"): 30, (1, 1, "c"): 40}
    )
    result = paired_binary(counts)
    pooled = bonett_price(30, 20, 150)
    assert result.interval == "bonett-price, stratified by document"
    assert result.high - result.low < 0.95 * (pooled[1] - pooled[0])
    assert result.test == "mcnemar, exact"
    assert result.p == pytest.approx(stats.binomtest(30, 50).pvalue)
    assert "with 3 documents" in result.note
    assert describe_tests([result, result, paired_binary({})]) == [
        "Intervals: bonett-price, stratified by document; p: mcnemar, exact.",
        f"But {result.note}.",
    ]
    assert describe_tests([paired_binary({})]) == []


def test_one_question_a_document_is_mcnemar():
    counts = Counter({(1, 0, f"a{i}"): 1 for i in range(14)})
    counts.update({(0, 1, f"b{i}"): 1 for i in range(4)})
    p, name = difference_test(counts)
    assert (p, name) == (pytest.approx(mcnemar([[0, 14], [4, 0]]).pvalue), "mcnemar, exact")
    less, _ = difference_test(counts, "less")
    assert less == pytest.approx(stats.binomtest(14, 18, alternative="less").pvalue)
    assert paired_binary(counts).note is None


@given(st.lists(st.integers(-4, 4), max_size=9), st.booleans())
@settings(deadline=None)
def test_flipping_the_signs_of_sums_is_exact(sums, lower):
    seen = sum(sums)
    flipped = [
        sum(s * x for s, x in zip(signs, sums, strict=True))
        for signs in itertools.product([1, -1], repeat=len(sums))
    ]
    expected = np.mean([x <= seen if lower else abs(x) >= abs(seen) for x in flipped])
    assert exact_sign_flip(Counter(sums), lower=lower) == pytest.approx(expected)
    assert 0 < exact_sign_flip({1: 3000, -1: 10}, lower=False) < 1e-300


@pytest.mark.parametrize("alternative", ["two-sided", "less"])
def test_real_differences_flip_by_document(alternative):
    rng = np.random.default_rng(8)
    documents = np.repeat(np.arange(12), 4)
    values = rng.normal(-0.3, 1, 48) + rng.normal(0, 1, 12)[documents]
    sums = [values[documents == document].sum() for document in range(12)]
    expected = stats.permutation_test(
        (sums, np.zeros(12)),
        lambda x, y: np.mean(x - y),
        permutation_type="samples",
        n_resamples=5_000,
        alternative=alternative,
    ).pvalue
    p, _, _ = flip_signs(values.tolist(), documents.tolist(), alternative)
    assert p == pytest.approx(expected)


def test_real_differences_of_documents_that_move_together_are_less_sure():
    documents = [number // 5 for number in range(100)]
    values = [(number % 20 - 9.7) / 10 for number in documents]
    pairs = [(value, 0) for value in values]
    alone, together = paired_scale(pairs), paired_scale(pairs, documents=documents)
    assert together.difference == alone.difference
    assert together.high - together.low > 2 * (alone.high - alone.low)
    assert together.p > alone.p
    assert (alone.interval, together.interval) == ("t", "t, clustered by document")
    assert together.test.startswith("sign-flip by document")
    assert scale_interval([1.5, 1.5], ["a", "b"])[:2] == (None, None)


def test_real_differences_of_few_documents_are_new_questions_on_them():
    values = [1.0, 1.2, 0.8, 1.1, 0.9] * 8 + [-1.0, -1.2, -0.8, -1.1, -0.9] * 8
    low, high, name = scale_interval(values, ["a"] * 40 + ["b"] * 40)
    whole = scale_interval(values, [None] * 80)
    assert name == "t, stratified by document"
    assert whole[:2] == pytest.approx(stats.t.interval(0.95, 79, 0, stats.sem(values)))
    assert low < 0 < high
    assert high - low < 0.6 * (whole[1] - whole[0])
