"""Rankings of texts, best first: by the words of a question (BM25), and fused with nearness."""

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
    """Texts prepared for being ranked by BM25; nothing in it changes afterward.

    Words are :func:`split_terms`', without their endings in the ``languages`` of the texts. The
    texts are the collection that the frequencies of words are taken from; they themselves are not
    kept. Okapi BM25 as Lucene computes it, ``k1`` 1.5 and ``b`` 0.75.
    """

    def __init__(self, counts: WordCounts, languages: Languages) -> None:
        self._counts, self._n = counts, int(counts.n_texts[0])
        self._words = StringTable(counts.words, counts.word_ptr)
        self._trunks = StringTable(counts.trunks, counts.trunk_ptr)
        self._languages, self._inflection = languages, Inflection(languages)

    @classmethod
    def of(cls, texts: Sequence[str], languages: Languages | None = None) -> "WordIndex":
        """Count the words of texts in their languages; None: those that are found in them."""
        languages = find_languages(texts) if languages is None else languages
        return cls(count_words(texts, languages), languages)

    def best(self, question: str, k: int | None = None) -> list[tuple[int, float]]:
        """Return :func:`best_of` the scores of the texts."""
        return best_of(self.scores(question), k)

    def scores(self, question: str) -> npt.NDArray[np.float64]:
        """Return the part of the question's words that each text has, 0 where none is shared.

        It is BM25's score, divided by the sum of the idf of all words of the question, also of
        those that no text has: 1 is more than any text reaches. A word that is repeated in the
        question counts once; English function words count only where there are no others, those of
        other languages a fifth. A word of which no stem is known counts for all its forms.
        """
        terms = dict.fromkeys(split_terms([question])[0])
        telling = [term for term in terms if not self._languages.is_function_word(term)] or [*terms]
        scores, reachable = self._score(telling)
        # Lists of other languages are longer than ours: what else is on them says a little.
        if others := [term for term in terms if term not in telling and term not in STOP_WORDS]:
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
        # Of the forms of a word the rarest.
        n_texts = np.array(
            [
                min((int(np.diff(counts.text_ptr[n : n + 2])[0]) for n in found), default=0)
                for found in words.values()
            ]
        )
        reachable = float(np.log1p((self._n - n_texts + 0.5) / (n_texts + 0.5)).sum())
        scores = np.zeros(self._n, np.float32)
        for number in dict.fromkeys(number for found in words.values() for number in found):
            begin, end = counts.text_ptr[number : number + 2]
            scores[counts.texts[begin:end]] += counts.scores[begin:end]
        return scores.astype(np.float64), reachable

    def _find(self, term: str) -> list[int]:
        """Return the numbers of the words that a term of a question stands for."""
        stems = [stem for bare in bare_words(term) for stem in self._languages.stems(bare)]
        found = [number for stem in stems if (number := self._words.find(stem)) is not None]
        if found and self._inflection.has_stems(term) and not has_proclitics(term):
            return found
        return [*found, *self._forms_of(stems[0])]

    def _forms_of(self, word: str) -> list[int]:
        """Return the numbers of the words that are forms of a word, or that it is a form of."""
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
    """Return the `k` best places (None: all) with their scores > 0, best first.

    Of equal scores the one with the smaller `precedence`, which has a number for each, comes first;
    None: the earlier one.
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
    """Fuse what words and vectors say of ``n`` items: sqrt((4 words)^2 + nearness^2).

    ``words`` are scores > 0 of :class:`WordIndex`, of the items that share a word with the
    question, ``near`` how near items are to it, the higher the nearer: of all or of those that are
    nearest. Nearness counts from its median over all items on, or from the least that is known if
    that is more, up to the greatest, as 0 to 1. So an item that reaches a quarter of what the words
    could reach counts as much as the nearest, and one that either is sure of comes before one of
    which both say a little. Every item is returned once, best first; of equal scores the nearer
    one, then the one that words rank first, then the smaller one.
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
