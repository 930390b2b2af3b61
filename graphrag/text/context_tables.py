"""Parses the context tables that graphrag puts into a system message.

The embedded models and the judge's metrics read them.
"""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

_SECTION = re.compile(r"^-{4,5}([A-Z][A-Za-z ]*)-{5}[ \t]*$", re.MULTILINE)
_MARKER = re.compile(r"^---(?:Data tables|Analyst Reports|Data Reports)---[ \t]*$", re.MULTILINE)
_GOAL = re.compile(r"^---Goal---[ \t]*$", re.MULTILINE)
_BARE_HEADER = re.compile(r"^\s*(?:id|source_id)([|,])[\w ]", re.MULTILINE)
_PROSE = "text content full_content description summary path relationship sentence"
"""Columns that may contain a row's prose, the likeliest first."""


@dataclass(frozen=True, slots=True)
class Record:
    """Contains one row of a context table, cited by the table's name and the row's id.

    ``text`` is its prose; ``names`` are the names in other columns (an entity's title, an edge's
    two ends).
    """

    table: str
    id: str
    text: str
    names: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The names, joined."""
        return " ".join(self.names)


def context_region(system: str) -> str:
    """Return the part of a system message with data, not instructions."""
    start = _MARKER.search(system)
    if start is None:
        return system
    rest = system[start.end() :]
    # The template's own closing headings come last; earlier ones could be data.
    goals = list(_GOAL.finditer(rest))
    return rest[: goals[-1].start()] if goals else rest


def read_context(system: str, separators: Sequence[str] = ("|",)) -> list[Record]:
    """Return the records of every table in a system message, in order.

    Tables follow the heading ``-----Name-----``; a table without a heading counts as Sources, or as
    Reports if it has content (basic search has such tables). The first of ``separators`` that the
    header row contains separates the columns.
    """
    region = context_region(system)
    heads = list(_SECTION.finditer(region))
    first, *ends = (*(head.start() for head in heads), len(region))
    tables = [(head[1], region[head.end() : end]) for head, end in zip(heads, ends, strict=True)]
    bare = _BARE_HEADER.search(region[:first])
    if bare is not None:
        body = region[bare.start() : first]
        header = body.strip().split("\n")[0]
        tables.insert(0, ("Reports" if "content" in header else "Sources", body))
    return [record for name, body in tables for record in _read_table(name, body, separators)]


def _read_table(name: str, body: str, separators: Sequence[str]) -> list[Record]:
    header, _, rest = body.lstrip().partition("\n")
    separator = next((s for s in separators if s in header), None)
    if separator is None:
        return []
    columns = [column.strip() for column in header.split(separator)]
    prose = (columns.index(name) for name in _PROSE.split() if name in columns[1:])
    text_at = next(prose, len(columns) - 1)
    row_start = re.compile(rf"^(\d+){re.escape(separator)}", re.MULTILINE)
    starts = [match.start() for match in row_start.finditer(rest)]
    records: list[Record] = []
    for start, end in pairwise([*starts, len(rest)]):
        fields = _fields(rest[start:end].rstrip("\n"), separator, len(columns), text_at)
        names = tuple(
            field
            for column, field in zip(columns, fields, strict=False)
            if column in {"entity", "source", "target", "title", "document", "from -> to"}
        )
        records.append(Record(table=name, id=fields[0], text=fields[text_at], names=names))
    return records


def _fields(row: str, separator: str, width: int, text_at: int) -> list[str]:
    """Return the columns of a row, quoted or not; surplus separators belong to the text."""
    if separator == "," or f'{separator}"' in row:
        escape = "\\" if separator == "|" else None
        lines = csv.reader(io.StringIO(row), delimiter=separator, escapechar=escape)
        parsed = next(lines, None)
        if parsed is not None and len(parsed) == width:
            return parsed
    parts = row.split(separator)
    end = text_at + 1 + max(0, len(parts) - width)
    parts[text_at:end] = [separator.join(parts[text_at:end])]
    return [*parts, *[""] * (width - len(parts))]
