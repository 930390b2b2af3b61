"""Reading an index's tables piece by piece: from Parquet, from CSV, from a data frame."""

import csv as plain_csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from graphrag.query.structured_search.tog_search.graph.row_tables import Form, Kind, to_form

if TYPE_CHECKING:
    import pandas as pd

# pyarrow is not typed.
_arrow: Any = pa

_CSV_BLOCK_BYTES = 1 << 24
# Read column chunks in pieces of this size instead of whole row groups.
_PARQUET_BUFFER_BYTES = 1 << 20


class UnreadableTableError(ValueError):
    """A table of the index lacks a column or holds what can't be read."""


def stream_file(path: Path, form: Form, needed: tuple[str, ...], batch_rows: int) -> Iterator[Any]:
    """Read a ``.parquet`` or ``.csv`` table in pieces, in the table's order.

    Parameters
    ----------
    path : Path
    form : dict
        The columns to read. An entity's ``title`` may be called ``name``, as it was once.
    needed : tuple of str
        Columns that must be there.
    batch_rows : int
        At most so many rows in a piece of a Parquet file.

    Yields
    ------
    pyarrow.RecordBatch
        In the form.

    Raises
    ------
    UnreadableTableError
        If a needed column is missing or a value is not what its column should hold.
    """
    columns = [*form, "name"] if "title" in form else list(form)
    raw = (
        _stream_csv(path, columns)
        if path.suffix == ".csv"
        else _stream_parquet(path, columns, batch_rows)
    )
    return _in_form(raw, path.stem, form, needed)


def stream_frame(
    frame: "pd.DataFrame", name: str, form: Form, needed: tuple[str, ...]
) -> Iterator[Any]:
    """Give a data frame as one piece; otherwise as :func:`stream_file`."""
    columns: dict[str, Any] = {
        key: _from_pandas(frame[key], kind) for key, kind in form.items() if key in frame.columns
    }
    rows = _arrow.RecordBatch.from_pydict(columns) if columns else _arrow.record_batch({})
    return _in_form(iter([rows]), name, form, needed)


def _in_form(raw: Iterator[Any], name: str, form: Form, needed: tuple[str, ...]) -> Iterator[Any]:
    first_row = 0
    for batch in raw:
        if "title" in needed and "title" not in batch.schema.names and "name" in batch.schema.names:
            titled = ["title" if key == "name" else key for key in batch.schema.names]
            batch = batch.rename_columns(titled)
        missing = [column for column in needed if column not in batch.schema.names]
        if missing:
            msg = f"The {name} table has no column {', '.join(missing)}; build the index again."
            raise UnreadableTableError(msg)
        try:
            rows = to_form(batch, form, first_row)
        except _arrow.ArrowException as error:
            msg = f"The {name} table can't be read ({error}); build the index again."
            raise UnreadableTableError(msg) from error
        first_row += rows.num_rows
        yield rows


def _stream_parquet(path: Path, columns: list[str], batch_rows: int) -> Iterator[Any]:
    import pyarrow.parquet as parquet

    with parquet.ParquetFile(path, buffer_size=_PARQUET_BUFFER_BYTES, pre_buffer=False) as file:
        stream: Any = file
        # An empty table gives no batches, but its columns are checked as well.
        yield _arrow.RecordBatch.from_pylist([], schema=stream.schema_arrow)
        present = [name for name in columns if name in stream.schema_arrow.names]
        yield from stream.iter_batches(batch_size=batch_rows, columns=present)


def _stream_csv(path: Path, columns: list[str]) -> Iterator[Any]:
    import pyarrow.csv as csv

    reader: Any = csv
    with path.open(encoding="utf-8-sig", newline="") as file:
        header: list[str] = next(plain_csv.reader(file), list[str]())
    present = [name for name in columns if name in header]
    yield _arrow.RecordBatch.from_pydict({name: _arrow.nulls(0) for name in header})
    if not present:
        return
    with path.open("rb") as file:
        yield from reader.open_csv(
            file,
            read_options=reader.ReadOptions(block_size=_CSV_BLOCK_BYTES),
            parse_options=reader.ParseOptions(newlines_in_values=True),
            convert_options=reader.ConvertOptions(
                # Types are not guessed: a guess from the first block may fail at a later one.
                column_types=dict.fromkeys(present, _arrow.string()),
                include_columns=present,
                strings_can_be_null=False,
            ),
        )


def _from_pandas(column: Any, kind: Kind) -> Any:
    """Convert a column; one that mixes types is read value by value."""
    try:
        found = _arrow.Array.from_pandas(column)
    except (_arrow.ArrowInvalid, _arrow.ArrowTypeError):
        found = _arrow.array([_plain(value, kind) for value in column.tolist()])
    return found.combine_chunks() if isinstance(found, _arrow.ChunkedArray) else found


def _plain(value: Any, kind: Kind) -> Any:
    if kind == "ids":
        return None if value is None or isinstance(value, float) else [str(item) for item in value]
    if value is None or value != value:
        return None
    return str(value) if kind == "text" else float(value)
