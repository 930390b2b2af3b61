"""An index's tables piece by piece, in one known form: from Parquet, CSV or a data frame."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

# pyarrow is not typed.
arrow: Any = pa
compute: Any = pc
Column: TypeAlias = Any
"""A pyarrow.Array."""
Batch: TypeAlias = Any
"""A pyarrow.RecordBatch."""

Kind = Literal["text", "whole", "number", "ids"]
Source = Path | pd.DataFrame | None
"""A ``.parquet`` or ``.csv`` file, a data frame, or None: a table without rows."""

# Read column chunks in pieces of this size instead of whole row groups.
_PARQUET_BUFFER_BYTES = 1 << 20


class UnreadableTableError(ValueError):
    """A table of the index lacks a column or holds what can't be read."""


@dataclass(frozen=True, slots=True)
class TableForm:
    """A table's columns, those that must be there, and the most rows of a piece of it."""

    name: str
    columns: dict[str, Kind]
    needed: tuple[str, ...]
    # With twice as many a build takes a fifth more time and memory: buffers are made anew for each.
    batch_rows: int = 1 << 16

    def stream(self, source: Source) -> Iterator[Batch]:
        """Read a table in pieces, in its order; a data frame and CSV are one piece.

        Every missing value is replaced: a text is empty, a whole number the number of its row, a
        number 1, a list empty. A list may be written out as text, as CSV holds it. Raises
        UnreadableTableError if a needed column is missing or a value is not what its column
        should hold.
        """
        if source is None:
            source = pd.DataFrame(columns=[*self.columns])
        if isinstance(source, Path) and source.suffix == ".csv":
            source = pd.read_csv(source, dtype=str, keep_default_na=False, encoding="utf-8-sig")
        pieces = self._of_parquet(source) if isinstance(source, Path) else self._of_frame(source)
        first_row = 0
        try:
            for columns in pieces:
                missing = [column for column in self.needed if column not in columns]
                if missing:
                    raise self._unreadable(f"has no column {', '.join(missing)}")
                n_rows = len(columns[self.needed[0]])
                nothing = arrow.nulls(n_rows)
                rows = {
                    key: _CONVERT[kind](columns.get(key, nothing), first_row)
                    for key, kind in self.columns.items()
                }
                first_row += n_rows
                yield arrow.RecordBatch.from_pydict(rows)
        except arrow.ArrowException as error:
            raise self._unreadable(f"can't be read ({error})") from error

    def _unreadable(self, fault: str) -> UnreadableTableError:
        return UnreadableTableError(f"The {self.name} table {fault}; build the index again.")

    def _of_frame(self, frame: pd.DataFrame) -> Iterator[dict[str, Column]]:
        columns: dict[str, Column] = {}
        for key in self.columns:
            if key in frame.columns:
                values = arrow.Array.from_pandas(frame[key])
                is_chunked = isinstance(values, arrow.ChunkedArray)
                columns[key] = values.combine_chunks() if is_chunked else values
        yield columns

    def _of_parquet(self, path: Path) -> Iterator[dict[str, Column]]:
        import pyarrow.parquet as parquet

        with parquet.ParquetFile(path, buffer_size=_PARQUET_BUFFER_BYTES, pre_buffer=False) as file:
            stream: Any = file
            # An empty table gives no batches, but its columns are checked as well.
            empty = arrow.RecordBatch.from_pylist([], schema=stream.schema_arrow)
            names = [name for name in self.columns if name in stream.schema_arrow.names]
            yield {name: empty.column(name) for name in names}
            for batch in stream.iter_batches(batch_size=self.batch_rows, columns=names):
                yield dict(zip(names, batch.columns, strict=True))


ENTITIES = TableForm(
    "entities",
    {
        "id": "text",
        "human_readable_id": "whole",
        "title": "text",
        "description": "text",
        "text_unit_ids": "ids",
    },
    needed=("id", "title"),
)
RELATIONSHIPS = TableForm(
    "relationships",
    {
        "human_readable_id": "whole",
        "source": "text",
        "target": "text",
        "description": "text",
        "weight": "number",
        "text_unit_ids": "ids",
    },
    needed=("source", "target"),
)
# A text unit takes some kilobytes, a relationship some hundred bytes.
TEXT_UNITS = TableForm(
    "text units",
    {"id": "text", "human_readable_id": "whole", "text": "text", "document_id": "text"},
    needed=("id", "text"),
    batch_rows=1 << 12,
)
DOCUMENTS = TableForm("documents", {"id": "text", "title": "text"}, ("id",), 1 << 12)


def _is_text(column: Column) -> bool:
    return arrow.types.is_string(column.type) or arrow.types.is_large_string(column.type)


def _to_text(column: Column, _: int) -> Column:
    return compute.fill_null(compute.cast(column, arrow.string()), "")


def _blank_to_null(column: Column) -> Column:
    if not _is_text(column):
        return column
    return compute.if_else(compute.equal(compute.utf8_trim_whitespace(column), ""), None, column)


def _to_whole(column: Column, first_row: int) -> Column:
    column = _blank_to_null(column)
    if not arrow.types.is_integer(column.type):
        column = compute.cast(column, arrow.float64())
        column = compute.if_else(compute.is_finite(column), column, None)
    column = compute.cast(column, arrow.int64(), safe=False)
    rows = arrow.array(range(first_row, first_row + len(column)), type=arrow.int64())
    return compute.coalesce(column, rows) if column.null_count else column


def _to_number(column: Column, _: int) -> Column:
    column = compute.cast(_blank_to_null(column), arrow.float64())
    return compute.fill_null(compute.if_else(compute.is_nan(column), None, column), 1.0)


def _to_ids(column: Column, _: int) -> Column:
    kind = arrow.list_(arrow.string())
    if _is_text(column):
        from graphrag.data_model.dfs import split_list_column

        lists = [split_list_column(text or "") for text in column.to_pylist()]
        return arrow.array(lists, type=kind)
    column = compute.cast(column, kind)
    empty: list[list[str]] = [[]] * len(column)
    return compute.coalesce(column, arrow.array(empty, type=kind)) if column.null_count else column


_CONVERT: dict[Kind, Callable[[Column, int], Column]] = {
    "text": _to_text,
    "whole": _to_whole,
    "number": _to_number,
    "ids": _to_ids,
}
