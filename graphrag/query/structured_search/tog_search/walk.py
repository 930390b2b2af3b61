"""Walking the graph: where it starts, which edges lie ahead, what they score, which are kept."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from graphrag.query.structured_search.tog_search.asking import ShownEdge
from graphrag.query.structured_search.tog_search.store import GraphStore
from graphrag.text.ranking import bm25_scores, load_bm25
from graphrag.text.terms import shorten, split_terms

MAX_PATHS = 10
"""Paths that a model is shown at most."""
MAX_TITLE_CHARS = 200
"""Of a title, where it stands among others."""
RETAINED = 5
"""Edges that one entity of the frontier keeps as evidence."""
# A hub's edges past the cap are looked at this many caps deep for names and words of the
# question, so that the cost stays O(cap) whatever the hub's size.
_LOOK_AHEAD = 4
# Characters of the relationship and of the neighbor's description, where words are counted,
# and where a model reads them: more edges are worth more than more words.
_COUNTED_CHARS = (300, 160)
SHOWN_CHARS = (100, 60)
# Sharing no word with the question is weak evidence against an edge, not a proof: it stays
# walkable, and weight decides among such edges.
_FLOOR = 0.05
# Masses that differ by less are equal.
_EQUAL = 1e-12

Strategy = Literal["start", "llm", "bm25", "pagerank", "connect"]
Fate = Literal["walked", "kept", "pruned"]
"""What became of a scored edge: walked on from, kept as evidence alone, or neither."""


@dataclass(frozen=True, slots=True)
class Link:
    """A row of the relationships table, and whether it is walked as it is stored."""

    relationship: int
    forward: bool


@dataclass(frozen=True, slots=True)
class Edge:
    """All that joins the node ``source`` to its neighbor ``target``.

    ``links`` are the parallel relationships, heaviest first and never empty; ``weight`` is that of
    the heaviest.
    """

    source: int
    target: int
    links: tuple[Link, ...]
    weight: float


@dataclass(frozen=True, slots=True)
class Step:
    """An edge that was walked, and its score in [0, 1]."""

    edge: Edge
    score: float


@dataclass(frozen=True, slots=True)
class Path:
    """A walk from a starting node over connected steps, no entity twice."""

    start: int
    steps: tuple[Step, ...] = ()

    @property
    def nodes(self) -> tuple[int, ...]:
        """The entities on the path, in walking order."""
        return (self.start, *(step.edge.target for step in self.steps))

    @property
    def end(self) -> int:
        """The entity that the path has reached."""
        return self.nodes[-1]

    @property
    def score(self) -> float:
        """Product of the steps' scores in [0, 1]; 1 without steps."""
        return math.prod((step.score for step in self.steps), start=1.0)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A path of the beam, and an edge from its end to a new entity that may lengthen it."""

    path: Path
    edge: Edge


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores in [0, 1] of candidates in their order, who gave them, and what went wrong or ""."""

    values: tuple[float, ...]
    strategy: Strategy
    note: str = ""


@dataclass(frozen=True, slots=True)
class ScoredEdge:
    """An edge, the round that scored it (from 1), its own score and that of the path it ends."""

    depth: int
    edge: Edge
    score: float
    path_score: float
    fate: Fate


@dataclass(frozen=True, slots=True)
class Round:
    """One depth of the exploration as it is reported: edges scored, and retained as evidence.

    Depth 0 finds the starting entities, and retains them. In connect mode there is a round for
    each pair of entities: depth is the hops allowed, the counts are of edges looked at and paths.
    """

    depth: int
    strategy_used: Strategy
    n_edges: int
    n_kept: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Exploration:
    """How far a search has walked; paths are best first.

    ``beam`` has the paths walked on from: at most ``width``, no two with the same end. ``strong``
    are those that have been in a beam, or scored as well but ended where the walk had been before
    (so they join two known entities), ``weaker`` the others retained as evidence. ``expanded`` are
    the nodes whose edges have been looked at, ``judged`` the relationship rows that were scored,
    each once a search; ``scored`` are all edges in the order of the candidates.
    """

    starts: tuple[int, ...]
    beam: tuple[Path, ...] = ()
    strong: tuple[Path, ...] = ()
    weaker: tuple[Path, ...] = ()
    expanded: frozenset[int] = frozenset()
    judged: frozenset[int] = frozenset()
    rounds: tuple[Round, ...] = ()
    scored: tuple[ScoredEdge, ...] = ()


def find_starts(
    question: str,
    named: Sequence[int],
    reached: Mapping[int, float],
    store: GraphStore,
    width: int,
) -> Exploration:
    """Choose the entities to start from: a beam of paths without steps, empty if there are none.

    At most ``width`` entities ``named`` in the question come first, then as many of the others with
    most mass (``reached``: node -> mass); without either, as many by BM25 over titles and
    descriptions.
    """
    named = named[:width]
    nodes = np.fromiter(reached, np.int64, len(reached))
    masses = np.fromiter(reached.values(), np.float64, len(reached))
    unnamed = ~np.isin(nodes, named)
    nodes, masses = nodes[unnamed], masses[unnamed]
    if len(nodes) > width:  # titles are read of those only that may be among the best
        nodes = nodes[masses >= np.partition(masses, -width)[-width] - 2 * _EQUAL]
    # By title where masses are equal: rows may stand in any order.
    others = sorted(nodes.tolist(), key=lambda node: (-round(reached[node], 12), store.title(node)))
    starts = [*named, *others[:width]] or store.rank_by_words(question, width)
    note = f"{len(named)} named in the question, {len(starts) - len(named)} near it"
    return Exploration(
        starts=tuple(starts),
        beam=tuple(Path(node) for node in starts),
        rounds=(Round(0, "start", 0, len(starts), note),),
    )


def list_candidates(
    walked: Exploration, store: GraphStore, question: str, cap: int
) -> list[Candidate]:
    """List the edges that lead on from the beam, in its order, then by weight.

    Both directions count. Left out are entities already on the path and relationships that
    were scored before; parallel relationships to one neighbor are merged. One entity gives at
    most `cap` edges: half of them the heaviest, half the richest in words of the question.
    """
    judged = set(walked.judged)
    candidates: list[Candidate] = []
    for path in walked.beam:
        for edge in _cap_edges(_edges_ahead(path, store, cap, judged), store, question, cap):
            judged.update(link.relationship for link in edge.links)
            candidates.append(Candidate(path, edge))
    return candidates


def _edges_ahead(path: Path, store: GraphStore, cap: int, judged: AbstractSet[int]) -> list[Edge]:
    around = store.neighbours(path.end, cap * _LOOK_AHEAD)
    links: dict[int, list[Link]] = {}
    weights: dict[int, float] = {}
    on_path = set(path.nodes)
    for node, signed, weight in zip(
        around.nodes.tolist(), around.edges.tolist(), around.weights.tolist(), strict=True
    ):
        relationship = abs(signed) - 1
        if node not in on_path and relationship not in judged:
            links.setdefault(node, []).append(Link(relationship, forward=signed > 0))
            weights.setdefault(node, weight)
    return [Edge(path.end, node, tuple(some), weights[node]) for node, some in links.items()]


def _cap_edges(edges: list[Edge], store: GraphStore, question: str, cap: int) -> list[Edge]:
    if len(edges) <= cap:
        return edges
    n_heaviest = (cap + 1) // 2
    rest = edges[n_heaviest:]
    texts = [
        f"{store.title(edge.target)} "
        f"{store.relationship_row(edge.links[0].relationship).description}"
        for edge in rest
    ]
    wanted = set(split_terms([question])[0])
    shared = [len(wanted.intersection(terms)) for terms in split_terms(texts)]
    best = sorted(range(len(rest)), key=lambda i: (-shared[i], i))[: cap - n_heaviest]
    return edges[:n_heaviest] + [rest[i] for i in sorted(best)]


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
    weight, then the relationship's human_readable_id, then the neighbor's title.
    """
    longer = [
        Path(candidate.path.start, (*candidate.path.steps, Step(candidate.edge, score)))
        for candidate, score in zip(candidates, scores.values, strict=True)
    ]
    expanded = walked.expanded | {path.end for path in walked.beam}
    beam: list[Path] = []
    strong: list[Path] = []
    weaker: list[Path] = []
    n_of_source: Counter[int] = Counter()
    for path in _in_order([path for path in longer if path.steps[-1].score > 0], store):
        source = path.steps[-1].edge.source
        if n_of_source[source] == retained:
            continue
        n_of_source[source] += 1
        (strong if len(beam) < width else weaker).append(path)
        if len(beam) < width and path.end not in expanded | {other.end for other in beam}:
            beam.append(path)
    depth, n_kept = len(walked.rounds), len(strong) + len(weaker)
    fates: dict[Edge, Fate] = {path.steps[-1].edge: "kept" for path in (*strong, *weaker)}
    fates |= {path.steps[-1].edge: "walked" for path in beam}
    ends = [path.steps[-1] for path in longer]
    scored = [
        ScoredEdge(depth, end.edge, end.score, path.score, fates.get(end.edge, "pruned"))
        for path, end in zip(longer, ends, strict=True)
    ]
    return replace(
        walked,
        beam=tuple(beam),
        strong=_in_order((*walked.strong, *strong), store),
        weaker=_in_order((*walked.weaker, *weaker), store),
        expanded=expanded,
        judged=walked.judged.union(link.relationship for end in ends for link in end.edge.links),
        rounds=(
            *walked.rounds,
            Round(depth, scores.strategy, len(candidates), n_kept, scores.note),
        ),
        scored=(*walked.scored, *scored),
    )


def _in_order(paths: Sequence[Path], store: GraphStore) -> tuple[Path, ...]:
    def rank(path: Path) -> tuple[float, float, int, str]:
        edge = path.steps[-1].edge
        number = store.relationship_row(edge.links[0].relationship).human_readable_id
        return (-path.score, -edge.weight, number, store.title(edge.target))

    return tuple(sorted(paths, key=rank))


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


def _begins(short: Path, long: Path) -> bool:
    return short.start == long.start and short.steps == long.steps[: len(short.steps)]


def is_unimproved(before: Exploration, after: Exploration, max_paths: int = MAX_PATHS) -> bool:
    """Say whether the last step led to no path that beats one of those held before it.

    As scores never rise along a path, no longer one would beat them either. While fewer than
    `max_paths` (>= 1) are held, see :func:`select_evidence`, there is room for any path.
    """
    held = select_evidence(before, max_paths)
    best = max((path.score for path in after.beam), default=0.0)
    return len(held) == max_paths and best <= min(path.score for path in held)


async def score_by_words(
    question: str, candidates: Sequence[Candidate], store: GraphStore
) -> Scores:
    """Score edges by BM25 over names and descriptions, in [0.05, 1] relative to the best edge."""
    await load_bm25()
    texts = [
        # The neighbor's name counts twice, as it is what is sought.
        " ".join((*ends, edge.relationship, edge.neighbour, edge.about_neighbour))
        for edge in (describe_edge(candidate, store, _COUNTED_CHARS) for candidate in candidates)
        for ends in [(edge.entity, edge.neighbour)[:: 1 if edge.forward else -1]]
    ]
    raw = _shares_of_most(bm25_scores(question, split_terms(texts)).tolist())
    return Scores(tuple(_FLOOR + (1 - _FLOOR) * share for share in raw), "bm25")


async def score_by_reach(
    question: str, candidates: Sequence[Candidate], reached: Mapping[int, float], store: GraphStore
) -> Scores:
    """Score edges by the mean of their words' score and their neighbors' share of the most mass.

    ``reached`` has the mass of each node.
    """
    mass = _shares_of_most([reached.get(candidate.edge.target, 0.0) for candidate in candidates])
    words = (await score_by_words(question, candidates, store)).values
    values = [
        # Rounded, as sums that differ only by the order of their terms are equal.
        round((word + _FLOOR + (1 - _FLOOR) * share) / 2, 9)
        for word, share in zip(words, mass, strict=True)
    ]
    return Scores(tuple(values), "pagerank")


def _shares_of_most(values: Sequence[float]) -> list[float]:
    most = max(values, default=0.0)
    return [value / most if most > 0 else 0.0 for value in values]


def describe_edge(candidate: Candidate, store: GraphStore, chars: tuple[int, int]) -> ShownEdge:
    """Return an edge as it is shown, its texts (relationship, neighbor) cut to `chars`."""
    edge = candidate.edge
    rows = [store.relationship_row(link.relationship) for link in edge.links]
    first = rows[0]
    descriptions = [
        row.description
        if (row.source, row.target) == (first.source, first.target)
        else f"({row.source} to {row.target}) {row.description}"
        for row in rows
    ]
    neighbour = store.entity_row(edge.target)
    return ShownEdge(
        entity=shorten(store.title(edge.source), MAX_TITLE_CHARS),
        neighbour=shorten(neighbour.title, MAX_TITLE_CHARS),
        forward=edge.links[0].forward,
        relationship=shorten("; ".join(descriptions), chars[0]),
        about_neighbour=shorten(neighbour.description, chars[1]),
    )
