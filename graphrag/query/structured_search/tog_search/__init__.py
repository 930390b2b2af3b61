"""Searches of the graph of a GraphRAG index: Think-on-Graph, and personalized PageRank."""

from graphrag.query.structured_search.tog_search.asking import ToGSearchError
from graphrag.query.structured_search.tog_search.search import GraphSearch, PPRSearch, ToGSearch
from graphrag.query.structured_search.tog_search.store import (
    GraphStore,
    OpenedGraph,
    TextUnits,
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
