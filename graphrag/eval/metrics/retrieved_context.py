"""Converts any method's retrieval into one kind of record, with the ids of its index."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from graphrag.eval.types.query_results import Retrieved, Walk
from graphrag.query.index.numbered_rows import NumberedRows
from graphrag.query.index.tables import rows_of
from graphrag.text.search_trace import read_steps

if TYPE_CHECKING:
    import pandas as pd

    from graphrag.query.index.tables import IndexTables

    _Frames = Mapping[str, list[pd.DataFrame]]
    _Row = Mapping[str, Any]

_IDS = ("human_readable_id", "id")
_FRAMES = {
    "sources": ("id",),
    "entities": ("entity",),
    "relationships": ("id",),
    "paths": ("relationship_id", "text_unit_ids"),
    "exploration": (
        *("call", "shown", "rows", "kept", "followed", "looked_up", "missing", "note"),
    ),
}
"""The data frames that are read, and their columns that are read; columns of text would take
long."""
_OPTIONAL = ("in_context", "in_part")


class RetrievalReader:
    """Reads the ``context_data`` of searches of one index; the index's ids are loaded once.

    The engines of the graphrag package show ``human_readable_id``s, which are unique only within
    one table of one index.
    """

    def __init__(self, tables: "IndexTables") -> None:
        self._tables = tables

    @cached_property
    def _units(self) -> dict[str, str]:
        return dict(rows_of(self._tables.columns("text_units", _IDS), *_IDS))

    @cached_property
    def _unit_ids(self) -> frozenset[str]:
        return frozenset(self._units.values())

    @cached_property
    def _relationships(self) -> NumberedRows:
        return NumberedRows(self._tables, "relationships", ("id", "text_unit_ids"))

    def read(self, method: str, context_data: object) -> Retrieved:
        """Return the records that one search showed.

        ``context_data`` is what the engines return: data frames by name, or for DRIFT one such
        mapping per follow-up question. Rows that were not ``in_context`` are left out, and so are
        frames with other names, such as community reports. ``text_unit_ids`` is None if there is no
        frame of sources, relationships or paths.
        """
        frames = _frames(context_data)
        n_unknown = 0
        sources: list[str] = []
        in_part: dict[str, bool] = {}
        for row in _rows(frames, "sources"):
            unit = self._units.get(str(row["id"]))
            if unit is None:
                n_unknown += 1
            else:
                sources.append(unit)
                in_part[unit] = in_part.get(unit, True) and row.get("in_part", False)
        relationships: list[str] = []
        supporting: list[str] = []
        for row in _rows(frames, "paths"):
            n_unknown += not self._relationships.rows(str(row["relationship_id"]))
            supporting += [
                unit for unit in map(str, row["text_unit_ids"]) if unit in self._unit_ids
            ]
        for row in _rows(frames, "relationships"):
            rows = self._relationships.rows(str(row["id"]))
            if not rows:
                n_unknown += 1
                continue
            relationships.append(str(self._relationships.cell(rows[0], "id")))
            supporting += map(str, self._relationships.cell(rows[0], "text_unit_ids") or ())
        sources = list(dict.fromkeys(sources))
        has_list = any(frames[name] for name in ("sources", "relationships", "paths"))
        return Retrieved(
            method=method,
            text_unit_ids=tuple(dict.fromkeys([*sources, *supporting])) if has_list else None,
            n_sources=len(sources),
            entities=tuple(dict.fromkeys(str(row["entity"]) for row in _rows(frames, "entities"))),
            relationship_ids=tuple(dict.fromkeys(relationships)),
            n_unknown_ids=n_unknown,
            walk=Walk(read_steps(_rows(frames, "exploration"))) or None,
            in_part=tuple(unit for unit in sources if in_part[unit]),
        )


def _frames(context_data: object) -> "_Frames":
    frames: dict[str, list[pd.DataFrame]] = {name: [] for name in _FRAMES}

    def collect(data: object) -> None:
        for name, part in cast("Mapping[object, object]", data).items():
            key = str(name).casefold()
            if isinstance(part, Mapping):
                collect(cast("object", part))
            elif key in frames and hasattr(part, "to_dict"):
                frames[key].append(cast("pd.DataFrame", part))

    if isinstance(context_data, Mapping):
        collect(cast("object", context_data))
    return frames


def _rows(frames: "_Frames", kind: str) -> "Iterator[_Row]":
    """Yield the shown rows of one kind of frame, as column -> value."""
    for frame in frames[kind]:
        if not len(frame):
            continue
        # ``to_dict`` checks the type of each value, which takes longer than reading the rows.
        places = {str(name): place for place, name in enumerate(frame.columns)}
        names = [*_FRAMES[kind], *(name for name in _OPTIONAL if name in places)]
        columns: list[list[object]] = [
            cast("Any", frame.iloc[:, places[name]]).tolist() for name in names
        ]
        rows = (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
        yield from (row for row in rows if row.get("in_context", True))
