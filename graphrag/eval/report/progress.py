"""How far a run, or a step of one, is: a bar on a terminal, plain lines in a pipe or a log."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from graphrag.eval.records import QueryResult
from graphrag.eval.report.cells import money
from graphrag.eval.runner.queue import Tally

LINE_AFTER_S = 10.0
SAME_LINE_AFTER_S = 60.0
"""A line that says nothing new is printed again so seldom, with the time that it took so far."""


class Pulse:
    """The lines of a step in a pipe.

    Parameters
    ----------
    write : callable
        Prints a line.
    text : str
        What the step does.
    clock : callable
        Returns seconds that only grow.
    """

    def __init__(
        self, write: Callable[[str], object], text: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write, self._clock, self._text = write, clock, text
        self._shown = ""
        self._begun_at = self._line_at = clock()

    def say(self, text: str) -> None:
        """Print a line now, unless it was the last."""
        self._text = text
        if text != self._shown:
            self._print(text)

    def update(self, text: str) -> None:
        """Take what is printed when it is time for a line."""
        self._text = text

    def beat(self) -> None:
        """Print a line if it is time for one."""
        silent, text = self._clock() - self._line_at, self._text
        if silent >= (LINE_AFTER_S if text != self._shown else SAME_LINE_AFTER_S):
            took = f" ({self._clock() - self._begun_at:.0f} s)" if text == self._shown else ""
            self._print(f"{text}{took}")
            self._shown = text

    def _print(self, line: str) -> None:
        self._shown, self._line_at = line, self._clock()
        self._write(line)


@contextmanager
def beating(console: Console, text: str, at_once: bool = True) -> Generator[Pulse]:
    """Print what a step does, now or once it lasts, and that it goes on, until it ends."""
    pulse = Pulse(lambda line: console.print(line, soft_wrap=True), text)
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(1):
            pulse.beat()

    if at_once:
        pulse.say(text)
    thread = threading.Thread(target=beat, name="progress", daemon=True)
    thread.start()
    try:
        yield pulse
    finally:
        ended.set()


class BarProgress:
    """A live progress bar for a terminal; a context manager."""

    def __init__(self, console: Console) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = self._bar.add_task("Evaluating", total=None, note="")

    def __enter__(self) -> "BarProgress":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def advance(self, tally: Tally, latest: QueryResult | None) -> None:
        """Move the bar."""
        note = describe_tally(tally)
        self._bar.update(self._task, completed=tally.done, total=tally.total, note=note)


class LineProgress:
    """Lines for a pipe or a log: at the start, every ten seconds, and at the end."""

    def __init__(self, console: Console) -> None:
        self._beats: AbstractContextManager[Pulse] = beating(console, "Evaluating ...", False)

    def __enter__(self) -> "LineProgress":
        self._pulse = self._beats.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._beats.__exit__(None, None, None)

    def advance(self, tally: Tally, latest: QueryResult | None) -> None:
        """Print the first line and the last, and hand on what stands between."""
        line = f"{tally.done}/{tally.total} {describe_tally(tally)}".rstrip()
        is_end = latest is None or tally.done == tally.total
        (self._pulse.say if is_end else self._pulse.update)(line)


def describe_tally(tally: Tally) -> str:
    """Return failures, unscored verdicts, tokens and cost as one line."""
    parts = [f"{tally.tokens:,} tokens"] if tally.tokens else []
    if tally.cost_usd:
        parts.append(money(tally.cost_usd, "$"))
    if tally.failed:
        parts.append(f"{tally.failed} failed")
    if tally.unscored:
        parts.append(f"{tally.unscored} unscored")
    return ", ".join(parts)
