"""Spreading a question over entities and the texts that name them: personalised PageRank.

A question's mass starts at the text units that fit it best, by words and by vectors, and at its
entities. It spreads along relationships and between an entity and the text units that name it.
Where it gathers is what the question is about: text units that many of these ways lead to come
first, also those that share no word with the question. It takes no model call.

After HippoRAG (Gutiérrez et al., NeurIPS 2024, arXiv 2405.14831) and its second version
(arXiv 2502.14802), which puts passages into the graph; the seeds and the cut are this project's.
"""

import asyncio
import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from graphrag.config.models.tog_search_config import ToGSearchConfig
from graphrag.query.structured_search.tog_search.graph.store import GraphStore
from graphrag.query.structured_search.tog_search.graph.text_units import TextUnits
from graphrag.query.structured_search.tog_search.state import Passages, Question
from graphrag.text.ranking import fuse_ranks, load_bm25

if TYPE_CHECKING:
    from graphrag_vectors import VectorStore

# Chance to go back to the seeds at each step; HippoRAG's.
_RESTART = 0.5
_N_RANKED = 50
_N_SEEDS = 10
# An entity named in the question says more than one whose description is near it.
_NEAR_WEIGHT = 0.5
# An entity of a large index may stand in thousands of text units; so many are looked at.
_MAX_UNITS_PER_ENTITY = 100

Place = int | str
"""An entity, as its node, or a text unit, as its id."""


async def fused_units(
    question: Question, text_units: TextUnits, vectors: "VectorStore | None"
) -> dict[str, float]:
    """Rank all text units by words and by vectors, and fuse the two.

    Parameters
    ----------
    question : Question
    text_units : TextUnits
    vectors : VectorStore or None
        Of the text units; without them words alone decide.

    Returns
    -------
    dict of str to float
        The ten best, best first, with their score; see :func:`fuse_ranks`.
    """
    await load_bm25()
    rankings = [await asyncio.to_thread(text_units.rank_by_words, question.text, _N_RANKED)]
    if vectors is not None:
        hits = await asyncio.to_thread(
            vectors.similarity_search_by_vector,
            question.vector,
            k=_N_RANKED,
            include_vectors=False,
        )
        near = sorted((-hit.score, str(hit.document.id)) for hit in hits)
        rankings.append([name for _, name in near])
    return dict(islice(fuse_ranks(rankings).items(), _N_SEEDS))


def weigh_starts(question: str, starts: Sequence[int], store: GraphStore) -> dict[int, float]:
    """Return the weights of a search's starts: 1 where named in the question, else 0.5."""
    named = set(store.nodes_named_in(question))
    return {node: 1.0 if node in named else _NEAR_WEIGHT for node in starts}


def spread(
    entities: Mapping[int, float],
    units: Mapping[str, float],
    store: GraphStore,
    config: ToGSearchConfig,
) -> Passages:
    """Spread mass from entities and text units, half of all of it from each.

    Personalised PageRank by ``depth`` steps of the power iteration, each to the neighbours of the
    ``width * max_relations_per_entity`` places that hold most: the work does not grow with the
    graph. A relationship carries ``log(1 + weight)``, parallel ones together; naming an entity
    in a text unit carries 1. Of an entity the ``max_relations_per_entity`` heaviest relationships
    and 100 text units count.

    Parameters
    ----------
    entities : mapping of int to float
        Node -> weight of the seed, >= 0.
    units : mapping of str to float
        Text unit id -> weight of the seed, >= 0.
    store : GraphStore
    config : ToGSearchConfig
    """
    moving = _seed(entities, units)
    n_passed = config.width * config.max_relations_per_entity
    total: defaultdict[Place, float] = defaultdict(float)
    around: dict[Place, dict[Place, float]] = {}
    for _ in range(config.depth):
        reached: defaultdict[Place, float] = defaultdict(float)
        for place, mass in moving.items():
            total[place] += _RESTART * mass
        for place, mass in _heaviest(moving, n_passed, store):
            if place not in around:
                around[place] = _shares(place, store, config.max_relations_per_entity)
            for other, share in around[place].items():
                reached[other] += (1 - _RESTART) * mass * share
        moving = reached
    for place, mass in moving.items():
        total[place] += mass
    return Passages(
        units={place: mass for place, mass in total.items() if isinstance(place, str)},
        entities={place: mass for place, mass in total.items() if isinstance(place, int)},
    )


def _seed(entities: Mapping[int, float], units: Mapping[str, float]) -> dict[Place, float]:
    seeded: dict[Place, float] = {}
    given: list[Mapping[int, float] | Mapping[str, float]] = [entities, units]
    present = [seeds for seeds in given if sum(seeds.values()) > 0]
    for seeds in present:
        whole = sum(seeds.values()) * len(present)
        seeded |= {place: weight / whole for place, weight in seeds.items() if weight > 0}
    return seeded


def _heaviest(
    moving: Mapping[Place, float], n: int, store: GraphStore
) -> Iterable[tuple[Place, float]]:
    """Return the n places that hold most, all where there are no more; ties by name."""
    if len(moving) <= n:
        return moving.items()

    def order(item: tuple[Place, float]) -> tuple[float, str]:
        place, mass = item
        return (-round(mass, 12), place if isinstance(place, str) else store.title(place))

    return heapq.nsmallest(n, moving.items(), key=order)


def _shares(place: Place, store: GraphStore, cap: int) -> dict[Place, float]:
    """Return where a place's mass goes, as shares of it that sum to 1; empty for a lonely one."""
    carried: defaultdict[Place, float] = defaultdict(float)
    if isinstance(place, str):
        for node in store.entities_in(place, cap):
            carried[node] = 1.0
    else:
        joined: defaultdict[int, float] = defaultdict(float)
        near = store.neighbours(place, cap)
        for node, weight in zip(near.nodes.tolist(), near.weights.tolist(), strict=True):
            joined[node] += max(0.0, weight)
        carried.update({node: math.log1p(weight) for node, weight in joined.items()})
        for name in store.entity_row(place).text_unit_ids[:_MAX_UNITS_PER_ENTITY]:
            carried[name] = 1.0
    whole = sum(carried.values())
    return {other: part / whole for other, part in carried.items()} if whole > 0 else {}
