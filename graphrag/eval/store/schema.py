"""Defines the tables of a store and their keys, and how an older format becomes the next."""

import sqlite3
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from graphrag.eval.errors import StoreError

FORMAT = 5
_RUN = "run_id TEXT NOT NULL REFERENCES runs"
_TABLES = {
    "runs": "run_id TEXT PRIMARY KEY, started_at TEXT NOT NULL, finished_at TEXT, "
    "status TEXT NOT NULL, setup TEXT NOT NULL, details TEXT",
    "samples": f"{_RUN}, position INTEGER NOT NULL, sample TEXT NOT NULL",
    "responses": f"{_RUN}, unit TEXT NOT NULL, sample_id TEXT NOT NULL, method TEXT NOT NULL, "
    "response TEXT NOT NULL, context_text TEXT, latency_s REAL, usage TEXT NOT NULL, "
    "failure TEXT, recorded_at TEXT NOT NULL, trial INTEGER NOT NULL, retrieved TEXT, "
    "abstained INTEGER NOT NULL",
    "verdicts": f"{_RUN}, unit TEXT NOT NULL, metric TEXT NOT NULL, score INTEGER, "
    "reason TEXT NOT NULL, failure TEXT, recorded_at TEXT NOT NULL, repeats TEXT",
    "judge_usage": f"{_RUN}, unit TEXT NOT NULL, usage TEXT NOT NULL",
    "forgotten": f"{_RUN}, unit TEXT NOT NULL, usage TEXT NOT NULL",
    "calls": f"{_RUN}, scope TEXT NOT NULL, call TEXT NOT NULL, reply TEXT, attempts TEXT",
    "judgements": f"{_RUN}, subject TEXT NOT NULL, kind TEXT NOT NULL, value TEXT NOT NULL, "
    "failed INTEGER NOT NULL, usage TEXT NOT NULL, recorded_at TEXT NOT NULL",
}
_KEYS = {
    "samples": ["run_id", "position"],
    "responses": ["run_id", "unit"],
    "verdicts": ["run_id", "unit", "metric"],
    "calls": ["run_id", "scope", "call"],
    "judgements": ["run_id", "subject", "kind"],
}
MIGRATIONS: dict[int, Sequence[str]] = {
    4: [
        "CREATE TABLE migrated (run_id TEXT NOT NULL REFERENCES runs, unit TEXT NOT NULL, "
        "sample_id TEXT NOT NULL, method TEXT NOT NULL, response TEXT NOT NULL, context_text TEXT, "
        "latency_s REAL, usage TEXT NOT NULL, failure TEXT, recorded_at TEXT NOT NULL, "
        "trial INTEGER NOT NULL, retrieved TEXT, abstained INTEGER NOT NULL, "
        "PRIMARY KEY (run_id, unit))",
        "INSERT INTO migrated SELECT * FROM responses ORDER BY rowid",
        "DROP TABLE responses",
        "ALTER TABLE migrated RENAME TO responses",
    ]
}
"""Format -> the statements that turn it into the next format. They must never change."""
COLUMNS = {
    table: [column.split()[0] for column in columns.split(", ")]
    for table, columns in _TABLES.items()
}
"""Table -> its columns, in the order in which values are given."""


@cache
def insert(table: str) -> str:
    """Return the SQL that adds a row to a table, or replaces the row of the same key."""
    columns, key = COLUMNS[table], _KEYS.get(table)
    sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    if key is None:
        return sql
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
    return f"{sql} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}"


def prepare_database(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new database; leave an existing one as it is.

    Raises StoreError if the database belongs to something else, or its format can't be read.
    """
    version = format_of(db)
    if version == 0 and db.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise StoreError(f"{path} is a database of something else; choose another --output.")
    if version > FORMAT:
        raise StoreError(
            f"{path} has format {version}, of a newer gtog than this one, which reads {FORMAT}: "
            "update gtog, or choose another folder with --output."
        )
    if version not in (0, FORMAT):
        raise StoreError(
            f"{path} has format {version}, of a time before 1.0.0 that is not read any more; "
            "choose another folder with --output."
        )
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=NORMAL")
    if version == 0:
        keys = {table: f", PRIMARY KEY ({', '.join(key)})" for table, key in _KEYS.items()}
        tables = "".join(
            f"CREATE TABLE {table} ({columns}{keys.get(table, '')});"
            for table, columns in _TABLES.items()
        )
        db.executescript(f"BEGIN;{tables}PRAGMA user_version={FORMAT};COMMIT;")


def format_of(db: sqlite3.Connection) -> int:
    """Return the format that a database says it has; 0 if it is new."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])
