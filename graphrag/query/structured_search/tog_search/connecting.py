"""Connect mode: which entities a question asks to relate, and the cheapest paths between them."""

import heapq
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, combinations, groupby, islice, pairwise, zip_longest
from typing import NamedTuple

from graphrag.config.models.tog_search_config import ToGSearchConfig
from graphrag.query.structured_search.tog_search.asking import ToGSearchError
from graphrag.query.structured_search.tog_search.store import GraphStore
from graphrag.query.structured_search.tog_search.walk import (
    MAX_PATHS,
    MAX_TITLE_CHARS,
    Edge,
    Link,
    Path,
    Round,
    Step,
    find_starts,
)
from graphrag.text.phrases import counted
from graphrag.text.terms import shorten

_MIN_ENDS = 2
# Costs are counted in thousandths, so that equal ones are equal however they were added up.
_HOP = 1000

_Way = tuple[int, ...]


def find_ends(
    question: str, store: GraphStore, reached: Mapping[int, float], config: ToGSearchConfig
) -> tuple[_Way, str]:
    """Choose the entities to join, those named in the question, and say how they were found.

    At most ``width`` of them, but two even at width 1. When fewer than two are named, those that
    hold most of the question's mass (``reached``: node -> mass) complete the pair.
    Raises ToGSearchError if the pair can't be completed.
    """
    most = max(_MIN_ENDS, config.width)
    named = store.nodes_named_in(question)
    if len(named) >= _MIN_ENDS:
        left_out = f", {len(named) - most} more left out" if len(named) > most else ""
        return tuple(named[:most]), f"{min(most, len(named))} named in the question{left_out}"
    nodes = find_starts(question, named, reached, store, most).starts[:_MIN_ENDS]
    if len(nodes) < _MIN_ENDS:
        raise ToGSearchError(
            f"Connecting needs two entities, and {len(nodes)} of the index stands in the question "
            "or near it; name both in the question."
        )
    added = " and ".join(_title(store, node) for node in nodes[len(named) :])
    return nodes, f"{len(named)} named in the question; nearest to it: {added}"


def join_ends(
    ends: _Way, store: GraphStore, config: ToGSearchConfig
) -> tuple[list[Path], list[Round], str]:
    """Join each two of the entities; see :func:`connect`.

    Returned are the cheapest path of each pair, then the second of each, and so on, at most ten; a
    round for each pair; a sentence for each pair without a path, joined.
    """
    joined = [connect(store, a, b, config) for a, b in combinations(ends, 2)]
    by_rank = chain.from_iterable(zip_longest(*(pair.paths for pair in joined)))
    paths = [path for path in by_rank if path is not None][:MAX_PATHS]
    notes = [_describe(pair, store, config.max_hops) for pair in joined]
    rounds = [
        Round(config.max_hops, "connect", pair.n_edges, len(pair.paths), note)
        for pair, note in zip(joined, notes, strict=True)
    ]
    apart = (note for pair, note in zip(joined, notes, strict=True) if not pair.paths)
    return paths, rounds, " ".join(apart)


@dataclass(frozen=True, slots=True)
class Connection:
    """What joins two entities: ``paths`` from source to target, at most ``width``.

    ``is_cut`` says whether relationships were left out of the search that may have joined them:
    without paths, they are not connected only if it is False. ``n_edges`` counts the relationships
    looked at, each as often as an entity of it was.
    """

    source: int
    target: int
    paths: tuple[Path, ...]
    is_cut: bool
    n_edges: int


def _describe(pair: Connection, store: GraphStore, max_hops: int) -> str:
    ends = f"{_title(store, pair.source)} and {_title(store, pair.target)}"
    if pair.paths:
        best = pair.paths[0]
        return (
            f"{ends}: {counted(len(pair.paths), 'path')}, the cheapest of "
            f"{counted(len(best.steps), 'hop')} at cost {-math.log2(best.score):.1f}"
        )
    within = f"within {counted(max_hops, 'hop')}"
    if pair.is_cut:
        return f"No path {within} was found between {ends}, but not every relationship was tried."
    return f"{ends} are not connected {within}."


def _title(store: GraphStore, node: int) -> str:
    return shorten(store.title(node), MAX_TITLE_CHARS)


def connect(store: GraphStore, source: int, target: int, config: ToGSearchConfig) -> Connection:
    """Find the cheapest paths of at most ``max_hops`` relationships between two entities.

    A path costs 1 for each relationship and log2(degree) for each entity it passes through; the
    degree is the number of the entity's relationships, and the two ends cost nothing. So
    2^-cost, a path's score, falls by half a step and by the number of ways that each entity on
    the way could have led elsewhere: a hub explains little. Directions don't matter, and are
    kept. Ties go by hops, then by the titles on the way.

    The first paths have no entity in common but the ends, each the cheapest that is left. When
    there are fewer than ``width`` of them, the cheapest path through each other entity follows.

    Both ends are searched from, always the one with fewer relationships ahead. Of an entity the
    ``max_relations_per_entity`` heaviest relationships count, of a level the ``width`` times as
    many cheapest entities are passed: the work does not grow with the graph or with its hubs.

    Damping hubs by degree follows Adamic and Adar (Social Networks 25, 2003) and the connection
    subgraphs of Faloutsos, McCurley and Tomkins (KDD 2004); this cost is this project's own.
    """
    graph, ends = _Surroundings(store, config), (source, target)
    first = _Meeting(graph, ends)
    chosen: list[_Way] = []
    best = next(first.ranked(), None)
    while best is not None:
        chosen.append(best)
        if len(chosen) == config.width:
            break
        barred = frozenset(node for way in chosen for node in way[1:-1])
        direct = any(len(way) == 2 for way in chosen)
        best = next(_Meeting(graph, ends, barred, bars_direct=direct).ranked(), None)
    others = (way for way in first.ranked() if way not in chosen)
    chosen += islice(others, config.width - len(chosen))
    paths = tuple(graph.path(nodes) for nodes in chosen)
    return Connection(source, target, paths, first.is_cut, graph.n_edges)


class _Surroundings:
    """The graph as one search sees it: each entity's heaviest relationships, read once."""

    def __init__(self, store: GraphStore, config: ToGSearchConfig) -> None:
        self._store = store
        self._around: dict[int, dict[int, float]] = {}
        self.cap = config.max_relations_per_entity
        self.max_hops = config.max_hops
        self.n_frontier = config.width * self.cap
        self.n_edges = 0
        self.degree = store.degree
        self.title = store.title

    def around(self, node: int) -> dict[int, float]:
        """Return a node's neighbors, each with the weight of the heaviest joining relationship."""
        if node not in self._around:
            near = self._store.neighbours(node, self.cap)
            # Heaviest first, so of one neighbor the first counts: it is written last.
            pairs = zip(near.nodes.tolist()[::-1], near.weights.tolist()[::-1], strict=True)
            self._around[node] = dict(pairs)
            self.n_edges += len(near.nodes)
        return self._around[node]

    def passing(self, node: int) -> int:
        """Return what it costs to pass through a node, in thousandths."""
        return round(_HOP * math.log2(max(1, self.degree(node))))

    def path(self, nodes: _Way) -> Path:
        """Return the path over these nodes, each step with all relationships of its two ends."""
        steps: list[Step] = []
        for source, target in pairwise(nodes):
            passed = 1 if target == nodes[-1] else self.degree(target)
            steps.append(Step(self._edge(source, target), 0.5 / passed))
        return Path(nodes[0], tuple(steps))

    def _edge(self, source: int, target: int) -> Edge:
        links: dict[Link, float] = {}
        # What one end's cap leaves out may be among the heaviest relationships of the other.
        for node, other in ((source, target), (target, source)):
            near = self._store.neighbours(node, self.cap)
            for place in (near.nodes == other).nonzero()[0].tolist():
                signed = int(near.edges[place])
                link = Link(abs(signed) - 1, forward=(signed > 0) == (node == source))
                links[link] = float(near.weights[place])

        def order(link: Link) -> tuple[float, int]:
            row = self._store.relationship_row(link.relationship)
            return (-links[link], row.human_readable_id)

        ordered = tuple(sorted(links, key=order))
        return Edge(source, target, ordered, links[ordered[0]])


class _Reached(NamedTuple):
    """A way to a node in a number of hops, the node itself not passed; the least is the best."""

    cost: int
    minus_weight: float
    title_of_parent: str
    parent: int


class _Side:
    """What is reached from one end, hop by hop, and how cheaply."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.levels: list[dict[int, _Reached]] = [{start: _Reached(0, 0.0, "", -1)}]
        self.least: dict[int, int] = {start: 0}
        self.is_cut = False

    def way_to(self, node: int, n_hops: int) -> list[int]:
        """Return the nodes to the start from a node that is reached in so many hops."""
        way = [node]
        for level in range(n_hops, 0, -1):
            way.append(self.levels[level][way[-1]].parent)
        return way


class _Meeting:
    """One search from both ends; entities barred, and the direct edge, are not walked."""

    def __init__(
        self,
        graph: _Surroundings,
        ends: tuple[int, int],
        barred: frozenset[int] = frozenset(),
        bars_direct: bool = False,
    ) -> None:
        self._graph, self._ends = graph, ends
        self._barred, self._bars_direct = barred, bars_direct
        self._sides = (_Side(ends[0]), _Side(ends[1]))
        for _ in range(graph.max_hops):
            open_sides = [side for side in self._sides if self._passable(side)]
            if self._is_settled() or not open_sides:
                break
            self._advance(min(open_sides, key=self._effort))

    @property
    def is_cut(self) -> bool:
        """Whether a path may have been missed."""
        return not self._is_settled() and any(side.is_cut for side in self._sides)

    def ranked(self) -> Iterator[_Way]:
        """Yield the cheapest path through each entity that both ends have reached, best first."""
        meetings = sorted(self._meetings(), key=lambda meeting: meeting[0])
        for _, equal in groupby(meetings, key=lambda meeting: meeting[0]):
            ways = {way for _, way in equal if len(set(way)) == len(way)}
            yield from sorted(ways, key=lambda way: [self._graph.title(node) for node in way])

    def _is_settled(self) -> bool:
        # An end whose whole surroundings are known has met the other, or never will.
        return any(not side.is_cut and not self._passable(side) for side in self._sides)

    def _meetings(self) -> Iterator[tuple[tuple[int, int], _Way]]:
        """Yield (cost, hops) and nodes of the ways over all that both ends have reached."""
        here, there = self._sides
        for n_here, reached in enumerate(here.levels):
            for n_there, others in enumerate(there.levels):
                for node in reached.keys() & others.keys():
                    cost = reached[node].cost + others[node].cost
                    if node not in self._ends:
                        cost += self._graph.passing(node)
                    back = there.way_to(node, n_there)[1:]
                    way = (*reversed(here.way_to(node, n_here)), *back)
                    yield (cost, n_here + n_there), way

    def _passable(self, side: _Side) -> list[int]:
        """Return the nodes reached last that the search goes on from."""
        return [n for n in side.levels[-1] if n == side.start or n not in self._ends]

    def _effort(self, side: _Side) -> tuple[int, str]:
        effort = sum(self._graph.degree(node) for node in self._passable(side))
        return (effort, self._graph.title(side.start))

    def _advance(self, side: _Side) -> None:
        graph, last = self._graph, side.levels[-1]
        frontier = self._passable(side)
        if len(frontier) > graph.n_frontier:
            side.is_cut = True
            frontier = heapq.nsmallest(
                graph.n_frontier,
                frontier,
                key=lambda n: (last[n].cost + graph.passing(n), graph.title(n)),
            )
        level: dict[int, _Reached] = {}
        for node in frontier:
            side.is_cut = side.is_cut or graph.degree(node) > graph.cap
            passed = 0 if node == side.start else graph.passing(node)
            cost, title = last[node].cost + passed + _HOP, graph.title(node)
            for other, weight in graph.around(node).items():
                is_direct = node in self._ends and other in self._ends
                if other in self._barred or (is_direct and self._bars_direct):
                    continue
                # In no more hops it was reached as cheaply before.
                if cost >= side.least.get(other, cost + 1):
                    continue
                new = _Reached(cost, -weight, title, node)
                level[other] = min(new, level.get(other, new))
        side.levels.append(level)
        side.least |= {node: reached.cost for node, reached in level.items()}
