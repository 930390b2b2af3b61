"""What a method retrieved, in the index's own ids: the same record for every method."""

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
"""The frames that are read, and which of their columns; texts beside these take long to read."""
_OPTIONAL = ("in_context", "in_part")


class RetrievalReader:
    """Reads what searches of one index showed; the index's ids are looked up once.

    The released engines show ``human_readable_id``s, which are unique in one table of one index.
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
        """Return what one search showed.

        ``context_data`` is as the engines give it: data frames by name, or (DRIFT) one such mapping
        for each follow-up question. Rows that were not ``in_context`` are left out; unknown names,
        community reports among them, are ignored. ``text_unit_ids`` is None when nothing in the
        data names a text unit.
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
            found = self._relationships.rows(str(row["id"]))
            if not found:
                n_unknown += 1
                continue
            relationships.append(str(self._relationships.cell(found[0], "id")))
            supporting += map(str, self._relationships.cell(found[0], "text_unit_ids") or ())
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
    """Give what is read of the rows that were shown."""
    for frame in frames[kind]:
        if not len(frame):
            continue
        # ``to_dict`` asks of each value what it is, which took longer than what reads the rows.
        places = {str(name): place for place, name in enumerate(frame.columns)}
        names = [*_FRAMES[kind], *(name for name in _OPTIONAL if name in places)]
        columns: list[list[object]] = [
            cast("Any", frame.iloc[:, places[name]]).tolist() for name in names
        ]
        rows = (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
        yield from (row for row in rows if row.get("in_context", True))
