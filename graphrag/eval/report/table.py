"""Defines the lines and tables of reports, and shows them on a terminal, in Markdown and as JSON.

Texts of questions, documents and models may come from anybody. Unescaped, they could mention
people, close issues, or end the Markdown table that they are in.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import urlencode

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from graphrag.eval.report.formatting import MISSING, points, share, span
from graphrag.text.message_phrases import shorten
from graphrag.text.redaction import redact

Kind: TypeAlias = Literal["text", "count", "percent", "interval", "tokens", "seconds", "money"]
"""The content of a column. Text is aligned to the left, everything else to the right."""
METHOD: tuple[str, Kind] = ("method", "text")
_FORMS: dict[Kind, str] = {"count": ",", "tokens": ",.0f", "seconds": ".2f", "money": ".4f"}
STYLES = {
    **dict.fromkeys(("PASS", "WINNER", "TIED", "passed"), "green"),
    **dict.fromkeys(("FAIL", "failed"), "bold red"),
    **dict.fromkeys(("INCONCLUSIVE", "TOO FEW", "warning", "incomplete"), "yellow"),
    "not applicable": "dim",
}
"""The color of each answer of a run, a gate, a suite or a check."""
_MOST_OF_A_LINE = 2_000
_SHORT_NAME = 16
_TERMINAL = 82  # 80 columns, and the blanks after the last cell
_SPECIAL = re.compile(r"([\\`*_\[\]|~])")
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")  # or turns lines round
_TAG = re.compile(r"<(?=\S)")  # before a blank it begins no tag, and reads as it is
_LINKED = re.compile(r"(@|#|:(?=//)|\bwww(?=\.)|\bGH(?=-))", flags=re.IGNORECASE)
_NOTHING = "\u200b"  # of no width: the text after it is no mention, reference or link
_PART = r"""(?:'[^'`|]*'|"[^"`|]*"|[^\s'"`|;(),.]|[,.](?=[^\s'"`|;()]))"""
"""A part of a word of a command. Characters that end a command in a sentence belong to it only in
quotes, and stops only inside a word."""
_PATH = rf"""(?:(?=['"/\\.~]|\w:\\){_PART}*?(?:['"][^'"`|]*)?(?<=[/\\]))?"""
_COMMAND = re.compile(
    rf"""(?<![^\s(]){_PATH}(?:(?:graphrag|gtog)(?:\.exe)?['"]? eval"""
    rf"""|py[\w.]*['"]? -m graphrag(?:\.| )eval)(?: {_PART}+)*"""
)


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence of a report.

    ``is_command``: whether it contains a command. It is then never wrapped, to be pasted.
    """

    text: str
    style: str = ""
    is_command: bool = False


@dataclass(frozen=True, slots=True)
class LinkedValue:
    """A cell's number or text, and the query by which the run's page lists its answers."""

    value: str | int
    query: Mapping[str, str]

    @property
    def address(self) -> str:
        """The address on the run's page that lists these answers."""
        return f"#f?{urlencode({name: value for name, value in self.query.items() if value})}"


Value: TypeAlias = str | float | tuple[float | None, float | None] | LinkedValue | None


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a report, whose first column names the rows; ``Table()`` shows nothing.

    A text is shown as it is, None as "-", and a number or a pair of limits by its column's
    :data:`Kind`. ``note``: how to read the table. ``most``: how many columns, in addition to the
    names, fit into 80 characters; 0: the table is never split.
    """

    title: str = ""
    columns: Sequence[tuple[str, Kind]] = ()
    rows: Sequence[Sequence[Value]] = ()
    note: str = ""
    most: int = 0

    @property
    def names(self) -> list[str]:
        """The headings of the columns."""
        return [name for name, _ in self.columns]

    @property
    def texts(self) -> list[list[str]]:
        """The cells of each row as text."""
        return [
            [show_value(value, kind) for value, (_, kind) in zip(row, self.columns, strict=True)]
            for row in self.rows
        ]

    @property
    def links(self) -> list[list[str]]:
        """The address of each cell's answers on the run's page; "" if it lists none."""
        return [[v.address if isinstance(v, LinkedValue) else "" for v in row] for row in self.rows]

    def split(self) -> "Iterator[Table]":
        """Yield tables that fit into 80 characters, the title on the first, the note on the last.

        A table that has only the column of names yields nothing.
        """
        if not self.most:
            yield self
            return
        for start in range(1, len(self.columns), self.most):
            part = slice(start, start + self.most)
            yield Table(
                title=self.title if start == 1 else "",
                columns=(self.columns[0], *self.columns[part]),
                rows=[(row[0], *row[part]) for row in self.rows],
                note=self.note if start + self.most >= len(self.columns) else "",
            )


Part: TypeAlias = Line | Table
"""A piece of a report."""


def part_to_json(part: Part) -> dict[str, object]:
    """Return a line or a table as JSON-ready values, which :func:`part_from_json` reads."""
    if isinstance(part, Line):
        return {"text": part.text, "style": part.style, "is_command": part.is_command}
    rows = [[_value_to_json(value) for value in row] for row in part.rows]
    columns = [list(column) for column in part.columns]
    about = {"title": part.title, "note": part.note, "most": part.most}
    return {"columns": columns, "rows": rows, **about}


def part_from_json(values: Mapping[str, Any]) -> Part:
    """Return the line or table that :func:`part_to_json` turned into values."""
    if "text" in values:
        return Line(**values)
    columns = [(name, kind) for name, kind in values["columns"]]
    rows = [[_value_from_json(value) for value in row] for row in values["rows"]]
    return Table(
        title=values["title"], columns=columns, rows=rows, note=values["note"], most=values["most"]
    )


def _value_to_json(value: Value) -> object:
    if isinstance(value, LinkedValue):
        return {"value": value.value, "query": dict(value.query)}
    return list(value) if isinstance(value, tuple) else value


def _value_from_json(value: Any) -> Value:
    if isinstance(value, dict):
        return LinkedValue(**cast("dict[str, Any]", value))
    return cast("Value", tuple(cast("list[float]", value)) if isinstance(value, list) else value)


def show_value(value: Value, kind: Kind) -> str:
    """Return a cell's value as text, by the kind of its column; see :class:`Table`."""
    if isinstance(value, LinkedValue):
        value = value.value
    if value is None:
        return MISSING
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return span(*value)
    if kind in ("percent", "interval"):
        return share(value) if kind == "percent" else points(value)
    return format(value, _FORMS.get(kind, ""))


def show(console: Console, parts: Iterable[Part]) -> None:
    """Print lines and tables. Lines are wrapped on a terminal and not in a pipe.

    A table's title and note are printed as lines: inside the table they would be wrapped at its
    width, however narrow it is.
    """
    for part in parts:
        if isinstance(part, Line):
            wraps = console.is_terminal and not part.is_command
            console.print(part.text, style=part.style, soft_wrap=not wraps)
            continue
        for table in part.split():
            if table.title:
                show(console, [Line(table.title, "italic")])
            if len(table.columns) > 1:  # names alone are no table
                console.print(_rich(table))
            if table.note:
                show(console, [Line(table.note, "dim italic")])


def _rich(table: Table) -> RichTable:
    widths = [max(map(len, column)) for column in zip(table.names, *table.texts, strict=True)]
    padding = (0, 1 if sum(widths) + 3 * len(widths) <= _TERMINAL else 0)
    grid = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=padding)
    for position, (name, kind) in enumerate(table.columns):
        fold = "fold" if kind == "text" else "ellipsis"
        grid.add_column(name, justify="left" if kind == "text" else "right", overflow=fold)
        is_prose = name in ("cause", "finding")
        if kind == "text" and not is_prose and (position or widths[0] <= _SHORT_NAME):
            grid.columns[position].no_wrap = True
    for row in table.texts:
        grid.add_row(*(Text(redact(cell), STYLES.get(cell, "")) for cell in row))
    return grid


def markdown_table(table: Table) -> list[str]:
    """Return a table as lines of Markdown, without its title and note."""
    rows = [table.names, ["---"] * len(table.columns), *table.texts]
    return [f"| {' | '.join(row if n == 1 else map(escape, row))} |" for n, row in enumerate(rows)]


def escape(text: str) -> str:
    """Return a text as one line that Markdown shows as it is: no mark-up, mention or link.

    Commands of ``graphrag eval`` become code, so that they run when they are copied.
    """
    line = shorten(_UNSEEN.sub("\ufffd", " ".join(redact(text).split())), _MOST_OF_A_LINE)
    parts: list[str] = []
    end = 0
    for command in _COMMAND.finditer(line):
        parts += [_escape_prose(line[end : command.start()]), f"`{command[0]}`"]
        end = command.end()
    return "".join([*parts, _escape_prose(line[end:])])


def _escape_prose(text: str) -> str:
    line = _TAG.sub("&lt;", text.replace("&", "&amp;"))
    return _LINKED.sub(rf"\1{_NOTHING}", _SPECIAL.sub(r"\\\1", line))
