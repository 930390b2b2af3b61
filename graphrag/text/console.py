"""Prints lines on a console, without control characters, keys and passwords in their texts."""

import io
import os
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from graphrag.text.redaction import redact
from graphrag.text.terminal_escape import ShownText


class _Console(Console):
    """Prints texts without letting them control the terminal; goes on if its reader goes away."""

    def print(self, *objects: object, **how: Any) -> None:
        """Print without the keys and passwords in texts."""
        cleaned = (redact(value) if isinstance(value, str) else value for value in objects)
        super().print(*cleaned, **how)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render anything without the characters in its texts that would control a terminal."""
        text = ShownText()
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(text.feed(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Show nothing more: the files of a run are still to be written."""
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)


def replace_unknown_characters() -> None:
    """Print a question mark for each character that the terminal or file can't encode.

    Otherwise Python would stop with an error, after the output was paid for.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def open_console(stderr: bool = False, quiet: bool = False) -> Console:
    """Return a console that takes texts literally: no markup, emoji codes or highlighting."""
    replace_unknown_characters()
    return _Console(stderr=stderr, quiet=quiet, markup=False, emoji=False, highlight=False)


def say(text: str, style: str = "", stderr: bool = False, quiet: bool = False) -> None:
    """Print one line as it is, however long; use it instead of typer's ``echo``."""
    open_console(stderr, quiet).print(text, style=style, soft_wrap=True)
