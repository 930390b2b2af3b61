"""How far a run is, on a terminal or in a pipe."""

import time

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
from graphrag.eval.reports.cells import money
from graphrag.eval.run import Tally

_LINE_EVERY_S = 10.0


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
        self._bar.update(
            self._task, completed=tally.done, total=tally.total, note=describe_tally(tally)
        )


class LineProgress:
    """Plain lines for a pipe or a log: at the start, every ten seconds, and at the end."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown_at = time.monotonic()
        self._shown = ""

    def __enter__(self) -> "LineProgress":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def advance(self, tally: Tally, latest: QueryResult | None) -> None:
        """Print a line when it is time for one."""
        now = time.monotonic()
        if latest is None or tally.done == tally.total or now - self._shown_at >= _LINE_EVERY_S:
            self._shown_at = now
            line = f"{tally.done}/{tally.total} {describe_tally(tally)}".rstrip()
            if line != self._shown:  # all may be there at the start
                self._console.print(line)
            self._shown = line


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
