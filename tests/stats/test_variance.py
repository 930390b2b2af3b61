import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag.eval.stats.agreement import combine_orders, summarize_repeats


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
