"""Building the indexes that are missing before a run, and saying how far that is."""

from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console

from graphrag.eval.cli.terminal import working
from graphrag.eval.run import build_index, is_built, list_input_warnings


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
        with working(notes, f"Building index {key}") as tell:
            shown = _Shown(key, tell)
            seconds = await build_index(root, shown.begin, shown.advance)
        notes.print(f"Built index {key} in {seconds:.1f} s.")


class _Shown:
    """Which workflow is at work, and how much of it is done."""

    def __init__(self, key: str, tell: Callable[[str], object]) -> None:
        self._key = key
        self._tell = tell
        self._step = ""

    def begin(self, step: str) -> None:
        """Receive the workflow that begins."""
        self._step = step
        self._tell(f"Building index {self._key}: {step}")

    def advance(self, done: int, total: int) -> None:
        """Receive how much of it is done."""
        self._tell(f"Building index {self._key}: {self._step}, {done:,} of {total:,}")
