"""A family of comparisons: its intervals, its tests and its power say one thing."""

from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import xlogy
from scipy.stats import binom, multinomial, norm

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.stats.family import (
    EQUIVALENCE_MARGIN,
    Inference,
    compare_family,
    correct_family,
    inference_of,
    score_p,
    verdict_in_words,
)
from graphrag.eval.stats.paired import bonett_price, holm, paired_binary
from graphrag.eval.stats.power import detectable_difference


def counts_of(n10, n01, ties, missing=0):
    counts = {(1, 0, "d"): n10, (0, 1, "d"): n01, (1, 1, "d"): ties, (1, None, "d"): missing}
    return +Counter(counts)


def compared(*pairs, margin=EQUIVALENCE_MARGIN):
    """Return the results and the figures of a family of comparisons."""
    counts = [counts_of(*each) for each in pairs]
    results = correct_family([paired_binary(each) for each in counts])
    inferences = [inference_of(r, c) for r, c in zip(results, counts, strict=True)]
    return results, compare_family(results, inferences, margin)


def words(*pairs, margin=EQUIVALENCE_MARGIN):
    results, figures = compared(*pairs, margin=margin)
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
    results, family = compared(*pairs)
    assert [r.p_holm for r in results] == list(holm([r.p for r in results]))
    for result, figures in zip(results, family, strict=True):
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
    some = paired_binary(counts_of(1, 1, 1))
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
        inferences = [
            Inference(partial(bonett_price, r.n10, r.n01, n), lambda low, high: 1.0)
            for r in results
        ]
        held += all(
            f.low_simultaneous <= share[a] - share[b] <= f.high_simultaneous
            for f, (a, b) in zip(compare_family(results, inferences), pairs, strict=True)
        )
    assert held / draws >= 0.935  # 95 % less what luck takes of 300 draws


@pytest.mark.parametrize(("n10", "n01", "n"), [(6, 4, 500), (40, 36, 400), (0, 0, 30), (3, 20, 90)])
@pytest.mark.parametrize("bound", [0.05, 0.2])
def test_the_score_test_takes_its_spread_from_the_null(n10, n01, n, bound):
    def likelihood(rarer):
        shares = np.array([rarer + bound, rarer, 1 - 2 * rarer - bound])
        return -float(xlogy([n10, n01, n - n10 - n01], shares).sum())

    rarer = minimize_scalar(
        likelihood, bounds=(0, (1 - bound) / 2), method="bounded", options={"xatol": 1e-12}
    ).x
    spread = np.sqrt(n * (2 * rarer + bound - bound**2))
    assert score_p(n10, n01, n, bound) == pytest.approx(
        norm.cdf((n10 - n01 - n * bound) / spread), rel=1e-4
    )


@pytest.mark.parametrize(("n", "discordance"), [(200, 0.06), (359, 0.1), (500, 0.2)])
def test_equivalence_is_called_wrongly_in_at_most_its_level(n, discordance):
    # Every outcome of a true difference of just the margin, weighted exactly.
    n10, n01 = (side.ravel() for side in np.indices((n // 3, n // 3)))
    shares = [(discordance + 0.05) / 2, (discordance - 0.05) / 2, 1 - discordance]
    weight = multinomial.pmf(np.stack([n10, n01, n - n10 - n01], 1), n, shares)
    seen = weight > 1e-7
    outcomes = zip(n10[seen].tolist(), n01[seen].tolist(), strict=True)
    called = np.array([score_p(a, b, n, 0.05) <= 0.05 / 3 for a, b in outcomes])
    assert 0 < weight[seen][called].sum() <= 0.05 / 3


def test_two_one_sided_tests_are_corrected_for_the_family():
    (_, *_), (figures, *_) = compared(*[(30, 24, 946)] * 3)
    sides = (score_p(30, 24, 1000, 0.05), score_p(24, 30, 1000, 0.05))
    assert figures.p_equivalence == pytest.approx(3 * max(sides))
    assert figures.is_equivalent


def test_saying_equal_needs_a_test():
    assert words((40, 40, 920)) == ["equivalent within ±5 points"]
    assert words((3, 3, 24))[0].startswith("unknown: no difference shown; the smallest that")
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
    assert words((40, 40, 940, 50)) == ["unresolved: 50 missing pairs could move it past ±5 points"]
    few = "undecided: 94 % of the pairs that were planned have both verdicts"
    assert words((40, 40, 920, 60)) == [few]
    assert words((4, 4, 28, 2)) == [few]  # 94.7 % is not 95


def test_a_family_without_pairs_has_no_figures():
    results, (empty, alone) = compared((0, 0, 0), (30, 10, 100))
    assert empty.low_simultaneous is empty.p_equivalence is empty.is_equivalent is None
    assert results[1].p_holm == results[1].p  # the one without pairs is no test
    assert alone.low_simultaneous == bonett_price(30, 10, 140)[0]
    assert compared() == ([], [])
    with pytest.raises(ValueError, match="margin must lie in"):
        compared((1, 1, 1), margin=1.0)


def test_what_could_be_seen_is_found_by_holm_in_four_of_five():
    results, _ = compared(*[(36, 36, 288)] * 3)
    seen = results[0].detectable_at_80
    assert seen == detectable_difference(360, 0.2, alpha=0.05 / 3) > detectable_difference(360, 0.2)
    # Holm's first step, exactly as the others show nothing: the trinomial of one comparison.
    rng = np.random.default_rng(3)
    draws = rng.multinomial(360, [(0.2 + seen) / 2, (0.2 - seen) / 2, 0.8], size=20_000)
    p = np.minimum(1, 2 * binom.cdf(draws[:, :2].min(axis=1), draws[:, 0] + draws[:, 1], 0.5))
    assert (3 * p <= 0.05).mean() >= 0.79
    assert (p <= 0.05).mean() > 0.88  # what it would take alone


def test_questions_that_move_together_count_as_fewer():
    result = paired_binary(counts_of(36, 36, 288))
    low, high = bonett_price(36, 36, 360)
    wider = replace(result, low=2 * low, high=2 * high)
    (found,) = correct_family([wider])
    assert found.detectable_at_80 == detectable_difference(90, 0.2)


def test_the_configuration_has_the_same_margin():
    assert EvaluationConfig().equivalence_margin == EQUIVALENCE_MARGIN


def test_the_figures_go_by_the_structure_of_the_documents():
    # Forty documents whose five questions all go one way: as good as forty questions.
    counts = Counter()
    for document in range(40):
        counts[(1, 1, document)] = 5
        if document < 8:
            counts[(1, 1, document)] = 0
            counts[(document % 2, 1 - document % 2, document)] = 5
    counts = +counts
    (result,) = correct_family([paired_binary(counts)])
    (figures,) = compare_family([result], [inference_of(result, counts)])
    pooled = bonett_price(20, 20, 200)
    assert result.test == "sign-flip by document, exact"
    assert result.interval == "bonett-price, clustered by document"
    assert figures.high_simultaneous > 1.5 * pooled[1]
    assert result.detectable_at_80 > 1.5 * detectable_difference(200, 0.2)
    assert not figures.is_equivalent
