"""What the terminal shows: progress while a run goes on, tables when it ends; the log file."""

import logging
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from graphrag.eval.progress import Tally
from graphrag.eval.records import METRICS, QueryResult

if TYPE_CHECKING:
    from graphrag.eval.results import EvaluationResults

_LINE_EVERY_S = 10.0
_LOGGERS = ("graphrag", "graphrag_llm", "LiteLLM", "asyncio")


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
        self._shown_at = 0.0

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
            self._console.print(line, highlight=False)


@contextmanager
def log_to(path: Path, verbose: bool) -> Generator[None]:
    """Send the libraries' log lines to a file, so that the terminal stays readable."""
    handler = logging.FileHandler(path, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    before: list[tuple[logging.Logger, list[logging.Handler], bool, int]] = []
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        before.append((logger, logger.handlers, logger.propagate, logger.level))
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(logging.DEBUG if verbose else logging.WARNING)
    try:
        yield
    finally:
        for logger, handlers, propagate, level in before:
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(level)
        handler.close()


def describe_tally(tally: Tally) -> str:
    """Return failures, unscored verdicts, tokens and cost as one line."""
    parts = [f"{tally.tokens:,} tokens"] if tally.tokens else []
    if tally.cost_usd:
        parts.append(f"${tally.cost_usd:.4f}")
    if tally.failed:
        parts.append(f"{tally.failed} failed")
    if tally.unscored:
        parts.append(f"{tally.unscored} unscored")
    return ", ".join(parts)


def show_results(console: Console, results: "EvaluationResults") -> None:
    """Print the tables of a run: by method, by index, efficiency, failures."""
    label = results.metadata["embedded_models"]
    parts = [label] if label else []
    if not results.metadata.get("is_complete", True):
        parts.append("incomplete: {n_done} of {n_planned}".format(**results.metadata))
    note = f" ({'; '.join(parts)})" if parts else ""
    console.print(_means_table(f"Mean scores by method{note}", results.by_method.items()))
    rows = [
        (f"{movie}  {method}", means)
        for movie, by_method in results.by_movie.items()
        for method, means in by_method.items()
    ]
    if len(results.by_movie) > 1:
        console.print(_means_table(f"Mean scores by index and method{note}", rows))
    console.print(_efficiency_table(results.efficiency, note))
    for line in describe_failures(results):
        console.print(line, highlight=False)


def describe_failures(results: "EvaluationResults") -> list[str]:
    """Return one line for each method with failed searches or unscored verdicts, with a cause."""
    lines: list[str] = []
    for summary in results.summaries():
        of_method = [r for r in results.results if r.method == summary.method]
        causes = [r.failure.message for r in of_method if r.failure is not None]
        if causes:
            lines.append(
                f"{summary.method}: {len(causes)} of {summary.n} searches failed and count 0, "
                f"e.g. {causes[0]}"
            )
        for metric in METRICS:
            missing = [r.scores.get(metric) for r in of_method if r.scores.get(metric).failure]
            if missing:
                lines.append(
                    f"{summary.method}: {len(missing)} of {summary.n} {metric} verdicts are "
                    f"unscored and left out, e.g. {missing[0].reason}"
                )
    return lines


def _means_table(title: str, rows: Iterable[tuple[str, Mapping[str, float | None]]]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("method")
    for metric in METRICS:
        table.add_column(metric, justify="right")
    for name, means in rows:
        cells = (_number(means[metric], "{:.3f}", "unscored") for metric in METRICS)
        table.add_row(name, *cells)
    return table


def _efficiency_table(efficiency: Mapping[str, Mapping[str, Any]], note: str) -> Table:
    table = Table(title=f"Efficiency, means a question{note}", title_justify="left")
    table.add_column("method")
    columns = {
        "latency s": ("avg_latency", "{:.3f}"),
        "LLM calls": ("avg_llm_calls", "{:.2f}"),
        "prompt tokens": ("avg_prompt_tokens", "{:,.0f}"),
        "output tokens": ("avg_output_tokens", "{:,.0f}"),
        "total cost $": ("cost_usd", "{:.4f}"),
        "judge cost $": ("judge_cost_usd", "{:.4f}"),
    }
    for name in columns:
        table.add_column(name, justify="right")
    for method, figures in efficiency.items():
        cells = (_number(figures[key], form) for key, form in columns.values())
        table.add_row(method, *cells)
    return table


def _number(value: float | None, form: str, missing: str = "unknown") -> str:
    return missing if value is None else form.format(value)
