"""Builds the graph of the tables of entities and relationships, and checks its connections."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from scipy.sparse import coo_matrix, csgraph

from graphrag.eval.validation.report import (
    CheckResult,
    Metric,
    PhaseValidation,
    Status,
    Thresholds,
    judge,
    ratio,
    skip,
)
from graphrag.eval.validation.table_access import (
    Array,
    Mask,
    Rows,
    Tables,
    arrow,
    as_text,
    compute,
    count,
    find,
)
from graphrag.text.float_compare import is_below, number_beside

_PARTS = (
    "largest_component",
    "largest_component_ratio",
    "components",
    "isolated_entities",
    "isolated_ratio",
)


@dataclass(frozen=True, slots=True)
class Edges:
    """The relationships as pairs of nodes; a node is one entity name.

    - ``orphans``: marks the relationships with an end that is not the name of an entity.
    - ``nodes``: the node of each entity that has a name; entities of the same name share one.
    - ``pairs``: of shape (n, 2), the distinct pairs of different nodes that are joined, smaller
      first.
    """

    orphans: Mask
    nodes: Rows
    n_nodes: int
    pairs: Rows


def read_edges(tables: Tables) -> Edges | None:
    """Read the graph; None if a table or its column of names is missing."""
    entities, relationships = tables.entities, tables.relationships
    if entities is None or "title" not in entities or relationships is None:
        return None
    if "source" not in relationships or "target" not in relationships:
        return None
    ends = (as_text(relationships[end]) for end in ("source", "target"))
    return _join(compute.drop_null(as_text(entities["title"])), *ends)


def _join(titles: Array, *ends: Array) -> Edges:
    names = compute.unique(titles)
    sources, targets = (find(end, names) for end in ends)
    orphans = (sources < 0) | (targets < 0)
    low, high = np.minimum(sources, targets), np.maximum(sources, targets)
    joined = ~orphans & (low < high)
    n_names = max(len(names), 1)
    keys = np.unique(low[joined] * n_names + high[joined])
    pairs = np.stack(np.divmod(keys, n_names), axis=1)
    return Edges(orphans=orphans, nodes=find(titles, names), n_nodes=len(names), pairs=pairs)


def graph_connectivity(
    entities: Sequence[Hashable], sources: Sequence[Hashable], targets: Sequence[Hashable]
) -> tuple[int, int, int]:
    """Count a graph's entities, those in its largest connected part, and the isolated ones.

    ``entities`` are titles; a repeated one counts once. ``sources`` and ``targets`` are titles, of
    equal length, without direction; a title that is no entity joins nothing. An entity is isolated
    if it has no relationship to another one.
    """
    names = (dict.fromkeys(entities), sources, targets)
    edges = _join(*(arrow.array(map(str, titles), arrow.large_string()) for titles in names))
    largest, _, isolated = _measure_parts(edges)
    return edges.n_nodes, largest, isolated


def warn(value: float | None, warning: str, low: float = -inf, high: float = inf) -> list[str]:
    """Return a warning, with the value in its text, if the value is outside its bounds."""
    if value is None or not (is_below(value, low) or is_below(high, value)):
        return []
    return [warning.format(number_beside(value, low, high, digits=2))]


def check_graph(tables: Tables, edges: Edges | None, limits: Thresholds) -> PhaseValidation:
    """Check the graph of an index's tables; ``edges`` is None if they can't be read."""
    counts: dict[str, Metric] = {
        "documents": None if tables.documents is None else len(tables.documents),
        "chunks": count(tables.text_units),
        "entities": count(tables.entities),
        "relationships": count(tables.relationships),
    }
    n_entities = count(tables.entities)
    message = f"{n_entities} entities, and no table of relationships with source and target"
    connectivity = None
    parts = dict[str, Metric].fromkeys(_PARTS)
    warnings: list[str] = []
    if edges is not None:
        message = f"{n_entities} entities, of which {len(edges.pairs)} different pairs are joined"
        connectivity = ratio(len(edges.pairs), n_entities)
    if edges is not None and n_entities:
        largest, components, isolated = _measure_parts(edges)
        share = largest / n_entities
        figures = (largest, share, components, isolated, isolated / n_entities)
        parts = dict(zip(_PARTS, figures, strict=True))
        warnings = warn(
            share,
            f"Sparse graph: the largest connected part has {largest} of {n_entities} "
            f"entities, and {isolated} have no relationship at all.",
            low=limits.min_largest_component,
        )
    filled = judge("graph_not_empty", edges is not None and len(edges.pairs) > 0, message)
    # A short text may well have more than ten entities: no reason to build its index anew.
    phase = _check_ratios(filled, counts, connectivity, "joined pairs", limits, "warning")
    metrics = {**phase.metrics, **parts}
    return replace(phase, metrics=metrics, warnings=(*phase.warnings, *warnings))


def check_counts(counts: dict[str, int], limits: Thresholds) -> PhaseValidation:
    """Check a graph by nothing but the counts of its documents, chunks, entities and so on."""
    n_documents, n_entities = counts["documents"], counts["entities"]
    message = f"{n_documents} documents, {n_entities} entities"
    filled = judge("graph_not_empty", n_documents > 0 or n_entities > 0, message)
    connectivity = ratio(counts["relationships"], n_entities)
    return _check_ratios(filled, counts, connectivity, "relationships", limits)


def _check_ratios(
    filled: CheckResult,
    counts: Mapping[str, Metric],
    connectivity: float | None,
    counted: str,
    limits: Thresholds,
    unreasonable: Status = "failed",
) -> PhaseValidation:
    n_entities, n_chunks = counts["entities"] or 0, counts["chunks"] or 0
    per_chunk = ratio(n_entities, n_chunks)
    reasonable = skip("entity_chunk_ratio_reasonable", "there are no text units")
    if per_chunk is not None:
        low, high = limits.min_entities_per_chunk, limits.max_entities_per_chunk
        figure = number_beside(per_chunk, low, high, digits=2)
        message = f"{figure} entities a text unit; {low:g} to {high:g} is reasonable"
        is_out = is_below(per_chunk, low) or is_below(high, per_chunk)
        status: Status = unreasonable if is_out else "passed"
        reasonable = CheckResult(name=reasonable.name, status=status, message=message)
    missing = "relationships to follow" if n_entities else "entities"
    connected = skip("graph_connectivity", f"there are no {missing}")
    if connectivity is not None:
        least = limits.min_connectivity
        figure = number_beside(connectivity, least, digits=2)
        message = f"{figure} {counted} an entity; must be more than {least:g}"
        is_connected = is_below(least, connectivity)
        connected = judge(connected.name, is_connected, message, otherwise=unreasonable)
    warnings = [
        *warn(
            per_chunk,
            "Few entities: {} a text unit; much of the text may be out of reach.",
            low=limits.low_entities_per_chunk,
        ),
        *warn(
            per_chunk,
            "Many entities: {} a text unit; there may be duplicates among them.",
            high=limits.high_entities_per_chunk,
        ),
        *warn(
            connectivity,
            f"Low connectivity: {{}} {counted} an entity; searches find few ways on.",
            low=limits.low_connectivity,
        ),
    ]
    return PhaseValidation(
        name="graph_construction",
        checks=(filled, reasonable, connected),
        metrics={**counts, "entities_per_chunk": per_chunk, "connectivity": connectivity},
        warnings=tuple(warnings),
    )


def _measure_parts(edges: Edges) -> tuple[int, int, int]:
    """Return the number of entities in the largest part, of parts, and of isolated entities."""
    size = edges.n_nodes
    if not size:
        return 0, 0, 0
    weights = np.ones(len(edges.pairs), dtype=np.int8)
    matrix = coo_matrix((weights, (edges.pairs[:, 0], edges.pairs[:, 1])), shape=(size, size))
    graph: Any = csgraph  # scipy is not typed.
    components, labels = graph.connected_components(matrix, directed=False)
    members = np.bincount(labels[edges.nodes])
    degrees = np.bincount(edges.pairs.ravel(), minlength=size)
    return int(members.max()), int(components), int((degrees[edges.nodes] == 0).sum())
