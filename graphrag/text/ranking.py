"""Rankings of texts, best first: by the words of a question (BM25), and several fused into one."""

import asyncio
import math
import sys
from collections.abc import Hashable, Iterable, Sequence
from hashlib import blake2b
from importlib import import_module
from threading import Lock
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

from graphrag.text.lexicon import STOP_WORDS
from graphrag.text.terms import split_terms
from graphrag.text.words import stem

_BATCH = 256
_K1, _B = 1.5, 0.75
_RRF_CONSTANT = 60

Item = TypeVar("Item", bound=Hashable)


class WordIndex:
    """Texts prepared for being ranked by BM25; nothing in it changes afterwards.

    Words are :func:`split_terms`' (folded case and width, pairs of characters in
    scripts without spaces), English ones without their endings.

    Parameters
    ----------
    texts : sequence of str
        The collection, from which the frequencies of words are taken, too; the texts themselves
        are not kept. Work and memory grow with their words.

    Notes
    -----
    Okapi BM25 (Robertson and Zaragoza, 2009) as Lucene computes it, ``k1`` 1.5 and ``b`` 0.75:
    a word found f times in a text of n words, of l on average, in d of N texts, gives it
    ``log(1 + (N - d + 0.5) / (d + 0.5)) * f / (f + k1 * (1 - b + b * n / l))``. Scores are
    float32 and added in the order of the question's words: bit by bit those of bm25s, which loads
    for a second and counts text by text.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        words = _Words()
        lengths = np.zeros(len(texts), dtype=np.int64)
        parts: list[_Postings] = []
        for start in range(0, len(texts), _BATCH):
            batch = split_terms(texts[start : start + _BATCH])
            lengths[start : start + _BATCH] = [len(terms) for terms in batch]
            parts.append(_count(batch, words, start))
        self._numbers = words.numbers
        self._n_texts = len(texts)
        if words.numbers:
            found = _Postings(*map(np.concatenate, zip(*parts, strict=True)))
            self._starts, self._places, self._scores = _score(found, lengths, len(words.numbers))

    def rank(self, question: str, precedence: npt.NDArray[np.int64] | None = None) -> list[int]:
        """Return the places of the texts that share a word with a question, best first.

        Parameters
        ----------
        question : str
            A word that is repeated in it counts once; English function words count only where
            there are no others.
        precedence : numpy.ndarray or None
            Shape (number of texts,): of equal scores the text with the smaller number comes
            first; None: the earlier text.

        Returns
        -------
        list of int
            Places in ``texts``.
        """
        terms = split_terms([question])[0]
        telling = [term for term in terms if term not in STOP_WORDS] or terms
        words = dict.fromkeys(map(stem, telling))
        known = [self._numbers[word] for word in words if word in self._numbers]
        if not known:
            return []
        scores = np.zeros(self._n_texts, dtype=np.float32)
        for word in known:
            held = slice(self._starts[word], self._starts[word + 1])
            scores[self._places[held]] += self._scores[held]
        matching = np.flatnonzero(scores > 0)
        first = matching if precedence is None else precedence[matching]
        return matching[np.lexsort((first, -scores[matching]))].tolist()


class WordIndexes:
    """BM25's indexes of collections of texts, each counted once, by the thread that asks first.

    Methods that rank the same texts share one of these.
    """

    def __init__(self) -> None:
        self._made: dict[bytes, WordIndex] = {}
        self._counting = Lock()

    def of(self, texts: Sequence[str]) -> WordIndex:
        """Return the index of these texts in this order.

        The first call counts their words, a second or so for each 10,000 of 300 tokens; who asks
        meanwhile waits.
        """
        key = _digest(texts)
        with self._counting:
            if key not in self._made:
                self._made[key] = WordIndex(texts)
            return self._made[key]


def fuse_ranks(rankings: Iterable[Sequence[Item]]) -> dict[Item, float]:
    """Fuse rankings by reciprocal rank: each gives its item at rank r a score of 1 / (60 + r).

    An item that a ranking leaves out gets nothing from it.

    Parameters
    ----------
    rankings : iterable of sequence
        Items that can be compared, best first, none twice in one ranking.

    Returns
    -------
    dict of item to float
        Every item of any ranking with its score, best first; of equal scores the smaller item
        comes first.

    Notes
    -----
    Cormack, Clarke and Buettcher, SIGIR 2009, with their constant.
    """
    scores: dict[Item, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            scores[item] = scores.get(item, 0.0) + 1 / (_RRF_CONSTANT + rank)
    ordered = sorted(scores.items(), key=lambda item: (-item[1], cast("Any", item[0])))
    return dict(ordered)


def bm25_scores(question: str, documents: Sequence[list[str]]) -> npt.NDArray[np.float64]:
    """Score documents against a question by Okapi BM25 (Lucene's variant).

    Parameters
    ----------
    question : str
    documents : sequence of list of str
        Each document's terms, from :func:`split_terms`. They are also the collection that
        word frequencies are taken from.

    Returns
    -------
    numpy.ndarray
        float64, shape (len(documents),), >= 0; 0 where no word is shared.
    """
    wanted = list(dict.fromkeys(split_terms([question])[0]))
    if not wanted or not any(documents):
        return np.zeros(len(documents))
    import bm25s

    index = bm25s.BM25(method="lucene")
    index.index(list(documents), show_progress=False)  # pyright: ignore[reportUnknownMemberType]
    scores = cast("Any", index).get_scores(wanted)
    return np.asarray(scores, dtype=np.float64)


async def load_bm25() -> None:
    """Load what :func:`bm25_scores` needs, a second of work, while other searches go on."""
    if "bm25s" not in sys.modules:
        await asyncio.to_thread(import_module, "bm25s")


class _Words(dict[str, int]):
    """Word -> number of its stem; a word is numbered when it is first asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: dict[str, int] = {}

    def __missing__(self, word: str) -> int:
        number = self.numbers.setdefault(stem(word), len(self.numbers))
        self[word] = number
        return number


class _Postings(NamedTuple):
    """How often words are found in texts: three arrays, shape (n,), a pair of both once."""

    words: npt.NDArray[np.int32]
    places: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]


def _count(documents: Sequence[list[str]], words: _Words, start: int) -> _Postings:
    """Count the words of at most ``_BATCH`` texts, the first of which has this place."""
    keys = [
        np.fromiter(map(words.__getitem__, terms), dtype=np.int64, count=len(terms)) * _BATCH + at
        for at, terms in enumerate(documents)
    ]
    found, counts = np.unique(np.concatenate(keys), return_counts=True)
    numbers, at = np.divmod(found, _BATCH)
    return _Postings(*(part.astype(np.int32) for part in (numbers, at + start, counts)))


def _score(
    found: _Postings, lengths: npt.NDArray[np.int64], n_words: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return where each word's scores begin, and the last ones end; their texts; the scores."""
    order = np.argsort(found.words, kind="stable")
    places = found.places[order]
    held = np.bincount(found.words, minlength=n_words)
    starts = np.concatenate(([0], np.cumsum(held)))
    n_texts = len(lengths)
    # math's logarithm, as numpy's may differ from it in the last bit.
    rare = [math.log(1 + (n_texts - d + 0.5) / (d + 0.5)) for d in held.tolist()]
    weights = np.repeat(np.asarray(rare, dtype=np.float32), held)
    room = _K1 * (1 - _B + _B * lengths / lengths.mean())
    counts = found.counts[order]
    scores = weights * (counts / (room[places] + counts))
    return starts, places, scores.astype(np.float32)


def _digest(texts: Sequence[str]) -> bytes:
    """Return a hash of texts in their order."""
    digest = blake2b(digest_size=16)
    for text in texts:
        content = text.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(content))
        digest.update(content)
    return digest.digest()
