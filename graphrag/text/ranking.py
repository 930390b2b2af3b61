"""Ranks texts by the words of a question (BM25), and fuses that ranking with vectors' nearness."""

from collections.abc import Mapping, Sequence
from math import hypot, inf
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from graphrag.text.inflection import Inflection, bare_words, can_be_inflected, has_proclitics
from graphrag.text.languages import Languages, find_languages
from graphrag.text.stems import STOP_WORDS
from graphrag.text.tokenize import split_terms
from graphrag.text.word_counts import StringTable, WordCounts, count_words

_WORDS_WEIGHT = 4.0
_FUNCTION_PART = 0.2

Item = TypeVar("Item", int, str)


class WordIndex:
    """Ranks a collection of texts by BM25; it never changes.

    Words are those of :func:`split_terms`, without their endings in the ``languages`` of the texts.
    Frequencies of words are taken from the texts, which themselves are not kept. Okapi BM25 as
    Lucene computes it, ``k1`` 1.5 and ``b`` 0.75.
    """

    def __init__(self, counts: WordCounts, languages: Languages) -> None:
        self._counts, self._n = counts, int(counts.n_texts[0])
        self._words = StringTable(counts.words, counts.word_ptr)
        self._trunks = StringTable(counts.trunks, counts.trunk_ptr)
        self._languages, self._inflection = languages, Inflection(languages)

    @classmethod
    def of(cls, texts: Sequence[str], languages: Languages | None = None) -> "WordIndex":
        """Count the words of texts in ``languages``; None for those found in the texts."""
        languages = find_languages(texts) if languages is None else languages
        return cls(count_words(texts, languages), languages)

    def best(self, question: str, k: int | None = None) -> list[tuple[int, float]]:
        """Return the best ``k`` texts for a question with their scores; see :func:`best_of`."""
        return best_of(self.scores(question), k)

    def scores(self, question: str) -> npt.NDArray[np.float64]:
        """Return each text's share of the question's words, from 0 (no common word) to 1.

        It is the BM25 score divided by the sum of the idf of all words of the question, even of
        words that no text has; no text exceeds 1. A repeated word of the question counts once.
        English function words count only if there are no other words, those of other languages
        count a fifth. For a word without a known stem, all its forms count.
        """
        terms = dict.fromkeys(split_terms([question])[0])
        content = [term for term in terms if not self._languages.is_function_word(term)] or [*terms]
        scores, reachable = self._score(content)
        # Lists of other languages are longer than gtog's: their other words mean a little.
        if others := [term for term in terms if term not in content and term not in STOP_WORDS]:
            further, more = self._score(others)
            scores, reachable = (
                scores + _FUNCTION_PART * further,
                reachable + _FUNCTION_PART * more,
            )
        return np.minimum(scores / reachable, 1.0) if reachable > 0 else scores

    def _score(self, terms: Sequence[str]) -> tuple[npt.NDArray[np.float64], float]:
        """Return BM25's scores, and the sum of the idf of the words."""
        counts = self._counts
        words = {self._languages.stems(term): self._find(term) for term in terms}
        # The rarest form of each word counts.
        n_texts = np.array(
            [
                min((int(np.diff(counts.text_ptr[n : n + 2])[0]) for n in numbers), default=0)
                for numbers in words.values()
            ]
        )
        reachable = float(np.log1p((self._n - n_texts + 0.5) / (n_texts + 0.5)).sum())
        scores = np.zeros(self._n, np.float32)
        for number in dict.fromkeys(number for numbers in words.values() for number in numbers):
            begin, end = counts.text_ptr[number : number + 2]
            scores[counts.texts[begin:end]] += counts.scores[begin:end]
        return scores.astype(np.float64), reachable

    def _find(self, term: str) -> list[int]:
        """Return the numbers of the indexed words that match a term of a question."""
        stems = [stem for bare in bare_words(term) for stem in self._languages.stems(bare)]
        numbers = [number for stem in stems if (number := self._words.find(stem)) is not None]
        if numbers and self._inflection.has_stems(term) and not has_proclitics(term):
            return numbers
        return [*numbers, *self._forms_of(stems[0])]

    def _forms_of(self, word: str) -> list[int]:
        """Return the numbers of the words that are forms of a word, or of which it is a form."""
        if not can_be_inflected(word):
            return []
        near = (self._trunks.find(begun) for begun in self._inflection.trunks(word))
        ptr, forms = self._counts.form_ptr, self._counts.forms
        rows = [forms[ptr[row] : ptr[row + 1]].tolist() for row in near if row is not None]
        others = {n: self._words.text(n) for n in sorted({n for row in rows for n in row})}
        are_forms = self._inflection.are_forms
        return [n for n, other in others.items() if other != word and are_forms(word, other)]


def best_of(
    scores: npt.NDArray[np.floating], k: int | None, precedence: npt.NDArray[np.int64] | None = None
) -> list[tuple[int, float]]:
    """Return the ``k`` best positions with their scores > 0, best first; None for all.

    Among equal scores the smaller ``precedence`` comes first, which has a number for each position;
    None: the smaller position.
    """
    matching = np.flatnonzero(scores > 0)
    if k is not None and k < len(matching):
        least = np.partition(scores[matching], -k)[-k] if k > 0 else np.inf
        matching = matching[scores[matching] >= least]
    first = matching if precedence is None else precedence[matching]
    order = matching[np.lexsort((first, -scores[matching]))][:k]
    return list(zip(order.tolist(), scores[order].tolist(), strict=True))


def fuse_scores(
    words: Mapping[Item, float], near: Mapping[Item, float], n: int
) -> list[tuple[Item, float]]:
    """Fuse the scores of ``n`` items by words and by vectors: sqrt((4 words)^2 + nearness^2).

    ``words``: scores > 0 of :class:`WordIndex`, for the items that share a word with the question.
    ``near``: nearness to the question, higher is nearer, for all items or only the nearest.
    Nearness is scaled to 0 to 1: from its median over all items, or from the least known value if
    that is higher, up to the greatest. So an item with a quarter of the highest possible score by
    words counts as much as the nearest item, and an item with one high score comes before an item
    with two low ones. Every item is returned once, best first; among equal scores the nearer comes
    first, then the one that words rank higher, then the smaller one.
    """
    parts: dict[Item, float] = {}
    if near:
        ordered = sorted(near.values(), reverse=True)
        least, most = ordered[min(n // 2, len(ordered) - 1)], ordered[0]
        parts = {i: (s - least) / (most - least) if s > least else 0.0 for i, s in near.items()}
    # Scores that differ only by the order of their terms are equal.
    scored = [
        (item, round(hypot(_WORDS_WEIGHT * words.get(item, 0.0), parts.get(item, 0.0)), 9))
        for item in {**words, **parts}
    ]

    def rank(entry: tuple[Item, float]) -> tuple[float, float, float, Item]:
        item, score = entry
        return -score, -near.get(item, -inf), -words.get(item, 0.0), item

    return sorted(scored, key=rank)
