"""Whether the paths and names of an answer can be traced to the index, without a model call."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

from graphrag.eval.records import Hop, Retrieved
from graphrag.eval.scorers.citations import strip_citations
from graphrag.eval.scorers.index_view import IndexView, StoredEdge
from graphrag.eval.scorers.quotes import name_key


@dataclass(frozen=True, slots=True)
class PathEvidence:
    """What was checked in the paths and the answer of one search, and what did not hold.

    Attributes
    ----------
    n_edges : int
        Distinct relationships on the paths.
    missing_edges : tuple of str
        Those that the index does not have, or not between these ends in this direction.
    unsupported_edges : tuple of str
        Those of which no text unit names both ends; the missing ones are among them.
    n_joins : int
        Places where one hop of a path follows another.
    broken_joins : tuple of str
        Those where the next hop does not start where the last one ended.
    answer_entities : tuple of str
        Titles of the index that stand in the answer.
    untraced_entities : tuple of str
        Those of them that are on no path, at no end of a shown relationship, and in no source
        shown.
    is_traceable : bool
        Whether the search showed sources, relationships or paths at all.
    """

    n_edges: int
    missing_edges: tuple[str, ...]
    unsupported_edges: tuple[str, ...]
    n_joins: int
    broken_joins: tuple[str, ...]
    answer_entities: tuple[str, ...]
    untraced_entities: tuple[str, ...]
    is_traceable: bool

    @property
    def values(self) -> dict[str, float | None]:
        """The measures by name.

        Returns
        -------
        dict
            Each in [0, 1], 1 being best, or None when there is nothing to measure:

            ``path_edges_exist``
                Share of the paths' distinct relationships that the index has between the same
                ends in the same direction.
            ``path_joins_meet``
                Share of the joins, over all paths, at which the next hop starts where the last one
                ended. None when no path has two hops.
            ``path_edges_supported``
                Share of the paths' distinct relationships of which at least one text unit, of those
                that the index names for them, holds the titles of both ends.
            ``answer_entities_traced``
                Share of the entities in the answer that are on a path, at an end of a shown
                relationship, or in a source that was shown.

            The first three are None without paths: for every method but Think-on-Graph.

        Notes
        -----
        Defined by this project, not by a paper.
        """
        n_entities = len(self.answer_entities) if self.is_traceable else 0
        return {
            "path_edges_exist": _share_without(self.missing_edges, self.n_edges),
            "path_joins_meet": _share_without(self.broken_joins, self.n_joins),
            "path_edges_supported": _share_without(self.unsupported_edges, self.n_edges),
            "answer_entities_traced": _share_without(self.untraced_entities, n_entities),
        }

    def to_dict(self) -> dict[str, object]:
        """Return the record and its measures as JSON-ready values."""
        return {**asdict(self), "measures": self.values}


_NOTHING = PathEvidence(0, (), (), 0, (), (), (), is_traceable=False)


def check_paths(
    retrieved: Retrieved | None, response: str, index: IndexView | None
) -> PathEvidence:
    """Check how far an answer's paths and names can be traced to the index.

    Parameters
    ----------
    retrieved : Retrieved or None
        What the search showed; None when it is not known.
    response : str
        The answer; "" for a search that failed.
    index : IndexView or None
        Of the index that was searched; None when it can't be looked at.
    """
    if retrieved is None or index is None:
        return _NOTHING
    edges = {
        (hop.relationship_id, hop.source, hop.target): hop
        for path in retrieved.paths
        for hop in path
    }.values()
    joins = [join for path in retrieved.paths for join in _joins_of(path)]
    entities = index.entities_in(strip_citations(response))
    return PathEvidence(
        n_edges=len(edges),
        missing_edges=tuple(_label(hop) for hop in edges if _stored(hop, index) is None),
        unsupported_edges=tuple(_label(hop) for hop in edges if not _is_supported(hop, index)),
        n_joins=len(joins),
        broken_joins=tuple(place for place, meets in joins if not meets),
        answer_entities=entities,
        untraced_entities=_untraced(entities, retrieved, index),
        is_traceable=retrieved.text_unit_ids is not None,
    )


def _stored(hop: Hop, index: IndexView) -> StoredEdge | None:
    edge = index.edges.get(hop.relationship_id)
    if edge is None or (edge.source, edge.target) != (hop.source, hop.target):
        return None
    return edge


def _is_supported(hop: Hop, index: IndexView) -> bool:
    edge = _stored(hop, index)
    if edge is None:
        return False
    texts = (index.text_of(unit) for unit in edge.text_unit_ids)
    return any(text and edge.source in text and edge.target in text for text in texts)


def _joins_of(path: Sequence[Hop]) -> list[tuple[str, bool]]:
    """Return each place where a hop follows another, and whether they meet.

    A hop that is not there meets nothing. Parallel relationships of one hop must lead from the
    same entity to the same entity.
    """
    steps: dict[int, set[tuple[str, str]]] = {}
    for hop in path:
        walked = (hop.source, hop.target) if hop.forward else (hop.target, hop.source)
        steps.setdefault(hop.hop, set()).add(walked)
    joins: list[tuple[str, bool]] = []
    for before, after in pairwise(range(1, max(steps, default=0) + 1)):
        last, following = steps.get(before, set()), steps.get(after, set())
        ends, starts = {end for _, end in last}, {start for start, _ in following}
        meets = len(last) == len(following) == 1 and ends == starts
        joins.append((f"hop {before}, {_names(ends)} | hop {after}, {_names(starts)}", meets))
    return joins


def _untraced(entities: Sequence[str], retrieved: Retrieved, index: IndexView) -> tuple[str, ...]:
    if not entities:
        return ()
    edges = [hop for path in retrieved.paths for hop in path]
    shown = [index.edges[i] for i in retrieved.relationship_ids if i in index.edges]
    ends = {name_key(end) or end for edge in (*edges, *shown) for end in (edge.source, edge.target)}
    texts = [index.text_of(unit) for unit in retrieved.shown_text_unit_ids]
    return tuple(
        title
        for title in entities
        if (name_key(title) or title) not in ends and not any(t and title in t for t in texts)
    )


def _share_without(faults: Sequence[str], n: int) -> float | None:
    return (n - len(faults)) / n if n else None


def _label(hop: Hop) -> str:
    return f"{hop.source} -> {hop.target} ({hop.relationship_id})"


def _names(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
