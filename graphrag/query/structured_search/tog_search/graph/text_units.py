"""The text units of an index: ranked by words, read one by one."""

from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from graphrag.query.structured_search.tog_search.graph.row_tables import TEXT_UNITS, RowTable
from graphrag.query.structured_search.tog_search.graph.table_reading import stream_frame
from graphrag.text.ranking import WordIndex, WordIndexes


@dataclass(frozen=True, slots=True)
class TextUnit:
    """One text unit; ``human_readable_id`` is what is cited."""

    id: str
    human_readable_id: int
    text: str


class TextUnits:
    """Ranks text units and reads them; made with :meth:`from_table` or mapped from files.

    Parameters
    ----------
    table : RowTable
    words : WordIndexes or None
        Where the words of all texts are counted; None: here alone.
    """

    def __init__(self, table: RowTable, words: WordIndexes | None = None) -> None:
        self._table = table
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
        return cls(RowTable.of(batches))

    def counted_in(self, words: WordIndexes) -> "TextUnits":
        """Return the same text units, their words counted where others find them too."""
        return TextUnits(self._table, words)

    def score_by_words(self, question: str, k: int) -> list[tuple[int, float]]:
        """Return the rows and scores of the `k` best text units by BM25 over all of them.

        The first call counts the words of all texts, unless they were counted before: a second or
        so for each 10,000 text units.
        """
        words, precedence = self._ready()
        return words.best(question, k, precedence)

    def best(self, masses: Mapping[int, float], k: int) -> list[TextUnit]:
        """Return the `k` text units with most mass that are not blank, most first.

        Sums that differ only by the order of their terms are equal, and ordered by
        human_readable_id.

        Parameters
        ----------
        masses : mapping of int to float
            Row -> mass.
        k : int
        """
        rows = np.array(list(masses), np.int64)
        values = np.round(np.array(list(masses.values()), np.float64), 12)
        order = rows[np.lexsort((self._ready()[1][rows], -values))][:k]
        found = (self._read(row) for row in order.tolist())
        return [unit for unit in found if unit.text.strip()]

    def _read(self, row: int) -> TextUnit:
        return TextUnit(*self._table.values(row, "id", "human_readable_id", "text"))

    def _ready(self) -> tuple[WordIndex, npt.NDArray[np.int64]]:
        with self._counting:  # of searches that begin together one counts, the others wait
            if self._ranked is None:
                self._ranked = self._words.of(self._column("text")), self._precedence()
        return self._ranked

    def _precedence(self) -> npt.NDArray[np.int64]:
        """Return the place of each row by number and id, which no order of the table changes."""
        keys = list(zip(self._column("human_readable_id"), self._column("id"), strict=True))
        numbers = np.empty(len(keys), dtype=np.int64)
        numbers[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
        return numbers

    def _column(self, name: str) -> list[Any]:
        return [value for part in self._table.column(name) for value in part.to_pylist()]
