"""Building the indexes that are missing before a run, and saying how far that is."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console
from rich.status import Status

from graphrag.eval.run import build_index, is_built, list_input_warnings

_LINE_EVERY_S = 10.0


async def build_missing(
    roots: Mapping[str, Path], notes: Console, warn: Callable[[str], None]
) -> None:
    """Build the index of each project that has none.

    Raises
    ------
    ConfigError
        If the settings of a project can't be used.
    IndexBuildError
        If a workflow failed.
    """
    for key, root in roots.items():
        if is_built(root):
            continue
        for line in await list_input_warnings(key, root):
            warn(line)
        if notes.is_terminal and not notes.quiet:
            with notes.status(f"Building index {key}") as status:
                seconds = await _build(root, _StatusProgress(key, status))
        else:
            notes.print(f"Building index {key} ...", soft_wrap=True)
            seconds = await _build(root, _LineProgress(key, notes))
        notes.print(f"Built index {key} in {seconds:.1f} s.")


class _Shown:
    """Which workflow is at work, and how much of it is done."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._step = ""

    def begin(self, step: str) -> None:
        """Receive the workflow that begins."""
        self._step = step
        self._show(f"Building index {self._key}: {step}")

    def advance(self, done: int, total: int) -> None:
        """Receive how much of it is done."""
        self._show(f"Building index {self._key}: {self._step}, {done:,} of {total:,}")

    def _show(self, line: str) -> None:
        raise NotImplementedError


class _StatusProgress(_Shown):
    """A status on a terminal."""

    def __init__(self, key: str, status: Status) -> None:
        super().__init__(key)
        self._status = status

    def _show(self, line: str) -> None:
        self._status.update(line)


class _LineProgress(_Shown):
    """A line in a pipe or a log, every ten seconds."""

    def __init__(self, key: str, notes: Console) -> None:
        super().__init__(key)
        self._notes = notes
        self._began = self._shown_at = time.monotonic()

    def _show(self, line: str) -> None:
        now = time.monotonic()
        if now - self._shown_at >= _LINE_EVERY_S:
            self._shown_at = now
            self._notes.print(f"{line} ({now - self._began:.0f} s)", soft_wrap=True)


async def _build(root: Path, shown: _Shown) -> float:
    return await build_index(root, shown.begin, shown.advance)
