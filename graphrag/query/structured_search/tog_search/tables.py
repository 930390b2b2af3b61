"""An index's tables piece by piece, in one known form: from Parquet, CSV or a data frame."""

import csv as plain_csv
from collections.abc import Callable, Iterator
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

_CSV_BLOCK_BYTES = 1 << 24
# Read column chunks in pieces of this size instead of whole row groups.
_PARQUET_BUFFER_BYTES = 1 << 20


class UnreadableTableError(ValueError):
    """A table of the index lacks a column or holds what can't be read."""


def stream_file(
    path: Path, form: Form, needed: tuple[str, ...], batch_rows: int
) -> Iterator[Batch]:
    """Read a ``.parquet`` or ``.csv`` table in pieces, in the table's order.

    Every missing value is replaced: a text is empty, a whole number the number of its row, a
    number 1, a list empty. A list may be written out as text, as CSV holds it.

    Parameters
    ----------
    path : Path
    form : dict
        The columns to read. An entity's ``title`` may be called ``name``, as it was once.
    needed : tuple of str
        Columns that must be there.
    batch_rows : int
        At most so many rows in a piece of a Parquet file.

    Raises
    ------
    UnreadableTableError
        If a needed column is missing or a value is not what its column should hold.
    """
    columns = [*form, "name"] if "title" in form else list(form)
    if path.suffix == ".csv":
        return _in_form(_stream_csv(path, columns), path.stem, form, needed)
    return _in_form(_stream_parquet(path, columns, batch_rows), path.stem, form, needed)


def stream_frame(
    frame: pd.DataFrame | None, name: str, form: Form, needed: tuple[str, ...]
) -> Iterator[Batch]:
    """Give a data frame as one piece, None as none; otherwise as :func:`stream_file`."""
    if frame is None:
        return iter(())
    columns = {
        key: _from_pandas(frame[key], kind) for key, kind in form.items() if key in frame.columns
    }
    rows = arrow.RecordBatch.from_pydict(columns) if columns else arrow.record_batch({})
    return _in_form(iter([rows]), name, form, needed)


def _in_form(
    raw: Iterator[Batch], name: str, form: Form, needed: tuple[str, ...]
) -> Iterator[Batch]:
    first_row = 0
    for batch in raw:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        if "title" in needed and "title" not in columns and "name" in columns:
            columns["title"] = columns["name"]
        missing = [column for column in needed if column not in columns]
        if missing:
            msg = f"The {name} table has no column {', '.join(missing)}; build the index again."
            raise UnreadableTableError(msg)
        nothing = arrow.nulls(batch.num_rows)
        try:
            rows = arrow.RecordBatch.from_pydict(
                {
                    key: _CONVERT[kind](columns.get(key, nothing), first_row)
                    for key, kind in form.items()
                }
            )
        except arrow.ArrowException as error:
            msg = f"The {name} table can't be read ({error}); build the index again."
            raise UnreadableTableError(msg) from error
        first_row += rows.num_rows
        yield rows


def _stream_parquet(path: Path, columns: list[str], batch_rows: int) -> Iterator[Batch]:
    import pyarrow.parquet as parquet

    with parquet.ParquetFile(path, buffer_size=_PARQUET_BUFFER_BYTES, pre_buffer=False) as file:
        stream: Any = file
        # An empty table gives no batches, but its columns are checked as well.
        yield arrow.RecordBatch.from_pylist([], schema=stream.schema_arrow)
        present = [name for name in columns if name in stream.schema_arrow.names]
        yield from stream.iter_batches(batch_size=batch_rows, columns=present)


def _stream_csv(path: Path, columns: list[str]) -> Iterator[Batch]:
    import pyarrow.csv as csv

    reader: Any = csv
    with path.open(encoding="utf-8-sig", newline="") as file:
        header: list[str] = next(plain_csv.reader(file), list[str]())
    present = [name for name in columns if name in header]
    yield arrow.RecordBatch.from_pydict({name: arrow.nulls(0) for name in header})
    if not present:
        return
    with path.open("rb") as file:
        yield from reader.open_csv(
            file,
            read_options=reader.ReadOptions(block_size=_CSV_BLOCK_BYTES),
            parse_options=reader.ParseOptions(newlines_in_values=True),
            convert_options=reader.ConvertOptions(
                # Types are not guessed: a guess from the first block may fail at a later one.
                column_types=dict.fromkeys(present, arrow.string()),
                include_columns=present,
                strings_can_be_null=False,
            ),
        )


def _from_pandas(column: Any, kind: Kind) -> Column:
    """Convert a column; one that mixes types is read value by value."""
    try:
        values = arrow.Array.from_pandas(column)
    except (arrow.ArrowInvalid, arrow.ArrowTypeError):
        values = arrow.array([_plain(value, kind) for value in column.tolist()])
    return values.combine_chunks() if isinstance(values, arrow.ChunkedArray) else values


def _plain(value: Any, kind: Kind) -> object:
    if kind == "ids":
        return None if value is None or isinstance(value, float) else [str(item) for item in value]
    if value is None or value != value:
        return None
    return str(value) if kind == "text" else float(value)


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
