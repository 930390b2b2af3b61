"""Joining two entities, against networkx and a plain enumeration of all simple paths."""

import math
from itertools import pairwise

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.openai_server import Json
from support.tog_world import graph_of

from graphrag.config.models.tog_search_config import ToGSearchConfig
from graphrag.query.structured_search.tog_search import GraphStore
from graphrag.query.structured_search.tog_search.connecting import Connection, connect
from graphrag.query.structured_search.tog_search.walk import Path

N_NODES = 8
# Node 8 is no entity: edges to it dangle. Cycles, parallel edges and self-loops abound.
ENDS = st.integers(0, N_NODES)
Edges = list[tuple[int, int, float]]
EDGES = st.lists(st.tuples(ENDS, ENDS, st.sampled_from([1.0, 2.0, 2.5])), max_size=26)


def configs(most: int, caps: st.SearchStrategy[int]) -> st.SearchStrategy[ToGSearchConfig]:
    return st.builds(
        ToGSearchConfig,
        width=st.integers(1, most),
        max_hops=st.integers(1, 6),
        max_relations_per_entity=caps,
    )


UNCUT, ANY = configs(4, st.just(100)), configs(2, st.integers(1, 3))


def make_store(edges: Edges) -> GraphStore:
    names = [f"node {i}" for i in range(N_NODES + 1)]
    joins = pd.DataFrame(
        [(names[source], names[target], weight) for source, target, weight in edges],
        columns=["source", "target", "weight"],
    )
    people = pd.DataFrame({"id": names[:-1], "title": names[:-1]})
    return graph_of(people, joins.astype({"weight": float}))


def usable(edges: Edges) -> list[tuple[int, int]]:
    return [(s, t) for s, t, _ in edges if s != t and N_NODES not in (s, t)]


def simple_paths(edges: Edges, max_hops: int) -> dict[tuple[int, ...], float]:
    walkable = usable(edges)
    graph = nx.Graph(walkable)
    graph.add_nodes_from(range(N_NODES))
    degree = {node: sum(node in ends for ends in walkable) for node in range(N_NODES)}
    return {
        tuple(way): len(way) - 1 + sum(math.log2(degree[node]) for node in way[1:-1])
        for way in nx.all_simple_paths(graph, 0, 1, cutoff=max_hops)
    }


def check_paths(found: Connection, edges: Edges, uncut: bool) -> None:
    """Every path is a simple one of the index, each relationship in its stored direction.

    Where nothing is cut a step has all parallel relationships, heaviest first, then by id.
    """
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
            rows = [
                (-weight, row) for row, (*ends, weight) in enumerate(edges) if {*ends} == {*walked}
            ]
            if uncut:
                assert [link.relationship for link in step.edge.links] == [
                    row for _, row in sorted(rows)
                ]
                assert step.edge.weight == -min(rows)[0]


def cost(path: Path) -> float:
    return -math.log2(path.score)


@settings(max_examples=150)
@given(EDGES, UNCUT)
def test_paths_are_the_cheapest_of_all_simple_paths(edges, config):
    """One exists within the hops iff networkx says so; each is the cheapest of those left.

    Of the direct way and all common neighbours there are as many as there is place for.
    """
    found = connect(make_store(edges), 0, 1, config)
    check_paths(found, edges, uncut=True)
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
    most = min(config.width, len(everything))
    assert len(found.paths) == most if config.max_hops <= 2 else len(found.paths) <= most


@settings(max_examples=150)
@given(EDGES, ANY)
def test_not_connected_is_never_said_wrongly(edges, config):
    """Whatever the caps leave out: what is found is true, and 'none' only if nothing was cut."""
    found = connect(make_store(edges), 0, 1, config)
    check_paths(found, edges, uncut=False)
    ways = simple_paths(edges, config.max_hops)
    for path in found.paths:
        assert cost(path) == pytest.approx(ways[path.nodes])
    if not found.paths and not found.is_cut:
        assert not ways


def joined(*chains: str) -> GraphStore:
    pairs = [pair for chain in chains for pair in pairwise(chain.split("-"))]
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    people = pd.DataFrame({"id": names, "title": names})
    return graph_of(people, pd.DataFrame(pairs, columns=["source", "target"]))


def found_between(store: GraphStore, source: str, target: str, **options: object) -> Connection:
    ends = [store.nodes_named_in(title)[0] for title in (source, target)]
    return connect(store, ends[0], ends[1], ToGSearchConfig.model_validate(options))


def ways(store: GraphStore, source: str, target: str, **options: object) -> list[str]:
    found = found_between(store, source, target, **options)
    return ["-".join(store.title(node) for node in path.nodes) for path in found.paths]


SPOKES = [f"HUB-S{i}" for i in range(30)]
LEAVES = [f"B-leaf{i}" for i in range(60)]
FAR: Json = {"max_hops": 6, "width": 1, "max_relations_per_entity": 100}


@pytest.mark.parametrize(
    ("chains", "options", "expected"),
    [
        # A hub explains less than a longer way around it, although both join the ends.
        (["A-HUB-B", "A-x-y-B", *SPOKES], {}, ["A-x-y-B", "A-HUB-B"]),
        # Ties go by titles,
        (["A-q-B", "A-m-B", "A-z-B"], {"width": 2}, ["A-m-B", "A-q-B"]),
        # and before that by hops: to pass degree 4 costs as much as degree 2 and another hop.
        (["A-p-B", "p-s", "p-t", "A-c-d-B", "c-u"], {}, ["A-p-B", "A-c-d-B"]),
        # Paths apart come before cheaper ones that overlap; the third fills the place left.
        (["A-x-B", "x-y-B", "A-p-q-r-B"], {}, ["A-x-B", "A-p-q-r-B", "A-x-y-B"]),
        (["A-x-B", "x-y-B", "A-p-q-r-B"], {"max_hops": 3}, ["A-x-B", "A-x-y-B"]),
        # The hops allowed are the hops walked.
        (["A-1-2-3-4-B"], {"max_hops": 5}, ["A-1-2-3-4-B"]),
        (["A-1-2-3-4-B"], {"max_hops": 4}, []),
        # M is reached through the hub first, and more cheaply later, while B is not left at all.
        (["A-HUB-M", "A-x-y-M-n-B", *SPOKES, *LEAVES], FAR, ["A-x-y-M-n-B"]),
        # Equally cheap ways to a place go by title, whichever row comes first.
        (["A-x-M", "A-y-M", "M-n-B", *LEAVES], FAR, ["A-x-M-n-B"]),
        (["A-y-M", "A-x-M", "M-n-B", *LEAVES], FAR, ["A-x-M-n-B"]),
    ],
)
def test_of_several_ways_the_cheapest_apart_come_first(chains, options, expected):
    assert ways(joined(*chains), "A", "B", **options) == expected


def test_entities_left_out_of_a_level_make_the_search_a_cut_one():
    """No cap bites here, but only three of six entities of a level are passed."""
    trees = [f"{e}-{e}{i}-{e}{i}{j}" for e in "AB" for i in (1, 2, 3) for j in (1, 2)]
    trees += [
        f"{e}{i}{j}-{e}{i}{j}{k}" for e in "AB" for i in (1, 2, 3) for j in (1, 2) for k in "pq"
    ]
    pairs = ("-".join(pair) for tree in trees for pair in pairwise(tree.split("-")))
    store = joined(*dict.fromkeys(pairs), "A32q-B32q")
    found = found_between(store, "A", "B", max_hops=7, width=1, max_relations_per_entity=3)
    assert found.paths == ()
    assert found.is_cut
    whole = found_between(store, "A", "B", max_hops=7, width=4, max_relations_per_entity=3)
    assert [len(path.steps) for path in whole.paths] == [7]


def test_an_end_whose_surroundings_are_known_settles_it():
    """A was cut, but B's whole component was seen and A is not in it."""
    store = joined("A-x", "A-y", "A-z", "B-b1-c1", "B-b2-c2")
    found = found_between(store, "A", "B", max_hops=6, max_relations_per_entity=2)
    assert found.paths == ()
    assert found.n_edges > 6
    assert not found.is_cut
    # A's only relationship leads to B, so B's others are not looked at.
    found = found_between(joined("A-B", *LEAVES), "A", "B", max_relations_per_entity=100)
    assert [len(path.steps) for path in found.paths] == [1]
    assert found.n_edges == 1


@pytest.fixture(scope="module")
def giant() -> GraphStore:
    n = 20_000
    spokes = [f"SPOKE {i}" for i in range(2 * n)]
    names = ["HUB A", "HUB B", "LEAF", "FAR", *spokes]
    joins = pd.DataFrame(
        {
            "source": ["HUB A"] * n + ["HUB B"] * n + ["HUB A", "LEAF", "SPOKE 19999"],
            "target": [*spokes, "LEAF", "HUB B", "FAR"],
            "weight": np.append(np.full(2 * n, 5.0), [0.1, 0.1, 0.1]),
        }
    )
    return graph_of(pd.DataFrame({"id": names, "title": names}), joins)


@pytest.mark.parametrize(
    ("source", "target", "way"),
    [
        ("HUB A", "LEAF", ["HUB A-LEAF"]),
        ("SPOKE 7", "FAR", ["SPOKE 7-HUB A-SPOKE 19999-FAR"]),
        ("LEAF", "FAR", ["LEAF-HUB A-SPOKE 19999-FAR"]),
    ],
)
def test_a_hub_costs_no_more_than_the_cap(giant, source, target, way):
    """The other end is searched from instead: a hub's light relationships are still found."""
    assert found_between(giant, source, target).n_edges <= 4 * 50
    assert ways(giant, source, target) == way


def test_between_two_hubs_a_missing_path_is_not_called_absent(giant):
    """Their light common neighbour lies past both caps, and the result says it may."""
    found = found_between(giant, "HUB A", "HUB B")
    assert found.paths == ()
    assert found.is_cut
    # Four levels of at most width * cap entities with cap relationships each.
    assert found.n_edges <= 4 * (3 * 50) * 50
