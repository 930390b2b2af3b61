"""Cuts long text units into passages at ends of sentences, and joins the passages to be shown."""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt

from graphrag.query.client.tokens import default_encoding
from graphrag.query.methods import LONG, count_passages
from graphrag.text.languages import Languages
from graphrag.text.ranking import WordIndex
from graphrag.text.sentences import sentence_ends
from graphrag.text.tokenize import unspaced_characters
from graphrag.text.word_counts import WordCounts, count_words, pointers_of

GAP = " [...] "
"""Separates passages of a text unit if others between them are left out."""
# Chosen on one film; 0.15 to 0.5 are as good at budgets of 2,000 tokens and more.
_NEIGHBOR_SHARE = 0.3
_SPACE = re.compile(r"\s+")

Unit = TypeVar("Unit")
"""A text unit of the release or of the graph store: a dataclass with ``id`` and ``text``."""


@dataclass(frozen=True, slots=True)
class Passage(Generic[Unit]):
    """Contains a passage of a text unit.

    ``place`` is its number among all passages, ``number`` that in its text unit. ``cuts`` are the
    positions at which the text unit is cut.
    """

    unit: Unit
    place: int
    number: int = 0
    cuts: tuple[int, ...] = ()

    @property
    def unit_id(self) -> str:
        """The id of its text unit."""
        return str(cast("Any", self.unit).id)

    def joined(self, numbers: Collection[int]) -> Unit:
        """Return the text unit, its text reduced to the passages of these numbers."""
        if len(numbers) > len(self.cuts):
            return self.unit
        text = cast("Any", self.unit).text
        parts = list(pairwise((0, *self.cuts, len(text))))
        runs: list[str] = []
        for number in sorted(numbers):
            start, end = parts[number]
            if number - 1 in numbers:
                runs[-1] += text[start:end]
            else:
                runs.append(text[start:end])
        return replace(cast("Any", self.unit), text=GAP.join(map(str.strip, runs)))


@dataclass(frozen=True, slots=True)
class Selection(Generic[Unit]):
    """Contains the shown part of ranked passages.

    - ``units``: their text units, in the order of each one's best passage.
    - ``passages``: the passages that are shown, as they were ranked.
    - ``in_part``: ids of the text units that are not shown in full.
    - ``cost``: the cost of all text units.
    - ``is_full``: whether a passage did not fit.
    """

    units: list[Unit]
    passages: list[Passage[Unit]]
    in_part: frozenset[str]
    cost: int
    is_full: bool


def show_passages(
    ranked: Iterable[Passage[Unit]],
    cost: Callable[[Unit], int],
    room: int,
    *,
    passes_over: bool = False,
) -> Selection[Unit]:
    """Join ranked passages, best first, under their text units, until one does not fit.

    ``cost`` returns how much of ``room`` a text unit takes. A passage that does not fit is skipped
    if ``passes_over``.
    """
    numbers: dict[str, set[int]] = {}
    units: dict[str, Unit] = {}
    costs: dict[str, int] = {}
    chosen: list[Passage[Unit]] = []
    in_part: set[str] = set()
    is_full = False
    for passage in ranked:
        key = passage.unit_id
        together = numbers.get(key, set[int]()) | {passage.number}
        unit = passage.joined(together)
        taken = cost(unit)
        if taken - costs.get(key, 0) > room:
            is_full = True
            if passes_over:
                continue
            break
        room -= taken - costs.get(key, 0)
        numbers[key], units[key], costs[key] = together, unit, taken
        chosen.append(passage)
        (in_part.add if len(together) <= len(passage.cuts) else in_part.discard)(key)
    return Selection(
        units=list(units.values()),
        passages=chosen,
        in_part=frozenset(in_part),
        cost=sum(costs.values()),
        is_full=is_full,
    )


@dataclass(frozen=True, slots=True)
class CutTexts:
    """Contains the positions at which texts are cut into passages.

    The passages of all texts are numbered together; those of text i begin at number ``first[i]``.
    ``cuts`` are the positions in all texts, one text after the other.
    """

    first: npt.NDArray[np.int64]
    cuts: npt.NDArray[np.int64]


def cut_texts(
    texts: Sequence[str], counts: Sequence[int], size: int | None, languages: Languages
) -> tuple[CutTexts, WordCounts]:
    """Cut text units into passages of about ``size`` tokens, and count the words of each.

    ``counts`` are the tokens of each text, 0 if they were not counted. Only a text of more than 400
    and more than ``size`` tokens is cut; without a size none is.
    """
    cuts: list[tuple[int, ...]] = [()] * len(texts)
    if size is not None:
        cuts = [split_text(t, count, size) for t, count in zip(texts, counts, strict=True)]
    passages = [
        text if not own else text[start:end]
        for text, own in zip(texts, cuts, strict=True)
        for start, end in pairwise((0, *own, len(text)))
    ]
    first = pointers_of(np.fromiter(map(len, cuts), np.int64, len(cuts)) + 1)
    cut = CutTexts(first, np.fromiter(chain.from_iterable(cuts), np.int64))
    return cut, count_words(passages, languages)


class Passages:
    """Scores the passages of text units by their words; they are in the order of the text units."""

    def __init__(self, cut: CutTexts, words: WordIndex) -> None:
        self._first, self._cuts, self._words = cut.first, cut.cuts, words
        self.rows: npt.NDArray[np.int64] = np.repeat(
            np.arange(len(cut.first) - 1), np.diff(cut.first)
        )
        """The row of each passage's text unit."""

    def scores(self, question: str) -> npt.NDArray[np.float64]:
        """Return the BM25 score of each passage, 0 if it shares no word with a question.

        The passages next to it in its text unit add 0.3 of their own scores.
        """
        scores = self._words.scores(question)
        if not len(self._cuts):
            return scores
        meet = self.rows[1:] == self.rows[:-1]
        neighbors = np.zeros_like(scores)
        neighbors[1:] += np.where(meet, scores[:-1], 0)
        neighbors[:-1] += np.where(meet, scores[1:], 0)
        return np.where(scores > 0, scores + _NEIGHBOR_SHARE * neighbors, scores)

    def of(self, row: int) -> range:
        """Return the numbers of a text unit's passages."""
        return range(int(self._first[row]), int(self._first[row + 1]))

    def cuts(self, row: int) -> tuple[int, ...]:
        """Return the positions at which a text unit is cut."""
        # A text unit has one cut less than passages, and so has each one before it.
        begin, end = int(self._first[row]) - row, int(self._first[row + 1]) - row - 1
        return tuple(self._cuts[begin:end].tolist())

    def of_units(
        self, ranked: npt.NDArray[np.int64], read: Callable[[int], Unit]
    ) -> list[Passage[Unit]]:
        """Return ranked passages with their text units, which ``read`` returns by row."""
        rows = self.rows[ranked]
        at: zip[tuple[int, int, int]] = zip(
            rows.tolist(), ranked.tolist(), (ranked - self._first[rows]).tolist(), strict=True
        )
        return [
            Passage(unit=read(row), place=place, number=number, cuts=self.cuts(row))
            for row, place, number in at
        ]


def split_text(text: str, n_tokens: int | None, size: int) -> tuple[int, ...]:
    """Return where to cut a long text into equally long passages of about ``size`` tokens.

    Cuts are at ends of sentences. If none is near, they are between words or, in a script without
    spaces, between characters. A word is never cut.
    """
    if not n_tokens or n_tokens != n_tokens:
        is_long = len(text.encode("utf-8", "surrogatepass")) > LONG
        n_tokens = len(default_encoding().encode(text, disallowed_special=())) if is_long else 0
    n = count_passages(n_tokens, size)
    step = len(text) / n
    ends = np.array(sentence_ends(text) if n > 1 else [], np.int64)
    cuts: list[int] = []
    for target in (step * number for number in range(1, n)):
        near = ends[np.abs(ends - target) <= step / 2]
        cut = int(near[np.abs(near - target).argmin()]) if len(near) else None
        cut = _between_words(text, round(target), round(step / 2)) if cut is None else cut
        if cut is not None and (cuts[-1] if cuts else 0) < cut < len(text):
            cuts.append(cut)
    return tuple(cuts)


def _between_words(text: str, target: int, reach: int) -> int | None:
    """Return the position between two words that is nearest to ``target``; None if out of reach."""
    start = max(0, target - reach)
    positions = [start + match.end() for match in _SPACE.finditer(text[start : target + reach])]
    if positions:
        return min(positions, key=lambda position: abs(position - target))
    for position in range(target, min(target + reach, len(text))):
        is_mark = unicodedata.category(text[position]).startswith("M")
        if len(unspaced_characters(text[position - 1 : position + 1])) == 2 and not is_mark:
            return position
    return None
