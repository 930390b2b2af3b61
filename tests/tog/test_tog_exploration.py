"""Walking any graph: what holds for every path, whatever the graph and the scores."""

import zlib
from dataclasses import dataclass
from itertools import pairwise

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag.query.structured_search.tog_search import GraphStore
from graphrag.query.structured_search.tog_search.state import Exploration, Path, Scores
from graphrag.query.structured_search.tog_search.walk import (
    keep_best,
    list_candidates,
    select_evidence,
)
from graphrag.text.ranking import bm25_scores
from graphrag.text.terms import shorten, split_terms, word_keys

N_NODES = 9
# Node 9 is no entity: edges to it dangle.
EDGES = st.lists(
    st.tuples(st.integers(0, N_NODES), st.integers(0, N_NODES), st.sampled_from([1.0, 2.0, 2.5])),
    max_size=40,
)


@dataclass(frozen=True)
class Limits:
    """How a walk is bounded."""

    width: int = 3
    depth: int = 3
    retained: int = 5
    cap: int = 50
    max_paths: int = 10


SETTINGS = st.builds(
    Limits,
    width=st.integers(1, 3),
    depth=st.integers(1, 3),
    retained=st.integers(1, 3),
    cap=st.integers(1, 5),
    max_paths=st.integers(1, 6),
)


def make_graph(edges: list[tuple[int, int, float]]) -> GraphStore:
    """Nodes are titled ``node 0`` and so on."""
    names = [f"node {i}" for i in range(N_NODES)]
    people = pd.DataFrame({"id": names, "title": names, "description": names})
    joins = pd.DataFrame(
        {
            "source": [f"node {source}" for source, _, _ in edges],
            "target": [f"node {target}" for _, target, _ in edges],
            "weight": [weight for _, _, weight in edges],
            "description": [f"relationship {i}" for i in range(len(edges))],
        }
    )
    return GraphStore.from_tables(people, joins)


def walk(graph: GraphStore, config: Limits, seed: int) -> list[Exploration]:
    """Every state of a walk from nodes 0 and 1, scored pseudo-randomly by relationship."""
    states = [Exploration(starts=(0, 1), beam=(Path(0), Path(1)))]
    for _ in range(config.depth):
        candidates = list_candidates(states[-1], graph, "node 3", config.cap)
        if not candidates:
            break
        values = tuple(
            zlib.crc32(bytes([seed, c.edge.links[0].relationship])) % 5 / 4 for c in candidates
        )
        scores = Scores(values, "llm")
        states.append(
            keep_best(states[-1], candidates, scores, graph, config.width, config.retained)
        )
    return states


@given(EDGES, SETTINGS, st.integers(0, 255))
def test_paths_are_connected_true_and_without_repetition(
    edges: list[tuple[int, int, float]], config: Limits, seed: int
) -> None:
    """Each step starts where the last one ended and is a stored relationship, as stored."""
    graph = make_graph(edges)
    final = walk(graph, config, seed)[-1]
    for path in (*final.strong, *final.weaker):
        assert len(set(path.nodes)) == len(path.nodes)
        assert path.steps[0].edge.source == path.start
        assert all(a.edge.target == b.edge.source for a, b in pairwise(path.steps))
        product = 1.0
        for step in path.steps:
            product *= step.score
            assert step.score > 0
            for link in step.edge.links:
                source, target, _ = edges[link.relationship]
                walked = (step.edge.source, step.edge.target)
                assert walked == ((source, target) if link.forward else (target, source))
        assert path.score == product


@given(EDGES, SETTINGS, st.integers(0, 255))
def test_widths_and_caps_are_respected(
    edges: list[tuple[int, int, float]], config: Limits, seed: int
) -> None:
    """The beam, an entity's edges before and after pruning, and the evidence are bounded."""
    graph = make_graph(edges)
    states = walk(graph, config, seed)
    seen: set[int] = set()
    for before, after in pairwise(states):
        candidates = list_candidates(before, graph, "node 3", config.cap)
        sources = [c.edge.source for c in candidates]
        assert all(sources.count(s) <= config.cap for s in sources)
        links = [link.relationship for c in candidates for link in c.edge.links]
        assert len(set(links)) == len(links)
        assert not seen & set(links)
        seen |= set(links)
        ends = [path.end for path in after.beam]
        assert len(set(ends)) == len(ends) <= config.width
        assert not set(ends) & after.expanded
        new = {*after.strong, *after.weaker} - {*before.strong, *before.weaker}
        kept = [path.steps[-1].edge.source for path in new]
        assert all(kept.count(s) <= config.retained for s in kept)
    evidence = select_evidence(states[-1], config.max_paths)
    assert len(evidence) <= config.max_paths
    for path in evidence:
        assert not any(
            other is not path and other.steps[: len(path.steps)] == path.steps
            for other in evidence
            if other.start == path.start
        )


@given(EDGES, SETTINGS, st.integers(0, 255))
def test_equal_input_gives_equal_paths(
    edges: list[tuple[int, int, float]], config: Limits, seed: int
) -> None:
    """A walk depends on nothing but its input."""
    assert walk(make_graph(edges), config, seed) == walk(make_graph(edges), config, seed)


@given(EDGES)
def test_neighbours_are_the_relationships_seen_from_both_ends(
    edges: list[tuple[int, int, float]],
) -> None:
    """Compressed rows hold each usable relationship twice, heaviest first, up to the cap."""
    graph = make_graph(edges)
    for node in range(N_NODES):
        expected = [
            (-weight, row, target if source == node else source, source == node)
            for row, (source, target, weight) in enumerate(edges)
            if node in (source, target) and source != target and N_NODES not in (source, target)
        ]
        around = graph.neighbours(node, 100)
        got = [
            (-weight, abs(edge) - 1, other, edge > 0)
            for weight, edge, other in zip(
                around.weights.tolist(), around.edges.tolist(), around.nodes.tolist(), strict=True
            )
        ]
        assert got == sorted(expected)
        assert graph.neighbours(node, 2).edges.tolist() == around.edges.tolist()[:2]


def test_ties_go_by_weight_then_number_not_by_order_of_discovery() -> None:
    """Equal scores: the heavier first, then the smaller relationship number."""
    graph = make_graph([(0, 2, 1.0), (0, 3, 2.0), (0, 4, 2.0)])
    config = Limits(width=3)
    begin = Exploration(starts=(0,), beam=(Path(0),))
    candidates = list_candidates(begin, graph, "", config.cap)
    scores = Scores((0.5,) * 3, "llm")
    after = keep_best(
        begin, list(reversed(candidates)), scores, graph, config.width, config.retained
    )
    assert [path.end for path in after.beam] == [3, 4, 2]


def test_a_walk_never_returns_to_its_own_path() -> None:
    """Even along a relationship that the cap hid when its other end was looked at."""
    graph = make_graph([(0, 1, 2.5), (1, 2, 2.0), (2, 0, 1.0)])
    config = Limits(cap=1)
    state = Exploration(starts=(0,), beam=(Path(0),))
    for _ in range(2):
        candidates = list_candidates(state, graph, "", config.cap)
        state = keep_best(
            state, candidates, Scores((0.5,), "llm"), graph, config.width, config.retained
        )
    assert [path.nodes for path in state.beam] == [(0, 1, 2)]
    assert list_candidates(state, graph, "", config.cap) == []


def test_the_edge_between_two_starts_is_strong_evidence() -> None:
    """It leads nowhere new, so it takes no place in the beam, but it is shown first."""
    graph = make_graph([(0, 1, 1.0), (0, 2, 1.0), (1, 3, 1.0)])
    config = Limits(width=1)
    begin = Exploration(starts=(0, 1), beam=(Path(0), Path(1)))
    candidates = list_candidates(begin, graph, "", config.cap)
    values = tuple(0.9 if c.edge.target == 1 else 0.2 for c in candidates)
    after = keep_best(
        begin, candidates, Scores(values, "llm"), graph, config.width, config.retained
    )
    assert [path.end for path in after.beam] == [2]
    assert [path.nodes for path in select_evidence(after, 2)] == [(0, 1), (0, 2)]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Don't PANIC, Straße!", ["don", "t", "panic", "strasse"]),
        ("東京タワーは高い", ["東京", "京タ", "タワ", "ワー", "ーは", "は高", "高い"]),
        ("茶 tea", ["茶", "tea"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("مرحبا، العالم", ["مرحبا", "العالم"]),
        ("ภาษา", ["ภา", "าษ", "ษา"]),
        ("\uff21\uff22", ["ab"]),
        ("", []),
        ("...", []),
    ],
)
def test_terms_of_any_script(text: str, terms: list[str]) -> None:
    """Words keep their marks; scripts without spaces give character pairs."""
    assert split_terms([text, "x"]) == [terms, ["x"]]


@given(st.text(max_size=40))
def test_a_text_holds_its_own_name(text: str) -> None:
    """Looking for a name in itself always succeeds, and folding twice changes nothing."""
    key = word_keys([text])[0]
    assert word_keys([key]) == [key]
    assert word_keys([f"x {text} y"])[0].split()[1:-1] == key.split()


@given(st.text(max_size=60), st.integers(2, 30))
def test_shortening_keeps_to_the_limit(text: str, limit: int) -> None:
    """One line, never longer than asked."""
    short = shorten(text, limit)
    assert len(short) <= limit
    assert len(short.splitlines()) <= 1


@pytest.mark.parametrize("documents", [[], [[]], [[], []], [["a"], []]])
def test_word_statistics_of_next_to_nothing(documents: list[list[str]]) -> None:
    """Empty documents and collections score 0 and raise nothing."""
    assert bm25_scores("zebra", documents).tolist() == [0.0] * len(documents)
    assert bm25_scores("", documents).tolist() == [0.0] * len(documents)


def test_tables_without_a_needed_column_are_refused() -> None:
    """The message names the table and the column."""
    with pytest.raises(ValueError, match="relationships table has no column target"):
        GraphStore.from_tables(
            pd.DataFrame({"id": ["a"], "title": ["a"]}), pd.DataFrame({"source": ["a"]})
        )


def test_missing_values_have_stand_ins() -> None:
    """Rows without description, number, weight or text units are still rows."""
    graph = GraphStore.from_tables(
        pd.DataFrame({"id": ["a", "b"], "title": ["A", "B"], "description": ["x", None]}),
        pd.DataFrame({"source": ["A"], "target": ["B"], "weight": [None]}),
    )
    assert graph.entity_row(1).description == ""
    assert graph.entity_row(1).human_readable_id == 1
    row = graph.relationship_row(0)
    assert (row.description, row.weight, row.text_unit_ids) == ("", 1.0, ())
    assert graph.neighbours(0, 5).weights.tolist() == [1.0]
