import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag.eval.stats.agreement import combine_orders, flip_rate


@given(st.lists(st.lists(st.sampled_from([0, 1, None]), max_size=6), max_size=8))
def test_the_flip_rate_is_the_mean_over_items_with_repeats(items):
    known = [[score for score in item if score is not None] for item in items]
    rates = [
        2 * sum(item) * (len(item) - sum(item)) / (len(item) * (len(item) - 1))
        for item in known
        if len(item) > 1
    ]
    assert flip_rate(items) == (pytest.approx(np.mean(rates)) if rates else None)


def test_a_flip_between_orders_is_a_tie():
    result = combine_orders(["a", "a", "tie", "b", None], ["a", "b", "tie", "tie", "a"])
    assert result.preferences == ("a", "tie", "tie", "tie", None)
    assert (result.n_flipped, result.flip_rate) == (2, 0.5)
    assert combine_orders([None], ["a"]).flip_rate is None
