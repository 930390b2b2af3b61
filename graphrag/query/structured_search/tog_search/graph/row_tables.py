"""Tables in one known form, read value by value from memory or from a mapped file."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

# pyarrow is not typed.
_arrow: Any = pa
_compute: Any = pc

Kind = Literal["text", "whole", "number", "ids"]
Form = dict[str, Kind]

ENTITIES: Form = {
    "id": "text",
    "human_readable_id": "whole",
    "title": "text",
    "description": "text",
    "text_unit_ids": "ids",
}
RELATIONSHIPS: Form = {
    "human_readable_id": "whole",
    "source": "text",
    "target": "text",
    "description": "text",
    "weight": "number",
    "text_unit_ids": "ids",
}
TEXT_UNITS: Form = {
    "id": "text",
    "human_readable_id": "whole",
    "text": "text",
    "document_id": "text",
}
DOCUMENTS: Form = {"id": "text", "title": "text"}


class RowTable:
    """Reads rows of record batches; a batch is fetched when it is first touched.

    Parameters
    ----------
    sizes : sequence of int
        Rows of each batch.
    fetch : callable
        Batch number -> pyarrow.RecordBatch without missing values.
    """

    def __init__(self, sizes: Sequence[int], fetch: Callable[[int], Any]) -> None:
        self._starts: list[int] = []
        self.n_rows = 0
        for size in sizes:
            self._starts.append(self.n_rows)
            self.n_rows += size
        self._fetch = fetch
        self._batches: dict[int, dict[str, Any]] = {}

    @classmethod
    def of(cls, batches: Iterable[Any]) -> "RowTable":
        """Make a table of batches in memory."""
        kept = list(batches)
        return cls([batch.num_rows for batch in kept], kept.__getitem__)

    def values(self, row: int, *names: str) -> list[Any]:
        """Return some columns of a row as Python objects.

        Raises
        ------
        IndexError
            If there is no such row.
        """
        if not 0 <= row < self.n_rows:
            msg = f"row {row} of {self.n_rows}"
            raise IndexError(msg)
        number = bisect_right(self._starts, row) - 1
        batch = self._batches.get(number)
        if batch is None:
            batch = self._batches[number] = _columns(self._fetch(number))
        place = row - self._starts[number]
        return [batch[name][place].as_py() for name in names]

    def column(self, name: str) -> list[Any]:
        """Return a column as pyarrow arrays, one for each batch."""
        return [_columns(self._fetch(number))[name] for number in range(len(self._starts))]

    def value(self, row: int, name: str) -> Any:
        """Return one column of a row as a Python object; otherwise as :meth:`values`."""
        return self.values(row, name)[0]


def _columns(batch: Any) -> dict[str, Any]:
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def to_form(table: Any, form: Form, first_row: int) -> Any:
    """Bring a part of a table into its form, every missing value replaced.

    A missing text is empty, a missing whole number the number of its row, a missing number 1,
    a missing list empty; a list may be written out as text, as CSV holds it.

    Parameters
    ----------
    table : pyarrow.RecordBatch
        Further columns are dropped, missing ones read as missing values.
    form : dict
    first_row : int
        Number of the first row.

    Returns
    -------
    pyarrow.RecordBatch

    Raises
    ------
    pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError
        If a value can't be read as what its column holds.
    """
    columns = {
        name: _CONVERT[kind](
            table.column(name) if name in table.schema.names else _arrow.nulls(table.num_rows),
            first_row,
        )
        for name, kind in form.items()
    }
    return _arrow.RecordBatch.from_pydict(columns)


def _to_text(column: Any, _: int) -> Any:
    return _compute.fill_null(_compute.cast(column, _arrow.string()), "")


def _to_numbers(column: Any) -> Any:
    if _arrow.types.is_string(column.type) or _arrow.types.is_large_string(column.type):
        blank = _compute.equal(_compute.utf8_trim_whitespace(column), "")
        column = _compute.if_else(blank, None, column)
    return column


def _to_whole(column: Any, first_row: int) -> Any:
    column = _to_numbers(column)
    if not _arrow.types.is_integer(column.type):
        column = _compute.cast(column, _arrow.float64())
        column = _compute.if_else(_compute.is_finite(column), column, None)
    column = _compute.cast(column, _arrow.int64(), safe=False)
    if not column.null_count:
        return column
    rows = _arrow.array(range(first_row, first_row + len(column)), type=_arrow.int64())
    return _compute.coalesce(column, rows)


def _to_number(column: Any, _: int) -> Any:
    column = _compute.cast(_to_numbers(column), _arrow.float64())
    return _compute.fill_null(_compute.if_else(_compute.is_nan(column), None, column), 1.0)


def _to_ids(column: Any, _: int) -> Any:
    kind = _arrow.list_(_arrow.string())
    if _arrow.types.is_string(column.type) or _arrow.types.is_large_string(column.type):
        from graphrag.data_model.dfs import split_list_column

        lists = [split_list_column(text or "") for text in column.to_pylist()]
        return _arrow.array(lists, type=kind)
    column = _compute.cast(column, kind)
    if not column.null_count:
        return column
    empty: list[list[str]] = [[]]
    return _compute.coalesce(column, _arrow.array(empty * len(column), type=kind))


_CONVERT: dict[Kind, Callable[[Any, int], Any]] = {
    "text": _to_text,
    "whole": _to_whole,
    "number": _to_number,
    "ids": _to_ids,
}
