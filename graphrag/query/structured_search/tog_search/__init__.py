"""Re-exports the searches of :mod:`graphrag.query.graph` under the import path used until 1.1.0."""

from graphrag.query.graph import (
    GraphSearch,
    GraphStore,
    OpenedGraph,
    PPRSearch,
    TextUnits,
    ToGSearch,
    ToGSearchError,
    build_in_memory,
    open_graph,
)

__all__ = [
    "GraphSearch",
    "GraphStore",
    "OpenedGraph",
    "PPRSearch",
    "TextUnits",
    "ToGSearch",
    "ToGSearchError",
    "build_in_memory",
    "open_graph",
]
