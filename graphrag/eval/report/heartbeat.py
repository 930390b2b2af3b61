"""What shows in a pipe or a log that a step goes on: a line that says what it is, and dots.

One line is open at a time. It is ended before anything else is printed, on whichever stream, as
both may go into one file; what is shown of the step after that begins a line of its own.
"""

import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import IO, Any

from graphrag.redaction import redact
from graphrag.text.controls import strip_controls

DOT_AFTER_S = 1.7
"""So that nothing is silent for 2 s, on a machine that is busy as well."""
LINE_AFTER_S = 10.0
SAME_LINE_AFTER_S = 60.0
"""A line that says nothing new is begun anew so seldom, with the time that it took so far."""


class Pulse:
    """The line of a step, and when there is something to add to it.

    Parameters
    ----------
    write : callable
        Shows a text at once; an OSError or ValueError of it ends the showing, not the step.
    text : str
        What the step does.
    clock : callable
        Returns seconds that only grow.
    """

    def __init__(
        self, write: Callable[[str], object], text: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write = write
        self._clock = clock
        self._lock = threading.RLock()  # a signal may print in the middle of a dot
        self._text = text
        self._shown: str | None = None
        self._gap = ""  # before the first dot of a line
        self._is_open = self._has_ended = False
        self._began_at = self._line_at = self._spoke_at = clock()

    def say(self, text: str | None = None) -> None:
        """Show a text now, or the step's own; not one that was the last to be shown."""
        with self._lock:
            self._text = self._text if text is None else text
            if self._text != self._shown:
                self._begin_line()

    def update(self, text: str) -> None:
        """Take what is shown when it is time for a line."""
        with self._lock:
            self._text = text

    def beat(self) -> float:
        """Show a dot, or a line, after so much silence.

        Returns
        -------
        float
            Seconds until there can be something to show, > 0.
        """
        with self._lock:
            now = self._clock()
            left = self._spoke_at + DOT_AFTER_S - now
            if left > 0:
                return left
            lasts = LINE_AFTER_S if self._text != self._shown else SAME_LINE_AFTER_S
            if self._is_open and now - self._line_at < lasts:
                self._add(f"{self._gap}.")
                self._gap = ""
            else:
                self._begin_line()
            return DOT_AFTER_S

    @contextmanager
    def interrupted(self) -> Generator[None]:
        """Let something else be printed, on a line of its own."""
        with self._lock:
            self._end_line()
            yield
            self._spoke_at = self._clock()

    def end(self) -> None:
        """End the line, and show nothing more."""
        with self._lock:
            self._end_line()
            self._has_ended = True

    def _begin_line(self) -> None:
        self._end_line()
        now = self._clock()
        lasted = f" ({now - self._began_at:.0f} s)" if self._text == self._shown else ""
        line = f"{strip_controls(redact(self._text))}{lasted}"
        self._add(line)
        self._gap = "" if line.endswith(".") else " "
        self._is_open, self._shown, self._line_at = True, self._text, now

    def _end_line(self) -> None:
        if self._is_open:
            self._add("\n")
            self._is_open = False

    def _add(self, text: str) -> None:
        if self._has_ended:
            return
        try:
            self._write(text)
        except (OSError, ValueError):  # the reader has gone away, or the stream is closed
            self._has_ended = True
        self._spoke_at = self._clock()


class _Guard:
    """A stream that ends the open line before it takes anything else."""

    def __init__(self, stream: IO[str], pulse: Pulse) -> None:
        self._stream = stream
        self._pulse = pulse

    def write(self, text: str) -> int:
        """Write a text on a line of its own."""
        if not text:
            return 0
        with self._pulse.interrupted():
            return self._stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts on a line of their own."""
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def beating(stream: IO[str], text: str, at_once: bool = True) -> Generator[Pulse]:
    """Show on a stream that is no terminal that a step goes on, until it ends in any way.

    Parameters
    ----------
    stream : IO[str]
    text : str
        What the step does.
    at_once : bool
        Whether it is said now; else after the first 2 s, so that nothing is said of a quick one.
    """

    def write(said: str) -> None:
        stream.write(said)
        stream.flush()

    pulse, ended = Pulse(write, text), threading.Event()
    before = {"stdout": sys.stdout, "stderr": sys.stderr}
    guards = {name: _Guard(kept, pulse) for name, kept in before.items()}
    for name, guard in guards.items():
        setattr(sys, name, guard)
    try:
        if at_once:
            pulse.say()
        threading.Thread(
            target=_beat_until, args=(pulse, ended), name="heartbeat", daemon=True
        ).start()
        yield pulse
    finally:
        ended.set()
        pulse.end()
        for name, guard in guards.items():
            if getattr(sys, name) is guard:
                setattr(sys, name, before[name])


def _beat_until(pulse: Pulse, ended: threading.Event) -> None:
    while not ended.wait(pulse.beat()):
        pass
