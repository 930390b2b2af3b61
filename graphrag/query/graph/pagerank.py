"""Spreads the weight of a question over entities and texts by personalized PageRank.

It follows HippoRAG (Gutiérrez et al., NeurIPS 2024, arXiv 2405.14831) and its second version (arXiv
2502.14802). Seeds, the role of titles, and weights are this project's own.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from graphrag.query.graph.build import slices
from graphrag.query.graph.store import GraphStore
from graphrag.text.ranking import fuse_scores

N_SEEDS = 50
_POWER, _FUSED_POWER = 3, 8
# The share of the mass that names get, and the share that moves on at each step, if a name in the
# question is in one text unit only; both shrink as the name is in more text units.
_NAMED_PART = 0.75
_GOING_ON = 0.85
_STEPS = 5
# Share of a look-up's mass that texts kept or followed get.
_LEANING = 0.25
# Being the title of a text unit's document says more than being named in it.
_TITLE_WEIGHT = 5.0
# That two entities are related says less than that they occur in one text.
_RELATED_WEIGHT = 0.1
_LEAST_RARITY = 0.001
# Most vertices that a search expands in a step and in all, and most text units or names of each.
_N_AT_ONCE = 1000
_N_IN_ALL = 2000
_MAX_MENTIONS = 100

_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]
_Number = TypeVar("_Number", np.float64, np.bool_)
_Flows = tuple[_Ints, _Ints, _Floats, _Floats]
"""Source, target, weight, and the weight that counts toward the total of the source."""


@dataclass(frozen=True, slots=True)
class Seeds:
    """Where mass starts, 1 in all, and the part of it, in (0, 1], that returns at each step.

    ``units`` maps row of the text units table to mass; ``names`` maps name (an entity's node or the
    number of a further title) to mass. ``restart`` is the part that returns.
    """

    units: Mapping[int, float]
    names: Mapping[int, float]
    restart: float


@dataclass(frozen=True, slots=True)
class Reached:
    """The mass > 0 that reached each text unit, by row of its table, and each entity, by node."""

    units: Mapping[int, float]
    entities: Mapping[int, float]


def weigh_texts(
    words: Sequence[tuple[int, float]], near: Mapping[int, float], n: int
) -> dict[int, float]:
    """Return the weights of the 50 best of ``n`` text units for a question, by row of their table.

    ``words`` are rows and BM25 scores > 0, best first; ``near`` maps row to nearness in meaning, if
    known. Without ``near`` a weight is the BM25 score to the power of 3; with it, the score of both
    fused by ``fuse_scores``, to the power of 8.
    """
    if not near:
        return {row: score**_POWER for row, score in words[:N_SEEDS]}
    fused = fuse_scores(dict(words), near, n)[:N_SEEDS]
    weights = {row: score**_FUSED_POWER for row, score in fused if score > 0}
    return weights or dict.fromkeys((row for row, _ in fused), 1.0)  # all texts are equally near


def find_seeds(names: Sequence[int], texts: Mapping[int, float], store: GraphStore) -> Seeds:
    """Share mass among the text units that fit a question and the names in it.

    ``texts`` maps row of the text units table to weight. A name weighs 1 / df, where df counts the
    text units that contain it, also inside a longer name. With N text units and df of the rarest
    name, s = log(N / df) / log N says how rare the names are: names get 0.75 s of the mass, and
    1 - 0.85 s of all mass returns at each step. So rare names carry a question far, and a name in
    every text does not carry it at all. If no text unit fits, names get all mass.
    """
    arrays = store.arrays
    with_texts = [name for name in names if arrays.name_ptr[name] < arrays.name_ptr[name + 1]]
    n = len(arrays.unit_topics)
    weights = {name: 1 / store.frequency(name) for name in with_texts}
    rarity = max(
        (math.log(n * weight) / math.log(n) for weight in weights.values() if n > 1), default=0.0
    )
    if not weights:  # an index without texts
        weights = dict.fromkeys(names, 1.0)
    if not texts:
        return Seeds({}, _scaled(weights, 1.0), 1 - _GOING_ON)
    part = _NAMED_PART * rarity
    return Seeds(_scaled(texts, 1 - part), _scaled(weights, part), 1 - _GOING_ON * rarity)


def lean_on(seeds: Seeds, rows: Sequence[int]) -> Seeds:
    """Move a quarter of the mass to text units that a search has kept or followed, by row.

    Without such text units the seeds are returned unchanged.
    """
    if not rows:
        return seeds
    units = {row: (1 - _LEANING) * mass for row, mass in seeds.units.items()}
    for row in rows:
        units[row] = units.get(row, 0.0) + _LEANING / len(rows)
    names = {name: (1 - _LEANING) * mass for name, mass in seeds.names.items()}
    return Seeds(units, names, seeds.restart)


def _scaled(weights: Mapping[int, float], mass: float) -> dict[int, float]:
    total = sum(weights.values())
    return {key: weight * mass / total for key, weight in weights.items()} if mass > 0 else {}


def spread(seeds: Seeds, store: GraphStore, cap: int) -> Reached:
    """Spread mass from seeds by five steps of personalized PageRank.

    A relationship carries ``0.1 log(1 + weight)``, parallel ones together. The edge between a name
    and a text unit carries log(N / df) / log N, five times that if the name is the title of the
    text unit's document. Mass flows along an entity's ``cap`` heaviest relationships and to 100 of
    its text units; mass for further text units is lost. A step expands the 1,000 unexpanded
    vertices with most mass, a search 2,000 in all, so the work does not grow with the graph. At the
    end entities also get what text units pass on to them, so that some entities have mass even if
    no mass leaves the seeds.
    """
    graph = _Surroundings(seeds, store, cap)
    total = np.zeros(len(graph.vertices))
    moving = graph.start
    for _ in range(_STEPS):
        total, moving = graph.expanded(total, moving)
        total += seeds.restart * moving
        moving = (1 - seeds.restart) * graph.flow(moving)
        if not moving.any():
            break
    total += moving
    is_unit = graph.vertices >= graph.n_names
    units, masses = graph.vertices[is_unit] - graph.n_names, total[is_unit]
    total += np.where(is_unit, 0.0, graph.flow(np.where(is_unit, total, 0.0)))
    is_entity = graph.vertices < store.n_entities
    return Reached(
        units=_positive(units, masses),
        entities=_positive(graph.vertices[is_entity], total[is_entity]),
    )


def _positive(vertices: _Ints, masses: _Floats) -> dict[int, float]:
    is_positive = masses > 0
    return dict(zip(vertices[is_positive].tolist(), masses[is_positive].tolist(), strict=True))


class _Surroundings:
    """The part of a graph that a search has reached, with the mass of each vertex at the ``start``.

    ``vertices`` ascend: names by number, and text units by row + ``n_names``.
    """

    def __init__(self, seeds: Seeds, store: GraphStore, cap: int) -> None:
        self._arrays, self._cap = store.arrays, cap
        self.n_names = len(store.arrays.name_ptr) - 1
        seeded = dict(seeds.names)
        seeded |= {row + self.n_names: mass for row, mass in seeds.units.items()}
        self.vertices = np.array(sorted(seeded), np.int64)
        self.start = np.array([seeded[vertex] for vertex in self.vertices.tolist()], np.float64)
        self._looked_at = np.zeros(len(self.vertices), np.bool_)
        self._source, self._target = np.empty(0, np.int64), np.empty(0, np.int64)
        self._share = np.empty(0, np.float64)

    def flow(self, mass: _Floats) -> _Floats:
        """Return the mass that each vertex receives from its neighbors."""
        carried = mass[self._source] * self._share
        # bincount gives integers if nothing flows.
        return np.bincount(self._target, carried, len(self.vertices)).astype(np.float64)

    def expanded(self, total: _Floats, moving: _Floats) -> tuple[_Floats, _Floats]:
        """Expand the heaviest vertices; return the masses with entries for the new vertices."""
        waiting = np.flatnonzero((moving > 0) & ~self._looked_at)
        room = min(_N_AT_ONCE, _N_IN_ALL - int(self._looked_at.sum()))
        if len(waiting) > room:
            order = np.lexsort((waiting, -np.round(moving[waiting], 12)))
            waiting = waiting[order[: max(0, room)]]
        if not len(waiting):
            return total, moving
        self._looked_at[waiting] = True
        source, target, share = self._find_flows(self.vertices[waiting])
        old = self.vertices
        self.vertices = np.union1d(old, target)
        at = np.searchsorted(self.vertices, old)
        self._source = np.concatenate([at[self._source], np.searchsorted(self.vertices, source)])
        self._target = np.concatenate([at[self._target], np.searchsorted(self.vertices, target)])
        self._share = np.concatenate([self._share, share])

        def grown(values: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
            more = np.zeros(len(self.vertices), values.dtype)
            more[at] = values
            return more

        self._looked_at = grown(self._looked_at)
        return grown(total), grown(moving)

    def _find_flows(self, vertices: _Ints) -> tuple[_Ints, _Ints, _Floats]:
        """Return source, target and share of the mass leaving vertices; shares sum to 1 or less."""
        names = vertices[vertices < self.n_names]
        flows = (
            self._names_in(vertices[vertices >= self.n_names] - self.n_names),
            self._neighbours(names[names < len(self._arrays.edge_ptr) - 1]),
            self._units_with(names),
        )
        source = np.concatenate([flow[0] for flow in flows])
        target = np.concatenate([flow[1] for flow in flows])
        weight = np.concatenate([flow[2] for flow in flows])
        counted = np.concatenate([flow[3] for flow in flows])
        at = np.searchsorted(vertices, source)
        totals = np.bincount(at, counted, minlength=len(vertices))[at]
        has_mass = totals > 0
        return source[has_mass], target[has_mass], weight[has_mass] / totals[has_mass]

    def _names_in(self, units: _Ints) -> _Flows:
        owner, at = slices(self._arrays.unit_ptr, units, _MAX_MENTIONS)
        names = self._arrays.unit_names[at].astype(np.int64)
        weights = self._weights(units[owner], names)
        return units[owner] + self.n_names, names, weights, weights

    def _units_with(self, names: _Ints) -> _Flows:
        owner, at = slices(self._arrays.name_ptr, names, _MAX_MENTIONS)
        units = self._arrays.name_units[at].astype(np.int64)
        weights = self._weights(units, names[owner])
        # Text units of a name beyond the first 100 take their share, too, which is lost.
        unseen = np.maximum(1.0, self._frequency(names) / _MAX_MENTIONS)[owner]
        return names[owner], units + self.n_names, weights, weights * unseen

    def _frequency(self, names: _Ints) -> _Floats:
        pointers = self._arrays.name_ptr
        return (pointers[names + 1] - pointers[names]).astype(np.float64)

    def _weights(self, units: _Ints, names: _Ints) -> _Floats:
        topics = self._arrays.unit_topics
        n = max(2, len(topics))
        rarity = np.maximum(_LEAST_RARITY, np.log(n / self._frequency(names)) / math.log(n))
        return rarity * np.where(topics[units] == names, _TITLE_WEIGHT, 1.0)

    def _neighbours(self, nodes: _Ints) -> _Flows:
        owner, at = slices(self._arrays.edge_ptr, nodes, self._cap)
        pairs = nodes[owner] * self.n_names + self._arrays.edge_nodes[at]
        joined, number = np.unique(pairs, return_inverse=True)
        weights = np.maximum(0.0, self._arrays.edge_weights[at])
        weight = np.bincount(number, weights, minlength=len(joined))
        source, target = np.divmod(joined, max(1, self.n_names))
        weights = _RELATED_WEIGHT * np.log1p(weight)
        return source, target, weights, weights
