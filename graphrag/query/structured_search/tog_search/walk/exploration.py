"""Walking the graph: which edges lie ahead, which paths are kept."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from graphrag.query.structured_search.tog_search.graph.store import GraphStore
from graphrag.query.structured_search.tog_search.state import (
    Candidate,
    Edge,
    Exploration,
    Fate,
    Link,
    Path,
    Round,
    ScoredEdge,
    Scores,
    Step,
)
from graphrag.text.terms import split_terms

# A hub's edges past the cap are looked at this many caps deep for names and words of the
# question, so that the cost stays O(cap) whatever the hub's size.
_LOOK_AHEAD = 4
MAX_PATHS = 10
"""Paths that a model is shown at most."""
RETAINED = 5
"""Edges that one entity of the frontier keeps as evidence."""


def list_candidates(
    walked: Exploration, store: GraphStore, question: str, cap: int
) -> list[Candidate]:
    """List the edges that lead on from the beam.

    Both directions count. Left out are entities already on the path and relationships that
    were scored before; parallel relationships to one neighbour are merged. One entity gives at
    most `cap` edges: half of them the heaviest, half the richest in
    words of the question.

    Returns
    -------
    list of Candidate
        In the beam's order, then by weight.
    """
    judged = set(walked.judged)
    found: list[Candidate] = []
    for path in walked.beam:
        edges = list(_edges_ahead(path, store, cap, judged))
        for edge in _cap_edges(edges, store, question, cap):
            judged.update(link.relationship for link in edge.links)
            found.append(Candidate(path, edge))
    return found


def keep_best(
    walked: Exploration,
    candidates: Sequence[Candidate],
    scores: Scores,
    store: GraphStore,
    width: int,
    retained: int = RETAINED,
) -> Exploration:
    """Take one step along the best candidates.

    Each entity of the frontier retains its best edges as evidence, those scored 0
    excepted. The best `width` of all of these are the new beam, no two with the same end and
    none ending where the walk has already been. Scores multiply along a path; ties go by
    weight, then the relationship's human_readable_id, then the neighbour's title.
    """
    longer = [
        Path(candidate.path.start, (*candidate.path.steps, Step(candidate.edge, score)))
        for candidate, score in zip(candidates, scores.values, strict=True)
        if score > 0
    ]
    ranked = sorted(longer, key=lambda path: _rank(path, store))
    expanded = walked.expanded | {path.end for path in walked.beam}
    beam: list[Path] = []
    strong: list[Path] = []
    weaker: list[Path] = []
    n_of_source: dict[int, int] = {}
    for path in ranked:
        source = path.steps[-1].edge.source
        if n_of_source.get(source, 0) == retained:
            continue
        n_of_source[source] = n_of_source.get(source, 0) + 1
        (strong if len(beam) < width else weaker).append(path)
        ends = expanded | {other.end for other in beam}
        if len(beam) < width and path.end not in ends:
            beam.append(path)
    depth = len(walked.rounds)
    this_round = Round(
        depth, scores.strategy, len(candidates), len(strong) + len(weaker), scores.note
    )
    return replace(
        walked,
        beam=tuple(beam),
        strong=_in_order((*walked.strong, *strong), store),
        weaker=_in_order((*walked.weaker, *weaker), store),
        expanded=expanded,
        judged=walked.judged
        | {link.relationship for candidate in candidates for link in candidate.edge.links},
        rounds=(*walked.rounds, this_round),
        scored=(
            *walked.scored,
            *_fates(candidates, scores.values, (beam, [*strong, *weaker]), depth),
        ),
    )


def _fates(
    candidates: Sequence[Candidate],
    scores: Sequence[float],
    retained: tuple[Sequence[Path], Sequence[Path]],
    depth: int,
) -> Iterator[ScoredEdge]:
    """Yield what became of each candidate; ``retained`` are the paths walked on and the kept."""
    walked, kept = ({path.steps[-1].edge for path in paths} for paths in retained)
    for candidate, score in zip(candidates, scores, strict=True):
        edge = candidate.edge
        fate: Fate = "walked" if edge in walked else "kept" if edge in kept else "pruned"
        yield ScoredEdge(depth, edge, score, candidate.path.score * score, fate)


def select_evidence(walked: Exploration, max_paths: int = MAX_PATHS) -> list[Path]:
    """Return the best paths found, at most `max_paths`.

    Those good enough for a beam come first, so that a deep path, whose score is a product,
    is not crowded out by many shallow ones; then by score. A path that is the beginning of
    a chosen one is not repeated.
    """
    chosen: list[Path] = []
    for path in (*walked.strong, *walked.weaker):
        if any(_begins(path, other) for other in chosen):
            continue
        beginning = next((i for i, other in enumerate(chosen) if _begins(other, path)), None)
        if beginning is not None:
            chosen[beginning] = path
        elif len(chosen) < max_paths:
            chosen.append(path)
    return chosen


def is_unimproved(before: Exploration, after: Exploration, max_paths: int = MAX_PATHS) -> bool:
    """Say whether the last step led to no path that beats one of those held before it.

    As scores never rise along a path, no longer one would beat them either. While fewer than
    `max_paths` are held there is room for any path.

    Parameters
    ----------
    before, after : Exploration
        The walk without and with the step.
    max_paths : int
        How many paths are held, >= 1: the best, see :func:`select_evidence`.
    """
    held = select_evidence(before, max_paths)
    best = max((path.score for path in after.beam), default=0.0)
    return len(held) == max_paths and best <= min(path.score for path in held)


def _begins(short: Path, long: Path) -> bool:
    return short.start == long.start and short.steps == long.steps[: len(short.steps)]


def _in_order(paths: tuple[Path, ...], store: GraphStore) -> tuple[Path, ...]:
    return tuple(sorted(paths, key=lambda path: _rank(path, store)))


def _rank(path: Path, store: GraphStore) -> tuple[float, float, int, str]:
    edge = path.steps[-1].edge
    relationship = store.relationship_row(edge.links[0].relationship)
    title = store.title(edge.target)
    return (-path.score, -edge.weight, relationship.human_readable_id, title)


def _edges_ahead(
    path: Path, store: GraphStore, cap: int, judged: AbstractSet[int]
) -> Iterator[Edge]:
    around = store.neighbours(path.end, cap * _LOOK_AHEAD)
    links: dict[int, list[Link]] = {}
    weights: dict[int, float] = {}
    on_path = set(path.nodes)
    for node, signed, weight in zip(
        around.nodes.tolist(), around.edges.tolist(), around.weights.tolist(), strict=True
    ):
        relationship = abs(signed) - 1
        if node in on_path or relationship in judged:
            continue
        links.setdefault(node, []).append(Link(relationship, forward=signed > 0))
        weights.setdefault(node, weight)
    for node, merged in links.items():
        yield Edge(path.end, node, tuple(merged), weights[node])


def _cap_edges(edges: list[Edge], store: GraphStore, question: str, cap: int) -> list[Edge]:
    if len(edges) <= cap:
        return edges
    n_heaviest = (cap + 1) // 2
    rest = edges[n_heaviest:]
    rows = [store.relationship_row(edge.links[0].relationship) for edge in rest]
    texts = [
        f"{store.title(edge.target)} {row.description}"
        for edge, row in zip(rest, rows, strict=True)
    ]
    wanted = set(split_terms([question])[0])
    shared = [len(wanted.intersection(terms)) for terms in split_terms(texts)]
    best = sorted(range(len(rest)), key=lambda i: (-shared[i], i))[: cap - n_heaviest]
    return edges[:n_heaviest] + [rest[i] for i in sorted(best)]
