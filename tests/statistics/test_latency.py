import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from graphrag.eval.statistics import (
    Latency,
    Tradeoff,
    bootstrap_median,
    bootstrap_ratio,
    cost_per_correct,
    latency_quantile,
    pareto_set,
)

seconds = st.floats(0, 1000, allow_nan=False)
quantiles = st.sampled_from([0.5, 0.9, 0.95])


@given(st.lists(seconds, min_size=1, max_size=120), quantiles)
def test_quantiles_without_time_limits(values, q):
    result = latency_quantile([Latency(value) for value in values], q)
    assert result.value == pytest.approx(np.quantile(values, q))
    expected = stats.quantile_test(values, p=q).confidence_interval(0.95)
    for limit, other in ((result.low, expected.low), (result.high, expected.high)):
        assert (limit is None) == math.isnan(other)
        assert limit is None or limit == pytest.approx(other)
    if result.low is not None:
        assert result.low <= result.value


@given(st.lists(st.tuples(seconds, st.booleans()), max_size=40), quantiles)
def test_censored_searches_are_never_faster_than_seen(rows, q):
    result = latency_quantile([Latency(value, censored) for value, censored in rows], q)
    assert (result.n, result.n_censored) == (len(rows), sum(censored for _, censored in rows))
    if not rows:
        assert (result.value, result.at_least) == (None, None)
        return
    seen = np.quantile([value for value, _ in rows], q)
    assert (result.value is None) != (result.at_least is None)
    assert (result.value if result.at_least is None else result.at_least) >= seen - 1e-9


def test_a_quantile_among_the_time_limits_is_a_lower_bound():
    rows = [Latency(float(i)) for i in range(1, 91)] + [Latency(120.0, True)] * 10
    median, p95 = latency_quantile(rows, 0.5), latency_quantile(rows, 0.95)
    assert (median.value, median.at_least) == (50.5, None)
    assert (p95.value, p95.at_least) == (None, 120.0)
    assert p95.high is None
    assert p95.low is not None


@pytest.mark.parametrize(("n", "known"), [(71, False), (72, True)])
def test_the_upper_limit_of_p95_needs_72(n, known):
    result = latency_quantile([Latency(float(i)) for i in range(n)], 0.95)
    assert (result.high is not None) == known


def test_a_latency_is_a_finite_number():
    for bad in (math.nan, math.inf, -1.0):
        with pytest.raises(ValueError, match="latency"):
            latency_quantile([Latency(bad)], 0.5)
    with pytest.raises(ValueError, match="quantile"):
        latency_quantile([Latency(1.0)], 1.0)


def test_one_document_is_scipys_bootstrap():
    rng = np.random.default_rng(5)
    values = rng.exponential(1, 60)
    ours = bootstrap_median(values.tolist(), ["x"] * 60, n_resamples=2_000)
    theirs = stats.bootstrap(
        (values,), np.median, n_resamples=2_000, method="BCa", rng=np.random.default_rng(0)
    ).confidence_interval
    assert ours.value == pytest.approx(np.median(values))
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))


def test_documents_are_resampled_apart():
    rng = np.random.default_rng(6)
    top = np.concatenate([rng.normal(1, 0.1, 40), rng.normal(9, 0.1, 40)])
    apart = bootstrap_ratio(top.tolist(), [1] * 80, ["a"] * 40 + ["b"] * 40, n_resamples=2_000)
    together = bootstrap_ratio(top.tolist(), [1] * 80, ["a"] * 80, n_resamples=2_000)
    assert apart.value == together.value == pytest.approx(top.mean())
    assert apart.high - apart.low < 0.1
    assert together.high - together.low > 1
    se = math.sqrt(sum(0.25 * part.var(ddof=1) / 40 for part in (top[:40], top[40:])))
    assert apart.high - apart.low == pytest.approx(2 * 1.96 * se, rel=0.1)


@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(0, 5)),
            st.one_of(st.none(), st.integers(0, 2)),
            st.sampled_from("abc"),
        ),
        max_size=12,
    )
)
@settings(max_examples=40, deadline=None)
def test_the_bootstrap_is_sound_on_odd_data(rows):
    top, bottom, keys = ([row[i] for row in rows] for i in range(3))
    whole = [(a, b) for a, b, _ in rows if a is not None and b is not None]
    for result in (
        bootstrap_median(top, keys, n_resamples=200),
        bootstrap_ratio(top, bottom, keys, n_resamples=200),
    ):
        numbers = [result.value, result.low, result.high]
        assert all(number is None or math.isfinite(number) for number in numbers)
        assert (result.low is None) == (result.high is None)
        assert result.low is None or result.low <= result.value <= result.high
    total = sum(b for _, b in whole)
    assert result.n == len(whole)
    assert result.value == (pytest.approx(sum(a for a, _ in whole) / total) if total else None)


def test_cost_per_correct_is_a_ratio_of_sums():
    result = cost_per_correct([1.0, 2.0, 3.0, 4.0], [1, 0, 1, None])
    assert (result.value, result.n, result.n_dropped, result.n_correct) == (3.0, 3, 1, 2)


@pytest.mark.parametrize(
    ("costs", "correct"), [([], []), ([1.0], [0]), ([None, 1.0], [1, 1]), ([1.0], [None])]
)
def test_cost_per_correct_is_undefined(costs, correct):
    result = cost_per_correct(costs, correct)
    assert (result.value, result.low, result.high) == (None, None, None)


def fieller_limit(costs, correct, ratio):
    """The t test of mean(cost - ratio * correct) = 0: at a limit, p is .05."""
    return stats.ttest_1samp(costs - ratio * correct, 0).pvalue


def test_fieller_limits_are_the_ratios_that_a_t_test_just_accepts():
    rng = np.random.default_rng(2)
    correct = (rng.random(100) < 0.6).astype(int)
    costs = rng.gamma(2, 0.01, 100)
    result = cost_per_correct(costs.tolist(), correct.tolist())
    assert result.low < result.value < result.high
    for limit in (result.low, result.high):
        assert fieller_limit(costs, correct, limit) == pytest.approx(0.05, abs=1e-6)
    assert cost_per_correct([1.0] * 20, [1] + [0] * 19).high is None
    assert cost_per_correct([1.0], [1]).high is None


@given(st.lists(st.tuples(st.floats(0, 100), st.sampled_from([0, 1, None])), max_size=20))
def test_cost_per_correct_is_sound(rows):
    result = cost_per_correct([c for c, _ in rows], [y for _, y in rows])
    assert result.n + result.n_dropped == len(rows)
    if result.low is not None:
        assert 0 <= result.low <= result.value <= result.high < math.inf


def test_a_cost_is_a_finite_number():
    for bad in (math.nan, math.inf, -1.0):
        with pytest.raises(ValueError, match="cost"):
            cost_per_correct([bad], [1])
    with pytest.raises(ValueError, match="verdict"):
        cost_per_correct([1.0], [2])


def test_the_pareto_set_holds_what_nothing_beats():
    methods = [
        Tradeoff("tog", 0.8, 9000, 12.0),
        Tradeoff("local", 0.7, 4000, 5.0),
        Tradeoff("slow", 0.7, 4000, 6.0),
        Tradeoff("twin", 0.7, 4000, 5.0),
        Tradeoff("basic", 0.4, 1000, 2.0),
        Tradeoff("unknown", 0.9, None, 1.0),
    ]
    assert pareto_set(methods) == ("tog", "local", "twin", "basic")
    assert pareto_set([]) == ()


def test_the_censored_share_stands_beside_the_quantile():
    rows = [Latency(float(i), censored=i > 8) for i in range(10)]
    assert latency_quantile(rows, 0.5).censored_share == 0.1
    assert latency_quantile([], 0.5).censored_share is None
