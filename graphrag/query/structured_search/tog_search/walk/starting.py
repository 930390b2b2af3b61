"""Choosing the entities to start from: those named in the question, and those it weighs most."""

from collections.abc import Mapping

from graphrag.query.structured_search.tog_search.graph.store import GraphStore
from graphrag.query.structured_search.tog_search.state import Exploration, Path, Round


def find_starts(
    question: str, reached: Mapping[int, float], store: GraphStore, width: int
) -> Exploration:
    """Choose the entities to start from.

    Parameters
    ----------
    question : str
    reached : mapping of int to float
        Node -> mass of the question.
    store : GraphStore
    width : int
        At most so many entities named in the question, and as many of the others with most mass.
        Where there are neither, as many by BM25 over titles and descriptions.

    Returns
    -------
    Exploration
        A beam of paths without steps, named entities first; empty when none was found.
    """
    named = store.nodes_named_in(question)[:width]
    others = [node for node in reached if node not in named]
    # By title where masses are equal: rows may stand in any order.
    others.sort(key=lambda node: (-round(reached[node], 12), store.title(node)))
    starts = [*named, *others[:width]] or store.rank_by_words(question, width)
    note = f"{len(named)} named in the question, {len(starts) - len(named)} near it"
    return Exploration(
        starts=tuple(starts),
        beam=tuple(Path(node) for node in starts),
        rounds=(Round(0, "start", 0, len(starts), note),),
    )
