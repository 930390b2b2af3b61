"""Entities that differ only in case, spacing, punctuation or the order of their words."""

import re
import unicodedata

import numpy as np

from graphrag.eval.validation.records import MAX_EXAMPLES
from graphrag.eval.validation.tables import Mask, Rows, Table, arrow, as_text

# C, C++ and C# differ by more than punctuation.
_ASCII_WORD = re.compile(r"[a-z0-9+#]+")


def warn_duplicates(entities: Table | None) -> list[str]:
    """Warn of entities that seem to be the same one under two names, or twice under one."""
    if entities is None or "title" not in entities:
        return []
    keys = _keys(entities)
    repeated = _repeated(keys[0]) | _repeated(keys[1])
    count = int(repeated.sum())
    if not count:
        return []
    groups = "; ".join(" = ".join(group) for group in _examples(entities, keys, repeated))
    return [
        f"Near-duplicate entities: {count} of {entities.n_rows} have a name that another one has "
        f"too, but for case, spacing, punctuation or word order, such as {groups}."
    ]


def _keys(entities: Table) -> Rows:
    """Return two hashes of each name, shape (2, entities): run together, and words sorted.

    0 stands for a name without a word. Hashes of 64 bits: among a million names the chance
    that any two different ones meet is below one in ten million.
    """
    spaceless: list[int] = []
    unordered: list[int] = []
    for _, (titles,) in entities.batches("title"):
        for title in as_text(titles).to_pylist():
            words = _words(title or "")
            spaceless.append(hash("".join(words)) if words else 0)
            unordered.append(hash(" ".join(sorted(words))) if words else 0)
    return np.array([spaceless, unordered], dtype=np.int64)


def _words(title: str) -> list[str]:
    if title.isascii():
        return _ASCII_WORD.findall(title.lower())
    folded = unicodedata.normalize("NFKC", title).casefold()
    kept = (c if unicodedata.category(c)[0] in "LMNS" else " " for c in folded)
    return "".join(kept).split()


def _repeated(keys: Rows) -> Mask:
    _, first, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return (counts[first] > 1) & (keys != 0)


def _examples(entities: Table, keys: Rows, repeated: Mask) -> list[list[str]]:
    """Return the names of a few groups."""
    groups: list[list[str]] = []
    seen: set[int] = set()
    titles = entities.text("title")
    for row in np.flatnonzero(repeated)[: 10 * MAX_EXAMPLES]:
        if int(row) in seen or len(groups) == MAX_EXAMPLES:
            continue
        same = np.flatnonzero((keys[0] == keys[0][row]) | (keys[1] == keys[1][row]))
        seen.update(int(other) for other in same)
        picked = titles.take(arrow.array(same[:3]))
        groups.append([repr(name) for name in picked.to_pylist()])
    return groups
