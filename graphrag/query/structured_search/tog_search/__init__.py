"""Think-on-Graph search over a GraphRAG index."""

from graphrag.query.structured_search.tog_search.asking.replies import ToGSearchError
from graphrag.query.structured_search.tog_search.graph.store import GraphStore
from graphrag.query.structured_search.tog_search.search import ToGSearch

__all__ = ["GraphStore", "ToGSearch", "ToGSearchError"]
