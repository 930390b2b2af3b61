"""Shows how far a run or a step is: a bar on a terminal, plain lines in a pipe or a log."""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Self

from rich.console import Console

from graphrag.eval.report.formatting import money

if TYPE_CHECKING:  # every command loads this module
    from graphrag.eval.runner.scheduler import Tally
    from graphrag.eval.store.records import Unit

LINE_AFTER_S = 10.0
SAME_LINE_AFTER_S = 60.0
"""Seconds after which an unchanged line is printed again, with the time taken so far."""


class Pulse:
    """Prints the work of a step as plain lines, and repeats the line while the step lasts.

    ``write``: prints a line. ``clock``: returns seconds that only grow. ``at_once``: whether
    ``text`` is printed now, or only if the step lasts.
    """

    def __init__(
        self,
        write: Callable[[str], object],
        text: str,
        clock: Callable[[], float] = time.monotonic,
        at_once: bool = True,
    ) -> None:
        self._write, self._clock, self._text, self._shown = write, clock, text, ""
        self._begun_at = self._line_at = clock()
        self._at_once, self._ended = at_once, threading.Event()

    def __enter__(self) -> Self:
        if self._at_once:
            self.print_now(self._text)
        threading.Thread(target=self._go_on, name="progress", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def print_now(self, text: str) -> None:
        """Print a line now, unless it was the last one printed."""
        self._text = text
        if text != self._shown:
            self._print(text)

    def update(self, text: str) -> None:
        """Set the line to print when one is due."""
        self._text = text

    def beat(self) -> None:
        """Print a line if one is due; a thread calls this every second."""
        now, text = self._clock(), self._text
        is_same = text == self._shown
        if now - self._line_at >= (SAME_LINE_AFTER_S if is_same else LINE_AFTER_S):
            self._print(text, f" ({now - self._begun_at:.0f} s)" if is_same else "")

    def _go_on(self) -> None:
        while not self._ended.wait(1):
            self.beat()

    def _print(self, line: str, took: str = "") -> None:
        self._shown, self._line_at = line, self._clock()
        self._write(f"{line}{took}")


class BarProgress:
    """A live progress bar for a terminal; a context manager."""

    def __init__(self, console: Console) -> None:
        from rich import progress

        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[note]}"),
            progress.TimeElapsedColumn(),
            progress.TextColumn("left"),
            progress.TimeRemainingColumn(),
            console=console,
        )
        self._task = self._bar.add_task("Evaluating", total=None, note="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def advance(self, tally: "Tally", latest: "Unit | None") -> None:
        """Move the bar to a tally."""
        note = describe_tally(tally)
        self._bar.update(self._task, completed=tally.done, total=tally.total, note=note)


class LineProgress(Pulse):
    """Lines for a pipe or a log: at the start, every ten seconds, and at the end."""

    def __init__(self, console: Console) -> None:
        super().__init__(partial(console.print, soft_wrap=True), "Evaluating ...", at_once=False)

    def advance(self, tally: "Tally", latest: "Unit | None") -> None:
        """Print the first tally and the last at once, and the others when a line is due."""
        line = f"{tally.done}/{tally.total} {describe_tally(tally)}".rstrip()
        is_end = latest is None or tally.done == tally.total
        (self.print_now if is_end else self.update)(line)


def describe_tally(tally: "Tally") -> str:
    """Return tokens, cost, failures and unscored verdicts as one line."""
    parts = [f"{tally.tokens:,} tokens"] if tally.tokens else []
    if tally.cost_usd:
        parts.append(money(tally.cost_usd, "$"))
    if tally.failed:
        parts.append(f"{tally.failed} failed")
    if tally.unscored:
        parts.append(f"{tally.unscored} unscored")
    return ", ".join(parts)
