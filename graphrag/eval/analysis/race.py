"""Watches the methods of a run and says when one has beaten every other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from graphrag.eval.analysis.rows import paired_score, rows_of
from graphrag.eval.records import QueryResult
from graphrag.eval.statistics import EARLY_ALPHA, PairedCounts, Score, certain_winner

Question = tuple[str, str]
"""Index key, question id."""


@dataclass(frozen=True, slots=True)
class RaceEnd:
    """How far a watched run was counted.

    Attributes
    ----------
    counted : frozenset of (index key, question id)
        The questions up to the one that decided, else all up to the first unanswered one.
    n_planned : int
        Questions planned.
    winner : str or None
        The method that had then beaten every other; None when none had.
    reason : str or None
        The same as a sentence.
    """

    counted: frozenset[Question]
    n_planned: int
    winner: str | None
    reason: str | None

    @property
    def is_complete(self) -> bool:
        """Whether every planned question is counted, so that the test at the end holds."""
        return len(self.counted) == self.n_planned

    def to_dict(self) -> dict[str, Any]:
        """Return what the files say of it."""
        return {
            "stopped_early": not self.is_complete and self.winner is not None,
            "winner": self.winner,
            "reason": self.reason,
            "questions_counted": len(self.counted),
            "questions_planned": self.n_planned,
            "level": EARLY_ALPHA,
        }


class MethodRace:
    """Counts which method is right where another is wrong, while a run goes on.

    Parameters
    ----------
    order : mapping
        (index key, question id) -> methods asked, in the shuffled order of ``run.asked_order``.
    methods : sequence of str
        Two or more.
    metric : str
        The primary metric.

    Notes
    -----
    A question is counted once all that come before it in the order are, and every method's
    verdict on it is there. So what is counted does not hang on which answers arrive first, as
    it would if quick answers were more often right; an answer that is late only delays the stop.
    """

    def __init__(
        self, order: Mapping[Question, Sequence[str]], methods: Sequence[str], metric: str
    ) -> None:
        self._order = list(order.items())
        self._methods = list(methods)
        self._metric = metric
        self._scores: dict[Question, dict[str, Score]] = {}
        self._counts = {pair: PairedCounts(0, 0, 0) for pair in combinations(methods, 2)}
        self._n_counted = 0
        self._winner: str | None = None
        self._n_decided: int | None = None

    def watch(self, result: QueryResult) -> str | None:
        """Count a result; return why the run may stop, None while it may not."""
        if result.trial:
            return None
        (row,) = rows_of([result])
        of_question = self._scores.setdefault((row.document, row.question_id), {})
        of_question[row.method] = paired_score(row, self._metric)
        self._count()
        return self.reason

    @property
    def reason(self) -> str | None:
        """Why the run may stop, None while it may not."""
        if self._winner is None:
            return None
        return (
            f"{self._winner} beats every other method on {self._metric}, by the first "
            f"{self._n_decided} questions"
        )

    def end(self) -> RaceEnd:
        """Return how far the run is counted."""
        n = self._n_counted
        if n < len(self._order) and self._n_decided is not None:
            n = self._n_decided
        counted = frozenset(question for question, _ in self._order[:n])
        return RaceEnd(counted, len(self._order), self._winner, self.reason)

    def _count(self) -> None:
        while self._n_counted < len(self._order):
            question, asked = self._order[self._n_counted]
            scores = self._scores.get(question, {})
            if any(method not in scores for method in asked):
                return
            moved = [self._add(pair, scores) for pair in self._counts if set(pair) <= set(asked)]
            self._n_counted += 1
            if self._winner is None and any(moved):
                self._winner = certain_winner(self._methods, self._counts)
                self._n_decided = self._n_counted if self._winner is not None else None

    def _add(self, pair: tuple[str, str], scores: Mapping[str, Score]) -> bool:
        """Count a question for a pair; return whether it speaks for one of the two."""
        n, n10, n01, missing = self._counts[pair]
        a, b = scores[pair[0]], scores[pair[1]]
        if a is None or b is None:
            self._counts[pair] = PairedCounts(n, n10, n01, missing + 1)
            return False
        self._counts[pair] = PairedCounts(n + 1, n10 + (a > b), n01 + (b > a), missing)
        return a != b
