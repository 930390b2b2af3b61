"""The tables of a store, and how an eval.db of an earlier format is brought up to date."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from graphrag.eval.errors import StoreError
from graphrag.eval.store.damage import damage_error, row_error
from graphrag.prompts.query.global_search_reduce_system_prompt import NO_DATA_ANSWER

FORMAT = 4

_TABLES = """
CREATE TABLE runs (
    run_id TEXT PRIMARY KEY,
    started_at TEXT NOT NULL,
    finished_at TEXT,
    status TEXT NOT NULL,
    setup TEXT NOT NULL
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
    trial INTEGER NOT NULL DEFAULT 0,
    retrieved TEXT,
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
"""
_NEW_IN_2 = """
CREATE TABLE samples (
    run_id TEXT NOT NULL REFERENCES runs,
    position INTEGER NOT NULL,
    sample TEXT NOT NULL,
    PRIMARY KEY (run_id, position)
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
_NEW_IN_3 = """
ALTER TABLE runs ADD COLUMN details TEXT;
"""
_SENTENCES_TO_3 = ("I could not find this in the provided context.", NO_DATA_ANSWER)
"""How ToG, the embedded models and global search began a response that is no answer; up to
format 3 nothing but these sentences told of it."""
_READS_SO = " OR ".join(
    f"ltrim(response, ' ' || char(9, 10, 13)) GLOB '{said}*'" for said in _SENTENCES_TO_3
)
_NEW_IN_4 = f"""
ALTER TABLE responses ADD COLUMN abstained INTEGER NOT NULL DEFAULT 0;
UPDATE responses SET abstained = 1 WHERE failure IS NULL AND ({_READS_SO});
"""
_FROM_FORMAT_1 = """
ALTER TABLE responses ADD COLUMN trial INTEGER NOT NULL DEFAULT 0;
ALTER TABLE responses ADD COLUMN retrieved TEXT;
ALTER TABLE verdicts ADD COLUMN repeats TEXT;
"""
_CHANGES = (_TABLES, _NEW_IN_2, _NEW_IN_3, _NEW_IN_4)
"""What brings a database of each format, from none on, to the next one."""

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
    """Make the tables of a new database, or those that an earlier format lacks.

    Raises
    ------
    StoreError
        If the database is of something else, or of a later format.
    """
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version == 0 and db.execute("SELECT 1 FROM sqlite_master").fetchone():
        msg = f"{path} is a database of something else; choose another --output."
        raise StoreError(msg)
    if version > FORMAT:
        msg = (
            f"{path} has format {version}, this release reads 1 to {FORMAT}; "
            "choose another folder with --output."
        )
        raise StoreError(msg)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=NORMAL")
    if version != FORMAT:
        changes = "".join(_CHANGES[version:])
        if version == 1:
            changes = _FROM_FORMAT_1 + changes
        db.executescript(f"BEGIN;{changes}PRAGMA user_version={FORMAT};COMMIT;")


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
