"""The text units of an index, read one by one."""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import pandas as pd

from graphrag.query.structured_search.tog_search.graph.names import (
    NameIndex,
    hash_names,
    index_names,
)
from graphrag.query.structured_search.tog_search.graph.row_tables import TEXT_UNITS, RowTable
from graphrag.query.structured_search.tog_search.graph.table_reading import stream_frame
from graphrag.text.ranking import WordIndex
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
    """

    def __init__(self, ids: NameIndex, table: RowTable) -> None:
        self._ids = ids
        self._table = table
        self._terms: dict[str, list[str]] = {}
        self._words: tuple[list[str], WordIndex] | None = None
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

    def get(self, unit_id: str) -> TextUnit | None:
        """Return a text unit, None for an unknown id or one without text."""
        for row in self._ids.find([unit_id])[0]:
            unit = TextUnit(*self._table.values(row, *TEXT_UNITS))
            if unit.id == unit_id:
                return unit if unit_id and unit.text.strip() else None
        return None

    def rank_by_words(self, question: str, k: int) -> list[str]:
        """Return the ids of the `k` best text units by BM25 over all of them, best first.

        The first call counts the words of all texts: about a second for each 10,000 text units.
        """
        with self._counting:  # of searches that begin together one counts, the others wait
            if self._words is None:
                self._words = self._count_words()
        ids, words = self._words
        return [ids[row] for row in words.rank(question)[:k]]

    def _count_words(self) -> tuple[list[str], WordIndex]:
        """Count in an order that is not the table's: of equal texts the same comes first."""
        rows = zip(*map(self._column, ("human_readable_id", "id", "text")), strict=True)
        ordered = sorted(rows, key=lambda row: row[:2])
        return [name for _, name, _ in ordered], WordIndex([text for _, _, text in ordered])

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
