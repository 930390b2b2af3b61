import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from graphrag.eval.stats.latency import Latency, cost_per_correct, latency_quantile, pareto_set

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
    assert p95.censored_share == 0.1


def test_the_upper_limit_of_p95_needs_72():
    upper = [latency_quantile([Latency(float(i)) for i in range(n)], 0.95).high for n in (71, 72)]
    assert (upper[0], upper[1] is not None) == (None, True)


@pytest.mark.parametrize(
    ("costs", "correct"), [([], []), ([1.0], [0]), ([None, 1.0], [1, 1]), ([1.0], [None])]
)
def test_cost_per_correct_is_a_ratio_of_sums_or_undefined(costs, correct):
    result = cost_per_correct(costs, correct)
    assert (result.value, result.low, result.high) == (None, None, None)
    result = cost_per_correct([1.0, 2.0, 3.0, 4.0], [1, 0, 1, None])
    assert (result.value, result.n, result.n_dropped, result.n_correct) == (3.0, 3, 1, 2)


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
@example([(0.0, 0), *[(0.01171875, 1)] * 4])
def test_cost_per_correct_is_sound(rows):
    result = cost_per_correct([c for c, _ in rows], [y for _, y in rows])
    assert result.n + result.n_dropped == len(rows)
    if result.low is not None:
        assert 0 <= result.low <= result.value <= result.high < math.inf


def test_the_pareto_set_holds_what_nothing_beats():
    methods = {
        "tog": (0.8, 9000, 12.0),
        "local": (0.7, 4000, 5.0),
        "slow": (0.7, 4000, 6.0),
        "twin": (0.7, 4000, 5.0),
        "basic": (0.4, 1000, 2.0),
        "unknown": (0.9, None, 1.0),
    }
    assert pareto_set(methods) == ("tog", "local", "twin", "basic")
    assert pareto_set({}) == ()
