"""A judge's errors in differences, corrected by labels."""

from dataclasses import replace

import numpy as np
import pytest
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate
from scipy import stats

from graphrag.eval.stats.correction import Corrected, corrected_change, corrected_difference
from graphrag.eval.stats.intervals import Estimate


def drawn(n: int, n_labels: int, seed: int, errors: float = 0.2, documents: int = 1):
    """Return verdicts, labels and documents of paired differences; labels at random."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, (n, 2))
    judge = np.where(rng.random((n, 2)) < errors, 1 - truth, truth)
    labelled = set(rng.choice(n, n_labels, replace=False).tolist())
    human = [tuple(pair) if i in labelled else (None, None) for i, pair in enumerate(truth)]
    return [tuple(pair) for pair in judge], human, [i % documents for i in range(n)]


def test_the_standard_error_and_p_are_those_of_ppi():
    judge, human, _ = drawn(300, 100, seed=1)
    found = corrected_difference(judge, human)
    labelled = [i for i, pair in enumerate(human) if None not in pair]
    rest = [i for i in range(300) if i not in set(labelled)]
    verdicts = np.array([a - b for a, b in judge], dtype=float)
    labels = np.array([human[i][0] - human[i][1] for i in labelled], dtype=float)
    inputs = (labels, verdicts[labelled], verdicts[rest])
    # The library takes weights of one for all, here as 300/100 and 300/200.
    weights = {"w": np.full(100, 3.0), "w_unlabeled": np.full(200, 1.5)}
    mean = float(np.squeeze(ppi_mean_pointestimate(*inputs, **weights)))
    low, high = (float(np.squeeze(x)) for x in ppi_mean_ci(*inputs, alpha=0.05, **weights))
    assert (found.estimate.mean, found.estimate.low) == pytest.approx((mean, low))
    se = (high - low) / 2 / stats.norm.ppf(0.975)
    assert found.se == pytest.approx(se)
    assert found.p == pytest.approx(2 * stats.norm.sf(abs(mean) / se))
    assert found.p_below == pytest.approx(stats.norm.cdf(mean / se))
    assert found.limits(0.9)[0] == pytest.approx(mean - stats.norm.ppf(0.95) * se)
    reach = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    assert found.detectable(0.05) == pytest.approx(reach * se)


def test_many_documents_are_clustered_and_one_label_each_is_enough():
    judge, human, documents = drawn(60, 60, seed=2, documents=20)
    found = corrected_difference(judge, human, documents, documents)
    totals = [sum(human[i][0] - human[i][1] for i in range(g, 60, 20)) for g in range(20)]
    means = np.array(totals) / 3
    assert found.estimate.method == "ppi++, clustered by document"
    assert found.estimate.mean == pytest.approx(means.mean())
    # With documents of one size CR2 is the standard error of their means, with G - 1 degrees.
    assert found.se == pytest.approx(stats.sem(means))
    assert found.df == pytest.approx(19)
    assert found.p == pytest.approx(stats.ttest_1samp(means, 0).pvalue)


def test_a_change_is_the_difference_of_two_stratified_means_of_labels():
    rng = np.random.default_rng(3)
    judge = [(int(a), int(b)) for a, b in rng.integers(0, 2, (200, 2))]
    human = [
        (
            int(rng.random() < (0.9 if a else 0.3)) if i % 2 else None,
            int(rng.random() < 0.8) if i % 3 == 0 else None,
        )
        for i, (a, b) in enumerate(judge)
    ]
    found = corrected_change(judge, human, judge, [None] * 200)
    means = []
    for side in (0, 1):
        mean = 0.0
        for verdict in (0, 1):
            labels = [h[side] for j, h in zip(judge, human, strict=True) if j[side] == verdict]
            known = [label for label in labels if label is not None]
            mean += len(labels) / 200 * sum(known) / len(known)
        means.append(mean)
    assert found.refused is None
    assert found.estimate.method == "labels of both runs"
    assert found.estimate.mean == pytest.approx(means[0] - means[1])
    assert found.uncorrected == pytest.approx(sum(a - b for a, b in judge) / 200)
    assert found.estimate.low < found.estimate.mean < found.estimate.high


def test_no_error_seen_is_not_taken_for_none_there():
    judge = [(1, 1), (0, 0)] * 60
    human = [(a, None) if i < 60 else (None, b) for i, (a, b) in enumerate(judge)]
    found = corrected_change(judge, human, [(a, b) for a, b in judge], [None] * 120)
    assert found.estimate.mean == 0
    assert found.se is not None
    assert found.se > 0.02
    assert found.p == 1


def test_the_same_questions_labelled_in_both_runs_are_taken_as_pairs():
    judge, human, documents = drawn(200, 90, seed=4)
    found = corrected_change(judge, human, judge, documents)
    paired = corrected_difference(judge, human, judge, documents)
    assert found == replace(paired, n_labels=180)
    assert found.estimate.method == "ppi++"


def test_what_is_known_without_a_label_needs_none_and_counts_for_none():
    judge = [(0, 1)] * 30 + [(1, 1), (1, 0), (0, 0), (0, 1)] * 30
    labels = [(None, 1)] * 30 + [
        (a, None) if i % 2 else (None, b) for i, (a, b) in enumerate(judge[30:])
    ]
    strata = [(None, 1)] * 30 + judge[30:]
    found = corrected_change(judge, labels, strata, ["d"] * 150)
    assert found.refused is None
    assert found.n_labels == 150
    few = corrected_change(judge, labels[:80] + [(None, None)] * 70, strata, ["d"] * 150)
    assert few.refused == (
        "new run: 25 labeled responses are too few for a correction, which needs 60"
    )
    bare = [(None if pair == (0, 0) else a, b) for pair, (a, b) in zip(judge, labels, strict=True)]
    split = [(("x", i == 149), b) for i, (_, b) in enumerate(strata)]
    with pytest.raises(ValueError, match="one verdict"):
        corrected_change(judge, bare, split, ["d"] * 150)


def test_a_group_without_a_label_is_refused_by_the_run():
    judge = [(1, 1), (0, 0)] * 80
    human = [(1 if a else None, b) for a, b in judge]
    found = corrected_change(judge, human, judge, [None] * 160)
    assert (found.refused, found.estimate.mean) == ("new run: 1 of 2 groups have no label", None)


def test_what_was_not_corrected_has_no_p_and_no_limits():
    assert corrected_change([], [], [], []).refused is not None
    bare = Corrected(None, Estimate(None, 0, None, None, "ppi++"), 0, "few")
    assert (bare.p, bare.p_below, bare.detectable(0.05)) == (None, None, None)
    with pytest.raises(ValueError, match="no limits"):
        bare.limits(0.95)
