"""A router by kind is scored on questions that it was not fitted on."""

import numpy as np

from graphrag.eval.stats.routing import cross_fit_router


def _route(scores, kinds, **more):
    return cross_fit_router(scores, kinds, ["d"] * len(kinds), **more)


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
