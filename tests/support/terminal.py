"""A real terminal in which a command runs, and Ctrl-C is pressed."""

import os
import pty
import sys
import threading
import time

from support.clock_evaluation import warm_context

_CTRL_C = b"\x03"


class Terminal:
    """``graphrag`` with these words in a terminal of its own, where it is the foreground group.

    ``code`` runs first in its process.
    """

    def __init__(self, *words: str, code: str = "") -> None:
        self._master, slave = pty.openpty()
        args = os.ttyname(slave), ["graphrag", *words], code
        self._process = warm_context().Process(target=_run, args=args)
        self._process.start()
        self._shown, self._slave = b"", slave
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                part = os.read(self._master, 65536)
            except OSError:  # nobody holds the other end any more
                return
            self._shown += part

    @property
    def shown(self) -> str:
        return self._shown.decode(errors="replace")

    def press_ctrl_c(self) -> None:
        os.write(self._master, _CTRL_C)

    def wait(self, timeout_s: float) -> tuple[int | None, float]:
        """Return the exit code, None while it still runs, and how long it took from now."""
        began_s = time.monotonic()
        self._process.join(timeout_s)
        return self._process.exitcode, time.monotonic() - began_s

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()
        self._process.close()
        os.close(self._slave)
        self._reader.join(10)
        os.close(self._master)


def _run(terminal: str, words: list[str], code: str) -> None:
    os.setsid()
    place = os.open(terminal, os.O_RDWR)  # which becomes the terminal of the new session
    for number in range(3):
        os.dup2(place, number)
    sys.stdout = sys.stderr = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    os.environ |= {"TERM": "xterm", "COLUMNS": "300"}
    sys.argv = words
    exec(code, {})
    from graphrag.cli.main import app

    app()
