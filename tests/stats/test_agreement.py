"""How far a judge can be trusted, and means that people's labels correct."""

import math
import subprocess
import sys

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from graphrag.eval.stats.agreement import binary_agreement, flip_rate
from graphrag.eval.stats.correction import corrected_difference, corrected_mean, draw_for_labels

scores = st.sampled_from([0, 1, None])


def gwet_ac1(x, y):
    """Agreement less what random rating of a random share of items would give."""
    agreed = sum(a == b for a, b in zip(x, y, strict=True)) / len(x)
    shares = [(list(x).count(k) + list(y).count(k)) / (2 * len(x)) for k in (0, 1)]
    chance = sum(share * (1 - share) for share in shares)
    return (agreed - chance) / (1 - chance)


@given(st.lists(st.tuples(scores, scores), max_size=30))
def test_agreement_is_that_of_the_libraries(rows):
    result = binary_agreement([x for x, _ in rows], [y for _, y in rows])
    whole = [(x, y) for x, y in rows if x is not None and y is not None]
    assert result.n + result.n_dropped == len(rows)
    assert result.n == len(whole)
    counts = (result.true_positive, result.false_positive)
    assert counts == (whole.count((1, 1)), whole.count((1, 0)))
    counts = (result.false_negative, result.true_negative)
    assert counts == (whole.count((0, 1)), whole.count((0, 0)))
    positive = result.true_positive + result.false_negative
    if positive:
        expected = stats.binomtest(result.true_positive, positive).proportion_ci()
        assert result.sensitivity.low == pytest.approx(expected.low)
        assert result.sensitivity.high == pytest.approx(expected.high)
    else:
        assert result.sensitivity.mean is None
    x, y = [x for x, _ in whole], [y for _, y in whole]
    if len({*x, *y}) < 2:
        expected = (None, 1.0 if whole else None, None)
        assert (result.kappa, result.ac1, result.alpha) == expected
        return
    assert result.kappa == pytest.approx(cohen_kappa_score(x, y))
    assert result.ac1 == pytest.approx(gwet_ac1(x, y))
    alpha = krippendorff.alpha(reliability_data=[x, y], level_of_measurement="nominal")
    assert result.alpha == pytest.approx(alpha)


def test_specificity_and_swapping_the_raters():
    judge, human = [1] * 40 + [0] * 10, [1] * 33 + [0] * 7 + [0] * 8 + [1] * 2
    result = binary_agreement(judge, human)
    assert result.specificity.mean == pytest.approx(8 / 15)
    expected = stats.binomtest(8, 15).proportion_ci()
    assert (result.specificity.low, result.specificity.high) == pytest.approx(tuple(expected))
    constant = binary_agreement([1, 1, 1, 1], [1, 0, 1, 0])
    assert (constant.kappa, constant.specificity.mean, constant.sensitivity.mean) == (0, 0, 1)
    swapped = binary_agreement(human, judge)
    assert (swapped.kappa, swapped.ac1) == pytest.approx((result.kappa, result.ac1))


def test_weights_undo_an_uneven_draw():
    # 90 verdicts 1, 10 verdicts 0, ten labels of each: unweighted, the zeros count too much.
    judge = [1] * 10 + [0] * 10
    human = [1] * 9 + [0] + [1] * 2 + [0] * 8
    weights = [9.0] * 10 + [1.0] * 10
    result = binary_agreement(judge, human, weights)
    assert result.sensitivity.mean == pytest.approx(81 / 83)
    assert result.raw_agreement.mean == pytest.approx(89 / 100)
    assert result.kappa == pytest.approx(cohen_kappa_score(judge, human, sample_weight=weights))
    assert result.alpha is None
    even = binary_agreement(judge, human, [3.0] * 20)
    plain = binary_agreement(judge, human)
    assert even.sensitivity.low == pytest.approx(plain.sensitivity.low)
    assert even.raw_agreement.high == pytest.approx(plain.raw_agreement.high)
    for wrong, said in ((([1], [1], [0.0]), "weight"), (([2], [1]), "must be one of")):
        with pytest.raises(ValueError, match=said):
            binary_agreement(*wrong)
    with pytest.raises(ValueError, match="must be one of"):
        corrected_mean([math.nan], [1])


def judged_set(n, seed):
    rng = np.random.default_rng(seed)
    human = (rng.random(n) < 0.7).astype(int)
    judge = np.where(human == 1, rng.random(n) < 0.92, rng.random(n) < 0.25).astype(int)
    return judge.tolist(), human.tolist(), rng.integers(0, 3, n).tolist()


def labelled_at(rows, human):
    return [label if row in set(rows) else None for row, label in enumerate(human)]


def test_without_weights_the_correction_is_the_papers():
    judge, human, _ = judged_set(300, 0)
    result = corrected_mean(judge, labelled_at(range(80), human))
    f, y, rest = np.array(judge[:80]), np.array(human[:80]), np.array(judge[80:])
    every = np.concatenate([f, rest])
    lam = np.cov(y, f, ddof=0)[0, 1] / (1 + 80 / 220) / every.var(ddof=1)
    mean = lam * rest.mean() + (y - lam * f).mean()
    half = stats.norm.ppf(0.975) * math.sqrt((lam * rest).var() / 220 + (y - lam * f).var() / 80)
    assert result.estimate.mean == pytest.approx(mean)
    assert result.estimate.low == pytest.approx(mean - half)
    assert result.estimate.high == pytest.approx(mean + half)
    assert result.uncorrected == pytest.approx(np.mean(judge))
    assert (result.n_labels, result.estimate.n, result.refused) == (80, 300, None)


def test_a_draw_by_verdict_is_weighted_back():
    judge, human, documents = judged_set(400, 1)
    strata = list(zip(documents, judge, strict=True))
    rows = [
        row for key in set(strata) for row in [i for i, k in enumerate(strata) if k == key][:15]
    ]
    result = corrected_mean(judge, labelled_at(rows, human), strata)
    by_group = sum(
        strata.count(key) / 400 * np.mean([human[row] for row in rows if strata[row] == key])
        for key in set(strata)
    )
    assert result.estimate.mean == pytest.approx(by_group)
    assert result.estimate.mean != pytest.approx(np.mean([human[row] for row in rows]), abs=0.05)


def test_the_corrected_interval_covers_the_truth():
    covered = biased = 0
    for seed in range(150):
        judge, human, documents = judged_set(240, seed)
        strata = list(zip(documents, judge, strict=True))
        rows = draw_for_labels(strata, 70, seed)
        result = corrected_mean(judge, labelled_at(rows, human), strata)
        covered += result.estimate.low <= 0.7 <= result.estimate.high
        biased += result.uncorrected > 0.7
    assert covered >= 0.89 * 150
    assert biased > 75


def test_too_few_labels_are_refused():
    judge, human, documents = judged_set(200, 2)
    result = corrected_mean(judge, labelled_at(range(59), human))
    assert result.refused == "59 labeled responses are too few for a correction, which needs 60"
    assert (result.estimate.mean, result.estimate.low) == (None, None)
    assert corrected_mean(judge, labelled_at(range(60), human)).refused is None
    strata = [*documents[:-1], "alone"]
    refused = corrected_mean(judge, labelled_at(range(100), human), strata).refused
    assert refused == "1 of 4 groups have no label"
    assert corrected_mean([], []).refused is not None
    assert corrected_mean([None] * 80, [1] * 80).n_labels == 0


def test_labels_for_everything_give_their_mean_and_a_constant_judge_adds_nothing():
    judge, human, documents = judged_set(100, 3)
    result = corrected_mean(judge, human, documents)
    assert result.estimate.mean == pytest.approx(np.mean(human))
    assert result.estimate.low < np.mean(human) < result.estimate.high
    human = judged_set(100, 4)[1]
    result = corrected_mean([1] * 100, labelled_at(range(70), human))
    assert result.estimate.mean == pytest.approx(np.mean(human[:70]))
    assert result.estimate.low < result.estimate.high
    certain = corrected_mean([1] * 100, [1] * 70 + [None] * 30)
    assert certain.estimate.mean == pytest.approx(1)
    assert (certain.estimate.low, certain.estimate.high) == (None, None)


def test_a_paired_difference_is_corrected():
    first, second = judged_set(300, 5), judged_set(300, 6)
    judge = list(zip(first[0], second[0], strict=True))
    human = [
        pair if row < 90 else (None, 1)
        for row, pair in enumerate(zip(first[1], second[1], strict=True))
    ]
    result = corrected_difference(judge, human)
    swapped = corrected_difference([(b, a) for a, b in judge], [(b, a) for a, b in human])
    assert result.n_labels == 90
    assert -1 <= result.estimate.low < result.estimate.mean < result.estimate.high <= 1
    assert result.estimate.mean == pytest.approx(-swapped.estimate.mean)
    assert result.estimate.low == pytest.approx(-swapped.estimate.high)
    assert result.uncorrected == pytest.approx(np.mean(first[0]) - np.mean(second[0]))


@given(st.lists(st.sampled_from("abcd"), max_size=40), st.integers(1, 50), st.integers(0, 3))
def test_a_draw_touches_every_group(strata, n, seed):
    rows = draw_for_labels(strata, n, seed)
    assert list(rows) == sorted(set(rows))
    assert len(rows) == max(min(n, len(strata)), len(set(strata)))
    assert {strata[row] for row in rows} == set(strata)
    assert rows == draw_for_labels(strata, n, seed)
    uneven = ["a"] * 300 + ["b"] * 100
    assert sum(uneven[row] == "a" for row in draw_for_labels(uneven, 80)) == 60


def test_the_libraries_leave_warnings_alone_and_load_late():
    code = """
import sys, warnings
from graphrag.eval.stats import agreement, correction, gates
assert not {"scipy.stats", "statsmodels", "sklearn", "ppi_py"} & set(sys.modules)
before = list(warnings.filters)
correction.corrected_mean([0, 1] * 50, [0, 1] * 35 + [None] * 30)
assert "ppi_py" in sys.modules
assert ("ignore", None, Warning, None, 0) not in warnings.filters
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@given(st.lists(st.lists(st.sampled_from([0, 1, None]), max_size=6), max_size=8))
def test_the_flip_rate_is_the_mean_over_items_with_repeats(items):
    known = [[score for score in item if score is not None] for item in items]
    rates = [
        2 * sum(item) * (len(item) - sum(item)) / (len(item) * (len(item) - 1))
        for item in known
        if len(item) > 1
    ]
    assert flip_rate(items) == (pytest.approx(np.mean(rates)) if rates else None)
