"""How a run tells how far it is; what is shown where is decided by who watches."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from graphrag.eval.records import QueryResult

ProgressCallback = Callable[[int, int, str, str], None]
"""Called with (current, total, imdb_key, method) after each unit."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How far a run is.

    Attributes
    ----------
    done, total : int
        Units of work: a question asked by a method and judged.
    failed : int
        Searches that failed.
    unscored : int
        Verdicts that the judge failed to give.
    tokens : int
        Prompt and output tokens so far, searches and judge, embeddings included.
    cost_usd : float
        US dollars so far; calls of unknown price are left out.
    """

    done: int
    total: int
    failed: int = 0
    unscored: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


class Progress(Protocol):
    """Watches a run."""

    def advance(self, tally: Tally, latest: QueryResult | None) -> None:
        """Be told that a unit is done; ``latest`` is None when what was there is counted."""
        ...


class Unwatched:
    """Shows nothing."""

    def advance(self, tally: Tally, latest: QueryResult | None) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class CallbackProgress:
    """Calls a function with (current, total, imdb_key, method) after each unit."""

    callback: ProgressCallback

    def advance(self, tally: Tally, latest: QueryResult | None) -> None:
        """Pass the latest unit on."""
        if latest is not None:
            self.callback(tally.done, tally.total, latest.imdb_key, latest.method)


class NotebookProgress:
    """One line in a notebook's output that tells how far the run is."""

    def __init__(self) -> None:
        import IPython.display

        display: Any = IPython.display.display  # pyright: ignore[reportUnknownVariableType]
        self._line: Any = display({"text/plain": "Evaluating"}, raw=True, display_id=True)

    def advance(self, tally: Tally, latest: QueryResult | None) -> None:
        """Write the line anew."""
        text = f"Evaluating {tally.done}/{tally.total}"
        self._line.update({"text/plain": text}, raw=True)


def watching(callback: ProgressCallback | None) -> Progress:
    """Return what watches a run that is begun from Python."""
    if callback is not None:
        return CallbackProgress(callback)
    from rich import get_console

    return NotebookProgress() if get_console().is_jupyter else Unwatched()
