"""Writing to a store: some of it together with what comes next.

A transaction costs more than the rows in it. While a run goes on, a reply is written with the next
call that is about to be sent, which must not be sent before it is there, or with the result that it
is part of; at the latest in the next turn of the event loop.
"""

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from graphrag.eval.store.connection import CleanConnection, Outcome
from graphrag.eval.store.schema import explain_errors

Statement = tuple[str, Sequence[object]]
"""SQL that changes the store, and its values."""


class StoreWriter:
    """Writes in the order in which it is told, and after a failure nothing any more.

    Parameters
    ----------
    db : CleanConnection
    path : Path
        As errors name it.
    """

    def __init__(self, db: CleanConnection, path: Path) -> None:
        self._db, self._path = db, path
        self._waiting: list[Statement] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failed: Exception | None = None

    def write(self, *statements: Statement) -> None:
        """Write statements and what waits, all or none of it.

        Raises
        ------
        StoreError
            If that, or anything before it, can't be written: what follows may rest on it.
        """
        self._check()
        self._waiting += statements
        self.catch_up()

    def write_soon(self, *statements: Statement) -> None:
        """Write statements with the next ones; outside of :meth:`grouped` at once.

        Raises
        ------
        StoreError
            If anything before it could not be written, or it can't be itself and is not put off.
        """
        if self._loop is None:
            self.write(*statements)
            return
        self._check()
        if not self._waiting:
            self._loop.call_soon(self._end_turn)
        self._waiting += statements

    def catch_up(self) -> None:
        """Write what waits, in one transaction; StoreError if it can't be."""
        if not self._waiting:
            return
        given, self._waiting = self._waiting, []
        outcome = Outcome()
        try:
            with explain_errors(self._path), self._db.transaction() as outcome:
                for sql, rows in groupby(given, key=itemgetter(0)):
                    self._db.executemany(sql, [values for _, values in rows])
        except Exception as error:  # raised here, and at all that comes after it
            self._failed = error
        except BaseException:  # Ctrl-C in a program of the user's own
            if not outcome.may_be_kept:  # twice, it would be counted twice
                self._waiting = [*given, *self._waiting]
            raise
        self._check()

    @contextmanager
    def grouped(self) -> Generator[None]:
        """Let what is to be written soon be put off, until the block ends, in the running loop.

        Raises
        ------
        StoreError
            At its end, if something could not be written.
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
        with suppress(Exception):  # whoever writes next is told
            self.catch_up()

    def _check(self) -> None:
        if self._failed is not None:
            raise self._failed
