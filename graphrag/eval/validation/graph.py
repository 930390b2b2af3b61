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
    PhaseValidation,
    Thresholds,
    judge,
    ratio,
    skip,
)
from graphrag.eval.validation.tables import Tables

_PAIRS = "joined pairs"


@dataclass(frozen=True, slots=True)
class _Shape:
    """How a graph hangs together; entities of the same name count one by one."""

    largest: int
    components: int
    isolated: int


def check_counts(
    n_documents: int, n_chunks: int, n_entities: int, n_relationships: int, thresholds: Thresholds
) -> PhaseValidation:
    """Check a graph of which only the numbers of its parts are known."""
    per_chunk = ratio(n_entities, n_chunks)
    connectivity = ratio(n_relationships, n_entities)
    message = f"{n_documents} documents, {n_entities} entities"
    checks = (
        judge("graph_not_empty", n_documents > 0 or n_entities > 0, message),
        _check_entities_per_chunk(per_chunk, thresholds),
        _check_connectivity(connectivity, n_entities, "relationships", thresholds),
    )
    metrics: dict[str, Metric] = {
        "documents": n_documents,
        "chunks": n_chunks,
        "entities": n_entities,
        "relationships": n_relationships,
        "entities_per_chunk": per_chunk,
        "connectivity": connectivity,
    }
    warnings = _warn_ratios(per_chunk, connectivity, "relationships", thresholds)
    return PhaseValidation(GRAPH, checks, metrics, tuple(warnings))


def check_graph(tables: Tables, edges: Edges | None, thresholds: Thresholds) -> PhaseValidation:
    """Check the graph that the tables make; ``edges`` is None where they make none."""
    n_entities, n_chunks = tables.count("entities"), tables.count("text_units")
    per_chunk = ratio(n_entities, n_chunks)
    shape = None if edges is None or not n_entities else _measure(edges)
    connectivity = None if edges is None else ratio(len(edges.pairs), n_entities)
    largest_ratio = shape and ratio(shape.largest, n_entities)
    checks = (
        _check_filled(tables, edges),
        _check_entities_per_chunk(per_chunk, thresholds),
        _check_connectivity(connectivity, n_entities, _PAIRS, thresholds),
    )
    warnings = _warn_ratios(per_chunk, connectivity, _PAIRS, thresholds)
    if shape and largest_ratio is not None and largest_ratio < thresholds.min_largest_component:
        warnings.append(
            f"Sparse graph: the largest connected part holds {shape.largest} of {n_entities} "
            f"entities, and {shape.isolated} have no relationship at all."
        )
    metrics: dict[str, Metric] = {
        "documents": None if tables.documents is None else tables.documents.n_rows,
        "chunks": n_chunks,
        "entities": n_entities,
        "relationships": tables.count("relationships"),
        "entities_per_chunk": per_chunk,
        "connectivity": connectivity,
        "largest_component": shape and shape.largest,
        "largest_component_ratio": largest_ratio,
        "components": shape and shape.components,
        "isolated_entities": shape and shape.isolated,
        "isolated_ratio": shape and ratio(shape.isolated, n_entities),
    }
    return PhaseValidation(GRAPH, checks, metrics, tuple(warnings))


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
        message = f"{n_entities} entities, and no table of relationships with source and target"
        return judge(name, False, message)
    n_pairs = len(edges.pairs)
    message = f"{n_entities} entities, of which {n_pairs} different pairs are joined"
    return judge(name, n_pairs > 0, message)


def _check_entities_per_chunk(found: float | None, thresholds: Thresholds) -> CheckResult:
    name = "entity_chunk_ratio_reasonable"
    if found is None:
        return skip(name, "there are no text units")
    low, high = thresholds.min_entities_per_chunk, thresholds.max_entities_per_chunk
    message = f"{found:.2f} entities a text unit; {low:g} to {high:g} is reasonable"
    return judge(name, low <= found <= high, message)


def _check_connectivity(
    connectivity: float | None, n_entities: int, counted: str, thresholds: Thresholds
) -> CheckResult:
    name = "graph_connectivity"
    if connectivity is None:
        missing = "relationships to follow" if n_entities else "entities"
        return skip(name, f"there are no {missing}")
    least = thresholds.min_connectivity
    message = f"{connectivity:.2f} {counted} an entity; must be more than {least:g}"
    return judge(name, connectivity > least, message)


def _warn_ratios(
    per_chunk: float | None, connectivity: float | None, counted: str, thresholds: Thresholds
) -> list[str]:
    warnings: list[str] = []
    if per_chunk is not None and per_chunk < thresholds.low_entities_per_chunk:
        warnings.append(
            f"Few entities: {per_chunk:.2f} a text unit; much of the text may be out of reach."
        )
    if per_chunk is not None and per_chunk > thresholds.high_entities_per_chunk:
        warnings.append(
            f"Many entities: {per_chunk:.2f} a text unit; there may be duplicates among them."
        )
    if connectivity is not None and connectivity < thresholds.low_connectivity:
        warnings.append(
            f"Low connectivity: {connectivity:.2f} {counted} an entity; searches find few ways on."
        )
    return warnings
