"""How often the gate answers what, over sizes, discordances and true differences.

Of independent questions every number is an exact sum over all outcomes, not a simulation with luck
in it. Beside the gate stands the rule that it replaces: fail when the mean drops by two points.
Of documents that shift as a whole, as rebuilt indexes do, the runs are drawn, with a seed.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import binom, norm

from graphrag.eval.statistics import (
    EARLY_ALPHA,
    MARGIN,
    gate_errors,
    should_stop_early,
)

ALPHA = 2 * EARLY_ALPHA  # of the test at the end, where nobody watches

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


def watched_fail(n: int, discordance: float, difference: float = 0.0) -> tuple[float, float]:
    """Return how often a watched run is stopped early, and how often it fails at all."""
    newly_wrong = (1 - difference / discordance) / 2
    running = np.array([1.0])  # chance of each number of newly wrong answers, not yet stopped
    stopped = early = failed = 0.0
    for m in range(n + 1):
        if m:
            running = (
                np.concatenate([running, [0.0]]) * (1 - newly_wrong)
                + np.concatenate([[0.0], running]) * newly_wrong
            )
            wrong = np.arange(m + 1)
            hit = np.array([should_stop_early(int(w), int(m - w)) for w in wrong])
            stopped += float(running[hit].sum())
            running = np.where(hit, 0.0, running)
        weight = float(binom.pmf(m, n, discordance))
        fails = binom.sf(np.arange(m + 1) - 1, m, 0.5) <= EARLY_ALPHA
        early += weight * stopped
        failed += weight * (stopped + float(running[fails].sum()))
        if binom.sf(m, n, discordance) < 1e-9:
            break
    return early, failed


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
    print("\nWatched with --early-stop:")
    print("questions  discordance  difference  stopped early   fail")
    for n in (120, 359, 1000):
        for discordance in (0.10, 0.20, 0.40):
            for difference in (0.0, -0.05, -0.10):
                early, failed = watched_fail(n, discordance, difference)
                print(
                    f"{n:9d}  {discordance:11.0%}  {difference:10.0%}  {early:13.1%}  {failed:5.1%}"
                )
    print_shifts()


if __name__ == "__main__":
    main()
