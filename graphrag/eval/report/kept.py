"""What was printed of a run, kept so that it can be printed again without what it was made of."""

from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import Any, TypeAlias

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

Kept: TypeAlias = list[dict[str, Any]]
"""Lines and tables, JSON-ready; how wide a terminal is decides when they are printed."""
_OF_COLUMN = ("header", "justify", "overflow", "width", "min_width", "max_width", "no_wrap")


class _Recording(Console):
    """A console that keeps what it is given in place of printing it."""

    def __init__(self) -> None:
        super().__init__(file=StringIO(), force_terminal=True)
        self.kept: Kept = []

    def print(self, *objects: Any, **how: Any) -> None:
        """Keep a line, or a table."""
        for each in objects:
            if isinstance(each, Table):
                self.kept.append(_plain(each))
            else:
                style, wrap = str(how.get("style") or ""), how.get("soft_wrap")
                self.kept.append({"line": str(each), "style": style, "soft_wrap": wrap})


def record(show: Callable[[Console], object]) -> Kept:
    """Return what a function prints by :func:`tell`, :func:`say` and :func:`show_table`."""
    console = _Recording()
    show(console)
    return console.kept


def replay(console: Console, kept: Sequence[Mapping[str, Any]], mend: Callable[[str], str]) -> None:
    """Print what was kept as it would be printed now; ``mend`` gets each line before."""
    for each in kept:
        if "columns" in each:
            console.print(_table_of(each))
            continue
        wrap = each["soft_wrap"]
        if wrap is False:  # as a terminal is told it, where lines are wrapped
            wrap = not console.is_terminal
        console.print(mend(each["line"]), style=each["style"], soft_wrap=wrap)


def _plain(table: Table) -> dict[str, Any]:
    return {
        "padding": table.padding,
        "columns": [
            {
                **{name: getattr(column, name) for name in _OF_COLUMN},
                "header": str(column.header),
                "cells": [str(cell) for cell in column._cells],  # pyright: ignore[reportPrivateUsage]
            }
            for column in table.columns
        ],
    }


def _table_of(kept: Mapping[str, Any]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=tuple(kept["padding"]))
    for column in kept["columns"]:
        table.add_column(**{name: column[name] for name in _OF_COLUMN})
    for row in zip(*(column["cells"] for column in kept["columns"]), strict=True):
        table.add_row(*row)
    return table
