"""How often the gate answers what, over sizes, discordances and true differences.

Every number is an exact sum over all outcomes, not a simulation with luck in it. Beside the gate
stands the rule that it replaces: fail when the mean drops by two points.
"""

import numpy as np
from scipy.stats import binom

from graphrag.eval.gate import gate_probabilities, should_stop_early

SIZES = (60, 120, 359, 1000)
DISCORDANCES = (0.05, 0.10, 0.20, 0.40)
DIFFERENCES = (0.0, -0.02, -0.05, -0.10)


def threshold_false_alarm(n: int, discordance: float, drop: float = 0.02) -> float:
    """Return how often an unchanged system's mean falls by at least ``drop``."""
    m = np.arange(n + 1)
    fewest_wrong = np.ceil((m + drop * n) / 2)
    return float(np.sum(binom.pmf(m, n, discordance) * binom.sf(fewest_wrong - 1, m, 0.5)))


def early_stop_false_alarm(discordant: int) -> float:
    """Return how often an unchanged system is stopped within this many discordant pairs."""
    running = {(0, 0): 1.0}
    stopped = 0.0
    for _ in range(discordant):
        reached: dict[tuple[int, int], float] = {}
        for (wrong, right), chance in running.items():
            for state in ((wrong + 1, right), (wrong, right + 1)):
                reached[state] = reached.get(state, 0.0) + chance / 2
        stopped += sum(chance for state, chance in reached.items() if should_stop_early(*state))
        running = {state: p for state, p in reached.items() if not should_stop_early(*state)}
    return stopped


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
    print()
    for discordant in (50, 200):
        alarm = early_stop_false_alarm(discordant)
        print(f"early stop, unchanged, within {discordant} discordant questions: {alarm:.1%}")


if __name__ == "__main__":
    main()
