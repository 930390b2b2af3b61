"""How often the gate answers what, over sizes, discordances and true differences.

Of independent questions every number is an exact sum over all outcomes, not a simulation with luck
in it. Beside the gate stands the rule that it replaces: fail when the mean drops by two points.
Of documents that shift as a whole, as rebuilt indexes do, the runs are drawn, with a seed.
Arguments are numbers of questions, in place of the usual ones.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import binom, norm

from graphrag.eval.stats.gates import MARGIN
from graphrag.eval.stats.intervals import Structure, choose_structure
from graphrag.eval.stats.paired import difference_limits, exact_sign_flip

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


def shifted_errors(
    sizes: tuple[int, ...], discordance: float, shift_sd: float, margin: float = MARGIN
) -> tuple[float, float]:
    """Return how often the gate fails an unchanged system and passes one that lost the margin.

    Each document's true difference is that of the system and a normal shift of its own; where that
    is larger than the discordance, the discordance grows along.
    """
    structure = choose_structure(dict(enumerate(sizes)))
    pairs = np.array(sizes)
    n_draws = 10_000
    if structure is Structure.CLUSTERED:  # its test is computed run by run
        n_draws = max(1_000, min(2_000, 200_000 // len(sizes)))
    random = np.random.default_rng(0)
    shifts = random.normal(0.0, 1.0, (n_draws, len(sizes))) * shift_sd
    rates: list[float] = []
    for drop in (0.0, margin):
        true = np.clip(shifts - drop, -1.0, 1.0)
        differing = np.maximum(np.abs(true), discordance)
        lost = (differing - true) / 2
        wrong = random.binomial(pairs, lost)
        gained = (differing + true) / 2 / np.maximum(1 - lost, 1e-12)
        right = random.binomial(pairs - wrong, np.clip(gained, 0.0, 1.0))
        if structure is not Structure.CLUSTERED:
            wrong, right = wrong.sum(1, keepdims=True), right.sum(1, keepdims=True)
        fails = _fails(wrong, right)
        n = pairs if structure is Structure.CLUSTERED else pairs.sum(keepdims=True)
        kind = structure if structure is Structure.CLUSTERED else Structure.POOLED
        counts = (right.astype(float), wrong.astype(float), n.astype(float))
        low = difference_limits(*counts, kind, 1 - 2 * ALPHA)[0]
        rates.append(float((~fails & (low > -margin) if drop else fails).mean()))
    return rates[0], rates[1]


def _fails(wrong: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return where the test fails, for counts of shape (runs, documents), or (runs, 1) if pooled.

    Random signs take a sum of numbers to its standard deviation or further, on either side, with a
    chance of 6/64 or more (Dvorak and Tiwari 2021, arXiv 2104.10005), over the level: only runs
    beyond it can fail.
    """
    if wrong.shape[1] == 1:
        return binom.sf(wrong[:, 0] - 1, wrong[:, 0] + right[:, 0], 0.5) <= ALPHA
    sums = right - wrong
    seen = sums.sum(axis=1)
    found = np.zeros(len(sums), dtype=bool)
    for run in np.flatnonzero((seen < 0) & (seen**2 > (sums**2).sum(axis=1))):
        found[run] = exact_sign_flip(Counter[int](sums[run].tolist()), lower=True) <= ALPHA
    return found


def print_shifts() -> None:
    """Print how often a changed index is failed unchanged, and passed with the margin lost."""
    print("\nDocuments that shift (10 % discordance), where the change of the index is accepted;")
    print("else the answer is INCONCLUSIVE.")
    print("documents  shift sd  unchanged: FAIL  margin lost: PASS")
    for name, sizes in STRUCTURES.items():
        for shift in SHIFTS:
            false_fail, false_pass = shifted_errors(sizes, 0.1, shift)
            print(f"{name:>9}  {shift:8.0%}  {false_fail:15.1%}  {false_pass:17.1%}")


def main(sizes: Sequence[int]) -> None:
    print("questions  discordance  difference   fail   pass  inconclusive  mean rule alone")
    for n in sizes:
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
    main([int(size) for size in sys.argv[1:]] or SIZES)
