"""Two methods on the same questions: limits, tests, power, verdicts in words."""

import itertools
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import DescrStatsW

from graphrag.eval.stats.family import describe_tests, verdict_in_words
from graphrag.eval.stats.intervals import scale_interval
from graphrag.eval.stats.paired import (
    bonett_price,
    difference_interval,
    difference_test,
    exact_sign_flip,
    flip_signs,
    holm,
    paired_binary,
    paired_scale,
)
from graphrag.eval.stats.power import detectable_difference, mcnemar_power, questions_needed

scores = st.sampled_from([0, 1, None])
pair_lists = st.lists(st.tuples(scores, scores), max_size=40)


def pairs_of(n10=0, n01=0, same=0):
    return [(1, 0)] * n10 + [(0, 1)] * n01 + [(1, 1)] * same


def compare(pairs):
    return paired_binary(Counter((*pair, None) for pair in pairs))


@given(pair_lists)
def test_a_comparison_is_sound_and_symmetric(pairs):
    result = compare(pairs)
    swapped = compare([(b, a) for a, b in pairs])
    assert (result.n10, result.n01) == (swapped.n01, swapped.n10)
    assert result.p == swapped.p
    assert result.n_pairs + result.n_dropped_pairs == len(pairs)
    if result.n_pairs == 0:
        assert (result.difference, result.low, result.p, result.detectable_at_80) == (None,) * 4
        return
    assert -1 <= result.low <= result.difference <= result.high <= 1
    assert result.low < result.high
    assert result.low == pytest.approx(-swapped.high)
    assert 0 < result.p <= 1
    assert result.detectable_at_80 is None or 0 < result.detectable_at_80 <= 1


@given(st.lists(st.tuples(scores, scores), max_size=7))
def test_bounds_are_the_worst_of_every_way_to_fill_the_gaps(pairs):
    gaps = sum(score is None for pair in pairs for score in pair)
    filled = []
    for filling in itertools.product([0, 1], repeat=min(gaps, 14)):
        rest = iter(filling)
        whole = [[next(rest) if s is None else s for s in pair] for pair in pairs]
        filled.append(np.mean([a - b for a, b in whole]) if whole else None)
    bounds = compare(pairs).difference_bounds
    if not pairs:
        assert bounds is None
    elif gaps <= 14:
        assert bounds == pytest.approx((min(filled), max(filled)))


@pytest.mark.parametrize(("n10", "n01", "same"), [(8, 2, 20), (0, 0, 5), (1, 0, 0), (40, 60, 259)])
def test_the_test_and_the_interval_are_the_named_ones(n10, n01, same):
    result = compare(pairs_of(n10, n01, same))
    n = n10 + n01 + same
    expected = stats.binomtest(n10, n10 + n01).pvalue if n10 + n01 else 1.0
    assert result.p == pytest.approx(expected)
    assert result.p == pytest.approx(mcnemar([[same, n10], [n01, 0]], exact=True).pvalue)
    # Bonett and Price: a Wald interval after one more pair in each discordant cell.
    d = np.array([1] * (n10 + 1) + [-1] * (n01 + 1) + [0] * (n - n10 - n01))
    half = stats.norm.ppf(0.975) * d.std() / math.sqrt(n + 2)
    assert result.low == pytest.approx(max(-1, d.mean() - half))
    assert result.high == pytest.approx(min(1, d.mean() + half))
    assert result.discordance == pytest.approx((n10 + n01) / n)


@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=12))
@settings(max_examples=5, deadline=None)
def test_holm_leaves_out_what_has_no_p(p_values):
    corrected = holm(p_values)
    assert [p is None for p in corrected] == [p is None for p in p_values]
    family = [p for p in p_values if p is not None]
    if family:
        expected = multipletests(family, method="holm")[1]
        assert [p for p in corrected if p is not None] == pytest.approx(list(expected))
        assert holm([*p_values, None])[:-1] == corrected


def test_holm_by_hand():
    assert holm([0.03, None]) == (0.03, None)
    assert holm([0.01, None, 0.04, 0.03]) == pytest.approx((0.03, None, 0.06, 0.06))
    for p in (math.nan, math.inf, -0.1, 1.1):
        with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
            holm([0.1, p])


def brute_force_power(n, difference, discordance):
    p10, p01 = (discordance + difference) / 2, (discordance - difference) / 2
    power = 0.0
    for n10 in range(n + 1):
        for n01 in range(n + 1 - n10):
            if n10 + n01 and stats.binomtest(n10, n10 + n01).pvalue <= 0.05:
                rest = n - n10 - n01
                power += stats.multinomial.pmf([n10, n01, rest], n, [p10, p01, 1 - discordance])
    return power


@pytest.mark.parametrize(
    ("n", "difference", "discordance"), [(5, 1, 1), (12, 0.5, 0.6), (25, -0.3, 0.4), (25, 0, 0.5)]
)
def test_power_is_the_sum_over_every_table(n, difference, discordance):
    expected = brute_force_power(n, difference, discordance)
    assert mcnemar_power(n, difference, discordance) == pytest.approx(expected, abs=1e-9)


def test_power_at_exact_levels_and_large_numbers():
    assert mcnemar_power(5, 1, 1, alpha=0.0625) == pytest.approx(1)  # p of (5, 0) is 0.0625
    assert mcnemar_power(0, 0, 0) == 0
    normal = stats.norm.sf(1.96 - 0.002 / math.sqrt((0.2 - 0.002**2) / 1_000_000))
    assert mcnemar_power(1_000_000, 0.002, 0.2) == pytest.approx(normal, abs=0.01)
    with pytest.raises(ValueError, match="discordance"):
        mcnemar_power(10, 0.3, 0.2)


@pytest.mark.parametrize(("n", "discordance"), [(359, 0.2), (359, 0.0), (60, 0.4), (8, 0.1)])
def test_the_detectable_difference_is_the_smallest(n, discordance):
    found = detectable_difference(n, discordance)
    assert mcnemar_power(n, found, max(found, discordance)) >= 0.8
    less = found - 1e-4
    assert mcnemar_power(n, less, max(less, discordance)) < 0.8


def test_five_pairs_find_nothing():
    assert detectable_difference(5, 1.0) is None
    assert detectable_difference(0, 0.0) is None
    assert detectable_difference(6, 0.0) is not None


@pytest.mark.parametrize(("difference", "discordance"), [(0.05, 0.2), (0.3, 0.3), (1, 1)])
def test_the_number_of_questions_has_the_power_and_one_less_lacks_it(difference, discordance):
    n = questions_needed(difference, discordance)
    assert mcnemar_power(n, difference, discordance) >= 0.8
    assert mcnemar_power(n - 1, difference, discordance) < 0.8


def test_the_number_of_questions_is_near_the_textbook_one():
    z, needed = stats.norm.ppf(0.975) + stats.norm.ppf(0.8), questions_needed(0.02, 0.2)
    assert needed == pytest.approx(z**2 * 0.2 / 0.02**2, rel=0.03)
    with pytest.raises(ValueError, match="difference"):
        questions_needed(0, 0.2)
    assert questions_needed(8e-6, 0.001) is None, "past 100 million"


def permutation_p(d):
    observed = abs(sum(d))
    sums = [
        sum(s * x for s, x in zip(signs, d, strict=True))
        for signs in itertools.product([1, -1], repeat=len(d))
    ]
    return np.mean([abs(total) >= observed - 1e-9 for total in sums])


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), max_size=9))
@settings(max_examples=50, deadline=None)
def test_few_pairs_are_tested_exactly(pairs):
    result = paired_scale([*pairs, (None, 3)])
    d = [a - b for a, b in pairs]
    assert (result.n_pairs, result.n_dropped_pairs) == (len(d), 1)
    if not d:
        assert (result.p, result.difference, result.low) == (None, None, None)
        return
    assert result.exact
    assert result.p == pytest.approx(permutation_p(d))
    if len(set(d)) > 1:
        expected = DescrStatsW(d).tconfint_mean()
        assert (result.low, result.high) == pytest.approx(expected)
    else:
        assert result.low is None


def test_many_pairs_are_tested_by_resampling():
    rng = np.random.default_rng(1)
    a, b = rng.integers(1, 6, 200), rng.integers(1, 6, 200)
    result = paired_scale(list(zip(a.tolist(), b.tolist(), strict=True)))
    assert not result.exact
    exact = exact_sign_flip(Counter((a - b).tolist()), lower=False)
    assert result.p == pytest.approx(exact, abs=0.03)
    assert (result.p * 10_000 / 2) == pytest.approx(round(result.p * 10_000 / 2))
    apart = [(1, 0), (1, 0), (0, 0)]
    assert paired_scale(apart).high > 1
    assert paired_scale(apart, limits=(-1.0, 1.0)).high == 1
    assert paired_scale([(5, 1)] * 30).p == pytest.approx(2 / 10_000)
    assert paired_scale([(3, 3)] * 30).p == 1
    with pytest.raises(ValueError, match="must lie in"):
        paired_scale([(math.nan, 1)])


def test_verdicts_in_words():
    def words(pairs):
        return verdict_in_words(compare(pairs), "tog", "basic")

    assert words([]) == words([(None, 1)]) == "nothing to compare"
    assert words(pairs_of(30, 5, 100)) == "tog better than basic"
    assert words(pairs_of(5, 30, 100)) == "basic better than tog"
    shown = words(pairs_of(36, 35, 288))
    found = detectable_difference(359, 71 / 359)
    assert shown == (
        "no difference shown; the smallest that this many questions find with 80 % power is "
        f"{100 * found:.1f} points"
    )
    assert words([(1, 1)] * 5) == "no difference shown; too few questions to see any"
    assert words([*pairs_of(12, 2, 300), *[(None, 1)] * 11]).startswith("unresolved: 11 missing")
    assert words([*pairs_of(12, 2, 300), *[(None, 1)] * 10]) == "tog better than basic"
    assert words([*pairs_of(2, 12, 300), *[(1, None)] * 11]).startswith("unresolved")
    few = "undecided: 94 % of the pairs that were planned have both verdicts"
    assert words([*pairs_of(90, 5, 5), *[(None, 1)] * 6]) == few
    assert words([*pairs_of(90, 5, 5), *[(None, 1)] * 5]) == "tog better than basic"
    result = compare(pairs_of(15, 4, 100))
    assert result.p < 0.05
    assert verdict_in_words(replace(result, p_holm=0.06), "a", "b").startswith("no difference")


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


def test_means_of_three_searches_tie_as_their_thirds_do():
    thirds = [3, 2, 2, 1, 1, 1, -1, -1, -1, -2, 2, 1]
    result = paired_scale([(third / 3, 0) for third in thirds])
    assert result.test.endswith("exact")
    assert result.p == pytest.approx(exact_sign_flip(Counter(thirds), lower=False))
    tiny = paired_scale([(third / 3e4, 0) for third in thirds])  # as dollars are
    assert tiny.p == pytest.approx(result.p)


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
