import itertools
import math

import numpy as np
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


def table_of_statsmodels(y):
    rows = [(*index, value) for index, value in np.ndenumerate(y)]
    columns = dict(zip("qsjy", np.array(rows, dtype=object).T, strict=True))
    frame = {key: list(values) for key, values in columns.items()}
    frame["y"] = [float(value) for value in frame["y"]]
    import pandas as pd

    fit = ols("y ~ C(q) * C(s) * C(j) - C(q):C(s):C(j)", pd.DataFrame(frame)).fit()
    return anova_lm(fit)


def test_components_are_those_of_the_anova_table():
    rng = np.random.default_rng(4)
    nq, ns, nj = 6, 3, 4
    y = (
        rng.normal(0, 2, (nq, 1, 1))
        + rng.normal(0, 1, (1, ns, 1))
        + rng.normal(0, 1, (nq, ns, 1))
        + rng.normal(0, 0.7, (nq, 1, nj))
        + rng.normal(0, 1, (nq, ns, nj))
    )
    ms = (lambda t: t["sum_sq"] / t["df"])(table_of_statsmodels(y))
    error = ms["Residual"]
    qs, qj, sj = (ms[f"C({a}):C({b})"] for a, b in ("qs", "qj", "sj"))
    expected = {
        "question": (ms["C(q)"] - qs - qj + error) / (ns * nj),
        "search": (ms["C(s)"] - qs - sj + error) / (nq * nj),
        "judge": (ms["C(j)"] - qj - sj + error) / (nq * ns),
        "question x search": (qs - error) / nj,
        "question x judge": (qj - error) / ns,
        "search x judge": (sj - error) / nq,
        "question x search x judge": error,
    }
    found = variance_components(y.tolist())
    assert found.components == pytest.approx({k: max(0, v) for k, v in expected.items()})
    assert sum(found.shares.values()) == pytest.approx(1)
    total = sum(found.components.values())
    assert found.shares["question"] == pytest.approx(found.components["question"] / total)
    assert (found.n_questions, found.n_searches, found.n_judges) == (nq, ns, nj)


def test_components_are_right_on_average():
    rng = np.random.default_rng(8)
    tables = [
        rng.normal(0, 2, (40, 1, 1)) + rng.normal(0, 1, (40, 3, 1)) + rng.normal(0, 0.5, (40, 3, 3))
        for _ in range(40)
    ]
    found = [variance_components(table.tolist()) for table in tables]
    for effect, truth in (
        ("question", 4),
        ("question x search", 1),
        ("question x search x judge", 0.25),
    ):
        assert np.mean([f.components[effect] for f in found]) == pytest.approx(truth, rel=0.1)
    assert all(f.best_repeat == "search" for f in found)


def test_the_variance_of_the_mean_and_what_doubling_buys():
    rng = np.random.default_rng(9)
    found = variance_components(rng.normal(0, 1, (10, 2, 3)).tolist())
    levels = {"question": 10, "search": 2, "judge": 3}

    def variance(levels):
        return sum(
            value / math.prod(levels[name] for name in effect.split(" x "))
            for effect, value in found.components.items()
        )

    assert found.variance_of_mean == pytest.approx(variance(levels))
    for factor in levels:
        more = levels | {factor: 2 * levels[factor]}
        assert found.variance_if_doubled[factor] == pytest.approx(variance(more))


def test_a_factor_that_was_not_repeated_is_undefined():
    scores = [[[1, 0]], [[1, 1]], [[0, 0]]]
    found = variance_components(scores)
    assert found.components["search"] is None
    assert found.components["question x search"] is None
    assert found.components["question x judge"] is not None
    assert found.shares["search"] is None
    assert found.variance_if_doubled["search"] is None
    assert found.best_repeat == "judge"


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


def test_no_variance_at_all():
    found = variance_components([[[1, 1], [1, 1]]] * 4)
    assert found.variance_of_mean == 0
    assert set(found.shares.values()) == {None}
    assert found.best_repeat is None


@given(arrays.arrays(np.float64, st.tuples(*[st.integers(1, 4)] * 3), elements=st.floats(0, 1)))
def test_components_are_never_negative_nor_nan(y):
    found = variance_components(y.tolist())
    values = itertools.chain(found.components.values(), found.variance_if_doubled.values())
    assert all(value is None or (value >= 0 and math.isfinite(value)) for value in values)
