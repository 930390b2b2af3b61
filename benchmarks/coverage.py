"""How often the 95 % intervals hold what they say, and how often a test of equal methods is wrong.

python benchmarks/coverage.py [DRAWS]

Documents of many numbers and sizes are drawn, with questions that move together or not. Each row
is a structure: the interval that it gets, and at intra-document correlations of 0, .1 and .3 the
coverage of a mean, of the same mean where a sixth of the searches failed and are left out, and of a
difference between two methods; then how often exact McNemar, and the test that is used, call two
methods different that are equal over all documents there could be.

Coverage is of what the interval claims: of the documents' own chances where documents are fixed
(stratified, or a single one), of the population's where they are drawn (clustered).
"""

import sys
from typing import NamedTuple

if __name__ == "coverage":  # what a benchmark beside it imports looks for the package of that name
    raise ImportError

import numpy as np

from graphrag.eval.stats.intervals import (
    CONFIDENCE,
    Structure,
    choose_structure,
    mean_binary,
    mean_limits,
)
from graphrag.eval.stats.paired import PairCounts, difference_limits, difference_test

STRUCTURES = {
    "1 x 200": [200],
    "3: 102, 51, 206": [102, 51, 206],
    "3 x 20": [20] * 3,
    "5 x 40": [40] * 5,
    "9 x 20": [20] * 9,
    "9 x 200": [200] * 9,
    "8 x 10": [10] * 8,
    "5 x 5": [5] * 5,
    "5: 2 to 60": [2, 3, 4, 30, 60],
    "3 large, 10 x 1": [120, 100, 80] + [1] * 10,
    "300 and 19 x 10": [300] + [10] * 19,
    "10 x 5": [5] * 10,
    "10 x 20": [20] * 10,
    "10 x 100": [100] * 10,
    "12: 5 to 60": [5, 5, 10, 10, 15, 15, 20, 20, 30, 30, 40, 60],
    "25 x 5": [5] * 25,
    "30: 1 to 60": [1] * 10 + [3] * 10 + [10] * 6 + [30] * 3 + [60],
    "60 x 2": [2] * 60,
    "100 x 1": [1] * 100,
    "100 x 3": [3] * 100,
    "200: 1 to 9": [1] * 100 + [3] * 60 + [9] * 40,
    "400 x 1": [1] * 400,
    "400 x 5": [5] * 400,
}
CORRELATIONS = (0.0, 0.1, 0.3)
SETTINGS = ((0.7, 0.2), (0.9, 0.1))
"""(share of right answers, share of questions on which the methods differ)"""
FAILED = 1 / 6
LEVEL = 0.05
SLOW = 4  # the tests and the failed searches go draw by draw, on a part of the draws


class Measured(NamedTuple):
    """Shares of the draws: coverage of three intervals, false alarms of two tests."""

    mean: float
    with_failures: float
    difference: float
    mcnemar: float
    used: float


def measure(
    sizes: list[int], correlation: float, share: float, discordance: float, draws: int
) -> Measured:
    """Draw scores and pairs of these documents, and count how often the intervals hold."""
    rng = np.random.default_rng(1)
    asked = np.array(sizes)
    structure = choose_structure(dict(enumerate(sizes)))
    chances = draw_chances(rng, [share, 1 - share], correlation, (draws, len(sizes)))[..., 0]
    right = rng.binomial(asked, chances)
    low, high = mean_limits(right.astype(float), asked.astype(float), structure, CONFIDENCE)
    truth = _truth(structure, chances, asked, share)

    differing = [discordance / 2, discordance / 2, 1 - discordance]
    sides = draw_chances(rng, differing, correlation, (draws, len(sizes)))
    n10 = rng.binomial(asked, sides[..., 0])
    n01 = rng.binomial(asked - n10, np.minimum(1, sides[..., 1] / (sides[..., 1] + sides[..., 2])))
    pairs = n10.astype(float), n01.astype(float), asked.astype(float)
    least, most = difference_limits(*pairs, structure, CONFIDENCE)
    difference = _truth(structure, sides[..., 0] - sides[..., 1], asked, 0.0)

    few = range(0, draws, SLOW)
    alarms = np.array([_alarms(asked, n10[draw], n01[draw]) for draw in few])
    return Measured(
        mean=float(np.mean((low <= truth) & (truth <= high))),
        with_failures=float(np.mean([_holds(rng, asked, chances[draw], share) for draw in few])),
        difference=float(np.mean((least <= difference) & (difference <= most))),
        mcnemar=float(alarms[:, 0].mean()),
        used=float(alarms[:, 1].mean()),
    )


def draw_chances(
    rng: np.random.Generator, means: list[float], correlation: float, shape: tuple[int, int]
) -> np.ndarray:
    """Return each document's chances, Dirichlet around the means: (draws, documents, kinds).

    Two questions of a document then have this correlation, whatever is scored.
    """
    if correlation == 0:
        return np.broadcast_to(means, (*shape, len(means)))
    weights = rng.gamma((1 / correlation - 1) * np.array(means), size=(*shape, len(means))) + 1e-300
    return weights / weights.sum(axis=-1, keepdims=True)


def _truth(structure: Structure, chances: np.ndarray, asked: np.ndarray, mean: float) -> np.ndarray:
    if structure is Structure.CLUSTERED:
        return np.full(len(chances), mean)
    return (chances * asked).sum(axis=-1) / asked.sum()


def _holds(rng: np.random.Generator, asked: np.ndarray, chances: np.ndarray, share: float) -> bool:
    """Whether the mean over the searches that did not fail is covered, through the public face."""
    sizes = rng.binomial(asked, 1 - FAILED)
    right = rng.binomial(sizes, chances)
    documents = np.repeat(np.arange(len(sizes)), sizes).tolist()
    first = np.concatenate([np.arange(size) for size in sizes])
    scores = (first < np.repeat(right, sizes)).astype(int).tolist()
    estimate = mean_binary(scores, documents)
    drawn = estimate.method.startswith("wilson, clustered")
    truth = share if drawn else float((chances * sizes).sum() / sizes.sum())
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low <= truth <= estimate.high


def _alarms(asked: np.ndarray, n10: np.ndarray, n01: np.ndarray) -> tuple[bool, bool]:
    together: PairCounts = {
        (1, 0, None): int(n10.sum()),
        (0, 1, None): int(n01.sum()),
        (1, 1, None): 1,
    }
    counts: PairCounts = {
        (a, b, document): int(times)
        for document, (n, x, y) in enumerate(zip(asked, n10, n01, strict=True))
        for a, b, times in ((1, 0, x), (0, 1, y), (1, 1, n - x - y))
    }
    mcnemar, used = difference_test(together)[0], difference_test(counts)[0]
    assert mcnemar is not None
    assert used is not None
    return mcnemar <= LEVEL, used <= LEVEL


def main() -> None:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    outside = n_cells = 0
    for share, discordance in SETTINGS:
        print(
            f"\n{share:.0%} right, methods differ on {discordance:.0%}; in each cell: coverage of "
        )
        print("mean, mean with failed searches, difference; false alarms of McNemar, of the test")
        print(f"{'documents x questions':21} {'interval':10}", end="")
        print("".join(f" | correlation {each:.1f}{'':14}" for each in CORRELATIONS))
        for name, sizes in STRUCTURES.items():
            structure = choose_structure(dict(enumerate(sizes)))
            line = f"{name:21} {structure.value:10}"
            for correlation in CORRELATIONS:
                found = measure(sizes, correlation, share, discordance, draws)
                line += " | " + " ".join(f"{100 * value:5.1f}" for value in found)
                n_cells += 3
                outside += sum(value < 0.93 for value in found[:3])
            print(line, flush=True)
    print(f"\n{outside} of {n_cells} coverages are under 93 %.")


if __name__ == "__main__":
    main()
