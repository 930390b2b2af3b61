"""How far a judge can be trusted, and means that people's labels correct."""

import math
import subprocess
import sys
from collections import Counter

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from graphrag.eval.stats.agreement import binary_agreement, flip_rate
from graphrag.eval.stats.intervals import Estimate, mean_binary
from graphrag.eval.stats.label_correction import (
    Corrected,
    corrected_difference,
    corrected_mean,
    draw_for_labels,
)
from graphrag.eval.stats.paired import paired_binary

scores = st.sampled_from([0, 1, None])


def sklearn_kappa(x, y, weights=None):
    from sklearn.metrics import cohen_kappa_score  # here, as every worker imports what is above

    return cohen_kappa_score(x, y, sample_weight=weights)


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
    assert result.kappa == pytest.approx(sklearn_kappa(x, y))
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
    assert result.kappa == pytest.approx(sklearn_kappa(judge, human, weights))
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


def test_a_mean_is_that_of_labels_by_verdict_with_wilsons_limits():
    judge, human, _ = judged_set(300, 0)
    result = corrected_mean(judge, labelled_at(range(80), human))
    f, y = np.array(judge), np.array(human[:80])
    mean, variance, likely = 0.0, 0.0, 0.0
    expected = {}
    for verdict in (0, 1):
        share, own = (f == verdict).mean(), y[f[:80] == verdict]
        expected[verdict] = (own.sum() + 0.25) / (len(own) + 0.5)
        mean += share * own.mean()
        likely += share * expected[verdict]
        variance += share**2 * expected[verdict] * (1 - expected[verdict]) / len(own)
    variance += np.var([expected[verdict] for verdict in judge]) / 300
    size = likely * (1 - likely) / variance
    low, high = proportion_confint(mean * size, size, method="wilson")
    assert 80 < size < 300
    assert result.estimate.mean == pytest.approx(mean)
    assert (result.estimate.low, result.estimate.high) == pytest.approx((low, high))
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
    assert refused == "1 of 7 groups have no label"
    assert corrected_mean([], []).refused is not None
    assert corrected_mean([None] * 80, [1] * 80).n_labels == 0


@pytest.mark.parametrize(("n", "of"), [(100, 3), (30, 1), (100, 20)])
def test_labels_for_everything_are_the_answer_whatever_the_judge_said(n, of):
    judge, human, _ = judged_set(n, 3)
    documents = [i % of for i in range(n)]
    for verdicts in (judge, human, [1] * n):
        result = corrected_mean(verdicts, human, documents, documents)
        assert result.estimate == mean_binary(human, documents)
        assert (result.is_complete, result.n_labels, result.refused) == (True, n, None)
    truth, seen = (list(zip(side, side[1:] + side[:1], strict=True)) for side in (human, judge))
    difference = corrected_difference(seen, truth, documents, documents)
    own = paired_binary(Counter((a, b, d) for (a, b), d in zip(truth, documents, strict=True)))
    assert (difference.estimate.mean, difference.p) == (own.difference, own.p)
    assert (difference.estimate.low, difference.estimate.high) == (own.low, own.high)
    assert difference.limits(0.95) == pytest.approx((own.low, own.high))
    assert difference.is_complete


def test_a_judge_that_says_one_thing_adds_nothing_and_no_error_seen_is_not_none():
    human = judged_set(100, 4)[1]
    result = corrected_mean([1] * 100, labelled_at(range(70), human))
    assert result.estimate.mean == pytest.approx(np.mean(human[:70]))
    assert result.estimate.low < result.estimate.high
    certain = corrected_mean([1] * 100, [1] * 70 + [None] * 30)
    assert certain.estimate.mean == pytest.approx(1)
    assert 0.9 < certain.estimate.low < 0.97
    assert certain.estimate.high == 1


def test_few_labels_and_rare_errors_are_covered():
    held = [0, 0]
    for seed in range(200):
        rng = np.random.default_rng(seed)
        truth = (rng.random((360, 2)) < 0.95).astype(int)
        judge = np.where(truth == 1, 1, rng.random((360, 2)) < 0.8).astype(int).tolist()
        strata = [tuple(pair) for pair in judge]
        rows = set(draw_for_labels(strata, 60, seed))
        labels = [pair if i in rows else [None, None] for i, pair in enumerate(truth.tolist())]
        mean = corrected_mean([a for a, _ in judge], [a for a, _ in labels], strata).estimate
        pairs = [(a, b) for a, b in judge], [(a, b) for a, b in labels]
        difference = corrected_difference(*pairs, strata).estimate
        held[0] += mean.low <= 0.95 <= mean.high
        held[1] += difference.low <= 0 <= difference.high
    assert min(held) >= 0.93 * 200


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
from graphrag.eval.stats import agreement, label_correction, gates
assert not {"scipy.stats", "statsmodels", "sklearn"} & set(sys.modules)
agreement.binary_agreement([0, 1] * 50, [1, 1] * 50)
assert "sklearn" in sys.modules
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


def drawn(n: int, n_labels: int, seed: int, errors: float = 0.2, documents: int = 1):
    """Return verdicts, labels and documents of paired differences; labels at random."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, (n, 2))
    judge = np.where(rng.random((n, 2)) < errors, 1 - truth, truth)
    labelled = set(rng.choice(n, n_labels, replace=False).tolist())
    human = [tuple(pair) if i in labelled else (None, None) for i, pair in enumerate(truth)]
    return [tuple(pair) for pair in judge], human, [i % documents for i in range(n)]


def test_a_partly_labelled_difference_has_tests_and_limits_of_one_spread():
    judge, human, _ = drawn(300, 100, seed=1)
    found = corrected_difference(judge, human)
    groups = {pair: [i for i in range(300) if judge[i] == pair] for pair in set(judge)}
    mean = 0.0
    for rows in groups.values():
        known = [human[i][0] - human[i][1] for i in rows if None not in human[i]]
        mean += len(rows) / 300 * np.mean(known)
    assert found.estimate.mean == pytest.approx(mean)
    assert found.limits(0.95) == pytest.approx((found.estimate.low, found.estimate.high))
    ratio = found.center / found.se
    assert found.p == pytest.approx(2 * stats.norm.sf(abs(ratio)))
    assert found.limits(0.9)[0] == pytest.approx(found.center - stats.norm.ppf(0.95) * found.se)
    assert found.outside(-0.05, 0.05) == pytest.approx(
        stats.norm.cdf(max(found.center - 0.05, -0.05 - found.center) / found.se)
    )
    reach = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    assert found.detectable(0.05) == pytest.approx(reach * found.se)


def test_many_documents_are_clustered():
    _, human, documents = drawn(300, 240, seed=2, documents=20)
    labels = [pair if documents[i] else (1, 0) for i, pair in enumerate(human)]
    seen = [(1, 1) if documents[i] else (1, 0) for i in range(300)]
    found = corrected_difference(seen, labels, None, documents)
    alike = corrected_difference(seen, labels)
    assert found.estimate.method.endswith("clustered by document")
    assert found.df == pytest.approx(19)
    assert found.se >= alike.se
    assert found.p == pytest.approx(2 * stats.t.sf(abs(found.center / found.se), 19))


def test_what_was_not_corrected_has_no_p_and_no_limits():
    bare = Corrected(None, Estimate(None, 0, None, None, "labels"), 0, "few")
    assert (bare.p, bare.detectable(0.05)) == (None, None)
    with pytest.raises(ValueError, match="no limits"):
        bare.limits(0.95)
