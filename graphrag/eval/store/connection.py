"""The connection to a store, which no key or password of a service passes."""

import os
import shutil
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from filelock import FileLock, Timeout

from graphrag.eval.errors import StoreError
from graphrag.eval.store.schema import FORMAT, explain_errors, prepare_database
from graphrag.redaction import redact_data
from graphrag.text.controls import mend_text


@dataclass(slots=True)
class Outcome:
    """What became of a transaction that was broken off.

    Attributes
    ----------
    may_be_kept : bool
        Whether it is kept, or nobody knows; if not, nothing of it is.
    """

    may_be_kept: bool = False


class CleanConnection(sqlite3.Connection):
    """A connection to SQLite that leaves out of every text what is known for a key.

    ``lock`` keeps every other process out of the folder; ``copy`` is where what is read was copied
    to, if it was.
    """

    lock: FileLock | None = None
    copy: TemporaryDirectory[str] | None = None

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Run one statement."""
        return super().execute(sql, _clean(parameters))

    def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
        """Run one statement for each of several rows."""
        return super().executemany(sql, _clean_rows(list(parameters)))

    @contextmanager
    def transaction(self) -> Generator[Outcome]:
        """Keep all that is written within it, or nothing; what it gives tells which."""
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

    def close(self) -> None:
        """Close the database and let others have it."""
        super().close()
        if self.lock is not None:
            self.lock.release()
        if self.copy is not None:
            self.copy.cleanup()


def open_connection(path: Path, reads_only: bool = False) -> CleanConnection:
    """Open the database of a store; make it, with its folder, when missing.

    ``reads_only``: one of this format is opened beside the process that holds it, and every later
    read sees it as it is at the first one.

    Raises
    ------
    StoreError
        If another process holds it, or it can't be opened or written.
    """
    return (_open_reading(path) if reads_only else None) or _open_file(path)


def hold_folder(path: Path) -> FileLock:
    """Keep every other process from writing an eval.db and the files beside it.

    Raises
    ------
    StoreError
        If another process does, or the folder can't be written.
    """
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
    return lock


def _open_file(path: Path) -> CleanConnection:
    lock = hold_folder(path)
    try:
        with explain_errors(path):
            db = _connect(path)
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


def _connect(path: Path, how: str = "mode=rwc") -> CleanConnection:
    address = f"{path.absolute().as_uri()}?{how}"
    return sqlite3.connect(address, isolation_level=None, factory=CleanConnection, uri=True)


def _open_reading(path: Path) -> CleanConnection | None:
    """Open an eval.db that another process may be writing; None for one that is to be changed."""
    is_writable = os.access(path.parent, os.W_OK)
    with explain_errors(path):
        # Not mode=ro: SQLite would leave the files behind that it makes beside the database.
        db = _connect(path, "mode=rw") if is_writable else _open_unwritable(path)
        try:
            if db.execute("PRAGMA user_version").fetchone()[0] == FORMAT:
                db.execute("PRAGMA query_only=1")
                db.execute("BEGIN")  # what a page shows together is of one moment
                return db
        except BaseException:
            db.close()
            raise
        db.close()
        return None if is_writable else _open_copy(path)


def _open_unwritable(path: Path) -> CleanConnection:
    """Open an eval.db where no file can be made, as those that SQLite makes while it reads.

    What was not taken over from its log (``-wal``) when the folder was copied counts as well.
    """
    log = path.with_name(f"{path.name}-wal")
    if log.exists():
        db = _connect(path, "mode=ro")
        with suppress(sqlite3.OperationalError):  # unless another process has what it needs open
            db.execute("SELECT 1 FROM sqlite_master").fetchall()
            return db
        db.close()
        if log.stat().st_size:
            return _open_copy(path)
    return _connect(path, "mode=ro&immutable=1")


def _open_copy(path: Path) -> CleanConnection:
    """Copy an eval.db that can't be read where it is, and open that."""
    folder = TemporaryDirectory(prefix="graphrag-eval-")
    try:
        copy = Path(folder.name) / path.name
        for end in ("", "-wal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{end}", f"{copy}{end}")
        db = _connect(copy, "mode=rw")
        db.copy = folder
        prepare_database(db, path)
    except OSError as error:
        folder.cleanup()
        msg = f"{path} can't be read where it is, and not copied to {folder.name} ({error})."
        raise StoreError(msg) from error
    except BaseException:
        folder.cleanup()
        raise
    return db


def _clean_rows(rows: list[Any]) -> list[Any]:
    """Return rows as they may be kept; looked through at once, as hardly any holds a key."""
    texts = "\0".join(value for row in rows for value in row if isinstance(value, str))
    is_clean = texts.isascii() or mend_text(texts) is texts
    return rows if is_clean and redact_data(texts) is texts else [_clean(row) for row in rows]


def _clean(values: Any) -> Any:
    return tuple(
        mend_text(redact_data(value)) if isinstance(value, str) else value for value in values
    )
