"""Searches the graph of a GraphRAG index: Think-on-Graph, and personalized PageRank."""

from graphrag.query.graph.prompts import ToGSearchError
from graphrag.query.graph.search import GraphSearch, PPRSearch, ToGSearch
from graphrag.query.graph.store import (
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
