"""Looks up an index's relationships by the text units and entities that they join."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from graphrag.query.index.table_rows import arrow, compute
from graphrag.query.index.tables import IndexTables

_Ints = npt.NDArray[np.int64]


class GraphPaths:
    """An index's relationships as rows of their table; entities and text units are numbers.

    ``units``: ids of the text units. An entity whose relationships are in more than ``most`` text
    units joins nothing in particular.
    """

    def __init__(self, tables: IndexTables, units: Sequence[str], most: float) -> None:
        self._most, self._joins = most, dict[int, bool]()
        self.names: Any = ()
        """The names of the entities, by number."""
        self.units: list[int] = []
        """The text units with relationships, ascending."""
        if not tables.has("relationships"):
            return
        self._rows = tables.rows("relationships")
        ends = [self._rows.texts(name).to_pandas() for name in ("source", "target")]
        codes, names = pd.factorize(pd.concat(ends, ignore_index=True))
        self.names = names
        n = self._rows.n
        self._ends: _Ints = codes.reshape(2, n)
        self._of_entity = _Lists(codes, np.tile(np.arange(n), 2), len(names))
        edges, mentioned = self._rows.entries("text_unit_ids")
        positions = compute.index_in(mentioned, value_set=arrow.array(units, mentioned.type))
        numbers: _Ints = compute.fill_null(positions, -1).to_numpy().astype(np.int64)
        edges, numbers = edges[numbers >= 0], numbers[numbers >= 0]
        self._of_edge = _Lists(edges, numbers, n)
        self._of_unit = _Lists(numbers, edges, len(units))
        self.units = np.unique(numbers).tolist()

    def ends_in(self, unit: int) -> list[tuple[int, int]]:
        """Return (relationship, entity at one of its ends) for the relationships of a text unit."""
        edges = self._of_unit[unit]
        return [(edge, end) for edge in edges for end in {*self._ends[:, edge].tolist()}]

    def edges_of(self, entity: int) -> list[int]:
        """Return the relationships of an entity, ascending."""
        return self._of_entity[entity]

    def units_of(self, edge: int) -> list[int]:
        """Return the text units that a relationship was extracted from."""
        return self._of_edge[edge]

    def joins(self, entity: int) -> bool:
        """Say whether an entity's relationships come from several text units, but not too many."""
        if entity not in self._joins:
            edges = self.edges_of(entity)
            n = len({unit for edge in edges for unit in self.units_of(edge)})
            self._joins[entity] = len(edges) > 1 and 1 < n <= self._most
        return self._joins[entity]

    def describe(self, edges: Iterable[int]) -> str:
        """Return the ends and descriptions of relationships as text."""
        rows = (self._rows.read([edge])[0] for edge in edges)
        return "; ".join(f"{r['source']} - {r['target']}: {r['description']}" for r in rows)


class _Lists:
    """Number -> list of its values, each once, ascending."""

    def __init__(self, numbers: _Ints, values: _Ints, n: int) -> None:
        order = np.lexsort((values, numbers))
        self._values: Any = values[order].astype(np.int32)
        self._begins = np.searchsorted(numbers[order], np.arange(n + 1))

    def __getitem__(self, number: int) -> list[int]:
        values = self._values[self._begins[number] : self._begins[number + 1]]
        return [*dict.fromkeys(values.tolist())]
