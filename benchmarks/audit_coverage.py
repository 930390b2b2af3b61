"""How often the corrected limits of an audit hold the true mean and the true difference.

Two methods answer questions about three documents; a judge of known error rates grades them, and a
few questions, drawn as ``graphrag eval audit export`` draws them, are labelled rightly. Nominal is
95 %.
"""

import random
from collections.abc import Hashable
from math import sqrt

from graphrag.eval.statistics import corrected_difference, corrected_mean, draw_for_labels

DOCUMENTS = ("a", "b", "c")
RIGHT = (0.70, 0.55)  # true share of right answers of each method
MISSES, FALSE_ALARMS = 0.08, 0.25  # of the judge
TRIALS = 250


def simulate(n: int, n_labels: int, chance: random.Random) -> tuple[bool, bool]:
    """Return whether the limits of the first method's mean and of the difference hold the truth."""
    truth, verdicts, strata = [], [], list[Hashable]()
    for number in range(n):
        ease = chance.uniform(-0.3, 0.3)  # what one method finds easy, the other does as well
        right = [int(chance.random() < share + ease) for share in RIGHT]
        seen = [
            int(chance.random() >= MISSES if r else chance.random() < FALSE_ALARMS) for r in right
        ]
        truth.append(right)
        verdicts.append(seen)
        strata.append((DOCUMENTS[number % 3], *seen))
    drawn = set(draw_for_labels(strata, n_labels, chance.randrange(10**6)))
    labels = [right if i in drawn else [None, None] for i, right in enumerate(truth)]
    mean = corrected_mean([v[0] for v in verdicts], [x[0] for x in labels], strata).estimate
    difference = corrected_difference(
        [(v[0], v[1]) for v in verdicts], [(x[0], x[1]) for x in labels], strata
    ).estimate
    true_difference = RIGHT[0] - RIGHT[1]
    return (
        mean.low is not None and mean.high is not None and mean.low <= RIGHT[0] <= mean.high,
        difference.low is not None
        and difference.high is not None
        and difference.low <= true_difference <= difference.high,
    )


def main() -> None:
    chance = random.Random(1)
    print("questions  labelled  mean held  difference held  (standard error)")
    for n, n_labels in ((120, 70), (359, 80), (359, 120), (1000, 120)):
        held = [simulate(n, n_labels, chance) for _ in range(TRIALS)]
        mean, difference = (sum(each[k] for each in held) / TRIALS for k in (0, 1))
        error = sqrt(0.05 * 0.95 / TRIALS)
        print(f"{n:9d}  {n_labels:8d}  {mean:9.1%}  {difference:15.1%}  {error:16.1%}")


if __name__ == "__main__":
    main()
