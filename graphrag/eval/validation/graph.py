"""Graph construction: do the relationships join the entities to one graph."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_matrix, csgraph

from graphrag.eval.validation.edges import Edges
from graphrag.eval.validation.records import (
    GRAPH,
    CheckResult,
    Metric,
    PhaseReport,
    Thresholds,
    judge,
    ratio,
    skip,
)
from graphrag.eval.validation.tables import Tables
from graphrag.eval.validation.vectors import VectorFindings


@dataclass(frozen=True, slots=True)
class _Shape:
    """How a graph hangs together; entities of the same name count one by one."""

    largest: int
    components: int
    isolated: int


def check_graph(
    tables: Tables, edges: Edges | None, vectors: VectorFindings, thresholds: Thresholds
) -> PhaseReport:
    """Check the graph that the tables make; ``edges`` is None where they make none."""
    n_entities = tables.count("entities")
    shape = None if edges is None or not n_entities else _measure(edges)
    connectivity = None if edges is None else ratio(len(edges.pairs), n_entities)
    largest_ratio = shape and ratio(shape.largest, n_entities)
    checks = (
        _check_filled(tables, edges),
        _check_entities_per_chunk(tables, thresholds),
        _check_connectivity(connectivity, tables, thresholds),
    )
    warnings: list[str] = []
    if shape and largest_ratio is not None and largest_ratio < thresholds.min_largest_component:
        warnings.append(
            f"Sparse graph: the largest connected part holds {shape.largest} of {n_entities} "
            f"entities, and {shape.isolated} have no relationship at all."
        )
    metrics: dict[str, Metric] = {
        "connectivity": connectivity,
        "largest_component": shape and shape.largest,
        "largest_component_ratio": largest_ratio,
        "components": shape and shape.components,
        "isolated_entities": shape and shape.isolated,
        "isolated_ratio": shape and ratio(shape.isolated, n_entities),
        **vectors.metrics,
    }
    return PhaseReport(GRAPH, checks, metrics, (*warnings, *vectors.warnings))


def _measure(edges: Edges) -> _Shape:
    size = edges.n_nodes
    if not size:
        return _Shape(0, 0, 0)
    weights = np.ones(len(edges.pairs), dtype=np.int8)
    matrix = coo_matrix((weights, (edges.pairs[:, 0], edges.pairs[:, 1])), shape=(size, size))
    graph: Any = csgraph  # scipy is not typed.
    components, labels = graph.connected_components(matrix, directed=False)
    members = np.bincount(labels[edges.nodes])
    degrees = np.bincount(edges.pairs.ravel(), minlength=size)
    isolated = int((degrees[edges.nodes] == 0).sum())
    return _Shape(int(members.max()), int(components), isolated)


def _check_filled(tables: Tables, edges: Edges | None) -> CheckResult:
    name = "graph_not_empty"
    n_entities = tables.count("entities")
    if edges is None:
        reason = f"{n_entities} entities, and no table of relationships with source and target"
        return judge(name, False, reason)
    n_pairs = len(edges.pairs)
    reason = f"{n_entities} entities, of which {n_pairs} different pairs are joined"
    return judge(name, n_pairs > 0, reason)


def _check_entities_per_chunk(tables: Tables, thresholds: Thresholds) -> CheckResult:
    name = "entity_chunk_ratio_reasonable"
    found = ratio(tables.count("entities"), tables.count("text_units"))
    if found is None:
        return skip(name, "there are no text units")
    low, high = thresholds.min_entities_per_chunk, thresholds.max_entities_per_chunk
    reason = f"{found:.2f} entities a text unit; {low:g} to {high:g} is reasonable"
    return judge(name, low <= found <= high, reason)


def _check_connectivity(
    connectivity: float | None, tables: Tables, thresholds: Thresholds
) -> CheckResult:
    name = "graph_connectivity"
    if connectivity is None:
        missing = "relationships to follow" if tables.count("entities") else "entities"
        return skip(name, f"there are no {missing}")
    least = thresholds.min_connectivity
    reason = f"{connectivity:.2f} joined pairs an entity; must be more than {least:g}"
    return judge(name, connectivity > least, reason)
