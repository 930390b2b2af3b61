"""Workers that are processes of this machine."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Generator
from multiprocessing.connection import Connection
from types import FrameType, ModuleType
from typing import Any

from tqdm import tqdm

from graphrag.eval.runner.shares import Share
from graphrag.eval.runner.tasks import Event, Order

_SIGNALS = {signal.SIGINT, signal.SIGTERM}


class ProcessLink:
    """The line to a worker that is a process of its own.

    Parameters
    ----------
    payload : bytes
        A pickled WorkerSetup.
    share : Share
    """

    def __init__(self, payload: bytes, share: Share) -> None:
        context = multiprocessing.get_context("spawn")
        self._line, theirs = context.Pipe()
        name = f"gtog-worker-{share.index}"
        # Not a daemon: methods of the user's own may begin processes.
        self._process = context.Process(
            target=run_process, args=(theirs, payload, share), name=name, daemon=False
        )
        with _without_main(), _signals_held():
            self._process.start()
        theirs.close()

    def send(self, order: Order) -> None:
        """Send an order; a process that is dead is noticed by :meth:`receive`."""
        with contextlib.suppress(OSError):
            self._line.send(order)

    def receive(self) -> list[Event]:
        """Wait for events, and return all that are there.

        Raises
        ------
        EOFError
            If the process has ended.
        """
        try:
            events: list[Event] = [self._line.recv()]
            while self._line.poll():
                events.append(self._line.recv())
        except Exception as error:  # also what can't be unpickled: the worker is given up
            raise EOFError(self._describe_end()) from error
        return events

    def close(self) -> None:
        """End the process; it holds nothing that would have to be kept."""
        self._process.kill()
        self._process.join(5.0)

    def _describe_end(self) -> str:
        self._process.join(5.0)
        code = self._process.exitcode
        if code is not None and code < 0:
            return f"by signal {-code}"
        return "without an exit code" if code is None else f"with exit code {code}"


def run_process(line: "Connection[Any, Any]", payload: bytes, share: Share) -> None:
    """Work until the owner of the store goes away."""
    _leave_signals()
    # Its own lock is a semaphore of the system, which Python warns of when a process is killed.
    tqdm.set_lock(threading.RLock())
    from graphrag.eval.runner.worker import Worker

    lock = threading.Lock()

    def tell(event: Event) -> None:
        try:
            with lock:
                line.send(event)
        except OSError:  # the owner is gone, and with it everything that could be kept
            os._exit(1)

    worker = Worker(payload, share, tell)

    def read() -> None:
        try:
            while True:
                worker.deliver(line.recv())
        except (EOFError, OSError):
            os._exit(1)

    threading.Thread(target=read, name="orders", daemon=True).start()
    worker.run()


def _leave_signals() -> None:
    """Leave Ctrl-C, which reaches every process of a terminal, to the owner of the store."""
    for number in _SIGNALS:
        signal.signal(number, _ignore)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


def _ignore(number: int, frame: FrameType | None) -> None:
    """Unlike SIG_IGN, this is not handed down to what the worker begins itself."""


@contextlib.contextmanager
def _signals_held() -> Generator[None]:
    """Let a process that begins here get no signal before it knows what to do with it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _without_main() -> Generator[None]:
    """Keep a process that begins here from running the program's own file once more.

    That would take seconds, and begin workers in workers where the file has no guard.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
