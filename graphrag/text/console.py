"""A console that no text can steer, and the sentences of commands on it."""

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
    """A console that no text can steer, and whose reader may go away without ending the work."""

    def print(self, *objects: object, **how: Any) -> None:
        """Print, without the keys and passwords that a text may hold."""
        said = (redact(value) if isinstance(value, str) else value for value in objects)
        super().print(*said, **how)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render what is shown in any way, without what would steer a terminal in a text."""
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
    """Have what a terminal or file has no character for printed as a question mark.

    Python would end with an error there, after what is printed was paid for.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def open_console(stderr: bool = False, quiet: bool = False) -> Console:
    """Return a console that takes no text for markup, emoji codes or something to highlight."""
    replace_unknown_characters()
    return _Console(stderr=stderr, quiet=quiet, markup=False, emoji=False, highlight=False)


def say(text: str, style: str = "", stderr: bool = False, quiet: bool = False) -> None:
    """Print one line as it is, however long; in the place of typer's echo."""
    open_console(stderr, quiet).print(text, style=style, soft_wrap=True)
