"""How often the gate answers what, over sizes, discordances and true differences.

Of independent questions every number is an exact sum over all outcomes, not a simulation with luck
in it. Beside the gate stands the rule that it replaces: fail when the mean drops by two points.
Of documents that shift as a whole, as rebuilt indexes do, the runs are drawn, with a seed.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import binom, norm

from graphrag.eval.statistics import (
    MARGIN,
    gate_errors,
)

ALPHA = 0.05

SIZES = (60, 120, 359, 1000)
DISCORDANCES = (0.05, 0.10, 0.20, 0.40)
DIFFERENCES = (0.0, -0.02, -0.05, -0.10)
STRUCTURES = {"3 x 120": (120,) * 3, "40 x 9": (9,) * 40}
SHIFTS = (0.0, 0.02, 0.04, 0.06, 0.08)


class GateProbabilities(NamedTuple):
    """How often the gate gives each answer; the three add up to 1."""

    fail: float
    passed: float
    inconclusive: float


def gate_probabilities(
    n: int, discordance: float, difference: float = 0.0, margin: float = MARGIN
) -> GateProbabilities:
    """Return how often the gate gives each answer with nothing missing.

    Its rule on every (newly wrong, newly right), weighted by the trinomial; time and memory grow
    with the square of n.
    """
    wrong, right = np.indices((n + 1, n + 1))
    inside = wrong + right <= n
    wrong, right = wrong[inside], right[inside]
    m = wrong + right
    share = 0.5 if discordance == 0 else (1 - difference / discordance) / 2
    weight = binom.pmf(m, n, discordance) * binom.pmf(wrong, m, share)
    fails = binom.sf(wrong - 1, m, 0.5) <= ALPHA
    p, q = (right + 1) / (n + 2), (wrong + 1) / (n + 2)
    lower = p - q - norm.ppf(1 - ALPHA) * np.sqrt((p + q - (p - q) ** 2) / (n + 2))
    passes = ~fails & (lower > -margin)
    fail, passed = float(weight[fails].sum()), float(weight[passes].sum())
    return GateProbabilities(fail, passed, max(0.0, 1 - fail - passed))


def threshold_false_alarm(n: int, discordance: float, drop: float = 0.02) -> float:
    """Return how often an unchanged system's mean falls by at least ``drop``."""
    m = np.arange(n + 1)
    fewest_wrong = np.ceil((m + drop * n) / 2)
    return float(np.sum(binom.pmf(m, n, discordance) * binom.sf(fewest_wrong - 1, m, 0.5)))


def print_shifts() -> None:
    """Print how often a changed index is failed unchanged, and passed with the margin lost."""
    print("\nDocuments that shift (10 % discordance), where the change of the index is accepted;")
    print("else the answer is INCONCLUSIVE.")
    print("documents  shift sd  unchanged: FAIL  margin lost: PASS")
    for name, sizes in STRUCTURES.items():
        for shift in SHIFTS:
            errors = gate_errors(sizes, 0.1, MARGIN, shift_sd=shift or 1e-9).clustered
            assert errors is not None
            print(f"{name:>9}  {shift:8.0%}  {errors.false_fail:15.1%}  {errors.false_pass:17.1%}")


def main() -> None:
    print("questions  discordance  difference   fail   pass  inconclusive  mean rule alone")
    for n in SIZES:
        for discordance in DISCORDANCES:
            for difference in DIFFERENCES:
                if abs(difference) > discordance:
                    continue
                chance = gate_probabilities(n, discordance, difference)
                alone = f"{threshold_false_alarm(n, discordance):15.1%}" if not difference else ""
                print(
                    f"{n:9d}  {discordance:11.0%}  {difference:10.0%}  {chance.fail:5.1%}"
                    f"  {chance.passed:5.1%}  {chance.inconclusive:12.1%}  {alone}".rstrip()
                )
    print_shifts()


if __name__ == "__main__":
    main()
