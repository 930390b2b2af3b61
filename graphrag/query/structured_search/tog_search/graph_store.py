"""The graph of an index in memory: compressed sparse rows beside the tables they came from."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from graphrag.query.structured_search.tog_search.columns import Columns, first_positions
from graphrag.query.structured_search.tog_search.words import word_keys


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
class Neighbours:
    """Edges of one node, heaviest first.

    Attributes
    ----------
    nodes : numpy.ndarray
        int32, shape (n,): where each edge leads.
    edges : numpy.ndarray
        int32, shape (n,): row of the relationship plus one, negative when the node is the
        relationship's stored target.
    weights : numpy.ndarray
        float32, shape (n,).
    """

    nodes: npt.NDArray[np.int32]
    edges: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Compressed sparse rows: the edges of node i lie at ``indptr[i]:indptr[i + 1]``."""

    indptr: npt.NDArray[np.int64]
    nodes: npt.NDArray[np.int32]
    edges: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]


class GraphStore:
    """Entities as nodes 0..n-1, relationships as edges that are walked both ways.

    Made with :meth:`from_tables`. Self-loops, and relationships with an end that is no
    entity, are never walked; their rows stay readable.
    """

    def __init__(self, entities: Columns, relationships: Columns) -> None:
        self._entities = entities
        self._relationships = relationships
        titles = entities.texts("title")
        self._node_of_title = first_positions(titles)
        self._node_of_id = first_positions(entities.texts("id"))
        keys = word_keys(titles)
        self._node_of_key = first_positions(keys)
        self._longest_key = max((key.count(" ") + 1 for key in keys), default=0)
        self._rows = _build_rows(self._node_of_title, entities.n_rows, relationships)

    @classmethod
    def from_tables(cls, entities: pd.DataFrame, relationships: pd.DataFrame) -> "GraphStore":
        """Build the store from an index's tables.

        Parameters
        ----------
        entities : pandas.DataFrame
            ``id`` and ``title``; optional ``human_readable_id``, ``description``,
            ``text_unit_ids``. Of entities with the same title the first is used.
        relationships : pandas.DataFrame
            ``source`` and ``target`` (titles); optional ``human_readable_id``,
            ``description``, ``weight``, ``text_unit_ids``. A missing weight counts as 1.

        Raises
        ------
        ValueError
            If a needed column is missing.
        """
        return cls(
            Columns(entities, "entities", ("id", "title")),
            Columns(relationships, "relationships", ("source", "target")),
        )

    @property
    def n_entities(self) -> int:
        """Rows of the entities table."""
        return self._entities.n_rows

    @property
    def n_relationships(self) -> int:
        """Rows of the relationships table."""
        return self._relationships.n_rows

    def node_of_title(self, title: str) -> int | None:
        """Return the node with exactly this title, None when there is none."""
        return self._node_of_title.get(title)

    def node_of_id(self, entity_id: str) -> int | None:
        """Return the node with this entity id, None when there is none."""
        return self._node_of_id.get(entity_id)

    def title(self, node: int) -> str:
        """Return an entity's title."""
        return self._entities.text("title", node)

    def nodes_named_in(self, text: str) -> list[int]:
        """Return the entities whose whole title stands in a text, the longest titles first.

        Case, width and punctuation don't matter. A title inside a longer one that also
        stands there ("OZ" in "WIZARD OF OZ") does not count.
        """
        words = word_keys([text])[0].split()
        taken = [False] * len(words)
        found: list[int] = []
        for size in range(min(self._longest_key, len(words)), 0, -1):
            for begin in range(len(words) - size + 1):
                node = self._node_of_key.get(" ".join(words[begin : begin + size]))
                if node is None or any(taken[begin : begin + size]):
                    continue
                taken[begin : begin + size] = [True] * size
                found.append(node)
        return list(dict.fromkeys(found))

    def entity_row(self, node: int) -> EntityRow:
        """Read one row of the entities table; a missing human_readable_id is the row number."""
        table = self._entities
        return EntityRow(
            id=table.text("id", node),
            human_readable_id=table.whole("human_readable_id", node),
            title=table.text("title", node),
            description=table.text("description", node),
            text_unit_ids=table.ids("text_unit_ids", node),
        )

    def relationship_row(self, edge: int) -> RelationshipRow:
        """Read one row of the relationships table by its row number."""
        table = self._relationships
        return RelationshipRow(
            human_readable_id=table.whole("human_readable_id", edge),
            source=table.text("source", edge),
            target=table.text("target", edge),
            description=table.text("description", edge),
            weight=table.number("weight", edge, 1.0),
            text_unit_ids=table.ids("text_unit_ids", edge),
        )

    def neighbours(self, node: int, cap: int) -> Neighbours:
        """Return the `cap` heaviest edges of a node in O(cap), in both directions."""
        rows = self._rows
        begin = int(rows.indptr[node])
        end = min(int(rows.indptr[node + 1]), begin + cap)
        return Neighbours(rows.nodes[begin:end], rows.edges[begin:end], rows.weights[begin:end])


def _build_rows(node_of_title: dict[str, int], n_nodes: int, relationships: Columns) -> _Rows:
    index: Any = pd.Index(list(node_of_title), dtype=object)
    node_at = np.fromiter(node_of_title.values(), dtype=np.int32, count=len(node_of_title))
    ends: list[npt.NDArray[np.int64]] = [
        index.get_indexer(pd.Index(relationships.texts(side), dtype=object))
        for side in ("source", "target")
    ]
    usable = (ends[0] >= 0) & (ends[1] >= 0) & (ends[0] != ends[1])
    source, target = (node_at[end[usable]] for end in ends)
    edge = (np.flatnonzero(usable) + 1).astype(np.int32)
    weight = relationships.numbers("weight", 1.0)[usable]
    origin = np.concatenate([source, target])
    both_ways = np.concatenate([edge, -edge])
    weights = np.concatenate([weight, weight])
    order = np.lexsort((np.abs(both_ways), -weights, origin))
    indptr = np.zeros(n_nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(origin, minlength=n_nodes), out=indptr[1:])
    return _Rows(
        indptr=indptr,
        nodes=np.concatenate([target, source])[order],
        edges=both_ways[order],
        weights=weights[order],
    )
