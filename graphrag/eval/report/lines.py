"""Lines and tables on a terminal of 80 columns, which a pipe gets whole."""

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table


def say(console: Console, text: str, style: str = "") -> None:
    """Print one line as it is, however long, so that a command in it can be pasted."""
    console.print(text, style=style, soft_wrap=True)


def tell(console: Console, text: str, style: str = "") -> None:
    """Print a sentence: between words wrapped on a terminal, one line in a pipe."""
    console.print(text, style=style, soft_wrap=not console.is_terminal)


def plain_table(first: str, title: str, padding: int = 1) -> Table:
    """Return a table without vertical lines; long names in its first column are folded."""
    table = Table(
        title=title, box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, padding)
    )
    table.add_column(first, overflow="fold")
    return table


def show_table(console: Console, table: Table) -> None:
    """Print a table, its title before it and its caption below it as lines of their own.

    Within the table they would be broken at its width, however narrow it is.
    """
    title, caption = table.title, table.caption
    table.title = table.caption = None
    if title:
        tell(console, str(title), "italic")
    if len(table.columns) > 1:  # names alone say nothing
        console.print(table)
    if caption:
        tell(console, str(caption), "dim italic")
