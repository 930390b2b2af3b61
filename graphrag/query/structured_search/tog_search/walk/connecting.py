"""Joining two entities: the cheapest paths between them, found from both ends at once."""

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, islice, pairwise

from graphrag.config.models.tog_search_config import ToGSearchConfig
from graphrag.query.structured_search.tog_search.graph.store import GraphStore
from graphrag.query.structured_search.tog_search.state import Edge, Link, Path, Step

# Costs are counted in thousandths, so that equal ones are equal however they were added up.
_HOP = 1000


@dataclass(frozen=True, slots=True)
class Connection:
    """What joins two entities.

    Attributes
    ----------
    source, target : int
        Nodes.
    paths : tuple of Path
        From source to target, at most ``width``; empty when none was found.
    is_cut : bool
        Whether relationships were left out of the search that may have joined them: without
        paths, they are not connected only if this is False.
    n_edges : int
        Relationships looked at, each as often as an entity of it was.
    """

    source: int
    target: int
    paths: tuple[Path, ...]
    is_cut: bool
    n_edges: int


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

    Parameters
    ----------
    store : GraphStore
    source, target : int
        Two different nodes.
    config : ToGSearchConfig

    Notes
    -----
    Damping hubs by degree follows Adamic and Adar (Social Networks 25, 2003) and the connection
    subgraphs of Faloutsos, McCurley and Tomkins (KDD 2004); this cost is this project's own.
    """
    graph = _Surroundings(store, config.max_relations_per_entity)
    limits = _Limits(config.max_hops, config.width * config.max_relations_per_entity)
    first = _Meeting(graph, (source, target), limits)
    chosen: list[tuple[int, ...]] = []
    best = next(first.ranked(), None)
    while best is not None:
        chosen.append(best)
        if len(chosen) == config.width:
            break
        barred = frozenset(node for way in chosen for node in way[1:-1])
        direct = any(len(way) == 2 for way in chosen)
        again = _Meeting(graph, (source, target), limits, barred, bars_direct=direct)
        best = next(again.ranked(), None)
    others = (way for way in first.ranked() if way not in chosen)
    chosen += islice(others, config.width - len(chosen))
    paths = tuple(graph.path(nodes) for nodes in chosen)
    return Connection(source, target, paths, first.is_cut, graph.n_edges)


@dataclass(frozen=True, slots=True)
class _Limits:
    """How far one search goes, and how many entities of a level it passes."""

    max_hops: int
    n_frontier: int


class _Surroundings:
    """The graph as one search sees it: each entity's heaviest relationships, read once."""

    def __init__(self, store: GraphStore, cap: int) -> None:
        self._store = store
        self._cap = cap
        self._around: dict[int, dict[int, float]] = {}
        self.n_edges = 0

    def around(self, node: int) -> dict[int, float]:
        """Return a node's neighbours, each with the weight of the heaviest joining relationship."""
        found = self._around.get(node)
        if found is None:
            near = self._store.neighbours(node, self._cap)
            found = {}
            for other, weight in zip(near.nodes.tolist(), near.weights.tolist(), strict=True):
                found.setdefault(other, weight)
            self._around[node] = found
            self.n_edges += len(near.nodes)
        return found

    def degree(self, node: int) -> int:
        return self._store.degree(node)

    def is_cut(self, node: int) -> bool:
        return self.degree(node) > self._cap

    def passing(self, node: int) -> int:
        """Return what it costs to pass through a node, in thousandths."""
        return round(_HOP * math.log2(max(1, self.degree(node))))

    def title(self, node: int) -> str:
        return self._store.title(node)

    def path(self, nodes: tuple[int, ...]) -> Path:
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
            near = self._store.neighbours(node, self._cap)
            for place in (near.nodes == other).nonzero()[0].tolist():
                signed = int(near.edges[place])
                link = Link(abs(signed) - 1, forward=(signed > 0) == (node == source))
                links[link] = float(near.weights[place])

        def order(link: Link) -> tuple[float, int]:
            row = self._store.relationship_row(link.relationship)
            return (-links[link], row.human_readable_id)

        ordered = tuple(sorted(links, key=order))
        return Edge(source, target, ordered, links[ordered[0]])


@dataclass(frozen=True, slots=True)
class _Reached:
    """The cheapest way to a node in a number of hops; the node itself not passed."""

    cost: int
    weight: float
    parent: int


class _Side:
    """What is reached from one end, hop by hop, and how cheaply."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.levels: list[dict[int, _Reached]] = [{start: _Reached(0, 0.0, -1)}]
        self.least: dict[int, int] = {start: 0}
        self.is_cut = False
        self.effort: int | None = None

    def way_to(self, node: int, n_hops: int) -> tuple[int, ...]:
        """Return the nodes from the start to a node that is reached in so many hops."""
        way = [node]
        for level in range(n_hops, 0, -1):
            way.append(self.levels[level][way[-1]].parent)
        return tuple(reversed(way))


class _Meeting:
    """One search from both ends; entities barred, and the direct edge, are not walked."""

    def __init__(
        self,
        graph: _Surroundings,
        ends: tuple[int, int],
        limits: _Limits,
        barred: frozenset[int] = frozenset(),
        bars_direct: bool = False,
    ) -> None:
        self._graph = graph
        self._ends = ends
        self._n_frontier = limits.n_frontier
        self._barred = barred
        self._bars_direct = bars_direct
        self._sides = (_Side(ends[0]), _Side(ends[1]))
        for _ in range(limits.max_hops):
            open_sides = [side for side in self._sides if self._passable(side)]
            if self._is_settled() or not open_sides:
                break
            self._advance(min(open_sides, key=self._effort))

    @property
    def is_cut(self) -> bool:
        """Whether a path may have been missed."""
        return not self._is_settled() and any(side.is_cut for side in self._sides)

    def ranked(self) -> Iterator[tuple[int, ...]]:
        """Yield the cheapest path through each entity that both ends have reached, best first."""
        meetings = sorted(self._meetings())
        for _, equal in groupby(meetings, key=lambda meeting: meeting[0]):
            ways = {self._way(node, hops) for _, node, hops in equal}
            yield from sorted((w for w in ways if len(set(w)) == len(w)), key=self._titles)

    def _is_settled(self) -> bool:
        # An end whose whole surroundings are known has met the other, or never will.
        return any(not side.is_cut and not self._passable(side) for side in self._sides)

    def _meetings(self) -> list[tuple[tuple[int, int], int, tuple[int, int]]]:
        """List ((cost, hops), node, hops from each end) of all that both ends have reached."""
        here, there = self._sides
        found: list[tuple[tuple[int, int], int, tuple[int, int]]] = []
        for n_here, reached in enumerate(here.levels):
            for n_there, others in enumerate(there.levels):
                for node in reached.keys() & others.keys():
                    cost = reached[node].cost + others[node].cost
                    if node not in self._ends:
                        cost += self._graph.passing(node)
                    found.append(((cost, n_here + n_there), node, (n_here, n_there)))
        return found

    def _way(self, node: int, hops: tuple[int, int]) -> tuple[int, ...]:
        here, there = self._sides
        back = there.way_to(node, hops[1])
        return (*here.way_to(node, hops[0]), *reversed(back[:-1]))

    def _titles(self, way: tuple[int, ...]) -> list[str]:
        return [self._graph.title(node) for node in way]

    def _passable(self, side: _Side) -> list[int]:
        """Return the nodes reached last that the search goes on from."""
        return [n for n in side.levels[-1] if n == side.start or n not in self._ends]

    def _effort(self, side: _Side) -> tuple[int, str]:
        if side.effort is None:
            side.effort = sum(self._graph.degree(node) for node in self._passable(side))
        return (side.effort, self._graph.title(side.start))

    def _advance(self, side: _Side) -> None:
        frontier = self._passable(side)
        if len(frontier) > self._n_frontier:
            side.is_cut = True
            last = side.levels[-1]
            frontier = heapq.nsmallest(
                self._n_frontier,
                frontier,
                key=lambda n: (last[n].cost + self._graph.passing(n), self._graph.title(n)),
            )
        level: dict[int, _Reached] = {}
        for node in frontier:
            side.is_cut = side.is_cut or self._graph.is_cut(node)
            passed = 0 if node == side.start else self._graph.passing(node)
            cost = side.levels[-1][node].cost + passed + _HOP
            for other, weight in self._graph.around(node).items():
                if other in self._barred or self._is_direct(node, other):
                    continue
                # In no more hops it was reached as cheaply before.
                if cost >= side.least.get(other, cost + 1):
                    continue
                new = _Reached(cost, weight, node)
                known = level.get(other)
                if known is None or self._is_better(new, known):
                    level[other] = new
        side.levels.append(level)
        side.effort = None
        side.least.update((node, reached.cost) for node, reached in level.items())

    def _is_direct(self, node: int, other: int) -> bool:
        return self._bars_direct and node in self._ends and other in self._ends

    def _is_better(self, new: _Reached, known: _Reached) -> bool:
        if (new.cost, -new.weight) != (known.cost, -known.weight):
            return (new.cost, -new.weight) < (known.cost, -known.weight)
        return self._graph.title(new.parent) < self._graph.title(known.parent)
