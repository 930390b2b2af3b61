"""Joining two entities, against networkx and a plain enumeration of all simple paths."""

import math
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag.config.models.tog_search_config import ToGSearchConfig
from graphrag.query.structured_search.tog_search import GraphStore
from graphrag.query.structured_search.tog_search.connecting import Connection, connect
from graphrag.query.structured_search.tog_search.state import Path

N_NODES = 8
# Node 8 is no entity: edges to it dangle. Cycles, parallel edges and self-loops abound.
ENDS = st.integers(0, N_NODES)
Edges = list[tuple[int, int, float]]
EDGES = st.lists(st.tuples(ENDS, ENDS, st.sampled_from([1.0, 2.0, 2.5])), max_size=26)
UNCUT = st.builds(
    ToGSearchConfig,
    width=st.integers(1, 4),
    max_hops=st.integers(1, 6),
    max_relations_per_entity=st.just(100),
)
ANY = st.builds(
    ToGSearchConfig,
    width=st.integers(1, 2),
    max_hops=st.integers(1, 6),
    max_relations_per_entity=st.integers(1, 3),
)


def make_store(edges: Edges, order: list[int] | None = None) -> GraphStore:
    """Nodes are titled ``node 0`` and so on; `order` shuffles the rows, not their ids."""
    names = [f"node {i}" for i in range(N_NODES)]
    people = pd.DataFrame({"id": names, "title": names})
    joins: Any = pd.DataFrame(
        {
            "human_readable_id": [100 + i for i in range(len(edges))],
            "source": pd.Series([f"node {source}" for source, _, _ in edges], dtype=str),
            "target": pd.Series([f"node {target}" for _, target, _ in edges], dtype=str),
            "weight": pd.Series([weight for _, _, weight in edges], dtype=float),
        }
    )
    if order is not None:
        joins = joins.iloc[order]
        people = people.iloc[::-1]
    return GraphStore.from_tables(people, joins)


def usable(edges: Edges) -> list[tuple[int, int]]:
    """The ends of the relationships that can be walked."""
    return [(s, t) for s, t, _ in edges if s != t and N_NODES not in (s, t)]


def simple_paths(edges: Edges, max_hops: int) -> dict[tuple[int, ...], float]:
    """All paths from node 0 to node 1 by a plain enumeration, with their cost."""
    walkable = usable(edges)
    graph: Any = nx.Graph(walkable)
    graph.add_nodes_from(range(N_NODES))
    degree = {node: sum(node in ends for ends in walkable) for node in range(N_NODES)}
    return {
        tuple(way): len(way) - 1 + sum(math.log2(degree[node]) for node in way[1:-1])
        for way in nx.all_simple_paths(graph, 0, 1, cutoff=max_hops)
    }


def check_paths(found: Connection, edges: Edges) -> None:
    """Every path is a simple one of the index, each relationship in its stored direction."""
    assert len({path.nodes for path in found.paths}) == len(found.paths)
    for path in found.paths:
        assert (path.start, path.end) == (found.source, found.target)
        assert len(set(path.nodes)) == len(path.nodes)
        assert all(a.edge.target == b.edge.source for a, b in pairwise(path.steps))
        for step in path.steps:
            walked = (step.edge.source, step.edge.target)
            for link in step.edge.links:
                stored = edges[link.relationship][:2]
                assert walked == (stored if link.forward else stored[::-1])


def cost(path: Path) -> float:
    """A path's cost as its score tells it."""
    return -math.log2(path.score)


@settings(max_examples=300)
@given(EDGES, UNCUT)
def test_paths_are_the_cheapest_of_all_simple_paths(edges: Edges, config: ToGSearchConfig) -> None:
    """One exists within the hops iff networkx says so; each is the cheapest of those left."""
    found = connect(make_store(edges), 0, 1, config)
    check_paths(found, edges)
    assert not found.is_cut
    left = simple_paths(edges, config.max_hops)
    assert bool(found.paths) == bool(left)
    assert all(path.nodes in left for path in found.paths)
    n_apart = 0
    everything = dict(left)
    while left and n_apart < config.width:
        path = found.paths[n_apart]
        # Costs that differ by less than a thousandth a node count as equal.
        assert cost(path) == pytest.approx(min(left.values()), abs=0.01)
        assert cost(path) == pytest.approx(left[path.nodes])
        passed = set(path.nodes[1:-1])
        left = {
            way: price
            for way, price in left.items()
            if way != path.nodes and not passed & set(way[1:-1])
        }
        n_apart += 1
    rest = [cost(path) for path in found.paths[n_apart:]]
    assert rest == sorted(rest)
    assert len(found.paths) <= min(config.width, len(everything))


@settings(max_examples=100)
@given(EDGES, UNCUT)
def test_the_direct_way_and_all_common_neighbours_are_found(
    edges: Edges, config: ToGSearchConfig
) -> None:
    """As many as there is place for."""
    config = config.model_copy(update={"max_hops": 2})
    found = connect(make_store(edges), 0, 1, config)
    assert len(found.paths) == min(config.width, len(simple_paths(edges, 2)))


@settings(max_examples=300)
@given(EDGES, ANY)
def test_not_connected_is_never_said_wrongly(edges: Edges, config: ToGSearchConfig) -> None:
    """Whatever the caps leave out: what is found is true, and 'none' only if nothing was cut."""
    found = connect(make_store(edges), 0, 1, config)
    check_paths(found, edges)
    ways = simple_paths(edges, config.max_hops)
    for path in found.paths:
        assert cost(path) == pytest.approx(ways[path.nodes])
    if not found.paths and not found.is_cut:
        assert not ways


@given(EDGES, UNCUT)
def test_parallel_relationships_keep_all_ids(edges: Edges, config: ToGSearchConfig) -> None:
    """In both directions, heaviest first, then by id."""
    for path in connect(make_store(edges), 0, 1, config).paths:
        for step in path.steps:
            rows = [
                (-weight, row)
                for row, (source, target, weight) in enumerate(edges)
                if {source, target} == {step.edge.source, step.edge.target}
            ]
            assert [link.relationship for link in step.edge.links] == [r for _, r in sorted(rows)]
            assert step.edge.weight == -min(rows)[0]


def as_told(store: GraphStore, found: Connection) -> list[list[Any]]:
    """Paths by titles and ids, which don't depend on the order of rows."""
    return [
        [
            (
                store.title(step.edge.source),
                store.title(step.edge.target),
                step.score,
                [
                    (store.relationship_row(link.relationship).human_readable_id, link.forward)
                    for link in step.edge.links
                ],
            )
            for step in path.steps
        ]
        for path in found.paths
    ]


@settings(max_examples=200)
@given(EDGES, UNCUT, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(
    edges: Edges, config: ToGSearchConfig, random: Any
) -> None:
    """Shuffled tables give the same paths, and so does asking again."""
    order = list(range(len(edges)))
    random.shuffle(order)
    plain, shuffled = make_store(edges), make_store(edges, order)
    first = connect(plain, 0, 1, config)
    assert connect(plain, 0, 1, config) == first
    ends = [shuffled.nodes_named_in(f"node {i}")[0] for i in (0, 1)]
    again = connect(shuffled, ends[0], ends[1], config)
    assert as_told(shuffled, again) == as_told(plain, first)


@given(EDGES, UNCUT)
def test_asking_the_other_way_round_finds_as_cheap_paths(
    edges: Edges, config: ToGSearchConfig
) -> None:
    """The cheapest costs the same from either end."""
    store = make_store(edges)
    there, back = connect(store, 0, 1, config), connect(store, 1, 0, config)
    assert [cost(p) for p in there.paths[:1]] == pytest.approx([cost(p) for p in back.paths[:1]])


def joined(*chains: str) -> GraphStore:
    """A graph of chains such as ``A-B-C``."""
    pairs = [pair for chain in chains for pair in pairwise(chain.split("-"))]
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    people = pd.DataFrame({"id": names, "title": names})
    return GraphStore.from_tables(people, pd.DataFrame(pairs, columns=["source", "target"]))


def ways(store: GraphStore, source: str, target: str, **options: Any) -> list[str]:
    """The paths between two titles, as chains."""
    ends = [store.nodes_named_in(title)[0] for title in (source, target)]
    found = connect(store, ends[0], ends[1], ToGSearchConfig(**options))
    return ["-".join(store.title(node) for node in path.nodes) for path in found.paths]


def test_a_hub_explains_less_than_a_longer_way_around_it() -> None:
    """Both join the ends; the one through the hub comes last although it is the shortest."""
    spokes = [f"HUB-S{i}" for i in range(30)]
    store = joined("A-HUB-B", "A-x-y-B", *spokes)
    assert ways(store, "A", "B") == ["A-x-y-B", "A-HUB-B"]


def test_ties_go_by_hops_then_titles() -> None:
    """Equal costs have one order."""
    assert ways(joined("A-q-B", "A-m-B", "A-z-B"), "A", "B", width=2) == ["A-m-B", "A-q-B"]
    # Passing an entity of degree 4 costs as much as passing one of degree 2 and another hop.
    store = joined("A-p-B", "p-s", "p-t", "A-c-d-B", "c-u")
    assert ways(store, "A", "B") == ["A-p-B", "A-c-d-B"]


def test_paths_apart_come_before_cheaper_ones_that_overlap() -> None:
    """The second path shares nothing with the first; the third fills the place left."""
    store = joined("A-x-B", "x-y-B", "A-p-q-r-B")
    assert ways(store, "A", "B") == ["A-x-B", "A-p-q-r-B", "A-x-y-B"]
    assert ways(store, "A", "B", max_hops=3) == ["A-x-B", "A-x-y-B"]


def test_the_hops_allowed_are_the_hops_walked() -> None:
    """A chain of five is found with five hops, and not with four."""
    chain = joined("A-1-2-3-4-B")
    assert ways(chain, "A", "B", max_hops=5) == ["A-1-2-3-4-B"]
    assert ways(chain, "A", "B", max_hops=4) == []


def found_between(store: GraphStore, **options: Any) -> Connection:
    """What joins A and B."""
    ends = [store.nodes_named_in(title)[0] for title in "AB"]
    return connect(store, ends[0], ends[1], ToGSearchConfig(**options))


LEAVES = [f"B-leaf{i}" for i in range(60)]


def test_a_cheaper_way_of_more_hops_is_not_shadowed_by_a_hub() -> None:
    """M is reached through the hub first, and more cheaply later, while B is not left at all."""
    spokes = [f"HUB-S{i}" for i in range(30)]
    store = joined("A-HUB-M", "A-x-y-M-n-B", *spokes, *LEAVES)
    options = {"max_hops": 6, "width": 1, "max_relations_per_entity": 100}
    assert ways(store, "A", "B", **options) == ["A-x-y-M-n-B"]


@pytest.mark.parametrize("chains", [("A-x-M", "A-y-M"), ("A-y-M", "A-x-M")])
def test_equally_cheap_ways_to_a_place_go_by_title(chains: tuple[str, str]) -> None:
    """Whichever row comes first."""
    store = joined(*chains, "M-n-B", *LEAVES)
    options = {"max_hops": 6, "width": 1, "max_relations_per_entity": 100}
    assert ways(store, "A", "B", **options) == ["A-x-M-n-B"]


def test_entities_left_out_of_a_level_make_the_search_a_cut_one() -> None:
    """No cap bites here, but only three of six entities of a level are passed."""
    trees = [f"{e}-{e}{i}-{e}{i}{j}" for e in "AB" for i in (1, 2, 3) for j in (1, 2)]
    trees += [
        f"{e}{i}{j}-{e}{i}{j}{k}" for e in "AB" for i in (1, 2, 3) for j in (1, 2) for k in "pq"
    ]
    store = joined(
        *dict.fromkeys(pair for tree in trees for pair in chain_pairs(tree)), "A32q-B32q"
    )
    found = found_between(store, max_hops=7, width=1, max_relations_per_entity=3)
    assert found.paths == ()
    assert found.is_cut
    whole = found_between(store, max_hops=7, width=4, max_relations_per_entity=3)
    assert [len(path.steps) for path in whole.paths] == [7]


def chain_pairs(chain: str) -> list[str]:
    """A chain's single edges."""
    return [f"{a}-{b}" for a, b in pairwise(chain.split("-"))]


def test_an_end_whose_surroundings_are_known_settles_it() -> None:
    """A was cut, but B's whole component was seen and A is not in it."""
    store = joined("A-x", "A-y", "A-z", "B-b1-c1", "B-b2-c2")
    found = found_between(store, max_hops=6, max_relations_per_entity=2)
    assert found.paths == ()
    assert found.n_edges > 6
    assert not found.is_cut


def test_an_end_is_not_searched_through() -> None:
    """A's only relationship leads to B, so B's others are not looked at."""
    found = found_between(joined("A-B", *LEAVES), max_relations_per_entity=100)
    assert [len(path.steps) for path in found.paths] == [1]
    assert found.n_edges == 1


@pytest.fixture(scope="module")
def giant() -> GraphStore:
    """Two hubs of 100,000 relationships, with one light way through LEAF between them."""
    n = 100_000
    spokes = [f"SPOKE {i}" for i in range(2 * n)]
    names = ["HUB A", "HUB B", "LEAF", "FAR", *spokes]
    joins = pd.DataFrame(
        {
            "source": ["HUB A"] * n + ["HUB B"] * n + ["HUB A", "LEAF", "SPOKE 99999"],
            "target": [*spokes, "LEAF", "HUB B", "FAR"],
            "weight": np.append(np.full(2 * n, 5.0), [0.1, 0.1, 0.1]),
        }
    )
    return GraphStore.from_tables(pd.DataFrame({"id": names, "title": names}), joins)


@pytest.mark.parametrize(
    ("source", "target", "way"),
    [
        ("HUB A", "LEAF", ["HUB A-LEAF"]),
        ("SPOKE 7", "FAR", ["SPOKE 7-HUB A-SPOKE 99999-FAR"]),
        ("LEAF", "FAR", ["LEAF-HUB A-SPOKE 99999-FAR"]),
    ],
)
def test_a_hub_costs_no_more_than_the_cap(
    giant: GraphStore, source: str, target: str, way: list[str]
) -> None:
    """The other end is searched from instead: a hub's light relationships are still found."""
    ends = [giant.nodes_named_in(title)[0] for title in (source, target)]
    found = connect(giant, ends[0], ends[1], ToGSearchConfig())
    assert found.n_edges <= 4 * 50
    assert ways(giant, source, target) == way


def test_between_two_hubs_a_missing_path_is_not_called_absent(giant: GraphStore) -> None:
    """Their light common neighbour lies past both caps, and the result says it may."""
    ends = [giant.nodes_named_in(title)[0] for title in ("HUB A", "HUB B")]
    found = connect(giant, ends[0], ends[1], ToGSearchConfig())
    assert found.paths == ()
    assert found.is_cut
    # Four levels of at most width * cap entities with cap relationships each.
    assert found.n_edges <= 4 * (3 * 50) * 50
