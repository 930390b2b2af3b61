"""The text units of an index, read one by one."""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from graphrag.query.structured_search.tog_search.graph.names import (
    NameIndex,
    hash_names,
    index_names,
)
from graphrag.query.structured_search.tog_search.graph.row_tables import TEXT_UNITS, RowTable
from graphrag.query.structured_search.tog_search.graph.table_reading import stream_frame
from graphrag.text.ranking import WordIndex, WordIndexes
from graphrag.text.terms import split_terms

_N_CACHED_TERMS = 512


@dataclass(frozen=True, slots=True)
class TextUnit:
    """One text unit; ``human_readable_id`` is what is cited."""

    id: str
    human_readable_id: int
    text: str


class TextUnits:
    """Looks text units up by id; made with :meth:`from_table` or mapped from files.

    Parameters
    ----------
    ids : NameIndex
    table : RowTable
    words : WordIndexes or None
        Where the words of all texts are counted; None: here alone.
    """

    def __init__(self, ids: NameIndex, table: RowTable, words: WordIndexes | None = None) -> None:
        self._ids = ids
        self._table = table
        self._terms: dict[str, list[str]] = {}
        self._words = words or WordIndexes()
        self._ranked: tuple[WordIndex, npt.NDArray[np.int64]] | None = None
        self._counting = Lock()

    @classmethod
    def from_table(cls, table: pd.DataFrame) -> "TextUnits":
        """Keep the text units of a table in memory.

        Parameters
        ----------
        table : pandas.DataFrame
            ``id`` and ``text``; optional ``human_readable_id`` (default: the row number).

        Raises
        ------
        UnreadableTableError
            If a needed column is missing.
        """
        batches = list(stream_frame(table, "text units", TEXT_UNITS, ("id", "text")))
        ids: list[str] = [name for batch in batches for name in batch.column("id").to_pylist()]
        rows = np.arange(len(ids), dtype=np.int32)
        return cls(index_names(hash_names(ids), rows), RowTable.of(batches))

    def counted_in(self, words: WordIndexes) -> "TextUnits":
        """Return the same text units, their words counted where others find them too."""
        return TextUnits(self._ids, self._table, words)

    def get(self, unit_id: str) -> TextUnit | None:
        """Return a text unit, None for an unknown id or one without text."""
        for row in self._ids.find([unit_id])[0]:
            unit = TextUnit(*self._table.values(row, *TEXT_UNITS))
            if unit.id == unit_id:
                return unit if unit_id and unit.text.strip() else None
        return None

    def rank_by_words(self, question: str, k: int) -> list[str]:
        """Return the ids of the `k` best text units by BM25 over all of them, best first.

        The first call counts the words of all texts, unless they were counted before: a second or
        so for each 10,000 text units.
        """
        with self._counting:  # of searches that begin together one counts, the others wait
            if self._ranked is None:
                self._ranked = self._words.of(self._column("text")), self._precedence()
        words, precedence = self._ranked
        return [self._table.value(row, "id") for row in words.rank(question, precedence)[:k]]

    def _precedence(self) -> npt.NDArray[np.int64]:
        """Return the place of each row by number and id, which no order of the table changes."""
        keys = list(zip(self._column("human_readable_id"), self._column("id"), strict=True))
        numbers = np.empty(len(keys), dtype=np.int64)
        numbers[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
        return numbers

    def _column(self, name: str) -> list[Any]:
        return [value for part in self._table.column(name) for value in part.to_pylist()]

    def terms(self, units: Sequence[TextUnit]) -> list[list[str]]:
        """Return the comparable terms of each text unit's text."""
        known = self._terms
        new = [unit for unit in units if unit.id not in known]
        split = split_terms([unit.text for unit in new])
        fresh = dict(zip((unit.id for unit in new), split, strict=True))
        found = [fresh[unit.id] if unit.id in fresh else known[unit.id] for unit in units]
        known |= fresh
        while len(known) > _N_CACHED_TERMS:
            known.pop(next(iter(known)))
        return found
