"""How promising edges are without asking a model: by their words, and by the mass ahead of them."""

from collections.abc import Mapping, Sequence

from graphrag.query.structured_search.tog_search.asking.edges import ShownEdge
from graphrag.query.structured_search.tog_search.graph.store import GraphStore
from graphrag.query.structured_search.tog_search.state import Candidate, Scores
from graphrag.text.ranking import bm25_scores, load_bm25
from graphrag.text.terms import shorten, split_terms

_MAX_TITLE_CHARS = 200
# Of the relationship and of the neighbour's description, where words are counted.
_CHARS = (300, 160)
# Sharing no word with the question is weak evidence against an edge, not a proof: it stays
# walkable, and weight decides among such edges.
_FLOOR = 0.05


async def score_by_words(
    question: str, candidates: Sequence[Candidate], store: GraphStore
) -> Scores:
    """Score edges by BM25 over names and descriptions, in [0.05, 1] relative to the best edge."""
    await load_bm25()
    texts = [_as_text(describe_edge(candidate, store)) for candidate in candidates]
    raw = bm25_scores(question, split_terms(texts))
    best = float(raw.max(initial=0.0))
    values = [_FLOOR + (1 - _FLOOR) * (float(s) / best if best > 0 else 0.0) for s in raw]
    return Scores(tuple(values), "bm25")


async def score_by_reach(
    question: str,
    candidates: Sequence[Candidate],
    reached: Mapping[int, float],
    store: GraphStore,
) -> Scores:
    """Score edges by the mean of their words' score and their neighbours' mass.

    Parameters
    ----------
    question : str
    candidates : sequence of Candidate
    reached : mapping of int to float
        Node -> mass; it counts relative to the neighbour that has most.
    store : GraphStore
    """
    mass = [reached.get(candidate.edge.target, 0.0) for candidate in candidates]
    most = max(mass, default=0.0)
    said = (await score_by_words(question, candidates, store)).values
    values = [
        # Rounded, as sums that differ only by the order of their terms are equal.
        round((words + _FLOOR + (1 - _FLOOR) * (part / most if most > 0 else 0.0)) / 2, 9)
        for words, part in zip(said, mass, strict=True)
    ]
    return Scores(tuple(values), "pagerank")


def describe_edge(
    candidate: Candidate, store: GraphStore, number: int = 1, chars: tuple[int, int] = _CHARS
) -> ShownEdge:
    """Return an edge as it is shown under this number, its texts cut to so many characters.

    `chars` are those of the relationship, and of what is said about the neighbour.
    """
    edge = candidate.edge
    rows = [store.relationship_row(link.relationship) for link in edge.links]
    first = rows[0]
    told = [
        row.description
        if (row.source, row.target) == (first.source, first.target)
        else f"({row.source} to {row.target}) {row.description}"
        for row in rows
    ]
    neighbour = store.entity_row(edge.target)
    return ShownEdge(
        number=number,
        entity=shorten(store.title(edge.source), _MAX_TITLE_CHARS),
        neighbour=shorten(neighbour.title, _MAX_TITLE_CHARS),
        forward=edge.links[0].forward,
        relationship=shorten("; ".join(told), chars[0]),
        about_neighbour=shorten(neighbour.description, chars[1]),
    )


def _as_text(edge: ShownEdge) -> str:
    """Join what is said of an edge; the neighbour's name counts twice, as it is what is sought."""
    names = (edge.entity, edge.neighbour)
    ends = names if edge.forward else names[::-1]
    return " ".join((*ends, edge.relationship, edge.neighbour, edge.about_neighbour))
