"""A store in PostgreSQL, which several machines write at once, each runs of its own.

Whoever works on a run holds an advisory lock on it, which the server takes back when the
connection ends, as it does when its process dies.
"""

import hashlib
import logging
import os
import socket
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import psycopg
from psycopg import conninfo, errors

from graphrag.eval.errors import StoreError
from graphrag.eval.store.schema import FORMAT, POSTGRESQL_TABLES
from graphrag.eval.store.transaction import Outcome
from graphrag.redaction import redact, redact_data
from graphrag.text.encodable import mend_text

# What broke a transaction is raised, and told once.
logging.getLogger("psycopg").addFilter(lambda told: not str(told.msg).startswith("error ignored"))

SCHEMA = "gtog"
_CONNECT_TIMEOUT_S = 10
_LET_GO_S = 0.5
"""How long the server may need to take back what a process held that has just ended."""
_SESSION = {
    # A machine that vanished is noticed within a minute or so, by both ends.
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "60000",
    # A run may wait for its model for as long as it takes.
    "idle_session_timeout": "0",
    "client_min_messages": "error",
}
_MARK = "\x1a"
"""Begins what stands for a character that PostgreSQL's text can't hold, and for itself."""
_CAUSES = (
    # Texts of libpq and of a server that speaks English; any other is shown as it is.
    ("password authentication failed", "The user or the password is wrong"),
    ("no password supplied", "A password is needed; name it in PGPASSWORD or ~/.pgpass"),
    ("does not exist", "Make it, or name another"),
    ("no pg_hba.conf entry", "The server lets nobody in from here; change its pg_hba.conf"),
    ("too many clients", "Raise its max_connections, or try again later"),
)


class PostgreSQLConnection:
    """A connection that leaves out of every text what is known for a key.

    Parameters
    ----------
    url : str
        As libpq takes it; environment variables and ~/.pgpass hold for what it leaves open.
    name : str
        What the database is called in sentences.

    Raises
    ------
    StoreError
        If there is no such server or database, it does not let the user in, or the tables are of
        something else or can't be made.
    """

    def __init__(self, url: str, name: str) -> None:
        self._name = name
        self._claimed: set[str] = set()
        self._db = _connect(url, name)
        try:
            with self._explained():
                self._prepare()
        except BaseException:
            self._db.close()
            raise

    def execute(self, sql: str, parameters: Sequence[object] = (), /) -> "_Found":
        """Run one statement, ``?`` for each of its values."""
        with self._explained():
            return _Found(self, self._db.execute(_translated(sql), _as_stored(parameters)))

    def executemany(self, sql: str, parameters: Iterable[Sequence[object]], /) -> None:
        """Run one statement for each of several rows."""
        with self._explained(), self._db.cursor() as cursor:
            cursor.executemany(_translated(sql), [_as_stored(row) for row in parameters])

    @contextmanager
    def transaction(self) -> Generator[Outcome]:
        """Keep all that is written within it, or nothing; what it reads comes at its end."""
        outcome = Outcome()
        with self._explained(), self._db.pipeline(), self._db.transaction():
            yield outcome
            outcome.may_be_kept = True

    def json_text(self, column: str, name: str) -> str:
        """Return SQL of a value of JSON as text."""
        return f"({column}::json ->> '{name}')"

    def json_number(self, column: str, name: str) -> str:
        """Return SQL of a number, or of true as 1 and false as 0."""
        text = self.json_text(column, name)
        flags = f"WHEN 'true' THEN 1 WHEN 'false' THEN 0 ELSE {text}::double precision"
        return f"CASE {text} {flags} END"

    def claim_run(self, run_id: str) -> None:
        """Be the only one that works on a run; StoreError names the process that does."""
        if run_id in self._claimed:
            return
        step = "wait for it, or leave --resume out to begin a run of your own"
        self._lock(run_id, "pg_try_advisory_lock", step)
        self._claimed.add(run_id)

    @contextmanager
    def unchanged_run(self, run_id: str) -> Generator[None]:
        """Keep everybody from working on a run; StoreError names the process that does."""
        self._lock(run_id, "pg_try_advisory_lock_shared", "wait for it, or name another run")
        try:
            yield
        finally:
            self.execute("SELECT pg_advisory_unlock_shared(?)", (_lock_key(run_id),))

    def _lock(self, run_id: str, function: str, step: str) -> None:
        key = _lock_key(run_id)
        end = time.monotonic() + _LET_GO_S
        while not self.execute(f"SELECT {function}(?)", (key,)).fetchall()[0][0]:
            if time.monotonic() > end:
                raise StoreError(f"{self._describe_holder(run_id, key)}; {step}.")
            time.sleep(_LET_GO_S / 10)

    def _describe_holder(self, run_id: str, key: int) -> str:
        holder = self.execute(
            "SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid) "
            "WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted "
            "AND l.classid::bigint = ? AND l.objid::bigint = ?",
            ((key >> 32) & 0xFFFFFFFF, key & 0xFFFFFFFF),
        ).fetchall()
        who = f" ({holder[0][0]})" if holder and holder[0][0] else ""
        return f"Another process{who} is working on run {run_id} in {self._name}"

    def close(self) -> None:
        """Give the runs free for others."""
        self._db.close()

    def _prepare(self) -> None:
        encoding = self._db.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            msg = (
                f"{self._name} keeps text as {encoding}, which can't hold every answer; "
                "make one with: CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"
            )
            raise StoreError(msg)
        self.execute(
            "SELECT set_config(name, wanted, false) FROM pg_settings JOIN "
            "unnest(?::text[], ?::text[]) AS given (setting_name, wanted) ON setting_name = name",
            (list(_SESSION), list(_SESSION.values())),
        )
        if "format" not in self._tables():
            self._make_tables()
        found = self.execute(f"SELECT number FROM {SCHEMA}.format").fetchall()
        self.execute(f"SET search_path TO {SCHEMA}")
        if found != [(FORMAT,)]:
            said = ", ".join(str(row[0]) for row in found) or "none"
            msg = (
                f"{self._name} has format {said}, this release reads {FORMAT}; use the release "
                "that made it, or name another database."
            )
            raise StoreError(msg)

    def _make_tables(self) -> None:
        # One transaction without a pipeline, as each step goes by what the one before found.
        with self._db.transaction():
            self.execute("SELECT pg_advisory_xact_lock(?)", (_lock_key("tables"),))
            tables = self._tables()
            if "format" in tables:
                return  # another machine has made them meanwhile
            if tables:
                msg = (
                    f"The schema {SCHEMA} of {self._name} is of something else; name another "
                    "database."
                )
                raise StoreError(msg)
            schemas = self.execute("SELECT 1 FROM pg_namespace WHERE nspname = ?", (SCHEMA,))
            if not schemas.fetchall():
                self.execute(f"CREATE SCHEMA {SCHEMA}")
            self.execute(f"SET LOCAL search_path TO {SCHEMA}")
            for table in POSTGRESQL_TABLES:
                self.execute(table)
            self.execute("INSERT INTO format (number) VALUES (?)", (FORMAT,))

    def _tables(self) -> list[str]:
        found = self.execute("SELECT tablename FROM pg_tables WHERE schemaname = ?", (SCHEMA,))
        return [row[0] for row in found.fetchall()]

    @contextmanager
    def _explained(self) -> Generator[None]:
        try:
            yield
        except errors.InsufficientPrivilege as error:
            msg = (
                f"{self._name} does not let this user work there ({_first_line(error)}); let its "
                f"owner open it once, or GRANT what is missing on the schema {SCHEMA}."
            )
            raise StoreError(msg) from error
        except psycopg.Error as error:
            if self._db.closed or self._db.broken:
                msg = (
                    f"The connection to {self._name} was lost ({_first_line(error)}); what it "
                    "holds is kept. Once the server is there again, run again with --resume."
                )
            else:
                msg = (
                    f"{self._name} can't be used ({_first_line(error)}); what it holds is kept. "
                    "Put that right, then run again with --resume."
                )
            raise StoreError(msg) from error


class _Found:
    def __init__(
        self, connection: PostgreSQLConnection, cursor: "psycopg.Cursor[tuple[Any, ...]]"
    ) -> None:
        self._connection = connection
        self._cursor = cursor

    def fetchall(self) -> list[Any]:
        """Return the rows as they were given."""
        with self._connection._explained():  # pyright: ignore[reportPrivateUsage]
            return [tuple(map(_as_given, row)) for row in self._cursor.fetchall()]


def _connect(url: str, name: str) -> "psycopg.Connection[tuple[Any, ...]]":
    try:
        given = conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError:  # whose text may show the password
        msg = f"The address of the store {name} can't be read; see docs/postgresql.md for its form."
        raise StoreError(msg) from None
    given.setdefault("connect_timeout", _CONNECT_TIMEOUT_S)
    given.setdefault("application_name", f"gtog on {socket.gethostname()[:30]}, {os.getpid()}")
    for setting in ("keepalives_idle", "keepalives_interval", "keepalives_count"):
        given.setdefault(setting, _SESSION[f"tcp_{setting}"])
    given.setdefault("tcp_user_timeout", _SESSION["tcp_user_timeout"])
    given["client_encoding"] = "utf8"
    try:
        return psycopg.connect(conninfo.make_conninfo("", **given), autocommit=True)
    except psycopg.Error as error:
        said = _first_line(error)
        cause = next((cause for sign, cause in _CAUSES if sign in str(error)), None)
        step = cause or "See that the server runs and that host and port are right"
        msg = f"The store {name} can't be opened: {said}. {step}."
        raise StoreError(msg) from error


def _first_line(error: psycopg.Error) -> str:
    """Return the last attempt's cause, or a statement's, without keys."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    lines = [line for line in lines if not line.endswith("?")]  # whether the server is running
    if error.diag.message_primary is not None:
        lines = [error.diag.message_primary]
    return redact(lines[-1] if lines else type(error).__name__).rstrip(".")


def _lock_key(name: str) -> int:
    digest = hashlib.sha256(f"{SCHEMA} {name}".encode()).digest()
    return int.from_bytes(digest[:8], signed=True)


@cache
def _translated(sql: str) -> bytes:
    return sql.replace("%", "%%").replace("?", "%s").encode()


def _as_stored(values: Sequence[object]) -> tuple[object, ...]:
    return tuple(map(_to_column, values))


def _to_column(value: object) -> object:
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, str):
        return value
    text = mend_text(redact_data(value))
    if _MARK in text or "\0" in text:
        return text.replace(_MARK, f"{_MARK}1").replace("\0", f"{_MARK}0")
    return text


def _as_given(value: object) -> object:
    if isinstance(value, str) and _MARK in value:
        return value.replace(f"{_MARK}0", "\0").replace(f"{_MARK}1", _MARK)
    return value
