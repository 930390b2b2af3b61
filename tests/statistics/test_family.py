"""A family of comparisons: its intervals, its tests and its power say one thing."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from graphrag.eval import EvaluationConfig
from graphrag.eval.statistics import (
    EQUIVALENCE_MARGIN,
    bonett_price,
    compare_family,
    correct_family,
    detectable_difference,
    holm,
    paired_binary,
    verdict_in_words,
)


def compared(n10, n01, ties, missing=0):
    counts = {(1, 0, "d"): n10, (0, 1, "d"): n01, (1, 1, "d"): ties, (1, None, "d"): missing}
    return paired_binary(+Counter(counts))


def words(*pairs, margin=EQUIVALENCE_MARGIN):
    results = correct_family([compared(*each) for each in pairs])
    figures = compare_family(results, margin)
    return [verdict_in_words(r, "a", "b", family=f) for r, f in zip(results, figures, strict=True)]


@settings(deadline=None, max_examples=25)
@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(1, 200)),
        min_size=1,
        max_size=6,
    )
)
def test_interval_and_corrected_test_say_the_same(pairs):
    results = correct_family([compared(*each) for each in pairs])
    assert [r.p_holm for r in results] == list(holm([r.p for r in results]))
    for result, figures in zip(results, compare_family(results), strict=True):
        low, high = figures.low_simultaneous, figures.high_simultaneous
        assert -1 <= low <= result.difference <= high <= 1
        assert low < high
        is_one_sided = low >= 0 or high <= 0
        assert is_one_sided if result.p_holm <= 0.05 else low <= 0 <= high
        assert low <= result.low or low == 0  # never narrower than the interval of one
        assert high >= result.high or high == 0


def test_the_intervals_hold_together():
    # Two methods that hardly differ and a third one far off: the worst case of ends moved to 0,
    # in which intervals at Bonferroni's level hold together in 94.5 %.
    rng, n, share = np.random.default_rng(5), 400, np.array([0.6, 0.599, 0.75])
    pairs, draws, held = [(0, 1), (0, 2), (1, 2)], 300, 0
    some = compared(1, 1, 1)
    for _ in range(draws):
        right = rng.standard_normal((n, 1)) + rng.standard_normal((n, 3)) < norm.ppf(
            share
        ) * np.sqrt(2)
        n10 = np.array([(right[:, a] & ~right[:, b]).sum() for a, b in pairs])
        n01 = np.array([(right[:, b] & ~right[:, a]).sum() for a, b in pairs])
        p = np.minimum(1, 2 * binom.cdf(np.minimum(n10, n01), n10 + n01, 0.5))
        results = [
            replace(some, n_pairs=n, n10=x, n01=y, difference=(x - y) / n, p=each, p_holm=corrected)
            for x, y, each, corrected in zip(
                n10.tolist(), n01.tolist(), p, holm(p.tolist()), strict=True
            )
        ]
        held += all(
            f.low_simultaneous <= share[a] - share[b] <= f.high_simultaneous
            for f, (a, b) in zip(compare_family(results), pairs, strict=True)
        )
    assert held / draws >= 0.935  # 95 % less what luck takes of 300 draws


@pytest.mark.parametrize(("n10", "n01", "ties"), [(6, 4, 490), (40, 36, 924), (70, 30, 1900)])
@pytest.mark.parametrize("n_tests", [1, 3])
def test_equivalence_is_two_one_sided_tests(n10, n01, ties, n_tests):
    n = n10 + n01 + ties
    results = correct_family([compared(n10, n01, ties)] * n_tests)
    figures = compare_family(results)[0]
    p, q = (n10 + 1) / (n + 2), (n01 + 1) / (n + 2)
    error = np.sqrt((p + q - (p - q) ** 2) / (n + 2))
    one_sided = max(norm.sf((0.05 - (p - q)) / error), norm.sf((0.05 + (p - q)) / error))
    expected = min(1, n_tests * max(one_sided, norm.sf(8)))
    assert figures.p_equivalence == pytest.approx(expected, rel=1e-6)
    low, high = bonett_price(n10, n01, n, 1 - 2 * 0.05 / n_tests)
    assert figures.is_equivalent == (low > -0.05 and high < 0.05)


def test_saying_equal_needs_a_test():
    assert words((40, 40, 920)) == ["equivalent within ±5 points"]
    assert words((3, 3, 24))[0].startswith("unknown: no difference shown; would have seen")
    assert words((60, 20, 1920)) == ["a better than b, by less than 5 points"]
    assert words((20, 60, 1920)) == ["b better than a, by less than 5 points"]
    assert words((120, 20, 860)) == ["a better than b"]
    assert words((40, 40, 920), margin=0.01)[0].startswith("unknown")
    assert words((1, 1, 1))[0] == "unknown: no difference shown; too few questions to see any"
    # A claim that holds alone may not hold as one of three.
    assert words((46, 46, 308)) == ["equivalent within ±5 points"]
    assert words(*[(46, 46, 308)] * 3)[0].startswith("unknown")


def test_missing_verdicts_can_undo_equivalence():
    assert words((41, 40, 920, 3)) == ["equivalent within ±5 points"]  # whoever they favour
    assert words((40, 40, 920, 60)) == ["unresolved: 60 missing pairs could move it past ±5 points"]


def test_a_family_without_pairs_has_no_figures():
    results = correct_family([paired_binary({}), compared(30, 10, 100)])
    empty, alone = compare_family(results)
    assert empty.low_simultaneous is empty.p_equivalence is empty.is_equivalent is None
    assert results[1].p_holm == results[1].p  # the one without pairs is no test
    assert alone.low_simultaneous == bonett_price(30, 10, 140)[0]
    assert correct_family([]) == compare_family([]) == []
    with pytest.raises(ValueError, match="margin must lie in"):
        compare_family(results, 1.0)


def test_what_could_be_seen_is_found_by_holm_in_four_of_five():
    results = correct_family([compared(36, 36, 288)] * 3)
    seen = results[0].detectable_at_80
    assert seen == detectable_difference(360, 0.2, alpha=0.05 / 3) > detectable_difference(360, 0.2)
    # Holm's first step, exactly as the others show nothing: the trinomial of one comparison.
    rng = np.random.default_rng(3)
    draws = rng.multinomial(360, [(0.2 + seen) / 2, (0.2 - seen) / 2, 0.8], size=20_000)
    p = np.minimum(1, 2 * binom.cdf(draws[:, :2].min(axis=1), draws[:, 0] + draws[:, 1], 0.5))
    assert (3 * p <= 0.05).mean() >= 0.79
    assert (p <= 0.05).mean() > 0.88  # what it would take alone


def test_questions_that_move_together_count_as_fewer():
    result = compared(36, 36, 288)
    low, high = bonett_price(36, 36, 360)
    wider = replace(result, low=2 * low, high=2 * high)
    (found,) = correct_family([wider])
    assert found.detectable_at_80 == detectable_difference(90, 0.2)


def test_half_a_level_doubles_p_and_widens():
    whole, half = (correct_family([compared(30, 10, 100)], level) for level in (0.05, 0.025))
    assert half[0].p_holm == 2 * whole[0].p_holm
    assert half[0].detectable_at_80 > whole[0].detectable_at_80
    (a,), (b,) = compare_family(whole), compare_family(half, level=0.025)
    assert b.low_simultaneous < a.low_simultaneous
    assert b.low_simultaneous == bonett_price(30, 10, 140, 0.975)[0]


def test_the_configuration_has_the_same_margin():
    assert EvaluationConfig().equivalence_margin == EQUIVALENCE_MARGIN
