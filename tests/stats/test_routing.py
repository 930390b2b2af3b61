"""A router by kind is scored on questions that it was not fitted on."""

import numpy as np
import pytest

from graphrag.eval.stats.routing import cross_fit_router


def _route(scores, kinds, **more):
    return cross_fit_router(scores, kinds, ["d"] * len(kinds), **more)


def test_methods_that_are_each_best_on_a_kind():
    kinds = ["fact"] * 50 + ["link"] * 50
    a, b = [1.0] * 50 + [0.0] * 50, [0.0] * 40 + [1.0] * 60
    found = _route({"a": a, "b": b}, kinds, costs={"a": [10.0] * 100, "b": [20.0] * 100})
    assert (found.best, found.picks) == ("b", {"fact": "a", "link": "b"})
    assert (found.single, found.router) == pytest.approx((0.6, 1.0))
    assert (found.single_cost, found.router_cost) == pytest.approx((20.0, 15.0))
    assert found.difference.mean == pytest.approx(0.4)
    assert found.pays


def test_kinds_that_tell_nothing_gain_nothing():
    """By hindsight the best of five equal methods on each of ten kinds leads by far."""
    drawn = np.random.default_rng(1)
    gains, hindsight = [], []
    for _ in range(30):
        scores = {m: drawn.integers(0, 2, 200).astype(float).tolist() for m in "abcde"}
        kinds = [f"k{i % 10}" for i in range(200)]
        found = _route(scores, kinds)
        gains.append(found.difference.mean)
        picked = [scores[found.picks[kind]][i] for i, kind in enumerate(kinds)]
        hindsight.append(np.mean(picked) - np.mean(scores[found.best]))
    assert abs(np.mean(gains)) < 0.015
    assert np.mean(hindsight) > 0.05


def test_level_methods_are_told_apart_by_the_rest():
    kinds = ["x"] * 20 + ["y"] * 20
    found = _route({"a": [1.0] * 20 + [0.0] * 20, "b": [1.0] * 40}, kinds)
    assert found.picks == {"x": "b", "y": "b"}
    assert found.difference.mean == 0
    assert not found.pays
