"""How often the corrected limits of an audit hold the true mean and the true difference.

Two methods answer questions about three documents; a judge of known error rates grades them, and a
few questions, drawn as ``graphrag eval view --labels`` draws them, are labelled rightly. Nominal is
95 %. Then the judge errs otherwise on one side of a comparison, of two methods or of two runs, than
on the other: how often the corrected test, and the one without labels, fails what is no worse.
"""

import random
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import sqrt

from graphrag.eval.stats.correction import (
    Corrected,
    corrected_change,
    corrected_difference,
    corrected_mean,
    draw_for_labels,
)
from graphrag.eval.stats.paired import difference_test

Pair = tuple[int, int]

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


Errors = tuple[float, float]
"""Share of right responses that the judge misses, and of wrong ones that it takes for right."""


@dataclass(frozen=True)
class Case:
    """What two sides of a comparison are, and how a judge errs on each."""

    name: str
    documents: int
    questions: int  # on each document
    labels: int
    errors: tuple[Errors, Errors]
    shift: float = 0.0  # standard deviation of what a document shares, first side only
    same: float = 0.0  # share of the questions that the two sides answer alike

    def draw(self, chance: random.Random) -> tuple[list[Pair], list[Pair], list[int]]:
        """Return truth, verdicts and documents of equally good sides."""
        truth: list[Pair] = []
        verdicts: list[Pair] = []
        documents: list[int] = []
        for document in range(self.documents):
            shift = chance.gauss(0, self.shift) if self.shift else 0.0
            for _ in range(self.questions):
                share = 0.6 + chance.uniform(-0.3, 0.3)
                right = [int(chance.random() < share + shift), int(chance.random() < share)]
                seen = [
                    int(chance.random() >= misses if r else chance.random() < alarms)
                    for r, (misses, alarms) in zip(right, self.errors, strict=True)
                ]
                if chance.random() < self.same:
                    right[0], seen[0] = right[1], seen[1]
                truth.append((right[0], right[1]))
                verdicts.append((seen[0], seen[1]))
                documents.append(document)
        return truth, verdicts, documents

    def compare_runs(self, chance: random.Random) -> tuple[Corrected, float]:
        """Correct the difference of two runs, each labelled by itself."""
        truth, verdicts, documents = self.draw(chance)
        strata = [
            ((document, pair[0], chance.random() < 0.5), (document, pair[1], chance.random() < 0.5))
            for document, pair in zip(documents, verdicts, strict=True)
        ]
        drawn = [
            set(
                draw_for_labels([key[side] for key in strata], self.labels, chance.randrange(10**6))
            )
            for side in (0, 1)
        ]
        labels = [
            (pair[0] if i in drawn[0] else None, pair[1] if i in drawn[1] else None)
            for i, pair in enumerate(truth)
        ]
        return corrected_change(verdicts, labels, strata, documents), plain_p(verdicts, documents)

    def compare_methods(self, chance: random.Random) -> tuple[Corrected, float]:
        """Correct the difference of two methods of one run, labelled on the same questions."""
        truth, verdicts, documents = self.draw(chance)
        strata = [(document, *pair) for document, pair in zip(documents, verdicts, strict=True)]
        drawn = set(draw_for_labels(strata, self.labels, chance.randrange(10**6)))
        labels = [pair if i in drawn else (None, None) for i, pair in enumerate(truth)]
        found = corrected_difference(verdicts, labels, strata, documents)
        return found, plain_p(verdicts, documents)


def plain_p(verdicts: list[Pair], documents: list[int]) -> float:
    """Return the one-sided p that a comparison without labels goes by."""
    counts = Counter((*pair, document) for pair, document in zip(verdicts, documents, strict=True))
    return difference_test(counts, "less")[0] or 0.0


ALIKE: tuple[Errors, Errors] = ((0.08, 0.25), (0.08, 0.25))
APART: tuple[Errors, Errors] = ((0.02, 0.40), (0.15, 0.10))
CASES = (
    Case("errs alike", 3, 120, 80, ALIKE),
    Case("favours the first", 3, 120, 80, APART),
    Case("favours the second", 3, 120, 80, (APART[1], APART[0])),
    Case("favours, more labels", 3, 120, 140, APART),
    Case("favours, 1 document", 1, 120, 70, APART),
    Case("favours, 1,000 questions", 1, 1000, 120, APART),
    Case("favours, 40 documents", 40, 9, 160, APART, shift=0.1),
    Case("favours, 100 documents", 100, 3, 240, APART, shift=0.1),
    Case("favours, 90 % answered alike", 3, 120, 80, APART, same=0.9),
    Case("never errs", 3, 120, 80, ((0.0, 0.0), (0.0, 0.0))),
)


def show_differences(
    title: str, draw: Callable[[Case, random.Random], tuple[Corrected, float]]
) -> None:
    """Print how often limits hold a true difference of 0, and a one-sided test fails it."""
    print(f"\n{title}: true difference 0, {TRIALS} draws each")
    print(f"{'the judge':28s} judge sees  corrected held  false FAIL  false FAIL uncorrected")
    for case in CASES:
        chance = random.Random(2)
        draws = [draw(case, chance) for _ in range(TRIALS)]
        found = [(each, p) for each, p in draws if each.se is not None]
        held = sum((e.estimate.low or 0) <= 0 <= (e.estimate.high or 0) for e, _ in found)
        fails = sum((e.p_below or 0) <= 0.05 for e, _ in found)
        plain = sum(p <= 0.05 for _, p in found)
        seen = sum(each.uncorrected or 0 for each, _ in found)
        n = len(found)
        print(
            f"{case.name:28s} {100 * seen / n:+10.1f}  {held / n:14.1%}  {fails / n:10.1%}  "
            f"{plain / n:22.1%}{'' if n == TRIALS else f'  ({TRIALS - n} refused)'}"
        )


def main() -> None:
    chance = random.Random(1)
    print("questions  labelled  mean held  difference held  (standard error)")
    for n, n_labels in ((120, 70), (359, 80), (359, 120), (1000, 120)):
        held = [simulate(n, n_labels, chance) for _ in range(TRIALS)]
        mean, difference = (sum(each[k] for each in held) / TRIALS for k in (0, 1))
        error = sqrt(0.05 * 0.95 / TRIALS)
        print(f"{n:9d}  {n_labels:8d}  {mean:9.1%}  {difference:15.1%}  {error:16.1%}")
    show_differences("Two methods of a run", Case.compare_methods)
    show_differences("Two runs", Case.compare_runs)


if __name__ == "__main__":
    main()
