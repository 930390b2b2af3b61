"""Finding known names in texts, whole words only, many texts at once."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from graphrag.text.terms import word_keys

_Hashes = npt.NDArray[np.uint64]
_Ints = npt.NDArray[np.int32]

# A single word as short as this is more often another word than the name that it could be.
_SHORTEST_WORD = 4
_LONGEST_NAME = 8
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


class NameScanner:
    """Finds names by 64-bit hashes of their words: two names never share one in practice.

    Parameters
    ----------
    keys : sequence of str
        Names as :func:`word_keys` has them. Of equal ones the first counts; those of more than
        eight words, and single words of fewer than four characters, are not looked for.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        split = [key.split() for key in keys]
        lengths = np.fromiter(map(len, split), np.int64, len(split))
        short = np.fromiter((len(key) < _SHORTEST_WORD for key in keys), np.bool_, len(split))
        rows = np.flatnonzero(
            (lengths > 0) & (lengths <= _LONGEST_NAME) & ~(short & (lengths == 1))
        )
        words = _hash_words([word for row in rows.tolist() for word in split[row]])
        lengths = lengths[rows]
        begins = np.cumsum(lengths) - lengths
        self._beginnings: list[_Hashes] = []
        self._names: list[tuple[_Hashes, _Ints]] = []
        value = np.zeros(len(rows), np.uint64)
        for place in range(int(lengths.max(initial=0))):
            longer = lengths > place
            rows, lengths, begins = rows[longer], lengths[longer], begins[longer]
            value = _join(value[longer], words[begins + place])
            self._beginnings.append(np.unique(value))
            ends = lengths == place + 1
            whole, first = np.unique(value[ends], return_index=True)
            self._names.append((whole, rows[ends][first].astype(np.int32)))

    def scan(self, texts: Sequence[str]) -> tuple[_Ints, _Ints]:
        """Find names; one inside a longer one that also stands there does not count.

        Returns
        -------
        tuple of numpy.ndarray
            int32: places in ``texts``, and places in ``keys``.
        """
        split = [key.split() for key in word_keys(texts)]
        words = _hash_words([word for each in split for word in each])
        text_of = np.repeat(np.arange(len(texts), dtype=np.int32), [len(each) for each in split])
        begins, sizes, found = self._matches(words, text_of)
        taken = np.zeros(len(words), np.bool_)
        kept: list[int] = []
        for match in np.lexsort((begins, -sizes)).tolist():
            span = slice(begins[match], begins[match] + sizes[match])
            if not taken[span].any():
                taken[span] = True
                kept.append(match)
        return text_of[begins[kept]], found[kept]

    def _matches(
        self, words: _Hashes, text_of: _Ints
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], _Ints]:
        """Return where names begin, of how many words they are, and which they are."""
        begins, sizes = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        found = [np.empty(0, np.int32)]
        at = np.arange(len(words))
        value = np.zeros(len(words), np.uint64)
        for place, (whole, rows) in enumerate(self._names):
            inside = at + place < len(words)
            at, value = at[inside], value[inside]
            together = text_of[at] == text_of[at + place]
            at, value = at[together], value[together]
            value = _join(value, words[at + place])
            going_on = _positions(value, self._beginnings[place]) >= 0
            at, value = at[going_on], value[going_on]
            hit = _positions(value, whole)
            begins.append(at[hit >= 0])
            sizes.append(np.full(len(begins[-1]), place + 1))
            found.append(rows[hit[hit >= 0]])
        return np.concatenate(begins), np.concatenate(sizes), np.concatenate(found)


def _hash_words(words: Sequence[str]) -> _Hashes:
    # Python's own hash differs from one process to the next, and none is kept.
    return np.fromiter(map(hash, words), np.int64, len(words)).view(np.uint64)


def _join(before: _Hashes, words: _Hashes) -> _Hashes:
    joined = (before ^ words) * _FACTOR
    return joined ^ (joined >> np.uint64(29))


def _positions(values: _Hashes, known: _Hashes) -> npt.NDArray[np.int64]:
    """Return where each value stands in the sorted known ones, -1 where it does not."""
    if not len(known):
        return np.full(len(values), -1)
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[at] == values, at, -1)
