"""What a method retrieved, in the index's own ids: the same record for every method."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

from graphrag.eval.index_columns import id_lists_of, texts_of

if TYPE_CHECKING:
    import pandas as pd

    from graphrag.query.index_tables import Tables

_FRAMES = ("sources", "entities", "relationships", "paths")


@dataclass(frozen=True, slots=True)
class Hop:
    """One relationship of a path.

    Attributes
    ----------
    hop : int
        Step of the path, from 1; parallel relationships share a number.
    source, target : str
        Entity titles as the relationship is stored.
    relationship_id : str
        Id in the relationships table; as it was shown when the table has no such row.
    forward : bool
        Whether it was walked from source to target.
    score : float
        Of the path up to this hop, in [0, 1].
    """

    hop: int
    source: str
    target: str
    relationship_id: str
    forward: bool
    score: float


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What one search showed to its model.

    Attributes
    ----------
    method : str
    text_unit_ids : tuple of str or None
        Ranked, each id once: first the text units shown as sources, in the order in which the
        model was shown them, then those that the shown paths and relationships were taken
        from. None when the method shows neither sources nor relationships, as global search.
    n_sources : int
        How many of them, from the front, were shown with their text.
    entities : tuple of str
        Titles, in order.
    relationship_ids : tuple of str
        In order.
    paths : tuple of tuple of Hop
        Only of Think-on-Graph; else empty.
    n_unknown_ids : int
        Shown ids that the index's tables don't have; 0 unless the tables are of another index.
    """

    method: str
    text_unit_ids: tuple[str, ...] | None = None
    n_sources: int = 0
    entities: tuple[str, ...] = ()
    relationship_ids: tuple[str, ...] = ()
    paths: tuple[tuple[Hop, ...], ...] = ()
    n_unknown_ids: int = 0

    @property
    def shown_text_unit_ids(self) -> tuple[str, ...]:
        """The text units whose text the model was shown."""
        return (self.text_unit_ids or ())[: self.n_sources]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "method": self.method,
            "text_unit_ids": None if self.text_unit_ids is None else list(self.text_unit_ids),
            "n_sources": self.n_sources,
            "entities": list(self.entities),
            "relationship_ids": list(self.relationship_ids),
            "paths": [[asdict(hop) for hop in path] for path in self.paths],
            "n_unknown_ids": self.n_unknown_ids,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Retrieved":
        """Read what :meth:`to_dict` gave."""
        units = values["text_unit_ids"]
        return cls(
            method=values["method"],
            text_unit_ids=None if units is None else tuple(units),
            n_sources=values["n_sources"],
            entities=tuple(values["entities"]),
            relationship_ids=tuple(values["relationship_ids"]),
            paths=tuple(tuple(Hop(**hop) for hop in path) for path in values["paths"]),
            n_unknown_ids=values["n_unknown_ids"],
        )


@dataclass(frozen=True, slots=True)
class Answered:
    """One response with all that the measures without a model look at.

    Attributes
    ----------
    sample_id, imdb_key, method : str
    response : str
    context_text : str
        What the method showed to its model.
    retrieved : Retrieved or None
        None when it was not recorded, or the search failed.
    correctness : int or None
        The judge's 0 or 1; None when unscored.
    tokens : int or None
        Prompt and output tokens of the search.
    latency_s : float or None
    failed : bool
        Whether the search failed.
    """

    sample_id: str
    imdb_key: str
    method: str
    response: str
    context_text: str = ""
    retrieved: Retrieved | None = None
    correctness: int | None = None
    tokens: int | None = None
    latency_s: float | None = None
    failed: bool = False


class RetrievalReader:
    """Reads what searches of one index showed; the index's ids are looked up once.

    The released engines show ``human_readable_id``s, which are unique in one table of one index.

    Parameters
    ----------
    tables : Tables
        Of the index that is searched; ``text_units`` and ``relationships`` are used.
    """

    def __init__(self, tables: "Tables") -> None:
        self._units = dict(_short_ids(_table(tables, "text_units")))
        self._known = frozenset(self._units.values())
        self._relationships: dict[str, tuple[str, tuple[str, ...]]] = {}
        table = _table(tables, "relationships")
        unit_ids = id_lists_of(table, "text_unit_ids")
        for (short, relationship), units in zip(_short_ids(table), unit_ids, strict=True):
            self._relationships.setdefault(short, (relationship, units))

    def read(self, method: str, context_data: Any) -> Retrieved:
        """Return what one search showed; same rules as :func:`read_retrieved`."""
        frames = _frames(context_data)
        unknown = 0
        sources: list[str] = []
        for row in _rows(frames["sources"]):
            unit = self._units.get(str(row["id"]))
            if unit is None:
                unknown += 1
            else:
                sources.append(unit)
        paths, walked, unread = self._paths(frames["paths"])
        relationships: list[str] = []
        supporting: list[str] = [unit for unit in walked if unit in self._known]
        for row in _rows(frames["relationships"]):
            found = self._relationships.get(str(row["id"]))
            if found is None:
                unread += 1
                continue
            relationships.append(found[0])
            supporting += found[1]
        sources = list(dict.fromkeys(sources))
        has_list = any(frames[name] for name in ("sources", "relationships", "paths"))
        return Retrieved(
            method=method,
            text_unit_ids=tuple(dict.fromkeys([*sources, *supporting])) if has_list else None,
            n_sources=len(sources),
            entities=tuple(dict.fromkeys(str(row["entity"]) for row in _rows(frames["entities"]))),
            relationship_ids=tuple(dict.fromkeys(relationships)),
            paths=paths,
            n_unknown_ids=unknown + unread,
        )

    def _paths(
        self, frames: Iterable["pd.DataFrame"]
    ) -> tuple[tuple[tuple[Hop, ...], ...], list[str], int]:
        paths: dict[int, list[Hop]] = {}
        units: list[str] = []
        unknown = 0
        for row in _rows(frames):
            shown = str(row["relationship_id"])
            found = self._relationships.get(shown)
            unknown += found is None
            units += [str(unit) for unit in row["text_unit_ids"]]
            paths.setdefault(int(row["path_id"]), []).append(
                Hop(
                    hop=int(row["hop"]),
                    source=str(row["source"]),
                    target=str(row["target"]),
                    relationship_id=shown if found is None else found[0],
                    forward=bool(row["traversed_forward"]),
                    score=float(row["score"]),
                )
            )
        return tuple(tuple(hops) for hops in paths.values()), units, unknown


def read_retrieved(method: str, context_data: Any, tables: "Tables") -> Retrieved:
    """Read the context data of a search.

    Parameters
    ----------
    method : str
    context_data : mapping
        As the engines give it: data frames by name, or (DRIFT) one such mapping for each
        follow-up question. Rows that were not ``in_context`` are left out; unknown names,
        community reports among them, are ignored.
    tables : Tables
        Of the index that was searched. For many searches make one :class:`RetrievalReader`.

    Returns
    -------
    Retrieved
        With ``text_unit_ids`` None when nothing in the data names a text unit.
    """
    return RetrievalReader(tables).read(method, context_data)


def _table(tables: "Tables", name: str) -> "pd.DataFrame | None":
    return tables.table(name) if tables.has(name) else None


def _short_ids(table: "pd.DataFrame | None") -> list[tuple[str, str]]:
    return list(zip(texts_of(table, "human_readable_id"), texts_of(table, "id"), strict=True))


def _frames(context_data: Any) -> dict[str, list["pd.DataFrame"]]:
    found: dict[str, list[pd.DataFrame]] = {name: [] for name in _FRAMES}
    _collect(context_data, found)
    return found


def _collect(data: Any, found: dict[str, list["pd.DataFrame"]]) -> None:
    if not isinstance(data, Mapping):
        return
    for name, part in cast("Mapping[Any, Any]", data).items():
        key = str(name).casefold()
        if isinstance(part, Mapping):
            _collect(part, found)
        elif key in found and hasattr(part, "to_dict"):
            found[key].append(part)


def _rows(frames: Iterable["pd.DataFrame"]) -> Iterator[Mapping[str, Any]]:
    for frame in frames:
        rows = cast("list[Mapping[str, Any]]", frame.to_dict("records"))
        yield from (row for row in rows if row.get("in_context", True))
