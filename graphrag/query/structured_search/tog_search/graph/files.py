"""A graph as files of one folder, written once and then mapped.

``arrays.bin`` holds the arrays one after the other, each at a multiple of 64 bytes; the tables
are uncompressed Arrow IPC files; ``header.json`` says what is where and is written last.
"""

import hashlib
import json
import mmap
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, ValidationError

from graphrag.query.structured_search.tog_search.graph.adjacency import Adjacency
from graphrag.query.structured_search.tog_search.graph.building import (
    GraphParts,
    TableStreams,
    build_parts,
)
from graphrag.query.structured_search.tog_search.graph.mentions import Mentions
from graphrag.query.structured_search.tog_search.graph.names import NameIndex
from graphrag.query.structured_search.tog_search.graph.row_tables import RowTable
from graphrag.query.structured_search.tog_search.graph.store import GraphStore, GraphTables
from graphrag.query.structured_search.tog_search.graph.text_units import TextUnits

# pyarrow is not typed.
_arrow: Any = pa

# Raised whenever the meaning of a byte in these files changes.
FORMAT = 2
_ALIGNMENT = 64
_PROBED_BYTES = 4096
_HEADER = "header.json"
_ARRAYS = "arrays.bin"
_TABLES = ("entities", "relationships", "text_units", "cited_ids", "topics")
_NAME_INDEXES = ("titles", "ids", "keys")


class DamagedGraphError(ValueError):
    """A folder does not hold the graph that was asked for, whole and in this format."""


@dataclass(frozen=True, slots=True)
class OpenedGraph:
    """What Think-on-Graph searches: the graph and the texts behind it."""

    graph: GraphStore
    text_units: TextUnits


class _Array(BaseModel):
    model_config = ConfigDict(extra="forbid")

    dtype: str
    offset: int
    length: int


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    n_bytes: int
    probe: str


class _Header(BaseModel):
    """What a folder holds; ``batches`` are the rows of each record batch of each table."""

    model_config = ConfigDict(extra="forbid")

    format: int
    byte_order: str
    fingerprint: str
    longest_key: int
    arrays: dict[str, _Array]
    batches: dict[str, list[int]]
    files: dict[str, _File]


def write_graph(folder: Path, fingerprint: str, streams: TableStreams) -> None:
    """Build the graph of some tables in an empty folder.

    Raises
    ------
    UnreadableTableError
        If a table is not what it should be.
    OSError
        If a file can't be written.
    """
    batches: dict[str, list[int]] = {name: [] for name in _TABLES}
    with ExitStack() as open_files:
        writers: dict[str, Any] = {}

        def write(name: str, batch: Any) -> None:
            if name not in writers:
                sink = open_files.enter_context(_arrow.OSFile(str(folder / f"{name}.arrow"), "wb"))
                writer = _arrow.ipc.new_file(sink, batch.schema)
                writers[name] = open_files.enter_context(writer)
            if batch.num_rows:
                writers[name].write_batch(batch)
                batches[name].append(batch.num_rows)

        parts = build_parts(streams, write)
    arrays = _write_arrays(folder / _ARRAYS, _named_arrays(parts))
    names = [_ARRAYS, *(f"{name}.arrow" for name in _TABLES)]
    for name in names:
        _flush(folder / name)
    header = _Header(
        format=FORMAT,
        byte_order=sys.byteorder,
        fingerprint=fingerprint,
        longest_key=parts.longest_key,
        arrays=arrays,
        batches=batches,
        files={name: _probe(folder / name) for name in names},
    )
    text = header.model_dump_json()
    (folder / _HEADER).write_text(f"{_checksum(text)}\n{text}", encoding="utf-8")
    _flush(folder / _HEADER)


def map_graph(folder: Path, fingerprint: str) -> OpenedGraph:
    """Map the graph in a folder; nothing is read but the header and the ends of the files.

    Raises
    ------
    DamagedGraphError
        If something is missing, cut short, overwritten, of another format or of other tables.
    """
    try:
        header = _read_header(folder, fingerprint)
        arrays = _map_arrays(folder / _ARRAYS, header.arrays)
        tables = {
            name: RowTable(header.batches[name], _map_table(folder / f"{name}.arrow"))
            for name in _TABLES
        }
        indexes = {
            name: NameIndex(arrays[f"{name}.hashes"], arrays[f"{name}.rows"])
            for name in _NAME_INDEXES
        }
        edges = Adjacency(**{field.name: arrays[field.name] for field in fields(Adjacency)})
        mentions = Mentions(
            **{field.name: arrays[f"mentions.{field.name}"] for field in fields(Mentions)}
        )
    except (OSError, KeyError, ValueError, _arrow.ArrowException) as error:
        msg = f"{folder} can't be used: {error or type(error).__name__}"
        raise DamagedGraphError(msg) from error
    parts = GraphParts(
        adjacency=edges, longest_key=header.longest_key, mentions=mentions, **indexes
    )
    text_units = tables.pop("text_units")
    return OpenedGraph(GraphStore(parts, GraphTables(**tables)), TextUnits(text_units))


def _named_arrays(parts: GraphParts) -> dict[str, npt.NDArray[Any]]:
    arrays = {field.name: getattr(parts.adjacency, field.name) for field in fields(Adjacency)}
    for name in _NAME_INDEXES:
        index: NameIndex = getattr(parts, name)
        arrays |= {f"{name}.hashes": index.hashes, f"{name}.rows": index.rows}
    for field in fields(Mentions):
        arrays[f"mentions.{field.name}"] = getattr(parts.mentions, field.name)
    return arrays


def _write_arrays(path: Path, arrays: dict[str, npt.NDArray[Any]]) -> dict[str, _Array]:
    placed: dict[str, _Array] = {}
    with path.open("wb") as file:
        for name, array in arrays.items():
            placed[name] = _Array(dtype=array.dtype.str, offset=file.tell(), length=len(array))
            file.write(cast("Any", array))
            file.write(bytes(_ALIGNMENT - file.tell() % _ALIGNMENT))
    return placed


def _map_arrays(path: Path, placed: dict[str, _Array]) -> dict[str, npt.NDArray[Any]]:
    mapped = _map(path)
    return {
        name: np.frombuffer(mapped, np.dtype(array.dtype), array.length, array.offset)
        for name, array in placed.items()
    }


def _map_table(path: Path) -> Callable[[int], Any]:
    # pyarrow's own memory map touches every page at once.
    return _arrow.ipc.open_file(_arrow.BufferReader(_arrow.py_buffer(_map(path)))).get_batch


def _map(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _read_header(folder: Path, fingerprint: str) -> _Header:
    checksum, _, text = (folder / _HEADER).read_text(encoding="utf-8").partition("\n")
    if checksum != _checksum(text):
        msg = "its header is damaged"
        raise ValueError(msg)
    found: dict[str, Any] = json.loads(text)
    if (found["format"], found["byte_order"]) != (FORMAT, sys.byteorder):
        msg = "it is in another format"
        raise ValueError(msg)
    if found["fingerprint"] != fingerprint:
        msg = "it was built from other tables"
        raise ValueError(msg)
    try:
        header = _Header.model_validate(found)
    except ValidationError as error:
        msg = "its header is not understood"
        raise ValueError(msg) from error
    for name, file in header.files.items():
        if _probe(folder / name) != file:
            msg = f"{name} was changed or cut short"
            raise ValueError(msg)
    return header


def _probe(path: Path) -> _File:
    """Take a file's length and a hash of its first and last bytes.

    Reading all of it would take longer than a search; what really happens to such files is that
    they are cut short or, after a power failure, end in zeros.
    """
    with path.open("rb") as file:
        digest = hashlib.blake2b(file.read(_PROBED_BYTES), digest_size=16)
        n_bytes = file.seek(0, os.SEEK_END)
        file.seek(max(0, n_bytes - _PROBED_BYTES))
        digest.update(file.read(_PROBED_BYTES))
    return _File(n_bytes=n_bytes, probe=digest.hexdigest())


def _flush(path: Path) -> None:
    """Wait until a file is on the disk, so that no crash leaves a header without its files."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _checksum(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
