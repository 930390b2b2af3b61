"""Handles Ctrl-C and SIGTERM: the first one ends a command in order, the second one at once."""

import asyncio
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from contextvars import copy_context
from types import FrameType
from typing import TypeVar

from graphrag.eval.cli.event_loop import open_loop
from graphrag.text.cli_hints import again, current_command
from graphrag.text.redaction import redact
from graphrag.text.terminal_escape import strip_controls

T = TypeVar("T")
INTERRUPTED = 130
WITHIN_S = 10.0
"""Seconds from the first interrupt until the process ends, whatever it is doing."""
_NUMBERS = (signal.SIGINT, signal.SIGTERM)


def explain_interrupt() -> str:
    """Return the sentence of an interrupted command, with the command that continues it."""
    if not current_command().resumes:
        return "Interrupted."
    kept = "Interrupted; what was finished is kept, if the run had begun."
    return f"{kept} Continue with: {again('--resume')}"


class _Interrupts:
    """Takes the signals of one command.

    Python runs a handler between two steps of the main thread. A thread of its own reads each
    signal as it comes, so that the process ends even while the main thread waits for something.
    """

    def __init__(self) -> None:
        self.stop: Callable[[], object] | None = None
        self.last_words: Callable[[], str] = explain_interrupt
        self.context = copy_context()
        self.n_met = 0
        self._is_ending = threading.Lock()
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._woken = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, self._handle) for number in _NUMBERS}
        self._thread = threading.Thread(target=self._read, name="signals", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Give the signals back to the handlers that had them before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._woken)
        self._writer.close()
        self._thread.join()
        self._reader.close()

    def _handle(self, _: int, frame: FrameType | None) -> None:
        self.n_met += 1
        self.context = copy_context()
        if self.n_met > 1:
            self._end()
        elif self.stop is None:
            raise KeyboardInterrupt
        else:
            self.stop()

    def _read(self) -> None:
        n, ends_at = 0, 0.0
        while n < 2:
            if n:
                self._reader.settimeout(max(0.0, ends_at - time.monotonic()))
            try:
                numbers = self._reader.recv(64)
            except (TimeoutError, BlockingIOError):
                break
            if not numbers:
                return
            n_new = sum(number in _NUMBERS for number in numbers)
            if n_new and not n:
                ends_at = time.monotonic() + WITHIN_S
            n += n_new
        self._end()

    def _end(self) -> None:
        """End the process without an exception, which could be lost wherever the program is."""
        if not self._is_ending.acquire(blocking=False):
            return
        # Whatever showed progress may have left the cursor hidden, within a line.
        shows = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        start = "\r\x1b[2K\x1b[?25h" if shows else ""
        try:
            words = self.context.run(self.last_words)  # they name the command that was given
            os.write(2, f"{start}{strip_controls(redact(words))}\n".encode())
        finally:
            os._exit(INTERRUPTED)


_current: _Interrupts | None = None


@contextmanager
def handle_interrupts() -> Generator[None]:
    """Handle Ctrl-C and SIGTERM within the block, and after it if one came.

    The first one raises KeyboardInterrupt, or calls the ``stop`` of :func:`stop_by`. The second
    one, or ten seconds after the first, ends the process with exit code 130.
    """
    global _current
    is_main = threading.current_thread() is threading.main_thread()
    if _current is not None or not is_main:  # a command within a command
        yield
        return
    _current = _Interrupts()
    try:
        yield
    finally:
        if not _current.n_met:
            _current.close()
            _current = None


def is_interrupted() -> bool:
    """Return whether the running command was interrupted."""
    return _current is not None and _current.n_met > 0


@contextmanager
def stop_by(
    stop: Callable[[], object] | None = None, last_words: Callable[[], str] | None = None
) -> Generator[None]:
    """Have the first interrupt within the block call ``stop`` instead of raising an error.

    ``stop`` runs between two steps of the main thread, and must return soon. ``last_words`` runs in
    any thread when the process ends at once. It removes unfinished files and returns the text to
    print.
    """
    interrupts = _current
    if interrupts is None:
        yield
        return
    before = interrupts.stop, interrupts.last_words
    interrupts.context = copy_context()
    interrupts.stop = stop or interrupts.stop
    interrupts.last_words = last_words or interrupts.last_words
    try:
        yield
    finally:
        interrupts.stop, last_words = before
        if not interrupts.n_met:  # else a second interrupt ends what the first one stopped
            interrupts.last_words = last_words


def run_coroutine(main: Coroutine[object, object, T]) -> T:
    """Run a command's coroutine to its end and return its result; an interrupt cancels it.

    Raises KeyboardInterrupt if an interrupt canceled it.
    """
    with asyncio.Runner(loop_factory=open_loop) as runner:
        loop = runner.get_loop()
        task = loop.create_task(main)
        try:
            with stop_by(lambda: loop.call_soon_threadsafe(task.cancel)):
                return loop.run_until_complete(task)
        except asyncio.CancelledError as error:
            if is_interrupted():
                raise KeyboardInterrupt from error
            raise
