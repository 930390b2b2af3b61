"""The entities and relationships of an index by the text units that they were taken from."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from graphrag.eval.scorers.entities import NameRule, component_labels
from graphrag.eval.scorers.quotes import phrase_key


@dataclass(frozen=True, slots=True)
class StoredEntity:
    """An entity as the index stores it; ``short_id`` is what an answer cites."""

    title: str
    short_id: str
    text_unit_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoredEdge:
    """A relationship as the index stores it; its ends are titles of entities."""

    source: str
    target: str
    short_id: str
    text_unit_ids: tuple[str, ...]


class IndexGraph:
    """Finds entities by name and by text unit; a node is an entity's position.

    Attributes
    ----------
    linked : set of int
        The nodes with a relationship.
    """

    def __init__(self, entities: Collection[StoredEntity], edges: Collection[StoredEdge]) -> None:
        self._rule = NameRule()
        self._keys = [phrase_key(entity.title) for entity in entities]
        self._named: dict[str, set[int]] = {}
        self._in_unit: dict[str, set[int]] = {}
        for node, entity in enumerate(entities):
            self._named.setdefault(self._rule.key(entity.title), set()).add(node)
            for unit in entity.text_unit_ids:
                self._in_unit.setdefault(unit, set()).add(node)
        node_of = {entity.title: node for node, entity in enumerate(entities)}
        self._linked_in_unit: dict[str, set[int]] = {}
        pairs: list[tuple[int, int]] = []
        for edge in edges:
            pair = (node_of.get(edge.source, -1), node_of.get(edge.target, -1))
            if min(pair) < 0:
                continue
            pairs.append(pair)
            for unit in edge.text_unit_ids:
                self._linked_in_unit.setdefault(unit, set()).update(pair)
        joined = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        self.linked = {int(node) for node in np.unique(joined)}
        self._component = (
            component_labels(len(entities), joined) if entities else np.zeros(0, np.int32)
        )

    def named(self, name: str) -> set[int]:
        """Return the nodes with a name, compared as :class:`NameRule` compares."""
        return self._named.get(self._rule.key(name), set())

    def taken_from(self, unit_ids: Iterable[str]) -> set[int]:
        """Return the nodes that were taken from one of the text units."""
        return _union(self._in_unit, unit_ids)

    def linked_in(self, unit_ids: Iterable[str]) -> set[int]:
        """Return the nodes with a relationship that was taken from one of the text units."""
        return _union(self._linked_in_unit, unit_ids)

    def standing_in(self, text: str, nodes: Iterable[int]) -> set[int]:
        """Return those of the nodes whose titles stand in a text."""
        said = phrase_key(text)
        return {node for node in nodes if self._keys[node] and self._keys[node] in said}

    def components(self, nodes: Iterable[int]) -> set[int]:
        """Return the connected components in which nodes lie."""
        return {int(self._component[node]) for node in nodes}


def _union(of_unit: Mapping[str, set[int]], units: Iterable[str]) -> set[int]:
    return set[int]().union(*(of_unit.get(unit, ()) for unit in units))
