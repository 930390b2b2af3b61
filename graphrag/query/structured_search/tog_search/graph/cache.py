"""Opening the graph of an index: mapped if it was built before, built beside the index if not."""

import hashlib
import logging
import os
import shutil
import tempfile
import time
import uuid
import weakref
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

from graphrag.query.structured_search.tog_search.graph.building import TableStreams
from graphrag.query.structured_search.tog_search.graph.files import (
    FORMAT,
    DamagedGraphError,
    OpenedGraph,
    map_graph,
    write_graph,
)
from graphrag.query.structured_search.tog_search.graph.row_tables import (
    DOCUMENTS,
    ENTITIES,
    RELATIONSHIPS,
    TEXT_UNITS,
)
from graphrag.query.structured_search.tog_search.graph.table_reading import stream_file

_log = logging.getLogger(__name__)

FOLDER = "tog_graph"
_BUILDING = "building-"
# A build takes minutes at most; what is older was left behind by a process that was stopped.
_ABANDONED_AFTER_S = 6 * 3600
_PROBED_BYTES = 1 << 16
_BATCH_ROWS = 1 << 17
# A text unit takes some kilobytes, a relationship some hundred bytes.
_TEXT_BATCH_ROWS = 1 << 12


@dataclass(frozen=True, slots=True)
class TableFiles:
    """Where an index keeps the tables that Think-on-Graph reads: Parquet or CSV files."""

    entities: Path
    relationships: Path
    text_units: Path
    documents: Path | None = None


def open_graph(files: TableFiles) -> OpenedGraph:
    """Map the graph of an index, building it first where that was not done since it changed.

    The graph lies in the folder ``tog_graph`` beside the entities table. Any number of
    processes may open it at once, also while it is built: each builds its own if need be, and
    the first to finish is the one that stays. Where that folder can't be written the graph is
    built in a temporary one, which goes with the last reader.

    Raises
    ------
    UnreadableTableError
        If a table lacks a column or can't be read.
    OSError
        If a table can't be opened, or there is no space for the graph anywhere.
    """
    fingerprint = fingerprint_files(files)
    home = files.entities.parent / FOLDER
    place = home / fingerprint
    if place.exists():
        try:
            return map_graph(place, fingerprint)
        except DamagedGraphError as error:
            _log.warning("The cached graph is built again: %s", error)
    try:
        home.mkdir(exist_ok=True)
        draft = home / f"{_BUILDING}{uuid.uuid4().hex}"
        draft.mkdir()
    except OSError as error:
        return _open_temporary(files, fingerprint, error)
    try:
        _build(draft, fingerprint, files)
        return _publish(draft, place, fingerprint)
    except (OSError, DamagedGraphError) as error:
        return _open_temporary(files, fingerprint, error)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        _remove_outdated(home, place)


def fingerprint_files(files: TableFiles) -> str:
    """Return a hash that changes when a table does, without reading the tables.

    It covers each file's name, length and time of change, and its first and last 64 KiB: a
    Parquet file ends with its row counts, offsets and column statistics, so that even a
    rewritten table with the old length and time is noticed. Hashing whole tables would take a
    second a gigabyte at every opening.
    """
    digest = hashlib.blake2b(f"{FORMAT}".encode(), digest_size=16)
    for path in filter(None, (getattr(files, field.name) for field in fields(files))):
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            digest.update(f"|{path.name}|{status.st_size}|{status.st_mtime_ns}|".encode())
            digest.update(file.read(_PROBED_BYTES))
            file.seek(max(0, status.st_size - _PROBED_BYTES))
            digest.update(file.read(_PROBED_BYTES))
    return digest.hexdigest()


def _build(folder: Path, fingerprint: str, files: TableFiles) -> None:
    began = time.perf_counter()
    write_graph(
        folder,
        fingerprint,
        TableStreams(
            stream_file(files.entities, ENTITIES, ("id", "title"), _BATCH_ROWS),
            stream_file(files.relationships, RELATIONSHIPS, ("source", "target"), _BATCH_ROWS),
            lambda: stream_file(files.text_units, TEXT_UNITS, ("id", "text"), _TEXT_BATCH_ROWS),
            stream_file(files.documents, DOCUMENTS, ("id",), _TEXT_BATCH_ROWS)
            if files.documents
            else iter(()),
        ),
    )
    _log.info("Built the graph of %s in %.1f s", files.entities.parent, time.perf_counter() - began)


def _publish(draft: Path, place: Path, fingerprint: str) -> OpenedGraph:
    """Put a finished graph in its place, unless another process was faster."""
    for _ in range(2):
        with suppress(OSError):
            draft.rename(place)
        try:
            return map_graph(place, fingerprint)
        except DamagedGraphError:
            # The one that is there is not whole; it is put aside in one step, as it was made.
            with suppress(OSError):
                place.rename(draft.with_name(f"{draft.name}-damaged"))
    return map_graph(draft, fingerprint)


def _open_temporary(files: TableFiles, fingerprint: str, cause: Exception) -> OpenedGraph:
    _log.warning(
        "The graph can't be kept beside the index, so every start builds it anew: %s", cause
    )
    folder = Path(tempfile.mkdtemp(prefix=f"{FOLDER}-"))
    try:
        _build(folder, fingerprint, files)
        opened = map_graph(folder, fingerprint)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(opened.graph, shutil.rmtree, folder, ignore_errors=True)
    return opened


def _remove_outdated(home: Path, current: Path) -> None:
    """Remove the graphs of earlier tables, and what stopped builds have left."""
    with suppress(OSError):
        for folder in home.iterdir():
            if folder == current:
                continue
            building = folder.name.startswith(_BUILDING) and not folder.name.endswith("-damaged")
            if not building or time.time() - folder.stat().st_mtime > _ABANDONED_AFTER_S:
                shutil.rmtree(folder, ignore_errors=True)
