"""Reads the tables of a built index, whatever version of graphrag wrote them.

They are converted to the form of graphrag 3 in memory; no file is changed.
"""

import asyncio
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from graphrag_storage import create_storage
from graphrag_storage.file_storage import FileStorage

from graphrag.config.settings_files import describe_unbuilt, name_tables
from graphrag.config.table_files import (
    NODES,
    OLDER_COLUMNS,
    SEARCHED_TABLES,
    VALIDATED_TABLES,
    IndexNotBuiltError,
    UnreadableTableError,
    describe_unreadable,
    find_table_files,
)
from graphrag.query.methods import tables_of
from graphrag.text.message_phrases import join_names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import pandas as pd
    from graphrag_storage import Storage

    from graphrag.config.models.graph_rag_config import GraphRagConfig
    from graphrag.data_model.text_unit import TextUnit
    from graphrag.query.index.table_rows import TableRows

_Frame: TypeAlias = Any  # pandas types its frames in part
_FILES = ("parquet", "csv")
_DOCUMENT, _DOCUMENTS = "document_id", "document_ids"
_NUMBER = "human_readable_id"
NEEDED_COLUMNS: "Mapping[str, Sequence[str]]" = {
    "entities": ("id", "title"),
    "relationships": ("source", "target"),
    "text_units": ("id", "text"),
    "communities": ("id", "community", "title", "level"),
    "community_reports": ("community", "title", "level", "full_content"),
}
"""Table -> columns that every search of it needs."""
_ALSO_NEEDED: "Mapping[str, tuple[str, str]]" = {
    "global": ("entities", "text_unit_ids"),  # it weighs communities by them
    "drift": ("community_reports", "id"),  # by which it finds their vectors
}
"""Method -> a table and its column that this method needs in addition."""
SEARCHED_COLUMNS: "Mapping[str, Sequence[str]]" = {
    "entities": ("id", _NUMBER, "title", "type", "description", "degree", "text_unit_ids"),
    "relationships": (
        *("id", _NUMBER, "source", "target", "description", "weight", "combined_degree"),
        "text_unit_ids",
    ),
    "text_units": ("id", _NUMBER, "text", "n_tokens", _DOCUMENT, _DOCUMENTS, "relationship_ids"),
    "communities": ("id", _NUMBER, "community", "title", "level", "entity_ids"),
    "community_reports": (
        *("id", _NUMBER, "community", "title", "level", "summary", "full_content", "rank"),
    ),
}
"""Table -> columns that the released searches show in a context or use to find rows."""


class IndexTables:
    """Contains the tables of a built index in the form of graphrag 3.

    The table ``covariates`` exists only if claims were extracted. ``paths``: table name ->
    ``.parquet`` or ``.csv`` file of this machine, read when first asked for. ``**frames``: tables
    that are already read.
    """

    def __init__(
        self, paths: "Mapping[str, Path] | None" = None, /, **frames: "pd.DataFrame | None"
    ) -> None:
        self.paths = dict(paths or {})
        self._passed = {name: frame for name, frame in frames.items() if frame is not None}
        self._frames: dict[str, pd.DataFrame] = {}
        self._rows: dict[str, TableRows] = {}
        self._opening = Lock()

    def table(self, name: str) -> "pd.DataFrame":
        """Return a copy of a table, because the released readers write into their tables.

        Raises IndexNotBuiltError if the index has no such table, or it can't be read.
        """
        if not self.has(name):
            raise IndexNotBuiltError(f"the index has no {name} table, which this search needs")
        if name not in self._frames:
            self._frames[name] = self._read(name)
        return self._frames[name].copy()

    def rows(self, name: str) -> "TableRows":
        """Return a table from which only the rows that are asked for are read.

        It has the columns that the released searches read. Raises as :meth:`table` does.
        """
        from graphrag.query.index.table_rows import TableRows

        with self._opening:
            if name not in self._rows:
                self._rows[name] = TableRows(self._read_searched(name))
            return self._rows[name]

    def _read_searched(self, name: str) -> Any:
        """Return the columns of a table that searches read; a Parquet file is not read in full.

        What graphrag 0.3 to 0.5 wrote has to be put together from several tables.
        """
        import pyarrow as pa

        path, wanted = self.paths.get(name), SEARCHED_COLUMNS[name]
        is_read = name in self._passed or name in self._frames
        if is_read or path is None or path.suffix != ".parquet" or NODES in self.paths:
            frame: _Frame = self.table(name)
            lists: dict[str, Any] = {}
        else:
            older = OLDER_COLUMNS.get(name, {}).values()
            frame, lists = _guarded(path, lambda: _read_apart(path, {*wanted, *older}))
            frame = self._complete(name, frame)
        columns = [column for column in wanted if column in frame and column not in lists]
        texts = [c for c in columns if frame[c].dtype.kind == "O" and not c.endswith("_ids")]
        # The released readers turn each value into a text, missing values included.
        frame = frame.assign(**{c: frame[c].map(str) for c in texts if frame[c].isna().any()})
        table: Any = cast("Any", pa).Table.from_pandas(frame[columns], preserve_index=False)
        for column, values in lists.items():
            table = table.append_column(column, values)
        return table

    def columns(self, name: str, columns: "Sequence[str]") -> "pd.DataFrame | None":
        """Return columns of a table; None if the table or one of them is missing.

        Columns that are read from a file directly are not kept; a table that was read before is
        used instead.
        """
        if name not in self._frames and name not in self._passed and name in self.paths:
            path = self.paths[name]
            if (read := _guarded(path, lambda: _read_columns(path, columns))) is not None:
                return read
        if not self.has(name):
            return None
        frame: Any = self.table(name)
        return frame[list(columns)] if set(columns) <= set(frame.columns) else None

    def arrow(self, name: str, columns: "Sequence[str]") -> Any:
        """Return columns as a pyarrow.Table, which is not kept; None as from :meth:`columns`.

        It takes a fraction of a data frame's memory. Missing values stay missing.
        """
        path = self.paths.get(name)
        is_read = name in self._frames or name in self._passed
        if path is not None and path.suffix != ".csv" and not is_read:
            table = _guarded(path, lambda: _read_arrow(path, columns))
            if table is not None:
                return table
        frame = self.columns(name, columns)
        return None if frame is None else _to_arrow(frame)

    def has(self, name: str) -> bool:
        """Say whether the index has a table."""
        return name in self._passed or name in self.paths

    def _read(self, name: str) -> "pd.DataFrame":
        if name in self._passed:
            frame: _Frame = self._passed[name]
        else:
            path = self.paths[name]
            frame = _guarded(path, lambda: _read_file(path))
        return self._complete(name, frame)

    def _complete(self, name: str, frame: _Frame) -> "pd.DataFrame":
        """Return a table, or some of its columns, in the form of graphrag 3."""
        from graphrag.data_model import dfs

        frame = _COMPLETE.get(name, _complete)(_rename(name, frame), self)
        try:
            return getattr(dfs, f"{name}_typed")(frame)
        except (KeyError, TypeError, ValueError) as error:
            where = self.paths.get(name, name)
            msg = f"{where} does not have the form of a table of {name.replace('_', ' ')} ({error})"
            raise UnreadableTableError(msg) from error


def _guarded(path: Path, read: Callable[[], Any]) -> Any:
    import pyarrow

    try:
        return read()
    except (OSError, ValueError, cast("Any", pyarrow).ArrowException) as error:
        raise UnreadableTableError(describe_unreadable(path, error)) from error


def _rename(name: str, frame: _Frame) -> _Frame:
    older = {
        old: new
        for new, old in OLDER_COLUMNS.get(name, {}).items()
        if old in frame and new not in frame
    }
    return frame.rename(columns=older) if older else frame.copy(deep=False)


def _complete(frame: _Frame, tables: IndexTables) -> _Frame:
    """Give each row that has no number its position in the table as one."""
    import pandas as pd

    rows = pd.Series(range(len(frame)), index=frame.index)
    if _NUMBER not in frame:
        return frame.assign(**{_NUMBER: rows})
    return frame.assign(**{_NUMBER: _to_numbers(frame[_NUMBER]).fillna(rows).astype("int64")})


def _to_numbers(column: Any) -> Any:
    """Return a column as numbers, also from texts; NaN for all else."""
    import pandas as pd

    return cast("Any", pd).to_numeric(column, errors="coerce")


def _complete_entities(frame: _Frame, tables: IndexTables) -> _Frame:
    frame = _add_lists(_add(_complete(frame, tables), description=""), "text_unit_ids")
    if "type" not in frame:
        frame = frame.assign(type="")
    if "title" in frame:
        frame = frame.assign(title=frame["title"].fillna(""))
    if "degree" not in frame and (nodes := _nodes(tables)) is not None:
        degrees: Any = dict(zip(nodes["title"], nodes["degree"], strict=True))
        frame = frame.assign(degree=frame["title"].map(degrees).fillna(0).astype("int64"))
    return frame


def _complete_relationships(frame: _Frame, tables: IndexTables) -> _Frame:
    frame = _add(_complete(frame, tables), description="", weight=1.0)
    return _add_lists(_add_ids(frame), "text_unit_ids")


def _complete_text_units(frame: _Frame, tables: IndexTables) -> _Frame:
    frame = _complete(frame, tables)
    if "text" in frame:
        frame = frame.assign(text=frame["text"].fillna(""))
    if "n_tokens" not in frame or frame["n_tokens"].isna().any():
        from graphrag.query.client.tokens import default_encoding

        encode = default_encoding().encode_ordinary
        frame = frame.assign(n_tokens=[len(encode(text)) for text in frame["text"]])
    if _DOCUMENT not in frame and _DOCUMENTS in frame:
        firsts = [next(iter(ids), "") for ids in _to_lists(frame[_DOCUMENTS])]
        frame = frame.assign(**{_DOCUMENT: firsts})
    return frame


def _complete_communities(frame: _Frame, tables: IndexTables) -> _Frame:
    if "community" not in frame and "id" in frame:  # up to 0.5 that was the id
        frame = frame.assign(community=frame["id"])
    if _NUMBER not in frame and "community" in frame:
        frame = frame.assign(**{_NUMBER: frame["community"]})
    frame = _add(_complete(frame, tables), parent=-1, period="")
    frame = _add_lists(frame, "children", "relationship_ids", "text_unit_ids")
    nodes = _nodes(tables) if "entity_ids" not in frame else None
    if nodes is not None:
        members = _members(nodes, tables)
        numbers = _to_numbers(frame["community"]).fillna(-1).astype("int64")
        frame = frame.assign(entity_ids=[members.get(number, []) for number in numbers])
    frame = _add_lists(frame, "entity_ids")
    if "size" not in frame or frame["size"].isna().any():
        frame = frame.assign(size=frame["entity_ids"].map(len))
    return frame


def _complete_reports(frame: _Frame, tables: IndexTables) -> _Frame:
    if _NUMBER not in frame and "community" in frame:
        frame = frame.assign(**{_NUMBER: frame["community"]})
    frame = _add(_complete(frame, tables), parent=-1, period="", size=0, rank=0.0, summary="")
    return _add_lists(_add_ids(frame), "children", "findings")


_COMPLETE: "dict[str, Callable[[_Frame, IndexTables], _Frame]]" = {
    "entities": _complete_entities,
    "relationships": _complete_relationships,
    "text_units": _complete_text_units,
    "communities": _complete_communities,
    "community_reports": _complete_reports,
}


def _add(frame: _Frame, **values: object) -> _Frame:
    """Fill in values for columns that are missing or have missing values."""
    changes: dict[str, object] = {}
    for name, value in values.items():
        if name not in frame:
            changes[name] = value
        elif frame[name].isna().any():
            changes[name] = frame[name].fillna(value)
    return frame.assign(**changes) if changes else frame


def _add_ids(frame: _Frame) -> _Frame:
    """Use the rows' numbers as ids if there are no ids: no other table refers to these rows."""
    return frame if "id" in frame else frame.assign(id=frame[_NUMBER].map(str))


def _add_lists(frame: _Frame, *names: str) -> _Frame:
    missing = [name for name in names if name not in frame]
    return frame.assign(**{name: [[] for _ in range(len(frame))] for name in missing})


def _nodes(tables: IndexTables) -> _Frame:
    if NODES not in tables.paths:
        return None
    path = tables.paths[NODES]
    columns = ("title", "community", "degree")
    return _guarded(path, lambda: _read_columns(path, columns))


def _members(nodes: _Frame, tables: IndexTables) -> dict[int, list[str]]:
    """Return community -> ids of its entities; the nodes table names entities by title."""
    entities: Any = tables.table("entities")
    ids = dict(zip(entities["title"], entities["id"], strict=True))
    numbers = _to_numbers(nodes["community"])
    members: dict[int, list[str]] = {}
    for number, title in zip(numbers, nodes["title"], strict=True):
        if number == number and title in ids:  # none has NaN
            members.setdefault(int(number), []).append(ids[title])
    return members


def read_text_units(tables: IndexTables) -> "list[TextUnit]":
    """Return the text units of an index, each with the number that its table gives it.

    The released reader counts rows from 0, but graphrag 1 and 2 numbered from 1: a citation would
    mean the next text unit.
    """
    from graphrag.query.indexer_adapters import read_indexer_text_units

    frame: Any = tables.table("text_units")
    units = read_indexer_text_units(frame)
    for unit, number in zip(units, frame[_NUMBER], strict=True):
        unit.short_id = str(number)
    return units


def rows_of(table: "pd.DataFrame | None", *columns: str) -> list[tuple[Any, ...]]:
    """Return columns row by row, as texts, and columns of ids as tuples of texts; [] for None.

    A list in a CSV file is a text, which is read as the release reads it; a missing list is empty.
    """
    frame: Any = table
    if frame is None:
        return []
    cells = (
        _to_lists(frame[c]) if c.endswith("_ids") else map(str, frame[c].tolist()) for c in columns
    )
    return list(zip(*cells, strict=True))


def read_titles(tables: IndexTables) -> dict[str, str]:
    """Return id of a document -> its title; empty for an index with a single document."""
    rows = rows_of(tables.columns("documents", ("id", "title")), "id", "title")
    return dict(rows) if len(rows) > 1 else {}


def _to_lists(column: Any) -> "Iterator[tuple[str, ...]]":
    from graphrag.data_model.dfs import split_list_column

    lists: Iterator[Any] = map(split_list_column, column.tolist())
    return (tuple(map(str, ids)) if hasattr(ids, "__len__") else () for ids in lists)


def check_tables(
    tables: IndexTables, config: "GraphRagConfig", root: Path, methods: "Sequence[str]"
) -> None:
    """Check that an index has the tables that search methods need, and that they can be read.

    Tables of the graph and of the documents must be readable even if no method needs them, because
    measures look at them. Raises IndexNotBuiltError if a table is missing, can't be read, lacks a
    column or has no rows; the message names the methods that need it.
    """
    needed: dict[str, list[str]] = {}
    for method in methods:
        for name in tables_of(method):
            needed.setdefault(name, []).append(method)
    if missing := [name for name in needed if not tables.has(name)]:
        others = list(dict.fromkeys(m for name in missing for m in needed[name]))
        is_built = any(map(tables.has, SEARCHED_TABLES))
        where = config.output_storage.base_dir
        msg = describe_unbuilt(root, missing, where, methods=others if is_built else ())
        raise IndexNotBuiltError(msg, f"{where} has no {name_tables(missing)}")
    for name in dict.fromkeys((*needed, *filter(tables.has, VALIDATED_TABLES))):
        _refuse(_find_fault(tables, name, NEEDED_COLUMNS.get(name, ())), needed.get(name, ()))
    for method in methods:
        if method in _ALSO_NEEDED:
            name, column = _ALSO_NEEDED[method]
            _refuse(_find_fault(tables, name, (column,)), [method])


def _refuse(fault: str | None, methods: "Sequence[str]") -> None:
    if fault is not None and methods:
        msg = f"{fault}, which {join_names(methods)} can't do without; ask other methods"
        raise UnreadableTableError(msg, fault)


def _find_fault(tables: IndexTables, name: str, needed: "Sequence[str]") -> str | None:
    """Return why no search can use a table, None if searches can.

    Raises UnreadableTableError if it can't be read. Only Parquet files are looked at.
    """
    path = tables.paths.get(name)
    if path is None or path.suffix != ".parquet":
        return None
    import pyarrow.parquet as pq

    read: Any = cast("Any", pq).read_metadata
    metadata = _guarded(path, lambda: read(path))
    if not metadata.num_rows:
        return f"{path} has no rows"
    columns = set(metadata.schema.to_arrow_schema().names)
    older = OLDER_COLUMNS.get(name, {})
    if name == "communities" and NODES in tables.paths:
        older = {"community": "id"}  # up to 0.5
    lacking = [c for c in needed if not {c, older.get(c, c)} & columns]
    return f"{path} has no column {', '.join(lacking)}" if lacking else None


def lacks_columns(tables: IndexTables, method: str) -> bool:
    """Say whether a table that a method reads lacks a column that the release asks for."""
    import pyarrow.parquet as pq

    read: Any = cast("Any", pq).read_schema
    for name in tables_of(method):
        path, columns = tables.paths.get(name), SEARCHED_COLUMNS[name]
        if path is not None and path.suffix == ".parquet":
            there = {*read(path).names, _DOCUMENT, _DOCUMENTS}  # either will do
            if not there.issuperset(columns):
                return True
    return False


async def fingerprint_tables(config: "GraphRagConfig") -> str:
    """Return a hash of the content of an index's existing tables."""
    storage = create_storage(config.output_storage)
    # Titles of documents, if there are any, change what a search of the graph finds.
    there = await _find_tables(config, storage, (*SEARCHED_TABLES, "documents", NODES))
    digest = hashlib.blake2b(digest_size=16)
    for name, key in there.items():
        if isinstance(storage, FileStorage):
            await asyncio.to_thread(_hash_file, storage.get_path(key), name, digest)
            continue
        content = await storage.get(key, as_bytes=True) or b""
        digest.update(f"{name}:{len(content)}:".encode())
        digest.update(content)
    return digest.hexdigest()


async def _find_tables(
    config: "GraphRagConfig", storage: "Storage", names: "Sequence[str]"
) -> dict[str, str]:
    """Return table -> key in the storage, for the tables that exist."""
    kind = config.table_provider.type
    if kind not in _FILES:
        from graphrag_storage.tables.table_provider_factory import create_table_provider

        provider = create_table_provider(config.table_provider, storage=storage)
        return {name: f"{name}.{kind}" for name in names if await provider.has(name)}
    if isinstance(storage, FileStorage):
        folder = storage.get_path("")
        files = await asyncio.to_thread(find_table_files, folder, names, kind)
        return {name: path.name for name, path in files.items()}
    # The release's providers ask the same, but loading them loads pandas.
    keys = {name: f"{name}.{kind}" for name in names}
    return {name: key for name, key in keys.items() if await storage.has(key)}


def _hash_file(path: Path, name: str, digest: "hashlib.blake2b") -> None:
    """Hash a table piece by piece, because it may be larger than the memory."""
    with path.open("rb") as file:
        digest.update(f"{name}:{os.fstat(file.fileno()).st_size}:".encode())
        hashlib.file_digest(file, lambda: digest)


async def open_tables(
    config: "GraphRagConfig",
    names: "Sequence[str]" = (*SEARCHED_TABLES, "covariates", "documents"),
) -> IndexTables:
    """Open the tables that exist: files are read later, tables in other storage at once."""
    storage = create_storage(config.output_storage)
    kind = config.table_provider.type
    present = await _find_tables(config, storage, (*names, NODES))
    if isinstance(storage, FileStorage) and kind in _FILES:
        return IndexTables({name: storage.get_path(key) for name, key in present.items()})
    from graphrag_storage.tables.table_provider_factory import create_table_provider

    from graphrag.data_model.data_reader import DataReader

    reader = DataReader(create_table_provider(config.table_provider, storage=storage))
    frames = {name: await getattr(reader, name)() for name in present if name != NODES}
    return IndexTables(**frames)


def _read_file(path: Path) -> "pd.DataFrame":
    import pandas as pd

    if path.suffix == ".csv":
        return pd.read_csv(path, keep_default_na=False)
    return pd.read_parquet(path)


def _read_apart(path: Path, wanted: "Collection[str]") -> tuple["pd.DataFrame", dict[str, Any]]:
    """Return columns of a Parquet file as a data frame, and columns of lists as pyarrow has them.

    In a data frame each list would be an object, and each of its entries another.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    files: Any = pq
    names = [name for name in files.read_schema(path).names if name in wanted]
    table: Any = files.read_table(path, columns=names).replace_schema_metadata(None)
    is_list = cast("Any", pa).types.is_list
    lists = {field.name: table.column(field.name) for field in table.schema if is_list(field.type)}
    return table.drop_columns([*lists]).to_pandas(), lists


def _read_columns(path: Path, columns: "Sequence[str]") -> "pd.DataFrame | None":
    import pandas as pd
    import pyarrow.parquet as pq

    chosen = list(columns)
    if path.suffix == ".csv":
        frame = pd.read_csv(path, usecols=set(chosen).__contains__, keep_default_na=False)
        return frame if set(chosen) <= set(frame.columns) else None
    schema: Any = cast("Any", pq).read_schema(path)
    if not set(chosen) <= set(schema.names):
        return None
    frame = pd.read_parquet(path, columns=chosen)
    return _add(frame, **dict.fromkeys({"text", "title"} & set(chosen), ""))


def _read_arrow(path: Path, columns: "Sequence[str]") -> Any:
    import pyarrow.parquet as pq

    names = cast("Any", pq).read_schema(path).names
    if not set(columns) <= set(names):
        return None
    # Ids of text units repeat in many rows: each is read once, and rows refer to it by number.
    leaves = [column.path for column in cast("Any", pq).read_metadata(path).schema]
    repeated = [leaf for leaf in leaves if "." in leaf and leaf.partition(".")[0] in columns]
    read: Any = cast("Any", pq).read_table
    return read(path, columns=list(columns), read_dictionary=repeated)


def _to_arrow(frame: _Frame) -> Any:
    import pyarrow

    arrow: Any = pyarrow
    return arrow.table(
        {
            name: [list(ids) for ids in _to_lists(frame[name])]
            if name.endswith("_ids")
            else arrow.array(frame[name])
            for name in frame.columns
        }
    )
