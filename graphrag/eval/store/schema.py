"""The tables of a store."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from graphrag.eval.errors import StoreError
from graphrag.eval.store.damage import damage_error, row_error

FORMAT = 4

_TABLES = """
CREATE TABLE runs (
    run_id TEXT PRIMARY KEY,
    started_at TEXT NOT NULL,
    finished_at TEXT,
    status TEXT NOT NULL,
    setup TEXT NOT NULL,
    details TEXT
);
CREATE TABLE samples (
    run_id TEXT NOT NULL REFERENCES runs,
    position INTEGER NOT NULL,
    sample TEXT NOT NULL,
    PRIMARY KEY (run_id, position)
);
CREATE TABLE responses (
    run_id TEXT NOT NULL REFERENCES runs,
    unit TEXT NOT NULL,
    sample_id TEXT NOT NULL,
    method TEXT NOT NULL,
    response TEXT NOT NULL,
    context_text TEXT NOT NULL,
    latency_s REAL,
    usage TEXT NOT NULL,
    failure TEXT,
    recorded_at TEXT NOT NULL,
    trial INTEGER NOT NULL,
    retrieved TEXT,
    abstained INTEGER NOT NULL,
    PRIMARY KEY (run_id, unit)
);
CREATE TABLE verdicts (
    run_id TEXT NOT NULL REFERENCES runs,
    unit TEXT NOT NULL,
    metric TEXT NOT NULL,
    score INTEGER,
    reason TEXT NOT NULL,
    failure TEXT,
    recorded_at TEXT NOT NULL,
    repeats TEXT,
    PRIMARY KEY (run_id, unit, metric)
);
CREATE TABLE judge_usage (
    run_id TEXT NOT NULL REFERENCES runs,
    unit TEXT NOT NULL,
    usage TEXT NOT NULL
);
CREATE TABLE forgotten (
    run_id TEXT NOT NULL REFERENCES runs,
    unit TEXT NOT NULL,
    usage TEXT NOT NULL
);
CREATE TABLE calls (
    run_id TEXT NOT NULL REFERENCES runs,
    scope TEXT NOT NULL,
    call TEXT NOT NULL,
    reply TEXT,
    attempts TEXT,
    PRIMARY KEY (run_id, scope, call)
);
CREATE TABLE judgements (
    run_id TEXT NOT NULL REFERENCES runs,
    subject TEXT NOT NULL,
    kind TEXT NOT NULL,
    value TEXT NOT NULL,
    failed INTEGER NOT NULL,
    usage TEXT NOT NULL,
    recorded_at TEXT NOT NULL,
    PRIMARY KEY (run_id, subject, kind)
);
"""

COLUMNS = {
    "runs": "run_id started_at finished_at status setup details",
    "samples": "run_id position sample",
    "responses": "run_id unit sample_id method response context_text latency_s usage failure "
    "recorded_at trial retrieved abstained",
    "verdicts": "run_id unit metric score reason failure recorded_at repeats",
    "judge_usage": "run_id unit usage",
    "forgotten": "run_id unit usage",
    "calls": "run_id scope call reply attempts",
    "judgements": "run_id subject kind value failed usage recorded_at",
}
"""Table -> its columns, in the order in which values are given."""
_KEYS = {
    "samples": "run_id position",
    "responses": "run_id unit",
    "verdicts": "run_id unit metric",
    "calls": "run_id scope call",
    "judgements": "run_id subject kind",
}


@cache
def insert(table: str) -> str:
    """Return the statement that adds a row, or puts it in the place of one of the same key."""
    columns = COLUMNS[table].split()
    key = _KEYS.get(table, "").split()
    given = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    if not key:
        return given
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
    return f"{given} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}"


def prepare_database(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new database.

    Raises
    ------
    StoreError
        If the database is of something else, or of another format.
    """
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version == 0 and db.execute("SELECT 1 FROM sqlite_master").fetchone():
        msg = f"{path} is a database of something else; choose another --output."
        raise StoreError(msg)
    if version not in (0, FORMAT):
        msg = (
            f"{path} has format {version}, this release reads {FORMAT}; "
            "choose another folder with --output."
        )
        raise StoreError(msg)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=NORMAL")
    if version == 0:
        db.executescript(f"BEGIN;{_TABLES}PRAGMA user_version={FORMAT};COMMIT;")


@contextmanager
def explain_errors(path: Path) -> Generator[None]:
    """Turn what SQLite complains of into a StoreError that says what to do."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "decode to UTF-8" in str(error):
            raise row_error(path, "a text of it is damaged") from error
        msg = (
            f"{path} can't be used ({error}); what it holds is kept. Free some space or choose "
            "another folder with --output, then run again with --resume."
        )
        raise StoreError(msg) from error
    except sqlite3.DatabaseError as error:
        raise damage_error(path, error) from error
