"""Counts the words of texts for BM25, as arrays that can be kept in files."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import log

import numpy as np
import numpy.typing as npt

from graphrag.text.inflection import bare_words, can_be_inflected, trunk
from graphrag.text.languages import Languages
from graphrag.text.tokenize import split_terms

K1, B = 1.5, 0.75
BM25 = {"method": "lucene", "k1": K1, "b": B}
"""Parameters of a word's score in a text, in addition to the frequencies."""
_BATCH = 1024
_AT_ONCE = 1 << 20
# A longer run of characters without a space is hardly met twice.
_LONGEST_REMEMBERED = 48
# In addition to letters beyond ASCII these characters join words, or combine with a mark.
_JOINING = b"<=>'`"
_ENCODING = ("utf-8", "surrogatepass")

Ints = npt.NDArray[np.int32]
Pointers = npt.NDArray[np.int64]


def _separators(kept: bytes) -> bytes:
    """Return the table that replaces each ASCII character outside of words by a blank."""
    return bytes(c if c >= 128 or chr(c).isalnum() or c in kept else ord(" ") for c in range(256))


_OF_ASCII, _OF_OTHERS = _separators(b""), _separators(_JOINING)


@dataclass(frozen=True, slots=True)
class WordCounts:
    """Lists the texts in which each word occurs, with their BM25 scores, in compact arrays.

    Row i of an array is ``ptr[i]:ptr[i + 1]``, by the array of pointers that belongs to it.

    - ``words``: all words, ascending, as bytes; row i by ``word_ptr`` is word number i.
    - ``texts``: row i by ``text_ptr`` are the texts with word i, ascending; ``scores``: the part
      of word i in the score of each.
    - ``trunks``: beginnings of words, ascending, as bytes, by ``trunk_ptr``; see ``trunk``.
    - ``forms``: row i by ``form_ptr`` are the numbers of the words with trunk i.
    - ``n_texts``: the number of texts, alone in its array.
    """

    words: npt.NDArray[np.uint8]
    word_ptr: Pointers
    text_ptr: Pointers
    texts: Ints
    scores: npt.NDArray[np.float32]
    trunks: npt.NDArray[np.uint8]
    trunk_ptr: Pointers
    form_ptr: Pointers
    forms: Ints
    n_texts: Pointers


class StringTable(Sequence[bytes]):
    """Finds strings in a sorted table, kept in one array of bytes, by binary search."""

    def __init__(self, content: npt.NDArray[np.uint8], pointers: Pointers) -> None:
        self._content, self._pointers = content, pointers

    def __len__(self) -> int:
        return len(self._pointers) - 1

    def __getitem__(self, number: int) -> bytes:  # pyright: ignore[reportIncompatibleMethodOverride]
        begin, end = self._pointers[number : number + 2]
        return self._content[begin:end].tobytes()

    def find(self, text: str) -> int | None:
        """Return the number of a string; None if it is not in the table."""
        wanted = text.encode(*_ENCODING)
        number = bisect_left(self, wanted)
        return number if number < len(self) and self[number] == wanted else None

    def text(self, number: int) -> str:
        """Return the string with a number."""
        return self[number].decode(*_ENCODING)


class _Numbers(dict[bytes, tuple[int, ...]]):
    """Keeps the numbers of the words in a run of characters, for texts in one language."""

    def __init__(self, languages: Languages, language: str, numbers: dict[str, int]) -> None:
        super().__init__()
        self._stem = languages.stem_in
        self._language, self._numbers = language, numbers

    def __missing__(self, run: bytes) -> tuple[int, ...]:
        numbers, language = self._numbers, self._language
        (terms,) = split_terms([run.decode(*_ENCODING)])
        stems = (self._stem(term, language) for term in terms)
        of_run = tuple(numbers.setdefault(stem, len(numbers)) for stem in stems)
        if len(run) <= _LONGEST_REMEMBERED:
            self[run] = of_run
        return of_run


def count_words(texts: Sequence[str], languages: Languages) -> WordCounts:
    """Count the words of texts, as ``split_terms`` splits them, without their endings.

    Texts are split at blanks first, and each run of characters between blanks is looked up. The
    words are the same, because nothing joins or splits words across a blank.
    """
    numbers: dict[str, int] = {}
    by_language: dict[str, _Numbers] = {}
    keys: list[Pointers] = []
    counts: list[Ints] = []
    lengths = np.zeros(len(texts), np.int64)
    for start in range(0, len(texts), _BATCH):
        of_batch: list[Ints] = []
        for text in texts[start : start + _BATCH]:
            language = languages.of_text(text)
            if language not in by_language:
                by_language[language] = _Numbers(languages, language, numbers)
            of_runs = map(by_language[language].__getitem__, _split_runs(text))
            of_batch.append(np.fromiter(chain.from_iterable(of_runs), np.int32))
        end = start + len(of_batch)
        lengths[start:end] = [len(words) for words in of_batch]
        in_text = np.repeat(np.arange(start, end), lengths[start:end])
        every = np.concatenate(of_batch).astype(np.int64) << 32 | in_text
        distinct, n_each = np.unique(every, return_counts=True)
        keys.append(distinct)
        counts.append(n_each.astype(np.int32))
    return _arrange([*numbers], keys, counts, lengths)


def _split_runs(text: str) -> list[bytes]:
    if text.isascii():
        return text.lower().encode().translate(_OF_ASCII).split()
    return text.encode(*_ENCODING).translate(_OF_OTHERS).split()


def _arrange(
    words: Sequence[str], keys: list[Pointers], counts: list[Ints], lengths: Pointers
) -> WordCounts:
    """Sort words and their counts; a key is a word's number times 2^32 plus its text's number.

    The lists of keys and counts are emptied.
    """
    encoded = [word.encode(*_ENCODING) for word in words]
    order = sorted(range(len(words)), key=encoded.__getitem__)
    rank = np.empty(len(words), np.int32)
    rank[order] = np.arange(len(words), dtype=np.int32)
    # In a large index each of these arrays takes hundreds of megabytes, so each is freed early.
    every = np.concatenate([np.empty(0, np.int64), *keys])
    keys.clear()
    of_word, texts = rank[every >> 32], (every & 0xFFFFFFFF).astype(np.int32)
    del every
    frequency = np.concatenate([np.empty(0, np.int32), *counts])
    counts.clear()
    # A stable sort keeps the texts of each word ascending.
    sorting = np.argsort(of_word, kind="stable")
    texts, frequency = texts[sorting], frequency[sorting]
    del sorting
    n_containing = np.bincount(of_word, minlength=len(words))
    ascending = [words[number] for number in order]
    trunks, form_ptr, forms = _sort_trunks(ascending)
    return WordCounts(
        *_join([encoded[number] for number in order]),
        pointers_of(n_containing),
        texts,
        _score(n_containing, texts, frequency, lengths),
        *_join(trunks),
        form_ptr,
        forms,
        np.array([len(lengths)], np.int64),
    )


def _score(
    n_containing: Pointers, texts: Ints, frequency: Ints, lengths: Pointers
) -> npt.NDArray[np.float32]:
    """Score each word in each of its texts by Okapi BM25 as Lucene computes it."""
    n, mean = len(lengths), lengths.mean() if len(lengths) else 0.0
    known = {int(df): log(1 + (n - df + 0.5) / (df + 0.5)) for df in np.unique(n_containing)}
    idf = np.array([known[df] for df in n_containing.tolist()], np.float32)
    scores = np.empty(len(texts), np.float32)
    word_of = np.repeat(np.arange(len(n_containing)), n_containing)
    for start in range(0, len(texts), _AT_ONCE):
        piece = slice(start, start + _AT_ONCE)
        often = frequency[piece].astype(np.float32)
        length = lengths[texts[piece]]
        saturated = often / (K1 * ((1 - B) + B * length / mean) + often)
        scores[piece] = idf[word_of[piece]] * saturated
    return scores


def _sort_trunks(words: Iterable[str]) -> tuple[list[bytes], Pointers, Ints]:
    """Return the trunks of words, ascending, and the numbers of each trunk's words as rows."""
    by_trunk: dict[str, list[int]] = {}
    for number, word in enumerate(words):
        if can_be_inflected(word):
            for bare in bare_words(word):
                by_trunk.setdefault(trunk(bare), []).append(number)
    rows = sorted((begun.encode(*_ENCODING), row) for begun, row in by_trunk.items())
    sizes = np.array([len(row) for _, row in rows], np.int64)
    forms = np.fromiter(chain.from_iterable(row for _, row in rows), np.int32)
    return [begun for begun, _ in rows], pointers_of(sizes), forms


def _join(strings: Sequence[bytes]) -> tuple[npt.NDArray[np.uint8], Pointers]:
    sizes = np.fromiter(map(len, strings), np.int64, len(strings))
    return np.frombuffer(b"".join(strings), np.uint8), pointers_of(sizes)


def pointers_of(sizes: npt.NDArray[np.integer]) -> Pointers:
    """Return the positions where rows of these sizes begin, and the end of the last row."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
