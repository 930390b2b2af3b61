"""A watch: the exact test over all passes, its power, and how often it errs."""

import itertools
import runpy
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from graphrag.eval.stats.passes import (
    LOOK_LEVEL,
    LOOKS,
    Answers,
    Steadiness,
    fall_p,
    next_look,
    steadiness,
    watch_power,
)

alarms = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "watch_simulation.py"))[
    "alarms"
]


def answers(draw):
    """Return a question of up to five answers, of which the first ones are the baseline's."""
    given = draw(st.lists(st.booleans(), min_size=1, max_size=5))
    n_baseline = draw(st.integers(0, len(given)))
    return Answers(len(given), sum(given), n_baseline, sum(given[:n_baseline]))


questions = st.lists(st.composite(answers)(), max_size=5)


@given(questions)
def test_it_is_the_share_of_the_ways_to_choose_the_baselines_answers(asked):
    """Every way is tried: which of a question's answers are the baseline's is left to chance."""
    chances = {0: Fraction(1)}
    for each in asked:
        right = [1] * each.right + [0] * (each.n - each.right)
        ways = [sum(way) for way in itertools.combinations(right, each.n_baseline)]
        chances = {
            total: sum(
                chance * Fraction(ways.count(total - before), len(ways))
                for before, chance in chances.items()
            )
            for total in range(max(chances) + each.n_baseline + 1)
        }
    seen = sum(each.right_baseline for each in asked)
    found = fall_p(asked)
    if all(each.n_baseline in (0, each.n) for each in asked):
        assert found is None
    else:
        wanted = sum(chance for total, chance in chances.items() if total >= seen)
        assert found == pytest.approx(float(wanted))


def test_with_one_baseline_run_it_is_poisson_binomial():
    rng = np.random.default_rng(0)
    right = rng.integers(0, 10, 200)
    baseline = rng.random(200) < right / 9
    asked = [Answers(9, int(t), 1, int(b)) for t, b in zip(right, baseline, strict=True)]
    wanted = stats.poisson_binom(right / 9).sf(baseline.sum() - 1)
    assert fall_p(asked) == pytest.approx(float(wanted))


def test_what_is_impossible_is_refused():
    for wrong in (
        Answers(3, 4, 1, 1),
        Answers(3, 1, 1, 2),
        Answers(3, 3, 1, 0),
        Answers(1, 1, 2, 1),
    ):
        with pytest.raises(ValueError, match="can't have these answers"):
            fall_p([wrong])


def test_the_looks_share_the_level():
    assert (LOOKS[0], LOOKS[-1], len(LOOKS) * LOOK_LEVEL) == (1, 128, pytest.approx(0.05))
    assert [next_look(number) for number in (1, 3, 64, 65, 129)] == [1, 4, 64, 128, None]


def test_an_unchanged_system_stays_below_the_level_and_a_fall_is_seen():
    """Of questions a tenth of whose verdicts are missing, and of all of them."""
    assert alarms(40, 3, 0.0, missing=0.1, n_watches=200)[200] <= 0.05
    assert alarms(120, 3, 0.1, n_watches=60)[200] >= 0.9


@pytest.mark.parametrize(("n_runs", "fall"), [(1, 0.1), (3, 0.05)])
def test_the_power_is_that_of_the_exact_test(n_runs, fall):
    system = Steadiness(0.6, 0.12)
    power = watch_power(60, n_runs, system, fall)
    rng = np.random.default_rng(1)
    size = 1 / (1 - system.within / 0.24) - 1
    n_watches, seen = 120, 0
    for _ in range(n_watches):
        chance = rng.beta(0.6 * size, 0.4 * size, 60)
        old = rng.binomial(n_runs, chance)
        passes = rng.random((LOOKS[-1], 60)) < chance * (1 - fall / 0.6)
        for look in LOOKS:
            new = passes[:look].sum(axis=0)
            total = (old + new).tolist()
            p = fall_p(
                Answers(look + n_runs, t, n_runs, b)
                for t, b in zip(total, old.tolist(), strict=True)
            )
            if p <= LOOK_LEVEL:
                seen += 1
                break
    assert power[LOOKS[-1]] == pytest.approx(seen / n_watches, abs=0.14)
    assert list(power.values()) == sorted(power.values())


def test_how_steady_a_system_is():
    assert steadiness([]) is None
    assert steadiness([(0, 0)]) is None
    # with one run nothing is known of it: as unsteady as can be
    assert steadiness([(1, 1)] * 3 + [(1, 0)]) == (0.75, pytest.approx(0.1875))
    assert steadiness([(3, 3), (3, 0)]) == (0.5, 0)
    assert steadiness([(3, 2), (3, 3), (1, 1), (0, 0)]) == (
        pytest.approx(8 / 9),
        pytest.approx(8 / 81),
    )
    rng = np.random.default_rng(0)
    chance = rng.beta(3, 1, 20_000)
    right = rng.binomial(3, chance).tolist()
    found = steadiness([(3, each) for each in right])
    assert found.within == pytest.approx(float((chance * (1 - chance)).mean()), abs=0.005)


def test_power_grows_with_questions_and_runs_and_ends_where_nothing_can_fall():
    system = Steadiness(0.7, 0.1)
    few, many = (watch_power(n, 3, system, 0.1)[128] for n in (20, 120))
    one = watch_power(120, 1, system, 0.1)[128]
    assert many > few
    assert many > one
    assert watch_power(20, 3, Steadiness(0.05, 0.02), 0.1) is None
    assert watch_power(20, 3, Steadiness(1.0, 0.0), 1.0)[1] == 1
    assert watch_power(120, 3, Steadiness(0.7, 0.0), 0.1)[128] > 0.9
