"""Finds names in texts by hashes of their words, and finds the topic of a document."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import cast

import numpy as np
import numpy.typing as npt
from pandas import factorize  # pyright: ignore[reportUnknownVariableType]
from pandas.util import hash_array

from graphrag.text.inflection import bare_names, can_be_inflected, trunk
from graphrag.text.sentences import STOPS
from graphrag.text.tokenize import word_keys

# A single shorter word is more often an ordinary word than the name that it could be.
_SHORTEST_WORD = 4
_LONGEST_NAME = 8
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_FILE_NAME = re.compile(r"^\S.*\.[A-Za-z][A-Za-z0-9]{0,4}$")
MAX_HEADING_CHARS = 120
_SENTENCE_ENDS = (*".!?…:;,", *STOPS, *"\uff1a\u3001\uff0c\uff1b\u060c\u061b")
_MARKUP = "#=*_ \t"
_TAG = re.compile(r"[{<|]|\W+$")  # markup of a page, template or table; a line

Ints = npt.NDArray[np.int32]
Hashes = npt.NDArray[np.uint64]

_hash_array = cast("Callable[..., Hashes]", hash_array)
_factorize = cast("Callable[..., tuple[Ints, npt.NDArray[np.object_]]]", factorize)
# From this many words on, hashing each distinct word once is faster.
_FEW = 1_000


@dataclass(frozen=True, slots=True)
class NameMatches:
    """The words of texts, and the names found in them.

    ``texts``: the text of each name found, in the order of ``names``. ``taken``: whether each word
    is part of a name found.
    """

    words: list[list[str]]
    texts: Ints
    names: Ints
    taken: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class NameIndex:
    """An index of names by 64-bit hashes of their words: two names never share one in practice.

    ``hashes`` ascend and are distinct; ``names`` has the first of several names with the same
    words. ``longest``: the most words of a name.
    """

    hashes: Hashes
    names: Ints
    longest: int

    def find(self, texts: Sequence[str], n_names: int | None = None) -> "NameMatches":
        """Find names in texts, except names inside a longer name found at the same position.

        Only names below ``n_names`` are looked for, all if None. The longest come first, then by
        position.
        """
        split = [key.split() for key in word_keys(texts)]
        text_of = np.repeat(np.arange(len(texts), dtype=np.int32), [len(words) for words in split])
        begins, sizes, names = self.matches(*_hash_words(split), text_of)
        if n_names is not None:
            in_range = names < n_names
            begins, sizes, names = begins[in_range], sizes[in_range], names[in_range]
        taken = np.zeros(len(text_of), np.bool_)
        kept: list[int] = []
        for match in np.lexsort((begins, -sizes)).tolist():
            span = slice(begins[match], begins[match] + sizes[match])
            if not taken[span].any():
                taken[span] = True
                kept.append(match)
        return NameMatches(words=split, texts=text_of[begins[kept]], names=names[kept], taken=taken)

    def matches(self, words: Hashes, further: Hashes, text_of: Ints) -> tuple[Ints, Ints, Ints]:
        """Return begin, word count and number of each name found, also of names inside others.

        ``words`` are the words of all texts, hashed as the first word of a name; ``further`` the
        same words hashed as a later word of a name. ``text_of`` is the text of each word,
        ascending.
        """
        at = np.arange(len(words), dtype=np.int32)
        value = np.zeros(len(words), np.uint64)
        begins, sizes, names = [at[:0]], [at[:0]], [at[:0]]
        for size in range(1, self.longest + 1):
            n_fit = int(np.searchsorted(at, len(words) - size + 1))
            at, value = at[:n_fit], value[:n_fit]
            together = text_of[at] == text_of[at + (size - 1)]
            at, value = at[together], value[together]
            if not len(at):
                break
            value = _join(value, (words if size == 1 else further)[at + (size - 1)])
            hit, hit_names = self.look_up(value)
            begins.append(at[hit])
            sizes.append(np.full(len(hit), size, np.int32))
            names.append(hit_names)
        return np.concatenate(begins), np.concatenate(sizes), np.concatenate(names)

    def look_up(self, values: Hashes) -> tuple[Ints, Ints]:
        """Return the positions of the hashes that are a name's, and the names."""
        if not len(self.hashes):
            return self.names, self.names
        at = np.searchsorted(self.hashes, values)
        at = np.minimum(at, len(self.hashes) - 1)
        is_name = self.hashes[at] == values
        return np.flatnonzero(is_name).astype(np.int32), self.names[at[is_name]]


def hash_keys(keys: Sequence[str]) -> tuple[Hashes, Ints]:
    """Return the hash and the word count of each name, given as ``word_keys`` returns it."""
    split = [key.split() for key in keys]
    return _join_words(*_hash_words(split), split)


def _join_words(words: Hashes, further: Hashes, split: Sequence[list[str]]) -> tuple[Hashes, Ints]:
    n_words = np.fromiter(map(len, split), np.int32, len(split))
    begins = np.cumsum(n_words) - n_words
    value = np.zeros(len(split), np.uint64)
    for number in range(int(n_words.max(initial=0))):
        longer = np.flatnonzero(n_words > number)
        hashes = (further if number else words)[begins[longer] + number]
        value[longer] = _join(value[longer], hashes)
    return value, n_words


def _hash_words(split: Iterable[list[str]]) -> tuple[Hashes, Hashes]:
    """Hash words as the first of a name, and as a later one, for which a leading "^" is dropped."""
    words = np.array([word for name in split for word in name], dtype=object)
    codes, distinct = np.arange(len(words)), words
    if len(words) > _FEW:
        codes, distinct = _factorize(words)
    hashes = further = _hash_texts(distinct)
    if any(word.startswith("^") for word in distinct):
        bare = np.array([word.lstrip("^") for word in distinct], dtype=object)
        further = _hash_texts(bare)
    return hashes[codes], further[codes]


def _hash_texts(texts: npt.NDArray[np.object_]) -> Hashes:
    # Python's own hash differs from one process to the next.
    return _hash_array(texts, categorize=False)


def _join(before: Hashes, words: Hashes) -> Hashes:
    joined = (before ^ words) * _FACTOR
    return joined ^ (joined >> np.uint64(29))


@dataclass(frozen=True, slots=True)
class TrunkIndex:
    """An index of names by word count and the trunks of their first two words, hashed.

    A word's trunk is its beginning that all inflected forms share, see
    :func:`~graphrag.text.inflection.trunk`. ``hashes`` ascend; names with the same trunks share
    one. ``longest``: the most words of a name.
    """

    hashes: Hashes
    names: Ints
    longest: int

    def near(
        self, words: Sequence[str], trunks: Callable[[str], Sequence[str]]
    ) -> Iterator[tuple[int, int, Ints]]:
        """Yield begin, word count and candidate names for inflected names in words, longest first.

        ``trunks`` returns the trunks of the words that a word may be a form of.
        """
        ends = [trunks(word) if can_be_inflected(word) else (word,) for word in words]
        spans: list[tuple[int, int]] = []
        keys: list[str] = []
        for size in range(min(self.longest, len(words)), 0, -1):
            for begin in range(len(words) - size + 1):
                for of_words in product(*ends[begin : begin + min(size, 2)]):
                    spans.append((begin, size))
                    keys.append(_trunk_key(size, of_words))
        hashes = _hash_texts(np.array(keys, dtype=object))
        first = np.searchsorted(self.hashes, hashes, side="left")
        last = np.searchsorted(self.hashes, hashes, side="right")
        for (begin, size), start, end in zip(spans, first.tolist(), last.tolist(), strict=True):
            if start < end:
                yield begin, size, self.names[start:end]


def _trunk_keys(words: Sequence[str]) -> Iterator[str]:
    """Yield the keys of a name by trunks; none if no word of it can be inflected."""
    if len(words) <= _LONGEST_NAME and any(map(can_be_inflected, words)):
        ends = [
            dict.fromkeys(map(trunk, bare_names(word))) if can_be_inflected(word) else (word,)
            for word in words[:2]
        ]
        for of_words in product(*ends):
            yield _trunk_key(len(words), of_words)


def _trunk_key(n_words: int, of_words: Sequence[str]) -> str:
    return " ".join((str(n_words), *of_words))


class Names:
    """Collects names and their hashes; a name's number is the order in which it was added."""

    def __init__(self) -> None:
        self.n = 0
        self._hashes = [np.empty(0, np.uint64)]
        self._n_words = [np.empty(0, np.int32)]
        self._words = [np.empty(0, np.uint64)]
        self._further = [np.empty(0, np.uint64)]
        self._short = [np.empty(0, np.bool_)]
        self._trunks = [np.empty(0, np.uint64)]
        self._trunk_names = [np.empty(0, np.int32)]

    def add(self, keys: list[str]) -> None:
        """Add names, each as ``word_keys`` returns it: words joined by spaces."""
        split = [key.split() for key in keys]
        words, further = _hash_words(split)
        hashes, n_words = _join_words(words, further, split)
        chars = np.fromiter(map(len, keys), np.int64, len(keys))
        keyed = [(n, key) for n, name in enumerate(split, self.n) for key in _trunk_keys(name)]
        self._trunk_names.append(np.array([n for n, _ in keyed], np.int32))
        self._trunks.append(_hash_texts(np.array([key for _, key in keyed], dtype=object)))
        self._hashes.append(hashes)
        self._n_words.append(n_words)
        self._words.append(words)
        self._further.append(further)
        self._short.append((n_words == 1) & (chars < _SHORTEST_WORD))
        self.n += len(keys)

    def index(self, scanned: bool = False) -> NameIndex:
        """Return an index of all names that have words.

        ``scanned``: leave out names that texts can't be searched for: single words of fewer than 4
        characters, and names of more than 8 words.
        """
        n_words = np.concatenate(self._n_words)
        indexed = n_words > 0
        if scanned:
            indexed &= ~np.concatenate(self._short) & (n_words <= _LONGEST_NAME)
        hashes, first = np.unique(np.concatenate(self._hashes)[indexed], return_index=True)
        names = np.flatnonzero(indexed).astype(np.int32)[first]
        return NameIndex(hashes, names, int(n_words[indexed].max(initial=0)))

    def trunks(self, n_names: int) -> TrunkIndex:
        """Return a trunk index of the names with numbers below ``n_names``."""
        hashes, names = np.concatenate(self._trunks), np.concatenate(self._trunk_names)
        hashes, names = hashes[names < n_names], names[names < n_names]
        order = np.argsort(hashes, kind="stable")
        longest = int(np.concatenate(self._n_words)[names].max(initial=0))
        return TrunkIndex(hashes[order], names[order], min(longest, _LONGEST_NAME))

    def inside(self, index: NameIndex) -> tuple[Ints, Ints]:
        """Return pairs of a name in an index and a longer name that contains it."""
        n_words = np.concatenate(self._n_words)
        name_of = np.repeat(np.arange(self.n, dtype=np.int32), n_words)
        words, further = np.concatenate(self._words), np.concatenate(self._further)
        begins, sizes, inner = index.matches(words, further, name_of)
        outer = name_of[begins]
        is_part = sizes < n_words[outer]
        return inner[is_part], outer[is_part]


def title_of(title: str, text: str) -> str:
    """Return a document's topic in its own words; "" if it names none.

    That is its title, unless the title is empty or a file name; else the first line of its text, if
    that is short prose, does not end like a sentence, and more text follows.
    """
    if title.strip() and not _FILE_NAME.match(title.strip()):
        return title.strip()
    first, _, rest = text.lstrip("\ufeff").strip().partition("\n")
    heading = first.strip(_MARKUP + "\r")
    is_heading = (
        0 < len(heading) <= MAX_HEADING_CHARS
        and not _TAG.match(heading)
        and not heading.endswith(_SENTENCE_ENDS)
        and bool(rest.strip())
    )
    return heading if is_heading else ""
