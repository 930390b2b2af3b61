"""Caches files in folders that are made once and then mapped by any number of processes.

A folder is moved to its path when complete; a damaged folder is made again.
"""

import logging
import mmap
import os
import shutil
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import pyarrow

from graphrag.text.held_files import move

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_log = logging.getLogger(__name__)

arrow: Any = pyarrow  # not typed
Table: TypeAlias = Any
"""A pyarrow.Table."""
_BUILDING = "building"
# A build takes minutes at most; an older one was left behind by a process that was stopped.
_ABANDONED_AFTER_S = 6 * 3600
_DAMAGED = (OSError, ValueError, EOFError, arrow.ArrowException)
"""Errors raised by reading a damaged folder."""

_Content = TypeVar("_Content")
_Arrays = TypeVar("_Arrays", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class KeptFolder:
    """Names a folder in ``home`` by its kind and its content, and makes it if it is missing.

    ``kind`` may be ""; each kind has one folder at a time. ``content`` is a hash; ``what`` names
    the folder's contents in messages.
    """

    home: Path
    kind: str
    content: str
    what: str

    def open(
        self, write: Callable[[Path], None], read: Callable[[Path], _Content]
    ) -> _Content | None:
        """Read the folder; fill it first by ``write`` if it is missing or damaged.

        If several processes make it at once, the first to finish wins. Returns None if it can't be
        written, which is logged once. Errors of ``write`` pass through, unless they are
        OSErrors.
        """
        folder = self.home / "-".join(filter(None, (self.kind, self.content)))
        if folder.exists():
            try:
                return read(folder)
            except _DAMAGED as error:
                why = error or type(error).__name__
                _log.warning(
                    "The cached %s is built again: %s can't be used: %s", self.what, folder, why
                )
                shutil.rmtree(folder, ignore_errors=True)
        draft = self.home / f"{_BUILDING}-{uuid.uuid4().hex}"
        try:
            draft.mkdir(parents=True)
            write(draft)
            _flush(draft)
            with suppress(OSError):  # another process was faster
                move(draft, folder)
            return read(folder)
        except OSError as error:
            _warn_once(self.home, error.strerror or str(error))
            return None
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            self._remove_outdated(folder)

    def _remove_outdated(self, current: Path) -> None:
        """Remove the folders of earlier content, and leftovers of stopped builds."""
        with suppress(OSError):
            for folder in filter(Path.is_dir, self.home.iterdir()):
                kind = folder.name.rpartition("-")[0]
                if kind == _BUILDING:
                    if time.time() - folder.stat().st_mtime < _ABANDONED_AFTER_S:
                        continue
                elif kind != self.kind or folder == current:
                    continue
                # Renamed first: on Windows this fails, and the folder stays, if it is mapped.
                removed = self.home / f"{_BUILDING}-{uuid.uuid4().hex}"
                with suppress(OSError):
                    folder.rename(removed)
                    shutil.rmtree(removed, ignore_errors=True)


@cache
def _warn_once(home: Path, why: str) -> None:
    _log.warning(
        "Files made from the tables can't be kept next to the index, in %s, so every start makes "
        "them anew: %s",
        home,
        why,
    )


def _flush(folder: Path) -> None:
    for path in folder.iterdir():
        with path.open("rb+") as file:  # so that no crash leaves a folder without its files
            os.fsync(file.fileno())


def save_arrays(folder: Path, arrays: "DataclassInstance") -> None:
    """Save the arrays of a record as numpy's files, named like its fields."""
    for field in fields(arrays):
        np.save(folder / f"{field.name}.npy", getattr(arrays, field.name), allow_pickle=False)


def map_arrays(folder: Path, kind: type[_Arrays]) -> _Arrays:
    """Map a record of arrays; only the beginnings of their files are read."""
    files = [folder / f"{field.name}.npy" for field in fields(kind)]
    return kind(*(np.load(file, mmap_mode="r").view(np.ndarray) for file in files))


def map_table(path: Path) -> Table:
    """Map a table in an uncompressed Arrow file; only the file's ends are read."""
    # pyarrow's own memory map touches every page at once.
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return arrow.ipc.open_file(arrow.BufferReader(arrow.py_buffer(mapped))).read_all()
