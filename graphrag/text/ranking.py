"""Rankings of texts, best first: by the words of a question (BM25), and fused with nearness."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from importlib import import_module
from itertools import count
from math import hypot, inf
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from graphrag.text.inflection import Forms, Inflection, bare_words, has_proclitics
from graphrag.text.languages import Languages, find_languages
from graphrag.text.stems import STOP_WORDS
from graphrag.text.tokenize import split_terms

_BATCH = 256
_WORDS_WEIGHT = 4.0
_FUNCTION_PART = 0.2

Item = TypeVar("Item", int, str)


class WordIndex:
    """Texts prepared for being ranked by BM25; nothing in it changes afterward.

    Words are :func:`split_terms`', without their endings in the ``languages`` of the texts; None:
    those that are found in them. The texts are the collection that the frequencies of words are
    taken from; they themselves are not kept. Okapi BM25 as Lucene computes it, ``k1`` 1.5 and ``b``
    0.75, by bm25s.
    """

    def __init__(self, texts: Sequence[str], languages: Languages | None = None) -> None:
        languages = find_languages(texts) if languages is None else languages
        numbers: defaultdict[str, int] = defaultdict(count().__next__)
        documents: list[list[int]] = []
        for start in range(0, len(texts), _BATCH):
            batch = texts[start : start + _BATCH]
            for text, terms in zip(batch, split_terms(batch), strict=True):
                stem_in, language = languages.stem_in, languages.of_text(text)
                documents.append([numbers[stem_in(term, language)] for term in terms])
        self._numbers, self._n = dict(numbers), len(texts)
        self._languages, self._inflection = languages, Inflection(languages)
        self._counting = Lock()
        self._bm25: Any = None
        if self._numbers:
            import bm25s

            self._bm25 = bm25s.BM25(method="lucene")
            # It adds what it is given room for to the words it is given.
            collection = (documents, dict(self._numbers))
            self._bm25.index(collection, create_empty_token=False, show_progress=False)
            self._containing = np.diff(self._bm25.scores["indptr"])

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
        words = {self._languages.stems(term): self._find(term) for term in terms}
        # Of the forms of a word the rarest.
        n_texts = np.array(
            [min((self._containing[n] for n in found), default=0) for found in words.values()]
        )
        reachable = float(np.log1p((self._n - n_texts + 0.5) / (n_texts + 0.5)).sum())
        numbers = dict.fromkeys(number for found in words.values() for number in found)
        if not numbers:
            return np.zeros(self._n), reachable
        return np.asarray(self._bm25.get_scores([*numbers]), np.float64), reachable

    def _find(self, term: str) -> list[int]:
        """Return the numbers of the words that a term of a question stands for."""
        stems = [stem for bare in bare_words(term) for stem in self._languages.stems(bare)]
        found = [self._numbers[word] for word in stems if word in self._numbers]
        if found and self._inflection.has_stems(term) and not has_proclitics(term):
            return found
        with self._counting:
            forms = self._forms
        return [*found, *(self._numbers[word] for word in forms.of(stems[0]))]

    @cached_property
    def _forms(self) -> Forms:
        return Forms(self._numbers, self._inflection)


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


class WordIndexes:
    """BM25's indexes of collections of texts, each counted once, by the thread that asks first.

    Methods that rank the same texts share one of these. ``languages`` are those of all texts; None:
    they are found in each collection.
    """

    def __init__(self, languages: Languages | None = None) -> None:
        self.languages = languages
        self._made: dict[bytes, WordIndex] = {}
        self._counting = Lock()

    def of(self, texts: Sequence[str]) -> WordIndex:
        """Return the index of these texts in this order.

        The first call counts their words, a second or so for each 10,000 of 300 tokens; who asks
        meanwhile waits.
        """
        digest = blake2b(digest_size=16)
        for text in texts:
            content = text.encode("utf-8", "surrogatepass")
            digest.update(b"%d:%s" % (len(content), content))
        key = digest.digest()
        with self._counting:
            if key not in self._made:
                self._made[key] = WordIndex(texts, self.languages)
            return self._made[key]


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


async def load_bm25() -> None:
    """Load what :class:`WordIndex` needs, a second of work, while other searches go on."""
    await asyncio.to_thread(import_module, "bm25s")
