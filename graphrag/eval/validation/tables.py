"""Reading the tables of an index column by column, as graphrag 2 and 3 write them."""

import asyncio
import io
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from graphrag.config.built_tables import VALIDATED_TABLES as TABLES
from graphrag.config.built_tables import describe_unbuilt
from graphrag.eval.errors import IndexUnavailableError
from graphrag.eval.validation.records import MAX_EXAMPLES

if TYPE_CHECKING:
    from graphrag.config.models.graph_rag_config import GraphRagConfig

# pyarrow is not typed.
arrow: Any = pa
compute: Any = pc
parquet: Any = pq

_BATCH = 131_072
Array = Any
"""A pyarrow array or chunked array."""
Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Offenders:
    """Counts the rows that break a rule and keeps the numbers of the first few."""

    count: int = 0
    rows: list[int] = field(default_factory=list[int])

    def add(self, broken: Mask, offset: int = 0) -> None:
        """Count the true values of a batch that begins at a row of the table."""
        found = np.flatnonzero(broken)
        self.count += len(found)
        missing = MAX_EXAMPLES - len(self.rows)
        self.rows += [offset + int(row) for row in found[:missing]]


@dataclass(frozen=True, slots=True)
class Table:
    """One table of an index; columns are read when they are asked for.

    Attributes
    ----------
    name : str
        Name without suffix.
    n_rows : int
    columns : frozenset of str
        The columns that there are.
    """

    name: str
    n_rows: int
    columns: frozenset[str]
    _batches: Callable[[list[str], int], Iterator[Any]]

    def __contains__(self, column: str) -> bool:
        return column in self.columns

    def batches(self, *columns: str, size: int = _BATCH) -> Iterator[tuple[int, list[Array]]]:
        """Yield the first row's number and the columns' arrays of each run of rows."""
        offset = 0
        for batch in self._batches(list(columns), size):
            yield offset, [batch.column(name) for name in columns]
            offset += batch.num_rows

    def text(self, column: str) -> Array:
        """Return a whole column as chunked large strings."""
        chunks = [as_text(values) for _, (values,) in self.batches(column)]
        return arrow.chunked_array(chunks, type=arrow.large_string())

    def blank_rows(self, column: str) -> Offenders:
        """Find the rows whose text is null or has no visible character."""
        found = Offenders()
        for offset, (values,) in self.batches(column):
            found.add(is_blank(as_text(values)), offset)
        return found

    def ids(self, found: Offenders) -> tuple[str, ...]:
        """Return the ids of the rows found, or the row numbers where there are no ids."""
        if "id" not in self:
            return tuple(f"row {row}" for row in found.rows)
        if not found.rows:
            return ()
        values: list[Any] = self.text("id").take(arrow.array(found.rows)).to_pylist()
        return tuple(str(value) for value in values)


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables that the validation reads; None where the index has no such table."""

    documents: Table | None
    text_units: Table | None
    entities: Table | None
    relationships: Table | None

    def count(self, name: str) -> int:
        """Return a table's rows; 0 where there is none."""
        table: Table | None = getattr(self, name)
        return 0 if table is None else table.n_rows


def open_tables(config: "GraphRagConfig", root: Path) -> Tables:
    """Open the tables of a project's output storage.

    Raises
    ------
    IndexUnavailableError
        If there is not one table, or one can't be read.
    """
    suffix = str(config.table_provider.type)
    found = {name: _open(config, name, suffix) for name in TABLES}
    if not any(found.values()):
        place = config.output_storage.base_dir
        raise IndexUnavailableError(describe_unbuilt(Path(root), TABLES, place))
    return Tables(**found)


def read_ids(config: "GraphRagConfig", name: str) -> Array | None:
    """Return the ``id`` column of any table of the index; None where there is none."""
    table = _open(config, name, str(config.table_provider.type))
    return None if table is None or "id" not in table else table.text("id")


def as_text(values: Array) -> Array:
    """Return an array of any type as large strings, nulls kept."""
    if arrow.types.is_large_string(values.type):
        return values
    return compute.cast(values, arrow.large_string())


def is_blank(values: Array) -> Mask:
    """Say for each text whether it is null or has no visible character."""
    lengths = compute.utf8_length(compute.utf8_trim_whitespace(values))
    return to_numpy(compute.equal(compute.fill_null(lengths, 0), 0))


def as_lists(values: Array) -> tuple[Rows, Array]:
    """Return each row's number of items and all items as large strings.

    Null is an empty list. A text, as in CSV tables, is split as the release splits it.
    """
    if arrow.types.is_null(values.type):
        return np.zeros(len(values), np.int64), arrow.array([], arrow.large_string())
    if not _is_list(values.type):
        split = [_split(value) for value in as_text(values).to_pylist()]
        values = arrow.array(split, arrow.large_list(arrow.large_string()))
    lengths = compute.cast(compute.fill_null(compute.list_value_length(values), 0), "int64")
    return to_numpy(lengths), as_text(values.flatten())


def as_numbers(values: Array) -> npt.NDArray[np.float64]:
    """Return numbers; NaN for null, for an empty text and for what is not a number."""
    given: Any = values.to_pandas()
    return np.asarray(pd.to_numeric(given, errors="coerce"), dtype=np.float64)


def to_numpy(values: Array) -> Any:
    """Return a pyarrow array without nulls as a numpy array."""
    if isinstance(values, pa.ChunkedArray):
        return values.to_numpy()
    return values.to_numpy(zero_copy_only=False)


def _is_list(kind: Any) -> bool:
    types = arrow.types
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def _split(value: str | None) -> list[str]:
    items = (item.strip("[] '\"") for item in (value or "").replace("\n", ",").split(","))
    return [item for item in items if item]


def _open(config: "GraphRagConfig", name: str, suffix: str) -> Table | None:
    try:
        source = _locate(config, f"{name}.{suffix}")
        if source is None:
            return None
        return _open_csv(name, source) if suffix == "csv" else _open_parquet(name, source)
    except (arrow.ArrowException, OSError, ValueError) as error:
        cause = " ".join(str(error).split())
        msg = (
            f"{name}.{suffix} in {config.output_storage.base_dir} can't be read ({cause}); "
            f"build the index anew."
        )
        raise IndexUnavailableError(msg) from error


def _locate(config: "GraphRagConfig", name: str) -> Path | io.BytesIO | None:
    if str(config.output_storage.type) == "file":
        path = Path(str(config.output_storage.base_dir)) / name
        return path if path.is_file() else None
    from graphrag_storage import create_storage

    storage = create_storage(config.output_storage)

    async def fetch() -> bytes | None:
        return await storage.get(name, as_bytes=True) if await storage.has(name) else None

    content = _wait_for(fetch)
    return None if content is None else io.BytesIO(content)


def _wait_for(fetch: "Callable[[], Coroutine[Any, Any, bytes | None]]") -> bytes | None:
    """Await in another thread, as a loop may be running in this one (a notebook's)."""

    def run() -> bytes | None:
        with asyncio.Runner() as runner:
            return runner.run(fetch())

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(run).result()


def _open_parquet(name: str, source: Path | io.BytesIO) -> Table:
    schema: Any = parquet.ParquetFile(source).schema
    paths: list[str] = [schema.column(i).path for i in range(len(schema))]
    # Ids in lists repeat: as numbers into a dictionary they need a fraction of the memory.
    texts = [path for path in paths if ".list." in path and path.split(".")[0].endswith("_ids")]
    file: Any = parquet.ParquetFile(source, read_dictionary=texts)

    def read(columns: list[str], size: int) -> Iterator[Any]:
        return file.iter_batches(batch_size=size, columns=columns)

    rows = int(file.metadata.num_rows)
    return Table(name, rows, frozenset(file.schema_arrow.names), read)


def _open_csv(name: str, source: Path | io.BytesIO) -> Table:
    try:
        frame: Any = pd.read_csv(source, dtype=str, keep_default_na=False)
    except pd.errors.EmptyDataError:
        frame = pd.DataFrame()
    return hold_table(name, arrow.Table.from_pandas(frame, preserve_index=False), len(frame))


def hold_table(name: str, table: Any, n_rows: int) -> Table:
    """Return a table whose columns are in memory, as a pyarrow table."""

    def read(columns: list[str], size: int) -> Iterator[Any]:
        return iter(table.select(columns).combine_chunks().to_batches(max_chunksize=size))

    return Table(name, n_rows, frozenset(table.column_names), read)
