"""What the gate is made of: how often it errs, figures."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from graphrag.eval.stats.gates import FigureCase, GateOutcome, check_figure, decide_figure
from graphrag.eval.stats.paired import bonett_price

FAIL, PASS, INCONCLUSIVE = GateOutcome.FAIL, GateOutcome.PASS, GateOutcome.INCONCLUSIVE
shifted_errors = runpy.run_path(
    str(Path(__file__).parents[2] / "benchmarks" / "gate_simulation.py")
)["shifted_errors"]


def test_documents_that_shift_fail_unchanged_systems_the_more():
    """The rates that docs/gate.md prints."""
    false_fail, false_pass = shifted_errors((120,) * 3, 0.1, 0.04)
    assert false_fail == pytest.approx(0.144, abs=0.005)
    assert false_pass == pytest.approx(0.169, abs=0.005)
    assert max(shifted_errors((9,) * 40, 0.1, 0.08)) < 0.06


def decided(case, p_holm=None):
    test = check_figure(case)
    return decide_figure(test, test.p_family if p_holm is None else p_holm)


def test_an_amount_passes_within_its_margin_and_fails_beyond():
    rng = np.random.default_rng(0)
    base = rng.normal(1_000, 200, 200)

    def cost(change):
        pairs = [(v * change + e, v) for v, e in zip(base, rng.normal(0, 20, 200), strict=True)]
        return FigureCase(pairs, 0.05, is_relative=True, lower_is_better=True)

    near = decided(cost(1.02))
    assert near.outcome is PASS
    assert near.p < 0.05  # surely more, and within what is accepted
    assert near.margin == pytest.approx(0.05 * base.mean())
    assert decided(cost(1.08)).outcome is FAIL
    assert decided(cost(0.5)).outcome is PASS
    test = check_figure(cost(1.0))
    d = [new - old for new, old in test.case.pairs]
    high = stats.ttest_1samp(d, 0).confidence_interval(0.90).high
    assert test.draft.upper_bound == pytest.approx(high)


def test_a_share_has_the_limit_of_a_verdict():
    pairs = [(0, 1)] * 4 + [(1, 0)] * 2 + [(1, 1)] * 94
    test = check_figure(FigureCase(pairs, 0.05, limits=(0.0, 1.0)))
    assert test.draft.upper_bound == pytest.approx(-bonett_price(2, 4, 100, 0.90)[0])
    grades = check_figure(
        FigureCase([(4 * a + 1, 4 * b + 1) for a, b in pairs], 0.2, limits=(1, 5))
    )
    assert grades.draft.upper_bound == pytest.approx(4 * test.draft.upper_bound)


def test_missing_values_do_not_pass():
    pairs = [(1.0, 1.5)] * 60 + [(None, 1.5)] * 40
    held = decided(FigureCase(pairs, 0.05, is_relative=True, lower_is_better=True))
    assert held.outcome is INCONCLUSIVE
    assert held.reason.startswith("60 of the 100 questions")
    worse = [(9.0 + i % 3, 1.5) for i in range(90)] + [(None, 1.5)] * 10
    assert decided(FigureCase(worse, 0.05, True, True)).outcome is FAIL
    assert decided(FigureCase([(None, 1.0)], 0.05)).outcome is INCONCLUSIVE


@pytest.mark.parametrize(("n", "outcome"), [(58, INCONCLUSIVE), (59, PASS)])
def test_pairs_that_are_all_alike_need_to_be_many(n, outcome):
    case = FigureCase([(7.0, 7.0)] * n, 0.05, is_relative=True, lower_is_better=True)
    assert decided(case).outcome is outcome


def test_what_is_no_figure_is_refused():
    with pytest.raises(ValueError, match="score must lie in"):
        check_figure(FigureCase([(float("nan"), 1.0)], 0.05))
    with pytest.raises(ValueError, match="margin must be positive"):
        check_figure(FigureCase([(1.0, 1.0)], 0.0))
