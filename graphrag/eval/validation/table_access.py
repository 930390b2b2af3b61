"""Reads the tables of an index column by column, as graphrag 2 and 3 write them."""

import asyncio
import io
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from graphrag.config.settings_files import describe_unbuilt
from graphrag.config.table_files import (
    OLDER_COLUMNS,
    VALIDATED_TABLES,
    describe_unreadable,
    find_table_files,
)
from graphrag.eval.errors import IndexUnavailableError
from graphrag.eval.validation.report import MAX_EXAMPLES

if TYPE_CHECKING:
    from graphrag.config.models.graph_rag_config import GraphRagConfig

# pyarrow is not typed.
arrow = cast("Any", pa)
compute = cast("Any", pc)
parquet = cast("Any", pq)

Array: TypeAlias = Any
"""A column: a pyarrow array or chunked array, or the series of a data frame in memory."""
Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class ParquetFrame:
    """A Parquet file as a data frame whose columns are read when they are first asked for."""

    def __init__(self, source: Path | io.BytesIO, older: Mapping[str, str] = {}) -> None:
        schema = parquet.ParquetFile(source).schema
        paths: list[str] = [schema.column(i).path for i in range(len(schema))]
        # Ids in lists repeat: dictionary-encoded, they need a fraction of the memory.
        ids = [path for path in paths if ".list." in path and path.split(".")[0].endswith("_ids")]
        self._file = parquet.ParquetFile(source, read_dictionary=ids)
        names: list[str] = self._file.schema_arrow.names
        self._columns = {name: name for name in names}
        for name, old in older.items():
            if old in self._columns:
                self._columns.setdefault(name, old)

    def __len__(self) -> int:
        return int(self._file.metadata.num_rows)

    def __contains__(self, key: object, /) -> bool:
        return key in self._columns

    def __getitem__(self, key: str, /) -> Array:
        name = self._columns[key]
        # One by one: pyarrow reads no list of dictionary-encoded ids over several row groups.
        groups = [[group] for group in range(self._file.num_row_groups)] or [[]]
        parts = [self._file.read_row_groups(group, columns=[name]) for group in groups]
        return arrow.concat_tables(parts).column(name)


Frame: TypeAlias = ParquetFrame | pd.DataFrame


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables that the validation reads; None for a table that the index lacks."""

    documents: Frame | None = None
    text_units: Frame | None = None
    entities: Frame | None = None
    relationships: Frame | None = None


def open_tables(config: "GraphRagConfig", root: Path) -> Tables:
    """Open the tables of a project's output storage.

    Raises IndexUnavailableError if there is no table at all, or one can't be read.
    """
    tables = {name: open_table(config, name) for name in VALIDATED_TABLES}
    if all(table is None for table in tables.values()):
        folder = config.output_storage.base_dir
        raise IndexUnavailableError(describe_unbuilt(Path(root), VALIDATED_TABLES, folder))
    return Tables(**tables)


def open_table(config: "GraphRagConfig", name: str) -> Frame | None:
    """Open any table of the index; None if there is none."""
    kind, source = config.table_provider.type, None
    try:
        source = _locate(config, name)
        if source is None:
            return None
        if kind != "csv":
            return ParquetFrame(source, OLDER_COLUMNS.get(name, {}))
        return pd.read_csv(source, dtype=str, keep_default_na=False)
    except pd.errors.EmptyDataError:
        return pd.DataFrame()
    except (arrow.ArrowException, OSError, ValueError) as error:
        expected = Path(str(config.output_storage.base_dir)) / f"{name}.{kind}"
        path = source if isinstance(source, Path) else expected
        raise IndexUnavailableError(describe_unreadable(path, error)) from error


def _locate(config: "GraphRagConfig", name: str) -> Path | io.BytesIO | None:
    kind = config.table_provider.type
    if str(config.output_storage.type) == "file":
        folder = Path(str(config.output_storage.base_dir))
        return find_table_files(folder, (name,), kind).get(name)
    name = f"{name}.{kind}"
    from graphrag_storage import create_storage

    storage = create_storage(config.output_storage)

    async def fetch() -> bytes | None:
        return await storage.get(name, as_bytes=True) if await storage.has(name) else None

    # In another thread, because an event loop may be running in this one (a notebook's).
    with ThreadPoolExecutor(1) as threads:
        content = threads.submit(lambda: asyncio.run(fetch())).result()
    return None if content is None else io.BytesIO(content)


def count(frame: Frame | None) -> int:
    """Return the number of a table's rows; 0 without a table."""
    return 0 if frame is None else len(frame)


def as_array(values: Array) -> Array:
    """Return a column as a pyarrow array."""
    if isinstance(values, pd.Series):
        return arrow.array(values.astype(object).to_list())
    return values


def as_text(values: Array) -> Array:
    """Return a column of any type as large strings, nulls kept."""
    return compute.cast(as_array(values), arrow.large_string())


def is_blank(values: Array) -> Mask:
    """Return for each text whether it is null or has no visible character."""
    lengths = compute.utf8_length(compute.utf8_trim_whitespace(as_text(values)))
    return to_numpy(compute.equal(compute.fill_null(lengths, 0), 0))


def as_lists(values: Array) -> tuple[Rows, Array]:
    """Return the number of items of each row, and all items as large strings.

    Null is an empty list. A text, as CSV tables have, is split as graphrag splits it.
    """
    array, types = as_array(values), arrow.types
    if types.is_null(array.type):
        return np.zeros(len(array), np.int64), arrow.array([], arrow.large_string())
    if not (
        types.is_list(array.type)
        or types.is_large_list(array.type)
        or types.is_fixed_size_list(array.type)
    ):
        from graphrag.data_model.dfs import split_list_column

        split = [split_list_column(text or "") for text in as_text(array).to_pylist()]
        array = arrow.array(split, arrow.large_list(arrow.large_string()))
    lengths = compute.cast(compute.fill_null(compute.list_value_length(array), 0), "int64")
    return to_numpy(lengths), as_text(compute.list_flatten(array))


def as_numbers(values: Array) -> npt.NDArray[np.float64]:
    """Return numbers; NaN for null, for an empty text, and for anything that is not a number."""
    return np.asarray(pd.to_numeric(as_array(values).to_pandas(), errors="coerce"), np.float64)


def to_numpy(values: Array) -> Array:
    """Return a pyarrow array without nulls as a numpy array."""
    if isinstance(values, pa.ChunkedArray):
        return values.to_numpy()
    return values.to_numpy(zero_copy_only=False)


def first_ids(frame: Frame, broken: Mask) -> tuple[str, ...]:
    """Return the ids of the first marked rows, or their row numbers if the table has no ids."""
    rows = np.flatnonzero(broken)[:MAX_EXAMPLES]
    if "id" not in frame:
        return tuple(f"row {row}" for row in rows)
    ids = as_text(frame["id"]).take(arrow.array(rows, "int64")).to_pylist()
    return tuple(map(str, ids))


def find(values: Array, among: Array) -> Rows:
    """Return the first position of each value in an array, -1 for values that are not in it."""
    return to_numpy(compute.fill_null(compute.index_in(values, value_set=among), -1)).astype(
        "int64"
    )


def relate(frame: Frame, column: str, ids: Array) -> tuple[Rows, Rows]:
    """Return pairs of rows: a row of the frame, and the row of an id that its column names.

    A column whose name ends in s has lists of ids. A repeated id counts for its first row.
    """
    rows = np.arange(len(frame))
    if column.endswith("s"):
        lengths, names = as_lists(frame[column])
        rows = np.repeat(rows, lengths)
    else:
        names = as_text(frame[column])
    at = find(names, ids)
    return rows[at >= 0], at[at >= 0]
