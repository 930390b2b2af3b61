"""The graph of an index: who is joined to whom, and the rows that say so."""

from dataclasses import dataclass, fields
from functools import cached_property, lru_cache, partial
from threading import Lock
from typing import Any

import pandas as pd

from graphrag.query.structured_search.tog_search.graph.adjacency import Adjacency, Neighbours
from graphrag.query.structured_search.tog_search.graph.building import (
    GraphParts,
    TableStreams,
    build_parts,
)
from graphrag.query.structured_search.tog_search.graph.mentions import Mentions
from graphrag.query.structured_search.tog_search.graph.row_tables import (
    DOCUMENTS,
    ENTITIES,
    RELATIONSHIPS,
    TEXT_UNITS,
    RowTable,
)
from graphrag.query.structured_search.tog_search.graph.table_reading import stream_frame
from graphrag.text.ranking import WordIndex
from graphrag.text.terms import word_keys

_N_CACHED_ROWS = 4096
# Rows that share a hash have the same name, or two names at most; the first one counts.
_N_VERIFIED = 8


@dataclass(frozen=True, slots=True)
class EntityRow:
    """What the entities table says about one entity; ``human_readable_id`` is what is cited."""

    id: str
    human_readable_id: int
    title: str
    description: str
    text_unit_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RelationshipRow:
    """What the relationships table says about one relationship, in its stored direction."""

    human_readable_id: int
    source: str
    target: str
    description: str
    weight: float
    text_unit_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GraphTables:
    """The rows of a graph; ``text_unit_ids`` holds row numbers of ``cited_ids``.

    ``topics`` are the titles of documents that are no entity's.
    """

    entities: RowTable
    relationships: RowTable
    cited_ids: RowTable
    topics: RowTable


class GraphStore:
    """Entities as nodes 0..n-1, relationships as edges that are walked both ways.

    Made with :meth:`from_tables`, or mapped from files by ``graph_cache.open_graph``.
    Self-loops, and relationships with an end that is no entity, are never walked; their rows
    stay readable.
    """

    def __init__(self, parts: GraphParts, tables: GraphTables) -> None:
        self._parts = parts
        self._tables = tables
        # A search reads a row for scoring it, ranking it, rendering it and for its texts.
        self._entity = lru_cache(_N_CACHED_ROWS)(partial(_read_entity, tables))
        self._relationship = lru_cache(_N_CACHED_ROWS)(partial(_read_relationship, tables))
        self._counting = Lock()

    @classmethod
    def from_tables(
        cls,
        entities: pd.DataFrame,
        relationships: pd.DataFrame,
        text_units: pd.DataFrame | None = None,
        documents: pd.DataFrame | None = None,
    ) -> "GraphStore":
        """Build the store from an index's tables.

        Parameters
        ----------
        entities : pandas.DataFrame
            ``id`` and ``title``; optional ``human_readable_id``, ``description``,
            ``text_unit_ids``. Of entities with the same title the first is used.
        relationships : pandas.DataFrame
            ``source`` and ``target`` (titles); optional ``human_readable_id``,
            ``description``, ``weight``, ``text_unit_ids``. A missing weight counts as 1.
        text_units : pandas.DataFrame or None
            ``id`` and ``text``; optional ``human_readable_id``, ``document_id``. In which of them
            entities stand is told by these texts.
        documents : pandas.DataFrame or None
            ``id`` and ``title``.

        Raises
        ------
        UnreadableTableError
            If a needed column is missing.
        """
        kept: dict[str, list[Any]] = {field.name: [] for field in fields(GraphTables)}
        kept["text_units"] = []
        streams = TableStreams(
            stream_frame(entities, "entities", ENTITIES, ("id", "title")),
            stream_frame(relationships, "relationships", RELATIONSHIPS, ("source", "target")),
            lambda: (
                iter(())
                if text_units is None
                else stream_frame(text_units, "text units", TEXT_UNITS, ("id", "text"))
            ),
            iter(())
            if documents is None
            else stream_frame(documents, "documents", DOCUMENTS, ("id",)),
        )
        parts = build_parts(streams, lambda name, batch: kept[name].append(batch))
        del kept["text_units"]
        return cls(parts, GraphTables(**{name: RowTable.of(kept[name]) for name in kept}))

    @property
    def n_entities(self) -> int:
        """Rows of the entities table."""
        return self._tables.entities.n_rows

    @property
    def n_relationships(self) -> int:
        """Rows of the relationships table."""
        return self._tables.relationships.n_rows

    def node_of_title(self, title: str) -> int | None:
        """Return the node with exactly this title, None when there is none."""
        rows = self._parts.titles.find([title])[0]
        return next((row for row in rows if self.title(row) == title), None)

    def node_of_id(self, entity_id: str) -> int | None:
        """Return the node with this entity id, None when there is none."""
        rows = self._parts.ids.find([entity_id])[0]
        value = self._tables.entities.value
        return next((row for row in rows if value(row, "id") == entity_id), None)

    def title(self, node: int) -> str:
        """Return an entity's title."""
        return self._tables.entities.value(node, "title")

    def nodes_named_in(self, text: str) -> list[int]:
        """Return the entities whose whole title stands in a text, the longest titles first.

        Case, width and punctuation don't matter. A title inside a longer one that also
        stands there ("OZ" in "WIZARD OF OZ") does not count.
        """
        return self._named_in(text, self.n_entities)

    def names_in(self, text: str) -> list[int]:
        """Return the names that stand in a text: entities and titles of documents; as above.

        From the number of entities on they are titles that no entity has.
        """
        return self._named_in(text, self.n_entities + self._tables.topics.n_rows)

    def _named_in(self, text: str, n_names: int) -> list[int]:
        words = word_keys([text])[0].split()
        spans = [
            (begin, begin + size)
            for size in range(min(self._parts.longest_key, len(words)), 0, -1)
            for begin in range(len(words) - size + 1)
        ]
        keys = [" ".join(words[begin:end]) for begin, end in spans]
        candidates = [
            [row for row in found[:_N_VERIFIED] if row < n_names]
            for found in self._parts.keys.find(keys)
        ]
        rows = list(dict.fromkeys(row for found in candidates for row in found))
        key_of = dict(zip(rows, word_keys([self._name(row) for row in rows]), strict=True))
        taken = [False] * len(words)
        named: list[int] = []
        for (begin, end), key, found in zip(spans, keys, candidates, strict=True):
            node = next((row for row in found if key_of[row] == key), None)
            if node is not None and not any(taken[begin:end]):
                taken[begin:end] = [True] * (end - begin)
                named.append(node)
        return list(dict.fromkeys(named))

    def _name(self, row: int) -> str:
        if row < self.n_entities:
            return self.title(row)
        return self._tables.topics.value(row - self.n_entities, "title")

    def entity_row(self, node: int) -> EntityRow:
        """Read one row of the entities table; a missing human_readable_id is the row number."""
        return self._entity(node)

    def relationship_row(self, edge: int) -> RelationshipRow:
        """Read one row of the relationships table by its row number."""
        return self._relationship(edge)

    @property
    def mentions(self) -> Mentions:
        """Which names stand in which text units."""
        return self._parts.mentions

    @property
    def adjacency(self) -> Adjacency:
        """Who is joined to whom."""
        return self._parts.adjacency

    def rank_by_words(self, question: str, k: int) -> list[int]:
        """Return the `k` best entities by BM25 over titles and descriptions, best first.

        The first call counts the words of all entities, in time and memory that grow with them.
        """
        with self._counting:  # of searches that begin together one counts, the others wait
            nodes, words = self._words
        return [nodes[place] for place in words.rank(question)[:k]]

    @cached_property
    def _words(self) -> tuple[list[int], WordIndex]:
        """The nodes by title, so that of equal texts the same comes first, and their words."""
        columns = [
            [value for part in self._tables.entities.column(name) for value in part.to_pylist()]
            for name in ("title", "description")
        ]
        rows = sorted(zip(*columns, range(self.n_entities), strict=True))
        texts = [f"{title} {description}" for title, description, _ in rows]
        return [node for _, _, node in rows], WordIndex(texts)

    def neighbours(self, node: int, cap: int) -> Neighbours:
        """Return the `cap` heaviest edges of a node in O(cap), in both directions."""
        return self._parts.adjacency.neighbours(node, cap)

    def degree(self, node: int) -> int:
        """Return the number of a node's edges in both directions, parallel ones included."""
        return self._parts.adjacency.degree(node)


def _read_entity(tables: GraphTables, row: int) -> EntityRow:
    name, number, title, description, cited = tables.entities.values(row, *ENTITIES)
    return EntityRow(name, number, title, description, _read_cited(tables, cited))


def _read_relationship(tables: GraphTables, row: int) -> RelationshipRow:
    number, source, target, told, weight, cited = tables.relationships.values(row, *RELATIONSHIPS)
    return RelationshipRow(number, source, target, told, weight, _read_cited(tables, cited))


def _read_cited(tables: GraphTables, numbers: list[int]) -> tuple[str, ...]:
    return tuple(tables.cited_ids.value(number, "id") for number in numbers)
