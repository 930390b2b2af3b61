"""Evidence, p and limits that hold at any stop."""

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from graphrag.eval.statistics import (
    PairedCounts,
    anytime_limits,
    anytime_p,
    at_any_stop,
    certain_winner,
    early_stop_evidence,
    mean_evidence,
    paired_binary,
)

counts = st.tuples(st.integers(1, 300), st.integers(0, 40), st.integers(0, 40)).map(
    lambda c: PairedCounts(c[0] + c[1] + c[2], c[1], c[2])
)


@pytest.mark.parametrize(("n10", "n01"), [(0, 0), (7, 2), (3, 3), (40, 12), (0, 9)])
def test_against_no_difference_it_is_the_gate_s_evidence(n10, n01):
    above, below = mean_evidence(PairedCounts(200, n10, n01), 0.0)
    assert above == pytest.approx(early_stop_evidence(n10, n01), rel=1e-5)
    assert below == pytest.approx(early_stop_evidence(n01, n10), rel=1e-5)
    m = n10 + n01
    averaged = 2**m / ((m + 1) * comb(m, n10))  # 2^m B(n10+1, n01+1)
    assert anytime_p(PairedCounts(200, n10, n01)) == pytest.approx(min(1, 1 / averaged), rel=1e-5)


@pytest.mark.parametrize("mean", [-0.3, 0.1, 0.6])
def test_the_evidence_is_the_average_fortune(mean):
    n10, n01, ties = 12, 5, 30

    def fortune(bet):
        return (
            (1 + bet * (1 - mean)) ** n10 * (1 - bet * (1 + mean)) ** n01 * (1 - bet * mean) ** ties
        )

    most, least = 1 / (1 + mean), -1 / (1 - mean)
    above, below = mean_evidence(PairedCounts(47, n10, n01), mean)
    assert above == pytest.approx(quad(fortune, 0, most)[0] / most, rel=1e-4)
    assert below == pytest.approx(quad(fortune, least, 0)[0] / -least, rel=1e-4)


@settings(deadline=None, max_examples=25)
@given(counts)
def test_limits_and_p_say_the_same(found):
    low, high = anytime_limits(found, 0.95)
    assert -1 <= low <= (found.n10 - found.n01) / found.n <= high <= 1
    p = anytime_p(found)
    assert 0 < p <= 1
    if abs(p - 0.05) > 1e-6:
        assert (low > 0 or high < 0) == (p < 0.05)
    mirrored = anytime_limits(found.turned(), 0.95)
    assert mirrored == pytest.approx((-high, -low), abs=1e-6)


def test_limits_that_are_looked_at_all_the_time_hold():
    rng, n, kept = np.random.default_rng(4), 150, 0
    for _ in range(60):
        d = rng.choice([1, -1, 0], p=[0.2, 0.1, 0.7], size=n)
        looks = [
            PairedCounts(t, int((d[:t] == 1).sum()), int((d[:t] == -1).sum()))
            for t in range(1, n + 1, 3)
        ]
        # The true difference lies inside as long as the evidence against it is small.
        kept += all(sum(mean_evidence(look, 0.1)) / 2 < 20 for look in looks)
    assert kept / 60 >= 0.92


def test_a_winner_beats_every_other():
    clear, even = PairedCounts(200, 40, 5), PairedCounts(200, 20, 18)
    three = ("a", "b", "c")
    won = {("a", "b"): clear, ("a", "c"): clear, ("b", "c"): even}
    assert certain_winner(three, won) == "a"
    assert certain_winner(three, {**won, ("a", "c"): even}) is None
    turned = {("a", "b"): even, ("a", "c"): clear.turned(), ("b", "c"): clear.turned()}
    assert certain_winner(three, turned) == "c"
    # What is certain of two methods may not be of three.
    close = PairedCounts(60, 13, 1)
    assert 0.025 / 3 < anytime_p(close) <= 0.025
    assert certain_winner(("a", "b"), {("a", "b"): close}) == "a"
    assert certain_winner(three, dict.fromkeys(won, close)) is None


def test_a_missing_score_counts_against_the_winner():
    clear = PairedCounts(200, 20, 1)
    assert certain_winner(("a", "b"), {("a", "b"): clear}) == "a"
    assert certain_winner(("a", "b"), {("a", "b"): clear._replace(missing=10)}) is None
    assert certain_winner(("b", "a"), {("b", "a"): clear.turned()}) == "a"
    assert certain_winner(("b", "a"), {("b", "a"): clear.turned()._replace(missing=10)}) is None


def test_a_comparison_at_a_stop_leaves_out_what_could_have_been_seen():
    result = paired_binary({(1, 0, "d"): 20, (0, 1, "d"): 3, (1, 1, "d"): 60})
    stopped = at_any_stop(result)
    assert stopped.p > result.p
    assert stopped.low < result.low < result.high < stopped.high
    assert stopped.detectable_at_80 is None
    assert at_any_stop(paired_binary({})) == paired_binary({})
