"""Searches of the graph of a GraphRAG index: Think-on-Graph, and personalised PageRank."""

from graphrag.query.structured_search.tog_search.asking.replies import ToGSearchError
from graphrag.query.structured_search.tog_search.graph.store import GraphStore
from graphrag.query.structured_search.tog_search.ppr_search import PPRSearch
from graphrag.query.structured_search.tog_search.search import ToGSearch

__all__ = ["GraphStore", "PPRSearch", "ToGSearch", "ToGSearchError"]
