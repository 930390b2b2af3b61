"""Finds rows of an index's tables by the number that searches show and answers cite."""

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow

if TYPE_CHECKING:
    from graphrag.query.index.tables import IndexTables

NUMBER = "human_readable_id"
_arrow: Any = pyarrow  # not typed
_WHOLE = re.compile("0|-?[1-9][0-9]{0,17}")


class NumberedRows:
    """Finds rows by ``human_readable_id``, given as text, and reads single cells.

    A table that is missing or lacks a column counts as empty.
    """

    def __init__(self, tables: "IndexTables", name: str, columns: Sequence[str]) -> None:
        self._table: Any = tables.arrow(name, (NUMBER, *columns))
        self._by_text: dict[str, list[int]] = {}
        self._order = self._numbers = np.empty(0, np.int64)
        if self._table is None:
            return
        numbers = self._table.column(NUMBER)
        if _arrow.types.is_integer(numbers.type) and not numbers.null_count:
            values = numbers.to_numpy()
            self._order = np.argsort(values, kind="stable")
            self._numbers = values[self._order]
        else:
            for row, number in enumerate(numbers.to_pylist()):
                self._by_text.setdefault(str(number), []).append(row)

    def rows(self, number: str) -> Sequence[int]:
        """Return the rows with a number, in the table's order."""
        if not len(self._numbers):
            return self._by_text.get(number, ())
        # The digits must be written as in the table: " 7" and "07" match no row.
        if not _WHOLE.fullmatch(number):
            return ()
        begin = np.searchsorted(self._numbers, int(number), "left")
        end = np.searchsorted(self._numbers, int(number), "right")
        return self._order[begin:end].tolist()

    def cell(self, row: int, column: str) -> Any:
        """Return the value of a column in a row."""
        return self._table.column(column)[row].as_py()


class Ids:
    """Maps the number of a row to its id; if several rows share the number, the last one counts.

    ``read`` reads the table when a number is first looked up.
    """

    def __init__(self, read: Callable[[], NumberedRows], column: str) -> None:
        self._read, self._column = read, column

    @cached_property
    def _rows(self) -> NumberedRows:
        return self._read()

    def get(self, number: str) -> str | None:
        """Return the id of the row with this number; None if no row has it."""
        rows = self._rows.rows(number)
        return str(self._rows.cell(rows[-1], self._column)) if rows else None

    def __contains__(self, number: str) -> bool:
        return bool(self._rows.rows(number))
