"""How often a watch raises an alarm, while nothing changes and after a fall.

Each watch has a baseline with luck of its own over questions that are easy, hard or in between,
and asks all of them in every pass. Beside it stands the rule that adds the passes up as if they
did not share their baseline.
"""

from functools import cache

import numpy as np

from graphrag.eval.statistics import early_stop_evidence, evidence_needed, pass_share

N_WATCHES = 1_000
N_PASSES = 200
CHANCES = (0.05, 0.3, 0.5, 0.7, 0.95)
evidence = cache(early_stop_evidence)


def alarms(n_questions: int, fall: float, seed: int = 0) -> tuple[float, float, float]:
    """Return the shares of watches with an alarm by pass 10, by the last, and by adding up."""
    generator = np.random.default_rng(seed)
    first = np.full(N_WATCHES, N_PASSES + 1)
    added = np.zeros(N_WATCHES, dtype=bool)
    for watch in range(N_WATCHES):
        chance = generator.choice(CHANCES, n_questions)
        baseline = generator.random(n_questions) < chance
        now = generator.random((N_PASSES, n_questions)) < np.maximum(chance - fall, 0)
        wrong = (baseline & ~now).sum(axis=1)
        right = (~baseline & now).sum(axis=1)
        for number, (w, r) in enumerate(zip(wrong, right, strict=True), 1):
            if evidence(int(w), int(r)) >= evidence_needed(number):
                first[watch] = number
                break
        together = zip(wrong.cumsum(), right.cumsum(), strict=True)
        level = evidence_needed(1) * pass_share(1)
        added[watch] = any(early_stop_evidence(int(w), int(r)) >= level for w, r in together)
    return float((first <= 10).mean()), float((first <= N_PASSES).mean()), float(added.mean())


if __name__ == "__main__":
    print(f"{N_WATCHES} watches; alarms in per cent")
    print("questions  fall  by pass 10  by pass 200  passes added up")
    for n_questions in (40, 120):
        for fall in (0.0, 0.1, 0.2):
            by_ten, ever, added = (100 * share for share in alarms(n_questions, fall))
            print(f"{n_questions:9}  {fall:4}  {by_ten:10.1f}  {ever:11.1f}  {added:15.1f}")
