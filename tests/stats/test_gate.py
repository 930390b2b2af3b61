"""The gate on verdicts and on other figures, and how often it errs."""

import runpy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from graphrag.eval.stats.gates import (
    MARGIN,
    GateCase,
    GateOutcome,
    combine_outcomes,
    decide_gates,
)

simulation = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "gate_simulation.py"))
gate_probabilities, shifted_errors = simulation["gate_probabilities"], simulation["shifted_errors"]
FAIL, PASS, INCONCLUSIVE = GateOutcome.FAIL, GateOutcome.PASS, GateOutcome.INCONCLUSIVE


def pairs_of(wrong=0, right=0, same=0):
    return [(0, 1)] * wrong + [(1, 0)] * right + [(1, 1)] * same


def decide(pairs, margin=MARGIN, coverages=(None, None)):
    return decide_gates({"m": GateCase(pairs, margin, coverages)})["m"]


def test_the_three_answers():
    failed = decide(pairs_of(20, 5, 334))
    assert failed.outcome is FAIL
    assert failed.p == pytest.approx(stats.binomtest(20, 25, alternative="greater").pvalue)
    assert (failed.newly_wrong, failed.newly_right, failed.n_pairs) == (20, 5, 359)
    assert failed.difference == pytest.approx(-15 / 359)
    passed = decide(pairs_of(20, 20, 319))
    assert passed.outcome is PASS
    assert -0.05 < passed.lower_bound < 0
    unclear = decide(pairs_of(5, 4, 30))
    assert unclear.outcome is INCONCLUSIVE
    assert unclear.lower_bound < -0.05


def test_a_fail_comes_before_a_pass_and_no_change_passes():
    decision = decide(pairs_of(10, 0, 990))
    assert decision.lower_bound > -0.05
    assert decision.outcome is FAIL
    assert (decide(pairs_of(same=359)).outcome, decide(pairs_of(same=359)).p) == (PASS, 1)
    assert decide(pairs_of(same=5)).outcome is INCONCLUSIVE


@pytest.mark.parametrize("pairs", [[], [(None, None)], [(None, 1), (1, None)]])
def test_nothing_to_compare_is_inconclusive(pairs):
    decision = decide(pairs, coverages=(1.0, 1.0))
    assert decision.outcome is INCONCLUSIVE
    assert (decision.p, decision.lower_bound, decision.difference) == (None, None, None)


def test_missing_verdicts_decide_nothing():
    said = str(decide(pairs_of(0, 0, 99), coverages=(0.9499, 1.0)).reason)
    assert "gave 94.9% of" in said
    said = str(decide(pairs_of(0, 0, 99), coverages=(0.9796, 1.0)).reason)
    assert "98.0% of" in said
    assert "2.1 points apart, over 2" in said
    missing = [*pairs_of(0, 0, 94), *[(None, 1)] * 6]
    assert "under 95 %" in str(decide(missing, margin=0.2).reason)
    assert decide([*pairs_of(9, 0, 85), *[(1, None)] * 6]).outcome is INCONCLUSIVE
    certain = decide([*pairs_of(30, 0, 64), *[(1, None)] * 6])
    assert certain.outcome is FAIL
    assert certain.p_holm == pytest.approx(stats.binomtest(30, 36, alternative="greater").pvalue)
    apart = [*pairs_of(0, 0, 97), *[(None, 1)] * 3]
    assert str(decide(apart).reason) == (
        "the judge gave 97.0% of the verdicts asked of it in the new run and 100.0% in the "
        "baseline, 3.0 points apart, over 2"
    )
    near = [*pairs_of(0, 0, 98), *[(None, 1)] * 2]
    assert decide(near, margin=0.2).outcome is PASS
    assert decide(pairs_of(0, 0, 359), coverages=(0.9, None)).outcome is INCONCLUSIVE
    # what the pairs do not show is taken in favour of the new run as well
    assert decide(pairs_of(20, 0, 80), coverages=(0.5, None)).outcome is INCONCLUSIVE


@given(
    st.lists(st.tuples(st.sampled_from([0, 1, None]), st.sampled_from([0, 1, None])), max_size=60),
    st.randoms(use_true_random=False),
)
def test_what_fails_for_all_that_may_be_missing_fails_whatever_it_was(pairs, chance):
    filled = [tuple(chance.randint(0, 1) if v is None else v for v in pair) for pair in pairs]
    found = decide(pairs)
    if found.outcome is FAIL and "in favor" in str(found.reason):
        assert decide(filled).outcome is FAIL


def test_several_metrics_share_the_level():
    worse = pairs_of(9, 2, 348)
    assert decide(worse).outcome is FAIL
    even = GateCase(pairs_of(3, 3, 353))
    decisions = decide_gates({"correctness": GateCase(worse), "completeness": even})
    assert decisions["correctness"].p_holm == pytest.approx(2 * decisions["correctness"].p)
    assert decisions["correctness"].outcome is not FAIL
    assert combine_outcomes(each.outcome for each in decisions.values()) is PASS
    assert combine_outcomes([]) is INCONCLUSIVE
    assert combine_outcomes([decide(worse).outcome, decide([]).outcome]) is FAIL
    assert (
        combine_outcomes([decide(pairs_of(same=359)).outcome, decide([]).outcome]) is INCONCLUSIVE
    )


@pytest.mark.parametrize(
    ("n", "discordance", "difference"), [(12, 0.6, 0.0), (14, 0.5, -0.4), (40, 0.1, 0.0)]
)
def test_probabilities_are_those_of_the_decisions(n, discordance, difference):
    chances = dict.fromkeys(GateOutcome, 0.0)
    split = [(discordance - difference) / 2, (discordance + difference) / 2, 1 - discordance]
    for wrong in range(n + 1):
        for right in range(n + 1 - wrong):
            same = n - wrong - right
            outcome = decide(pairs_of(wrong, right, same), margin=0.15).outcome
            chances[outcome] += stats.multinomial.pmf([wrong, right, same], n, split)
    computed = gate_probabilities(n, discordance, difference, margin=0.15)
    assert computed.fail == pytest.approx(chances[FAIL])
    assert computed.passed == pytest.approx(chances[PASS])
    assert computed.inconclusive == pytest.approx(chances[INCONCLUSIVE], abs=1e-12)


@pytest.mark.parametrize("n", [10, 60, 359, 700])
@pytest.mark.parametrize("discordance", [0.0, 0.05, 0.2, 0.6, 1.0])
def test_an_unchanged_system_fails_in_at_most_5_percent(n, discordance):
    assert gate_probabilities(n, discordance).fail <= 0.05


@pytest.mark.parametrize("discordance", [0.1, 0.2, 0.4])
def test_a_loss_of_the_margin_passes_in_about_5_percent(discordance):
    assert gate_probabilities(359, discordance, -0.05).passed <= 0.06


def test_the_gate_finds_what_it_claims_to_find():
    assert gate_probabilities(359, 0.2, -0.10).fail > 0.99
    assert gate_probabilities(359, 0.1, 0.0).passed > 0.9
    assert gate_probabilities(359, 0.2, 0.0).passed == pytest.approx(0.68, abs=0.01)


def test_documents_that_shift_fail_unchanged_systems_the_more():
    """The rates that docs/numbers.md prints."""
    false_fail, false_pass = shifted_errors((120,) * 3, 0.1, 0.04)
    assert false_fail == pytest.approx(0.144, abs=0.005)
    assert false_pass == pytest.approx(0.169, abs=0.005)
    assert max(shifted_errors((9,) * 40, 0.1, 0.08)) < 0.06


def test_what_is_no_score_is_refused():
    with pytest.raises(ValueError, match="0, 1 or None"):
        decide([(3, 1)])
