"""How far a run is, on a terminal or in a pipe."""

from typing import Any

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
from graphrag.eval.report.heartbeat import Pulse, beating
from graphrag.eval.runner.queue import Tally


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
    """Lines for a pipe or a log: at the start, every ten seconds, and at the end; dots between."""

    def __init__(self, console: Console) -> None:
        self._beats = beating(console.file, "Evaluating ...", at_once=False)
        self._pulse: Pulse | None = None
        self._is_quiet = console.quiet

    def __enter__(self) -> "LineProgress":
        if not self._is_quiet:
            self._pulse = self._beats.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._pulse is not None:
            self._beats.__exit__(*error)

    def advance(self, tally: Tally, latest: QueryResult | None) -> None:
        """Show the first line and the last, and hand on what stands between."""
        if self._pulse is None:
            return
        line = f"{tally.done}/{tally.total} {describe_tally(tally)}".rstrip()
        if latest is None or tally.done == tally.total:
            self._pulse.say(line)
        else:
            self._pulse.update(line)


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
