"""The terminal, on which names and texts of users are shown as they are."""

from rich.console import Console


def open_console(stderr: bool = False, quiet: bool = False) -> Console:
    """Return a console that takes no text for markup, emoji codes or something to highlight."""
    return Console(stderr=stderr, quiet=quiet, markup=False, emoji=False, highlight=False)
