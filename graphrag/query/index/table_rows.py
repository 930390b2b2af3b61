"""Reads single rows of an Arrow table and finds them by text, without an object for each row."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

# pyarrow is not typed.
arrow: Any = pa
compute: Any = pc
Texts: TypeAlias = Any
"""A pyarrow.ChunkedArray of strings."""
Ints = npt.NDArray[np.int64]
_PIECE = 1 << 16


class TableRows:
    """Reads rows of a pyarrow.Table; only the rows that are asked for become Python's values."""

    def __init__(self, table: Any) -> None:
        self.table, self.n = table, int(table.num_rows)
        self._batches: list[Any] = table.to_batches()
        lengths = [batch.num_rows for batch in self._batches]
        self._begins: Ints = np.cumsum([0, *lengths], dtype=np.int64)

    def read(self, positions: Sequence[int] | Ints) -> list[dict[str, Any]]:
        """Return the rows at these positions, in this order, each as column -> value."""
        positions = np.asarray(positions, np.int64)
        batch_of = np.searchsorted(self._begins, positions, "right") - 1
        ends = [0, *(np.flatnonzero(np.diff(batch_of)) + 1).tolist(), len(positions)]
        rows: list[dict[str, Any]] = []
        for begin, end in pairwise(ends):
            if begin < end:
                number = int(batch_of[begin])
                within = arrow.array(positions[begin:end] - self._begins[number])
                rows += self._batches[number].take(within).to_pylist()
        return rows

    def texts(self, column: str) -> Texts:
        """Return a column as texts, even if it has other values."""
        return as_texts(self.table.column(column))

    def entries(self, column: str) -> tuple[Ints, Texts]:
        """Return the row of each entry in a column of lists, and the entries as texts."""
        lists = self.table.column(column)
        if arrow.types.is_null(lists.type):  # no row has a list
            return np.zeros(0, np.int64), arrow.chunked_array([], arrow.string())
        counts = compute.fill_null(compute.list_value_length(lists), 0).to_numpy()
        entries = [chunk.flatten() for chunk in lists.chunks]
        rows = np.repeat(np.arange(self.n), counts)
        return rows, as_texts(arrow.chunked_array(entries, lists.type.value_type))


def as_texts(column: Any) -> Texts:
    """Return a column as texts; a missing value is "nan", as pandas prints it."""
    if column.type not in (arrow.string(), arrow.large_string()):
        texts = column.to_pandas().map(str).tolist()
        return arrow.chunked_array([arrow.array(texts, arrow.string())])
    return compute.fill_null(column, "nan") if column.null_count else column


class Positions:
    """Finds the positions of texts in a column, by their hashes."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        hashes = np.fromiter(map(hash, _each(texts)), np.int64, len(texts))
        self._order = np.argsort(hashes, kind="stable").astype(np.int32)
        self._hashes = hashes[self._order]

    def find(self, text: str) -> list[int]:
        """Return the positions of a text, ascending."""
        key = hash(text)
        begin, end = (int(np.searchsorted(self._hashes, key, side)) for side in ("left", "right"))
        rows = cast("list[int]", self._order[begin:end].tolist())
        return [row for row in rows if self._texts[row].as_py() == text]

    def find_all(self, texts: Iterable[str]) -> list[int]:
        """Return the positions of several texts, each position once, ascending."""
        return sorted({row for text in texts for row in self.find(text)})


def _each(texts: Texts) -> Iterator[str]:
    for chunk in texts.chunks:
        for begin in range(0, len(chunk), _PIECE):
            yield from chunk.slice(begin, _PIECE).to_pylist()
