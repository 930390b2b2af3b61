"""Reads tables of an index in pieces and in one form, whatever version of graphrag wrote them.

The graph store and the text units are made from these; released searches read ``tables.py``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from graphrag.config.table_files import (
    OLDER_COLUMNS,
    UnreadableTableError,
    describe_unreadable,
    is_unreadable,
)

# pyarrow is not typed.
arrow: Any = pa
compute: Any = pc
Column: TypeAlias = Any
"""A pyarrow.Array."""
Batch: TypeAlias = Any
"""A pyarrow.RecordBatch."""

Kind = Literal["text", "whole", "count", "number", "ids"]
Source = Path | pd.DataFrame | None
"""A ``.parquet`` or ``.csv`` file, a data frame, or None for a table without rows."""

# Read column chunks in pieces of this size instead of whole row groups.
_PARQUET_BUFFER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class TableForm:
    """Defines the columns of a table, which of them are needed, and the most rows of a piece.

    - ``or_first``: column -> a column of lists; if the former is missing, the lists' first entries
      are used.
    - ``older``: column -> its name in an earlier version of graphrag.
    """

    name: str
    columns: dict[str, Kind]
    needed: tuple[str, ...]
    # Twice as many rows take a build a fifth more time and memory: each piece gets new buffers.
    batch_rows: int = 1 << 16
    or_first: Mapping[str, str] = field(default_factory=dict[str, str])
    older: Mapping[str, str] = field(default_factory=dict[str, str])

    def stream(self, source: Source) -> Iterator[Batch]:
        """Yield a table in pieces, in its order; a data frame or a CSV file is one piece.

        Missing values are replaced: by "" for a text, the row's number for a whole number, 0 for a
        count, 1 for another number, [] for a list. A list may be written as text, as in CSV. Raises
        UnreadableTableError if a needed column is missing or a value does not fit its column.
        """
        if source is None:
            source = pd.DataFrame(columns=[*self.columns])
        if isinstance(source, Path) and source.suffix == ".csv":
            source = pd.read_csv(source, dtype=str, keep_default_na=False, encoding="utf-8-sig")
        pieces = self._of_parquet(source) if isinstance(source, Path) else self._of_frame(source)
        first_row = 0
        try:
            for columns in pieces:
                for key, old in self.older.items():
                    if key not in columns and old in columns:
                        columns[key] = columns[old]
                missing = [column for column in self.needed if column not in columns]
                if missing:
                    raise self._unreadable(f"has no column {', '.join(missing)}")
                for key, lists in self.or_first.items():
                    if key not in columns and lists in columns:
                        ids = _to_ids(columns[lists]).to_pylist()
                        columns[key] = arrow.array([next(iter(i), "") for i in ids], arrow.string())
                n_rows = len(next(iter(columns.values()), ()))
                nothing = arrow.nulls(n_rows)
                rows = {
                    key: _convert(columns.get(key, nothing), kind, first_row)
                    for key, kind in self.columns.items()
                }
                first_row += n_rows
                yield arrow.RecordBatch.from_pydict(rows)
        except arrow.ArrowException as error:
            if isinstance(source, Path) and is_unreadable(source):
                raise UnreadableTableError(describe_unreadable(source, error)) from error
            raise self._unreadable(f"can't be read ({error})") from error

    def _unreadable(self, fault: str) -> UnreadableTableError:
        return UnreadableTableError(f"The {self.name} table {fault}; build the index again.")

    def _readable(self) -> list[str]:
        return [*self.columns, *self.or_first.values(), *self.older.values()]

    def _of_frame(self, frame: pd.DataFrame) -> Iterator[dict[str, Column]]:
        names = [name for name in self._readable() if name in frame.columns]
        table = arrow.Table.from_pandas(frame[names], preserve_index=False)
        yield {name: table.column(name).combine_chunks() for name in names}

    def _of_parquet(self, path: Path) -> Iterator[dict[str, Column]]:
        import pyarrow.parquet as parquet

        with parquet.ParquetFile(path, buffer_size=_PARQUET_BUFFER_BYTES, pre_buffer=False) as file:
            stream: Any = file
            # An empty table gives no batches, but its columns are checked as well.
            empty = arrow.RecordBatch.from_pylist([], schema=stream.schema_arrow)
            names = [name for name in self._readable() if name in stream.schema_arrow.names]
            yield {name: empty.column(name) for name in names}
            for batch in stream.iter_batches(batch_size=self.batch_rows, columns=names):
                yield dict(zip(names, batch.columns, strict=True))


ENTITIES = TableForm(
    name="entities",
    columns={
        "id": "text",
        "human_readable_id": "whole",
        "title": "text",
        "description": "text",
        "text_unit_ids": "ids",
    },
    needed=("id", "title"),
    older=OLDER_COLUMNS["entities"],
)
RELATIONSHIPS = TableForm(
    name="relationships",
    columns={
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
    name="text units",
    columns={
        "id": "text",
        "human_readable_id": "whole",
        "text": "text",
        "n_tokens": "count",
        "document_id": "text",
    },
    needed=("id", "text"),
    batch_rows=1 << 12,
    or_first={"document_id": "document_ids"},  # as graphrag 2 wrote them
)
DOCUMENTS = TableForm(
    name="documents", columns={"id": "text", "title": "text"}, needed=(), batch_rows=1 << 12
)


def _is_text(column: Column) -> bool:
    return arrow.types.is_string(column.type) or arrow.types.is_large_string(column.type)


def _convert(column: Column, kind: Kind, first_row: int) -> Column:
    """Return a column as values of one kind, with missing values replaced."""
    if kind == "ids":
        return _to_ids(column)
    if kind == "text":
        return compute.fill_null(compute.cast(column, arrow.string()), "")
    if _is_text(column):
        is_blank = compute.equal(compute.utf8_trim_whitespace(column), "")
        column = compute.if_else(is_blank, None, column)
    if kind == "number":
        column = compute.cast(column, arrow.float64())
        return compute.fill_null(compute.if_else(compute.is_nan(column), None, column), 1.0)
    if not arrow.types.is_integer(column.type):
        column = compute.cast(column, arrow.float64())
        column = compute.if_else(compute.is_finite(column), column, None)
    column = compute.cast(column, arrow.int64(), safe=False)
    if kind == "count":
        return compute.fill_null(column, 0)
    rows = arrow.array(range(first_row, first_row + len(column)), type=arrow.int64())
    return compute.coalesce(column, rows) if column.null_count else column


def _to_ids(column: Column) -> Column:
    kind = arrow.list_(arrow.string())
    if _is_text(column):
        from graphrag.data_model.dfs import split_list_column

        lists = [split_list_column(text or "") for text in column.to_pylist()]
        return arrow.array(lists, type=kind)
    column = compute.cast(column, kind)
    empty: list[list[str]] = [[]] * len(column)
    return compute.coalesce(column, arrow.array(empty, type=kind)) if column.null_count else column
