"""The graph as its tables give it: which entities the relationships join."""

from dataclasses import dataclass

import numpy as np

from graphrag.eval.validation.tables import Array, Offenders, Rows, Table, arrow, compute, to_numpy


@dataclass(frozen=True, slots=True)
class Edges:
    """The relationships as pairs of nodes; a node is one entity name.

    Attributes
    ----------
    n_relationships : int
        Rows of the relationships table.
    orphans : Offenders
        Rows of it with an end that is no entity's name.
    nodes : array of int
        The node of each entity that has a name; entities of the same name share one.
    n_nodes : int
    pairs : array of int, shape (n, 2)
        Distinct joined pairs of different nodes, the smaller first.
    """

    n_relationships: int
    orphans: Offenders
    nodes: Rows
    n_nodes: int
    pairs: Rows


def read_edges(entities: Table | None, relationships: Table | None) -> Edges | None:
    """Read the graph; None where a table or its column of names is missing."""
    if entities is None or "title" not in entities:
        return None
    if relationships is None or not {"source", "target"} <= relationships.columns:
        return None
    titles = compute.drop_null(entities.text("title"))
    names = compute.unique(titles)
    nodes = _find(titles, names)
    sources, targets = (_find(relationships.text(end), names) for end in ("source", "target"))
    is_orphan = (sources < 0) | (targets < 0)
    orphans = Offenders()
    orphans.add(is_orphan)
    low, high = np.minimum(sources, targets), np.maximum(sources, targets)
    joined = ~is_orphan & (low < high)
    n_names = max(len(names), 1)
    keys = np.unique(low[joined] * n_names + high[joined])
    pairs = np.stack(np.divmod(keys, n_names), axis=1)
    return Edges(relationships.n_rows, orphans, nodes, len(names), pairs)


def _find(values: Array, names: Array) -> Rows:
    """Return where each value is among the names, -1 for those that are not."""
    at = compute.index_in(values, value_set=names)
    return to_numpy(compute.cast(compute.fill_null(at, arrow.scalar(-1, "int32")), "int64"))
