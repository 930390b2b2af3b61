"""How often the corrected limits of an audit hold the true mean and the true difference.

Two methods answer questions about a few documents; a judge of known error rates grades them, and
some or all questions, drawn as ``graphrag eval view --labels`` draws them, are labeled rightly.
Nominal is 95 %. The interval was chosen on the first cells; the others, with other numbers, judges
and draws, check it. Then the judge errs otherwise on one method than on the other.
"""

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from graphrag.eval.stats.label_correction import (
    Corrected,
    corrected_difference,
    corrected_mean,
    draw_for_labels,
)

Pair = tuple[int, int]

TRIALS = int(sys.argv[1]) if len(sys.argv) > 1 else 500
Errors = tuple[float, float]
"""Share of right responses that the judge misses, and of wrong ones that it takes for right."""


GOOD, USUAL, HARSH = (0.01, 0.02), (0.08, 0.25), (0.42, 0.11)
LENIENT, ALWAYS_1, NEVER_ERRS = (0.02, 0.80), (0.0, 1.0), (0.0, 0.0)
MIDDLING, RARE = (0.70, 0.55), (0.95, 0.93)


@dataclass(frozen=True)
class Cell:
    """A run and its labels: the documents and the questions on each; 0 labels are all."""

    documents: int
    questions: int
    labels: int
    right: tuple[float, ...]  # true share of right answers of each method
    judge: Errors

    def simulate(self, chance: random.Random) -> tuple[Corrected, Corrected]:
        """Return the first method's corrected mean, and the first two methods' difference."""
        truth: list[list[int]] = []
        verdicts: list[list[int]] = []
        misses, alarms = self.judge
        for _ in range(self.documents * self.questions):
            ease = chance.uniform(-1, 1)  # what one method finds easy, the other does as well
            right = [
                int(chance.random() < share + ease * min(0.3, 1 - share)) for share in self.right
            ]
            truth.append(right)
            verdicts.append(
                [int(chance.random() >= misses if r else chance.random() < alarms) for r in right]
            )
        places = [number % self.documents for number in range(len(truth))]
        strata = [(place, *seen) for place, seen in zip(places, verdicts, strict=True)]
        n_labels = self.labels or len(truth)
        drawn = set(draw_for_labels(strata, n_labels, chance.randrange(10**6)))
        nothing = [None] * len(self.right)
        labels = [right if i in drawn else nothing for i, right in enumerate(truth)]
        return (
            corrected_mean([v[0] for v in verdicts], [x[0] for x in labels], strata, places),
            corrected_difference(
                [(v[0], v[1]) for v in verdicts], [(x[0], x[1]) for x in labels], strata, places
            ),
        )


CHOSEN_ON = (
    *(
        Cell(documents=3, questions=120, labels=60, right=MIDDLING, judge=judge)
        for judge in (GOOD, USUAL, HARSH, NEVER_ERRS)
    ),
    *(
        Cell(documents=3, questions=120, labels=60, right=RARE, judge=judge)
        for judge in (GOOD, USUAL, HARSH, LENIENT, ALWAYS_1)
    ),
    Cell(documents=1, questions=100, labels=0, right=MIDDLING, judge=USUAL),
    Cell(documents=1, questions=100, labels=0, right=RARE, judge=USUAL),
)
CHECKED_ON = (
    *(
        Cell(documents=3, questions=120, labels=120, right=RARE, judge=judge)
        for judge in (GOOD, USUAL, LENIENT, NEVER_ERRS)
    ),
    *(
        Cell(documents=3, questions=120, labels=240, right=RARE, judge=judge)
        for judge in (GOOD, LENIENT)
    ),
    *(
        Cell(documents=1, questions=1000, labels=60, right=RARE, judge=judge)
        for judge in (USUAL, LENIENT, (0.15, 0.10))
    ),
    Cell(documents=2, questions=45, labels=60, right=RARE, judge=USUAL),
    Cell(documents=1, questions=1000, labels=120, right=MIDDLING, judge=(0.15, 0.10)),
    Cell(documents=3, questions=120, labels=80, right=(0.95, 0.93, 0.9, 0.8, 0.7), judge=USUAL),
    Cell(documents=3, questions=120, labels=80, right=(0.97, 0.97), judge=(0.03, 0.5)),
    Cell(documents=40, questions=9, labels=240, right=RARE, judge=(0.05, 0.5)),
    Cell(documents=40, questions=9, labels=240, right=MIDDLING, judge=USUAL),
    *(
        Cell(documents=3, questions=120, labels=0, right=right, judge=GOOD)
        for right in (MIDDLING, RARE)
    ),
    *(
        Cell(documents=1, questions=100, labels=0, right=right, judge=(0.02, 0.05))
        for right in (MIDDLING, RARE)
    ),
    Cell(documents=1, questions=30, labels=0, right=MIDDLING, judge=USUAL),
    Cell(documents=40, questions=9, labels=0, right=RARE, judge=USUAL),
)


def show_cells(title: str, cells: Sequence[Cell], seed: int) -> None:
    """Print how often limits hold the true mean and the true difference, and how wide they are."""
    print(f"\n{title}: {TRIALS} draws each, in %, with the mean width in points")
    print(f"{'documents, questions, labels':30s}{'right':>9s}{'judge errs':>12s}", end="")
    print(f"{'mean held':>12s}{'width':>7s}{'difference held':>18s}{'width':>7s}")
    for cell in cells:
        chance = random.Random(seed)
        draws = [cell.simulate(chance) for _ in range(TRIALS)]
        held, wide = [0, 0], [0.0, 0.0]
        for draw in draws:
            for k, true in enumerate((cell.right[0], cell.right[0] - cell.right[1])):
                of = draw[k].estimate
                least, most = (of.mean if end is None else end for end in (of.low, of.high))
                if least is not None and most is not None:
                    held[k] += least <= true <= most
                    wide[k] += 100 * (most - least) / TRIALS
        name = f"{cell.documents}, {cell.documents * cell.questions:,}, {cell.labels or 'all'}"
        right = ", ".join(f"{100 * share:.0f}" for share in cell.right[:2])
        errs = ", ".join(f"{100 * share:.0f}" for share in cell.judge)
        print(f"{name:30s}{right:>9s}{errs:>12s}", end="")
        print(f"{100 * held[0] / TRIALS:12.1f}{wide[0]:7.1f}", end="")
        print(f"{100 * held[1] / TRIALS:18.1f}{wide[1]:7.1f}", flush=True)


@dataclass(frozen=True)
class Case:
    """What two sides of a comparison are, and how a judge errs on each."""

    name: str
    documents: int
    questions: int  # on each document
    labels: int  # 0: all
    errors: tuple[Errors, Errors]
    share: float = 0.6  # of right answers
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
                ease = min(0.3, 1 - self.share)
                share = self.share + chance.uniform(-ease, ease)
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

    def compare_methods(self, chance: random.Random) -> Corrected:
        """Correct the difference of two methods of one run, labelled on the same questions."""
        truth, verdicts, documents = self.draw(chance)
        strata = [(document, *pair) for document, pair in zip(documents, verdicts, strict=True)]
        n_labels = self.labels or len(strata)
        drawn = set(draw_for_labels(strata, n_labels, chance.randrange(10**6)))
        labels = [pair if i in drawn else (None, None) for i, pair in enumerate(truth)]
        return corrected_difference(verdicts, labels, strata, documents)


ALIKE: tuple[Errors, Errors] = ((0.08, 0.25), (0.08, 0.25))
APART: tuple[Errors, Errors] = ((0.02, 0.40), (0.15, 0.10))
CASES = (
    Case(name="errs alike", documents=3, questions=120, labels=80, errors=ALIKE),
    Case(name="favours the first", documents=3, questions=120, labels=80, errors=APART),
    Case(
        name="favours the second",
        documents=3,
        questions=120,
        labels=80,
        errors=(APART[1], APART[0]),
    ),
    Case(name="favours, more labels", documents=3, questions=120, labels=140, errors=APART),
    Case(name="favours, 1 document", documents=1, questions=120, labels=70, errors=APART),
    Case(name="favours, 1,000 questions", documents=1, questions=1000, labels=120, errors=APART),
    Case(
        name="favours, 40 documents", documents=40, questions=9, labels=160, errors=APART, shift=0.1
    ),
    Case(
        name="favours, 100 documents",
        documents=100,
        questions=3,
        labels=240,
        errors=APART,
        shift=0.1,
    ),
    Case(
        name="favours, 90 % answered alike",
        documents=3,
        questions=120,
        labels=80,
        errors=APART,
        same=0.9,
    ),
    Case(name="never errs", documents=3, questions=120, labels=80, errors=((0.0, 0.0), (0.0, 0.0))),
    Case(
        name="lenient, 95 % right",
        documents=3,
        questions=120,
        labels=60,
        errors=(LENIENT, LENIENT),
        share=0.95,
    ),
    Case(
        name="favours, 95 % right",
        documents=3,
        questions=120,
        labels=60,
        errors=(LENIENT, USUAL),
        share=0.95,
    ),
    Case(name="favours, all labelled", documents=1, questions=100, labels=0, errors=APART),
    Case(
        name="favours, 95 % right, all",
        documents=1,
        questions=100,
        labels=0,
        errors=(LENIENT, USUAL),
        share=0.95,
    ),
)


def show_differences() -> None:
    """Print how often the limits of two methods' difference hold a true one of 0."""
    print(f"\nTwo methods of a run: true difference 0, {TRIALS} draws each")
    print(f"{'the judge':28s} judge sees  corrected held")
    for case in CASES:
        chance = random.Random(2)
        draws = [case.compare_methods(chance) for _ in range(TRIALS)]
        found = [each for each in draws if each.se is not None]
        held = sum((e.estimate.low or 0) <= 0 <= (e.estimate.high or 0) for e in found)
        seen, n = sum(each.uncorrected or 0 for each in found), len(found)
        refused = "" if n == TRIALS else f"  ({TRIALS - n} refused)"
        print(f"{case.name:28s} {100 * seen / n:+10.1f}  {held / n:14.1%}{refused}")


def main() -> None:
    error = 100 * sqrt(0.05 * 0.95 / TRIALS)
    print(f"Nominal 95 %; a share of {TRIALS} draws has a standard error of {error:.1f}")
    show_cells("One run, the cells on which the interval was chosen", CHOSEN_ON, 1)
    show_cells("One run, other cells and draws", CHECKED_ON, 7)
    show_differences()


if __name__ == "__main__":
    main()
