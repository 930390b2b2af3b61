"""Projects that earlier versions kept, and what their stores hold."""

import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parents[1] / "store" / "kept"
MIGRATED = ["format_4"]
PROJECTS = [*MIGRATED, "release_1.0.0"]
N_RUNS = 5
Rows = dict[str, list[tuple[Any, ...]]]
"""Table -> its rows, in order."""


def unpack(name: str, folder: Path) -> Path:
    with tarfile.open(KEPT / f"{name}.tar.xz") as archive:
        archive.extractall(folder)  # its filter is not in every Python 3.11
    return folder


def unpack_store(name: str, path: Path) -> Path:
    """Unpack the eval.db alone, to a path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(KEPT / f"{name}.tar.xz") as archive:
        file = archive.extractfile("results/eval.db")
        assert file is not None
        path.write_bytes(file.read())
    return path


def copy_beside(path: Path) -> Path:
    """Return the copy that a migration left of an eval.db."""
    (copy,) = path.parent.glob("eval.format-*.db")
    return copy


def read_all(path: Path) -> Rows:
    with closing(sqlite3.connect(path)) as db:
        tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {
            name: db.execute(f"SELECT * FROM {name} ORDER BY rowid").fetchall()
            for (name,) in sorted(tables)
        }


def schema_of(path: Path) -> list[str]:
    """Return the number of a store's format, and the statements that made its tables."""
    with closing(sqlite3.connect(path)) as db:
        version = db.execute("PRAGMA user_version").fetchone()
        tables = db.execute("SELECT replace(sql, '\"', '') FROM sqlite_master WHERE sql > ''")
        return [str(version), *sorted(sql for (sql,) in tables)]


def is_whole(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as db:
        return db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
