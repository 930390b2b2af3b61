import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from graphrag.eval.statistics import combine_orders, summarize_repeats, variance_components


@given(st.lists(st.lists(st.sampled_from([0, 1, None]), max_size=6), max_size=8))
def test_repeats_become_one_mean_an_item(items):
    result = summarize_repeats(items)
    assert len(result.item_means) == len(result.flip_rates) == len(items)
    for item, mean, flips in zip(items, result.item_means, result.flip_rates, strict=True):
        known = [score for score in item if score is not None]
        assert mean == (pytest.approx(np.mean(known)) if known else None)
        if len(known) < 2:
            assert flips is None
        else:
            ones, n = sum(known), len(known)
            assert flips == pytest.approx(2 * ones * (n - ones) / (n * (n - 1)))


def test_the_flip_rate_is_the_mean_over_items_with_repeats():
    result = summarize_repeats([[1, 0], [1, 1], [1], []])
    assert result.flip_rates == (1.0, 0.0, None, None)
    assert result.flip_rate == 0.5
    assert summarize_repeats([[1], []]).flip_rate is None


def test_a_flip_between_orders_is_a_tie():
    result = combine_orders(["a", "a", "tie", "b", None], ["a", "b", "tie", "tie", "a"])
    assert result.preferences == ("a", "tie", "tie", "tie", None)
    assert (result.n_flipped, result.flip_rate) == (2, 0.5)
    assert combine_orders([None], ["a"]).flip_rate is None


def drawn(rng, shape, question, search, judge):
    """Draw scores whose verdicts are nested in searches, and searches in questions."""
    nq, ns, _ = shape
    return (
        rng.normal(0, question**0.5, (nq, 1, 1))
        + rng.normal(0, search**0.5, (nq, ns, 1))
        + rng.normal(0, judge**0.5, shape)
    )


def mean_squares_of_statsmodels(y):
    q, s, _ = (index.ravel().tolist() for index in np.indices(y.shape))
    frame = pd.DataFrame({"q": q, "s": s, "y": y.ravel()})
    table = anova_lm(ols("y ~ C(q) + C(q):C(s)", frame).fit())
    squares = table["sum_sq"] / table["df"]
    return squares["C(q)"], squares["C(q):C(s)"], squares["Residual"]


def test_components_are_those_of_the_nested_anova_table():
    nq, ns, nj = shape = (6, 3, 4)
    y = drawn(np.random.default_rng(4), shape, 4, 1, 1)
    question, search, judge = mean_squares_of_statsmodels(y)
    expected = {
        "question": (question - search) / (ns * nj),
        "search": (search - judge) / nj,
        "judge": judge,
    }
    found = variance_components(y.tolist())
    assert found.components == pytest.approx(expected)
    assert found.clipped == ()
    total = sum(expected.values())
    assert found.shares == pytest.approx({k: v / total for k, v in expected.items()})
    assert (found.n_questions, found.n_searches, found.n_judges) == shape
    assert found.variance_of_mean == pytest.approx(question / y.size)
    means = y.mean(axis=(1, 2))
    assert found.variance_of_mean == pytest.approx(means.var(ddof=1) / nq)
    left = {
        "question": lambda v: v / 2,
        "search": lambda v: v - (expected["search"] / ns + expected["judge"] / (ns * nj)) / 2 / nq,
        "judge": lambda v: v - expected["judge"] / (2 * y.size),
    }
    for factor, of in left.items():
        assert found.variance_if_doubled[factor] == pytest.approx(of(question / y.size))


@pytest.mark.parametrize(("search", "judge"), [(0.5, 0.5), (0, 0.5), (0.5, 0)])
def test_figures_are_right_on_average_and_advice_seldom_wrong(search, judge):
    rng = np.random.default_rng(8)
    n, shape = 300, (30, 2, 3)
    found = [variance_components(drawn(rng, shape, 1, search, judge).tolist()) for _ in range(n)]
    variance = (1 + (search + judge / 3) / 2) / 30
    assert np.mean([f.variance_of_mean for f in found]) == pytest.approx(variance, rel=0.05)
    for factor, truth in (("question", 1), ("search", search), ("judge", judge)):
        assert np.mean([f.components[factor] for f in found]) == pytest.approx(
            truth, rel=0.1, abs=0.03
        )
    advised = [f.best_repeat for f in found]
    useless = "judge" if search else "search"
    assert advised.count(useless) <= 0.05 * n
    assert any(f.clipped == ("search",) for f in found) == (search == 0)


def test_the_better_repeat_depends_on_what_it_costs():
    y = drawn(np.random.default_rng(3), (60, 2, 2), 1, 0.3, 0.5).tolist()
    # var_search / var_judge = 0.6: searches are worth less than 4 * 0.6 verdicts
    assert variance_components(y, 0.2).best_repeat == "search"
    assert variance_components(y, 12.0).best_repeat == "judge"
    assert variance_components(y, 2.4).best_repeat is None
    assert variance_components(y, None).best_repeat is None
    for bad in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="ratio of costs"):
            variance_components(y, bad)


def test_a_component_below_0_is_clipped_and_named():
    scores = [[[1, 0], [0, 1]], [[1, 1], [1, 1]], [[0, 1], [1, 0]]]
    found = variance_components(scores)
    assert found.components["search"] == 0
    assert found.clipped == ("search",)
    assert found.variance_if_doubled["search"] == found.variance_if_doubled["judge"]


@pytest.mark.parametrize(
    ("scores", "told_apart", "together"),
    [
        ([[[1, 0]], [[1, 1]], [[0, 0]]], "judge", "question + search"),
        ([[[1], [0]], [[1], [1]], [[0], [0]]], "question", "search + judge"),
        ([[[1]], [[0]], [[0]]], None, "question + search + judge"),
    ],
)
def test_what_was_not_repeated_is_not_told_apart(scores, told_apart, together):
    found = variance_components(scores)
    known = {name for name, value in found.components.items() if value is not None}
    assert known == {told_apart, together} - {None}
    assert {name for name, value in found.shares.items() if value is not None} == known
    assert found.best_repeat is None
    doubled = {name for name, value in found.variance_if_doubled.items() if value is not None}
    repeated = {"judge": "judge", "question": "search"}.get(told_apart)
    assert doubled == {"question", repeated} - {None}


@pytest.mark.parametrize("scores", [[], [[[1]]], [[[None, 1], [1, 1]]], [[]], [[[]]]])
def test_nothing_to_split(scores):
    found = variance_components(scores)
    assert set(found.components.values()) == {None}
    assert (found.variance_of_mean, found.best_repeat) == (None, None)


def test_a_question_with_a_gap_is_left_out_and_counted():
    whole = [[[1, 0], [1, 1]], [[0, 0], [1, 0]], [[1, 1], [1, 1]]]
    found = variance_components([*whole, [[1, None], [1, 1]]])
    assert found.n_dropped_questions == 1
    assert found.components == variance_components(whole).components
    with pytest.raises(ValueError, match="same searches"):
        variance_components([[[1]], [[1], [1]]])
    with pytest.raises(ValueError, match="finite"):
        variance_components([[[math.nan, 1]]])


@pytest.mark.parametrize("score", [1, 0.1])
def test_no_variance_at_all(score):
    found = variance_components([[[score] * 3] * 3] * 7)
    assert found.variance_of_mean == 0
    assert set(found.shares.values()) == {None}
    assert (found.best_repeat, found.clipped) == (None, ())


@given(arrays.arrays(np.float64, st.tuples(*[st.integers(1, 4)] * 3), elements=st.floats(0, 1)))
def test_components_are_never_negative_nor_nan(y):
    found = variance_components(y.tolist())
    values = itertools.chain(found.components.values(), found.variance_if_doubled.values())
    assert all(value is None or (value >= 0 and math.isfinite(value)) for value in values)
    searches, verdicts = (found.variance_if_doubled[name] for name in ("search", "judge"))
    if searches is not None and verdicts is not None:
        assert searches <= verdicts <= found.variance_of_mean
