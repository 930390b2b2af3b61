"""Opens the database of a store, and writes its rows in groups, without API keys in them.

A transaction costs more than the rows in it. While a run goes on, a reply is therefore written with
the next call that is about to be sent, or with the result that it is part of; at the latest in the
next turn of the event loop. A call is not sent before it is written.
"""

import asyncio
import os
import sqlite3
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeAlias

from graphrag.eval.errors import StoreError
from graphrag.eval.store.locking import lock_file
from graphrag.eval.store.schema import FORMAT, MIGRATIONS, format_of, prepare_database
from graphrag.text.held_files import move
from graphrag.text.redaction import redact_data
from graphrag.text.terminal_escape import mend_text

if TYPE_CHECKING:
    from filelock import FileLock

IN_MEMORY = Path(":memory:")
"""Given as a path: a database that is gone when it is closed."""


def damage_error(path: Path, cause: object, in_row: bool = False) -> StoreError:
    """Return the error for a damaged file, with SQLite's own remedy.

    ``in_row``: the damage is within a row. SQLite does not see it and would copy it, so there is no
    such remedy.
    """
    why = " ".join(str(cause).split())[:150]
    line = f"sqlite3 {quote(str(path))} .recover | sqlite3 {quote(str(path.with_name('new.db')))}"
    way_out = "Restore an earlier copy of it." if in_row else f"Save what can be read with: {line}"
    return StoreError(
        f"{path} can't be used ({why}); nothing of it is shown or continued. {way_out}"
    )


@contextmanager
def explain_errors(path: Path) -> Generator[None]:
    """Turn an error of SQLite within the block into a StoreError that says what to do."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "decode to UTF-8" in str(error):
            raise damage_error(path, "a text of it is damaged", in_row=True) from error
        if "malformed JSON" in str(error):
            raise damage_error(path, f"a row of it is damaged: {error}", in_row=True) from error
        raise StoreError(
            f"{path} can't be used ({error}); its content is kept. Free some space, then run "
            "again with --resume if the run had begun, else without; or begin in another --output."
        ) from error
    except sqlite3.DatabaseError as error:
        raise damage_error(path, error) from error


def check_pages(path: Path) -> None:
    """Raise StoreError if the pages of an eval.db don't fit together.

    Bytes that changed within a text are not noticed: SQLite keeps no checksums.
    """
    if not path.is_file():
        return
    with explain_errors(path), closing(_connect(path, "mode=ro")) as db:
        state = str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
    if state != "ok":
        raise damage_error(path, state)


Values: TypeAlias = Sequence[Any]
"""The values for the question marks of a statement: whatever SQLite can keep."""


class CleanConnection(sqlite3.Connection):
    """A connection to SQLite that removes known API keys from every text it writes.

    ``lock``: keeps every other process out of the folder. ``may_be_kept``: False if nothing of the
    latest transaction is kept, True if all of it is, or if nobody knows.
    """

    lock: "FileLock | None" = None
    may_be_kept = False

    def execute(self, sql: str, parameters: Values = (), /) -> sqlite3.Cursor:  # pyright: ignore
        """Run one statement."""
        return super().execute(sql, _clean(parameters))

    def executemany(self, sql: str, parameters: Iterable[Values], /) -> sqlite3.Cursor:  # pyright: ignore
        """Run one statement for each of several rows."""
        return super().executemany(sql, _clean_rows(list(parameters)))

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Keep everything that is written within the block, or nothing."""
        try:
            self.execute("BEGIN IMMEDIATE")
            yield
            self.may_be_kept = True
            self.execute("COMMIT")
        except BaseException:
            if self.in_transaction:  # a full disk has ended it already
                self.may_be_kept = False
                self.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Close the database and release its lock."""
        super().close()
        if self.lock is not None:
            self.lock.release()


def open_connection(path: Path, reads_only: bool = False) -> CleanConnection:
    """Open the database of a store; make it, with its folder, if it is missing.

    ``reads_only``: open it while another process holds it; every read sees it as the first one
    did. Raises StoreError if another process holds it, or it can't be opened or written.
    """
    if path == IN_MEMORY:
        db = sqlite3.connect(str(path), isolation_level=None, factory=CleanConnection)
        prepare_database(db, path)
        return db
    return _open_reading(path) if reads_only else _open_file(path)


def hold_folder(path: Path) -> "FileLock":
    """Lock a folder, so that no other process writes its eval.db and the files next to it.

    An eval.db of an older format is brought to this one. Raises StoreError if another process holds
    the folder, or it can't be written.
    """
    lock = lock_file(path, f"is running an evaluation in {path.parent}")
    try:
        if path.is_file():
            _migrate_file(path)
    except BaseException:
        lock.release()
        raise
    return lock


def _migrate_file(path: Path) -> None:
    """Bring an eval.db of an older format to this one, after copying it."""
    with explain_errors(path), closing(_connect(path, "mode=rw")) as db:
        version = format_of(db)
        if version not in MIGRATIONS:
            return
        part = path.with_name(f".{path.name}.part")  # what a killed process left is written anew
        try:
            part.unlink(missing_ok=True)
            with closing(_connect(part, "mode=rwc")) as copy:
                copy.execute("PRAGMA journal_mode=OFF")
                db.backup(copy)
            move(part, path.with_name(f"{path.stem}.format-{version}{path.suffix}"))
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        _migrate(db)


def _migrate(db: CleanConnection) -> None:
    with db.transaction():
        for version in range(format_of(db), FORMAT):
            for statement in MIGRATIONS[version]:
                db.execute(statement)
        db.execute(f"PRAGMA user_version={FORMAT}")


def _open_file(path: Path) -> CleanConnection:
    lock = hold_folder(path)
    try:
        db = open_shared(path, "mode=rwc")
    except BaseException:
        lock.release()
        raise
    db.lock = lock
    return db


def open_shared(path: Path, how: str = "mode=rw") -> CleanConnection:
    """Open an existing eval.db to write a row, also while another process holds it.

    Raises StoreError if its format can't be read, or it can't be opened.
    """
    with explain_errors(path):
        db = _connect(path, how)
        try:
            if format_of(db) in MIGRATIONS:
                hold_folder(path).release()
            prepare_database(db, path)
        except BaseException:
            db.close()
            raise
    return db


def _connect(path: Path, how: str) -> CleanConnection:
    address = f"{path.absolute().as_uri()}?{how}"
    return sqlite3.connect(address, isolation_level=None, factory=CleanConnection, uri=True)


def _open_reading(path: Path) -> CleanConnection:
    """Open an eval.db that another process may be writing."""
    with explain_errors(path):
        # Not mode=ro: SQLite would leave the files behind that it makes next to the database.
        is_writable = os.access(path.parent, os.W_OK)
        db = _connect(path, "mode=rw") if is_writable else _open_unwritable(path)
        try:
            if format_of(db) in MIGRATIONS:
                db = _bring_up(db, path)
            if format_of(db) != FORMAT:  # it is made, or refused
                db.close()
                return _open_file(path)
            db.execute("PRAGMA query_only=1")
            db.execute("BEGIN")  # what a page shows together is of one moment
        except BaseException:
            db.close()
            raise
    return db


def _bring_up(db: CleanConnection, path: Path) -> CleanConnection:
    """Bring an open database to this format; if that fails, return a copy that is."""
    try:
        hold_folder(path).release()
        return db
    except StoreError:
        copy = sqlite3.connect("", isolation_level=None, factory=CleanConnection)
    try:
        with closing(db):
            db.backup(copy)
        _migrate(copy)
    except BaseException:
        copy.close()
        raise
    return copy


def _open_unwritable(path: Path) -> CleanConnection:
    """Open an eval.db in a folder where SQLite can't make the files that it makes to read.

    Rows that were still in its log (``-wal``) when the folder was copied count as well.
    """
    log = path.with_name(f"{path.name}-wal")
    if not log.exists() or not log.stat().st_size:
        return _connect(path, "mode=ro&immutable=1")
    db = _connect(path, "mode=ro")
    try:
        db.execute("SELECT 1 FROM sqlite_master").fetchall()
    except sqlite3.OperationalError as error:  # it lacks what it is read by, ``-shm``
        db.close()
        msg = f"{path} can't be read where nothing can be written; copy its folder to elsewhere."
        raise StoreError(msg) from error
    return db


def _clean_rows(rows: list[Values]) -> list[Values]:
    """Return rows without API keys; they are checked together, because hardly any has one."""
    texts = "\0".join(value for row in rows for value in row if isinstance(value, str))
    is_clean = texts.isascii() or mend_text(texts) is texts
    return rows if is_clean and redact_data(texts) is texts else [_clean(row) for row in rows]


def _clean(values: Values) -> Values:
    return tuple(
        mend_text(redact_data(value)) if isinstance(value, str) else value for value in values
    )


Statement = tuple[str, Values]
"""SQL that changes the store, and its values."""


class StoreWriter:
    """Writes statements in the order they come, and none after a failure.

    ``path``: the file that errors name.
    """

    def __init__(self, db: CleanConnection, path: Path) -> None:
        self._db, self._path = db, path
        self._waiting: list[Statement] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failed: Exception | None = None

    def write(self, *statements: Statement) -> None:
        """Write statements and those that wait, in one transaction.

        Raises StoreError if these, or any before them, can't be written: later ones may depend on
        them.
        """
        self._check()
        self._waiting += statements
        self.catch_up()

    def write_soon(self, *statements: Statement) -> None:
        """Write statements with the next ones; outside of :meth:`grouped` at once.

        Raises StoreError if an earlier one could not be written, or if these are written at once
        and can't be.
        """
        if self._loop is None:
            self.write(*statements)
            return
        self._check()
        if not self._waiting:
            self._loop.call_soon(self._end_turn)
        self._waiting += statements

    def catch_up(self) -> None:
        """Write what waits, in one transaction; raises StoreError if that fails."""
        if not self._waiting:
            return
        statements, self._waiting = self._waiting, []
        self._db.may_be_kept = False
        try:
            with explain_errors(self._path), self._db.transaction():
                for sql, rows in groupby(statements, key=itemgetter(0)):
                    self._db.executemany(sql, [values for _, values in rows])
        except Exception as error:  # raised here, and at all that comes after it
            self._failed = error
        except BaseException:  # Ctrl-C in a program of the user's own
            if not self._db.may_be_kept:  # twice, it would be counted twice
                self._waiting = [*statements, *self._waiting]
            raise
        self._check()

    @contextmanager
    def grouped(self) -> Generator[None]:
        """Let :meth:`write_soon` put off writing within the block, in the running event loop.

        Raises StoreError at the end of the block if something could not be written.
        """
        before, self._loop = self._loop, asyncio.get_running_loop()
        try:
            yield
        finally:
            self._loop = before
            if before is None:
                self.catch_up()
                self._check()

    def _end_turn(self) -> None:
        with suppress(Exception):  # whoever writes next gets the error
            self.catch_up()

    def _check(self) -> None:
        if self._failed is not None:
            raise self._failed
