"""How often a watch raises an alarm, while nothing changes and after a fall.

Each watch has a baseline with luck of its own over questions that are easy, hard or in between,
and asks all of them in every pass. A share of the verdicts is missing, in passes and baseline.
"""

import sys
from math import sqrt

import numpy as np

from graphrag.eval.stats.passes import LOOK_LEVEL, LOOKS, Answers, fall_p

N_PASSES = 200
CHANCES = (0.05, 0.3, 0.5, 0.7, 0.95)


def alarms(
    n_questions: int,
    n_runs: int,
    fall: float,
    *,
    begins: int = 1,
    missing: float = 0.0,
    n_watches: int = 1_000,
    seed: int = 0,
) -> dict[int, float]:
    """Return look -> share of the watches that have raised an alarm by then.

    Every question's chance to be answered rightly falls by ``fall`` from pass ``begins`` on, if it
    has as much to lose. Passes after the last look raise none.
    """
    generator = np.random.default_rng(seed)
    first = np.full(n_watches, N_PASSES + 1)
    for watch in range(n_watches):
        chance = generator.choice(CHANCES, n_questions)
        now = np.maximum(chance - fall, 0)
        chances = np.array([chance] * n_runs + [chance if k < begins else now for k in _passes()])
        given = generator.random(chances.shape) >= missing
        right = (generator.random(chances.shape) < chances) & given
        for look in LOOKS:
            sides = slice(0, n_runs), slice(0, n_runs + look)
            (n_old, n), (right_old, right_all) = (
                [table[side].sum(axis=0).tolist() for side in sides] for table in (given, right)
            )
            p = fall_p(map(Answers, n, right_all, n_old, right_old))
            if p is not None and p <= LOOK_LEVEL:
                first[watch] = look
                break
    return {look: float((first <= look).mean()) for look in (*LOOKS, N_PASSES)}


def _passes() -> range:
    return range(1, LOOKS[-1] + 1)


def main(n_watches: int) -> None:
    error = sqrt(0.05 * 0.95 / n_watches)
    print(f"{n_watches} watches a line, {N_PASSES} passes each; alarms in per cent by that pass")
    print(f"(5 % would be measured as {5 - 200 * error:.1f} to {5 + 200 * error:.1f} %)")
    print("questions  runs  fall  from pass  missing      " + "".join(f"{k:7}" for k in _SHOWN))
    for n_questions, fall, begins, missing in _CASES:
        for n_runs in (1, 3, 5):
            found = alarms(
                n_questions, n_runs, fall, begins=begins, missing=missing, n_watches=n_watches
            )
            cells = "".join(f"{100 * found[k]:7.1f}" for k in _SHOWN)
            line = f"{n_questions:9}  {n_runs:4}  {fall:4}  {begins:9}  {missing:7}      {cells}"
            print(line, flush=True)


_SHOWN = (1, 8, 32, 64, N_PASSES)
_CASES = (
    (40, 0.0, 1, 0.0),
    (120, 0.0, 1, 0.0),
    (120, 0.0, 1, 0.05),
    (40, 0.1, 1, 0.0),
    (120, 0.05, 1, 0.0),
    (120, 0.1, 1, 0.0),
    (120, 0.1, 1, 0.05),
    (120, 0.1, 20, 0.0),
)

if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
