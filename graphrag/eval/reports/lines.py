"""A line on a terminal, which a pipe gets whole."""

from rich.console import Console


def say(console: Console, text: str, style: str = "") -> None:
    """Print one line as it is, however long."""
    console.print(text, style=style, soft_wrap=True)
