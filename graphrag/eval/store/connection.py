"""The connection to a store, which no key or password of a service passes."""

import sqlite3
from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol

from filelock import FileLock, Timeout

from graphrag.eval.errors import StoreError, UsageError
from graphrag.eval.store.location import StoreLocation, StorePlace
from graphrag.eval.store.schema import FORMAT, explain_errors, prepare_database
from graphrag.eval.store.transaction import Outcome
from graphrag.installation import extra_hint
from graphrag.redaction import redact_data
from graphrag.text.encodable import mend_text


class Found(Protocol):
    """What a statement found."""

    def fetchall(self) -> list[Any]:
        """Return its rows."""
        ...


class StoreConnection(Protocol):
    """What the store asks of a database, in SQL that SQLite and PostgreSQL both understand."""

    def execute(self, sql: str, parameters: Sequence[object] = (), /) -> Found:
        """Run one statement, ``?`` for each of its values."""
        ...

    def executemany(self, sql: str, parameters: Iterable[Sequence[object]], /) -> object:
        """Run one statement for each of several rows."""
        ...

    def transaction(self) -> AbstractContextManager[Outcome]:
        """Keep all that is written within it, or nothing; what it gives tells which."""
        ...

    def claim_run(self, run_id: str) -> None:
        """Be the only one that works on a run, until the connection or the process ends.

        Raises
        ------
        StoreError
            If another process works on it.
        """
        ...

    def unchanged_run(self, run_id: str) -> AbstractContextManager[None]:
        """Keep everybody from working on a run, while it is read.

        Raises
        ------
        StoreError
            If another process works on it.
        """
        ...

    def close(self) -> None:
        """Give the database free for others."""
        ...


class CleanConnection(sqlite3.Connection):
    """A connection to SQLite that leaves out of every text what is known for a key.

    ``lock`` keeps every other process out of the folder, and so from every run of it.
    """

    lock: FileLock | None = None

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Run one statement."""
        return super().execute(sql, _clean(parameters))

    def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
        """Run one statement for each of several rows."""
        return super().executemany(sql, _clean_rows(list(parameters)))

    @contextmanager
    def transaction(self) -> Generator[Outcome]:
        """Keep all that is written within it, or nothing."""
        outcome = Outcome()
        try:
            self.execute("BEGIN IMMEDIATE")
            yield outcome
            outcome.may_be_kept = True
            self.execute("COMMIT")
        except BaseException:
            if self.in_transaction:  # a full disk has ended it already
                outcome.may_be_kept = False
                self.execute("ROLLBACK")
            raise

    def claim_run(self, run_id: str) -> None:
        """Do nothing: the lock of the folder holds every run."""

    def unchanged_run(self, run_id: str) -> AbstractContextManager[None]:
        """Do nothing: the lock of the folder holds every run."""
        return nullcontext()

    def close(self) -> None:
        """Close the database and let others have it."""
        super().close()
        if self.lock is not None:
            self.lock.release()


def open_connection(place: StorePlace, reads_only: bool = False) -> StoreConnection:
    """Open the database of a store; make it, with its folder, when missing.

    ``reads_only``: an eval.db of this format is opened beside the process that holds it, and every
    later read sees it as it is at the first one.

    Raises
    ------
    UsageError
        If it needs a library that is not installed.
    StoreError
        If another process holds it, or it can't be opened or written.
    """
    if isinstance(place, StoreLocation):
        if place.url is not None:
            return _open_server(place, place.url)
        place = place.path
    return (_open_reading(place) if reads_only else None) or _open_file(place)


def _open_server(place: StoreLocation, url: str) -> StoreConnection:
    try:
        from graphrag.eval.store.postgresql import PostgreSQLConnection
    except ImportError as error:
        msg = f"The store {place} needs psycopg, which is not here. Run: {extra_hint('postgres')}"
        raise UsageError(msg) from error
    return PostgreSQLConnection(url, str(place))


def _open_file(path: Path) -> CleanConnection:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(f"{path}.lock", timeout=0)
        lock.acquire()
    except Timeout as error:
        msg = (
            f"Another process is running an evaluation in {path.parent}; wait for it, "
            "or choose another folder with --output."
        )
        raise StoreError(msg) from error
    except OSError as error:
        msg = f"{path.parent} can't be written ({error.strerror}); choose another --output."
        raise StoreError(msg) from error
    try:
        with explain_errors(path):
            db = sqlite3.connect(path, isolation_level=None, factory=CleanConnection)
            try:
                prepare_database(db, path)
            except BaseException:
                db.close()
                raise
    except BaseException:
        lock.release()
        raise
    db.lock = lock
    return db


def _open_reading(path: Path) -> CleanConnection | None:
    """Open an eval.db that another process may be writing; None for one that is to be changed."""
    with explain_errors(path):
        address = f"{path.absolute().as_uri()}?mode=ro"
        db = sqlite3.connect(address, isolation_level=None, factory=CleanConnection, uri=True)
        try:
            if db.execute("PRAGMA user_version").fetchone()[0] == FORMAT:
                db.execute("BEGIN")  # what a page shows together is of one moment
                return db
        except BaseException:
            db.close()
            raise
        db.close()
    return None


def _clean_rows(rows: list[Any]) -> list[Any]:
    """Return rows as they may be kept; looked through at once, as hardly any holds a key."""
    texts = "\0".join(value for row in rows for value in row if isinstance(value, str))
    is_clean = texts.isascii() or mend_text(texts) is texts
    return rows if is_clean and redact_data(texts) is texts else [_clean(row) for row in rows]


def _clean(values: Any) -> Any:
    return tuple(
        mend_text(redact_data(value)) if isinstance(value, str) else value for value in values
    )
