"""The walk against a plain one that looks through all relationships, and its outer limits."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path as Folder

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.commands import run_apart
from support.openai_server import Json
from support.tog_world import (
    TOKENIZER,
    WALKED,
    ScriptedModel,
    entities,
    graph_of,
    lacking,
    relationships,
    text_units,
    tog_search,
)

from graphrag.query.structured_search.tog_search import GraphStore, walk
from graphrag.query.structured_search.tog_search.walk import (
    Candidate,
    Exploration,
    Path,
    Scores,
    keep_best,
    list_candidates,
    select_evidence,
)

TITLES = ["北京", "القاهرة", "🎬 {FILM}", "A", "B", "C {x}", "D"]
# The last one is no entity: edges to it dangle. Cycles, parallel edges and self-loops abound.
ENDS = st.integers(0, len(TITLES))
EDGES = st.lists(st.tuples(ENDS, ENDS, st.sampled_from([1.0, 2.0, 2.5])), max_size=30)


@dataclass(frozen=True)
class Limits:
    width: int = 3
    depth: int = 3
    retained: int = 5
    cap: int = 50


def limits(most: int, **further: st.SearchStrategy[int]) -> st.SearchStrategy[Limits]:
    some = st.integers(1, most)
    return st.builds(Limits, width=some, depth=some, retained=some, **further)


LIMITS, CAPPED = limits(4), limits(3, cap=st.integers(1, 5))


@dataclass(frozen=True)
class Walk:
    nodes: tuple[int, ...]
    hops: tuple[tuple[tuple[int, bool], ...], ...] = ()
    score: float = 1.0
    weight: float = 0.0


def score_of(row: int, seed: int) -> float:
    return ((row * 7 + seed) % 5) / 4


def plain_walk(
    edges: list[tuple[int, int, float]], config: Limits, seed: int
) -> list[tuple[list[Walk], set[Walk]]]:
    beam, kept = [Walk((0,)), Walk((1,))], set[Walk]()
    judged, expanded = set[int](), set[int]()
    depths: list[tuple[list[Walk], set[Walk]]] = []
    for _ in range(config.depth):
        longer: list[Walk] = []
        n_listed = 0
        for path in beam:
            joined: dict[int, list[tuple[float, int, bool]]] = {}
            for row, (source, target, weight) in enumerate(edges):
                ends = {source, target}
                if row in judged or path.nodes[-1] not in ends or len(ends) == 1:
                    continue
                (other,) = ends - {path.nodes[-1]}
                if other < len(TITLES) and other not in path.nodes:
                    joined.setdefault(other, []).append((-weight, row, source != other))
            for other, links in joined.items():
                links.sort()
                n_listed += 1
                judged |= {row for _, row, _ in links}
                longer.append(
                    Walk(
                        (*path.nodes, other),
                        (*path.hops, tuple((row, forward) for _, row, forward in links)),
                        path.score * score_of(links[0][1], seed),
                        -links[0][0],
                    )
                )
        if not n_listed:
            break
        expanded |= {path.nodes[-1] for path in beam}
        beam = []
        of_source: dict[int, int] = {}
        for path in sorted(longer, key=lambda p: (-p.score, -p.weight, p.hops[-1][0][0])):
            source = path.nodes[-2]
            if score_of(path.hops[-1][0][0], seed) == 0:
                continue
            if of_source.setdefault(source, 0) == config.retained:
                continue
            of_source[source] += 1
            kept.add(path)
            ends = expanded | {other.nodes[-1] for other in beam}
            if len(beam) < config.width and path.nodes[-1] not in ends:
                beam.append(path)
        depths.append((list(beam), set(kept)))
    return depths


def as_walk(path: Path) -> Walk:
    return Walk(
        path.nodes,
        tuple(
            tuple((link.relationship, link.forward) for link in step.edge.links)
            for step in path.steps
        ),
        path.score,
        path.steps[-1].edge.weight if path.steps else 0.0,
    )


def real_walk(graph: GraphStore, config: Limits, seed: int) -> list[Exploration]:
    states = [Exploration(starts=(0, 1), beam=(Path(0), Path(1)))]
    for _ in range(config.depth):
        candidates = list_candidates(states[-1], graph, "{x} 北京", config.cap)
        if not candidates:
            break
        values = tuple(score_of(c.edge.links[0].relationship, seed) for c in candidates)
        states.append(stepped(states[-1], candidates, values, graph, config))
    return states


def stepped(
    state: Exploration,
    candidates: Sequence[Candidate],
    values: tuple[float, ...],
    graph: GraphStore,
    config: Limits,
) -> Exploration:
    scores = Scores(values, "llm")
    return keep_best(state, candidates, scores, graph, config.width, config.retained)


def make_graph(edges: list[tuple[int, int, float]]) -> GraphStore:
    titles = [*TITLES, "no entity"]
    people = pd.DataFrame({"id": TITLES, "title": TITLES})
    joins = pd.DataFrame(
        {
            "source": pd.Series([titles[source] for source, _, _ in edges], dtype=str),
            "target": pd.Series([titles[target] for _, target, _ in edges], dtype=str),
            "weight": pd.Series([weight for _, _, weight in edges], dtype=float),
        }
    )
    return graph_of(people, joins)


@settings(max_examples=120)
@given(EDGES, LIMITS, st.integers(0, 4))
def test_paths_and_scores_are_those_of_a_plain_walk(edges, config, seed):
    """Beam and kept paths agree at every depth, relationship by relationship."""
    states = real_walk(make_graph(edges), config, seed)[1:]
    assert [
        (
            [as_walk(path) for path in state.beam],
            {as_walk(path) for path in (*state.strong, *state.weaker)},
        )
        for state in states
    ] == plain_walk(edges, config, seed)


@settings(max_examples=60)
@given(EDGES, CAPPED, st.integers(0, 4), st.integers(1, 6))
def test_widths_and_caps_are_respected(edges, config, seed, max_paths):
    """The beam, an entity's edges before and after pruning, and the evidence are bounded."""
    graph = make_graph(edges)
    states = real_walk(graph, config, seed)
    seen: set[int] = set()
    for before, after in pairwise(states):
        candidates = list_candidates(before, graph, "{x} 北京", config.cap)
        sources = [c.edge.source for c in candidates]
        assert all(sources.count(s) <= config.cap for s in sources)
        links = [link.relationship for c in candidates for link in c.edge.links]
        assert len(set(links)) == len(links)
        assert not seen & set(links)
        seen |= set(links)
        ends = [path.end for path in after.beam]
        assert len(set(ends)) == len(ends) <= config.width
        assert not set(ends) & after.expanded
        paths = {*after.strong, *after.weaker}
        kept = [path.steps[-1].edge.source for path in paths - {*before.strong, *before.weaker}]
        assert all(kept.count(s) <= config.retained for s in kept)
    evidence = select_evidence(states[-1], max_paths)
    assert len(evidence) <= max_paths
    for path in evidence:
        alike = [each for each in evidence if each is not path and each.start == path.start]
        assert all(each.steps[: len(path.steps)] != path.steps for each in alike)


def test_a_walk_never_returns_to_its_own_path():
    """Even along a relationship that the cap hid when its other end was looked at."""
    graph = make_graph([(0, 1, 2.5), (1, 2, 2.0), (2, 0, 1.0)])
    config = Limits(cap=1)
    state = Exploration(starts=(0,), beam=(Path(0),))
    for _ in range(2):
        candidates = list_candidates(state, graph, "", config.cap)
        state = stepped(state, candidates, (0.5,), graph, config)
    assert [path.nodes for path in state.beam] == [(0, 1, 2)]
    assert list_candidates(state, graph, "", config.cap) == []


def test_the_edge_between_two_starts_is_strong_evidence():
    """It leads nowhere new, so it takes no place in the beam, but it is shown first."""
    graph = make_graph([(0, 1, 1.0), (0, 2, 1.0), (1, 3, 1.0)])
    config = Limits(width=1)
    begin = Exploration(starts=(0, 1), beam=(Path(0), Path(1)))
    candidates = list_candidates(begin, graph, "", config.cap)
    values = tuple(0.9 if c.edge.target == 1 else 0.2 for c in candidates)
    after = stepped(begin, candidates, values, graph, config)
    assert [path.end for path in after.beam] == [2]
    assert [path.nodes for path in select_evidence(after, 2)] == [(0, 1), (0, 2)]


@pytest.mark.parametrize(
    ("aside", "ahead", "most", "n_depths"),
    [
        (0.5, 0.5, 3, 2),
        # There is room for further paths.
        (0.5, 0.5, 9, 3),
        (0.1, 0.9, 3, 3),
    ],
)
async def test_a_walk_ends_when_no_path_beats_one_that_is_held(
    aside, ahead, most, n_depths, monkeypatch
):
    """Then the check is the last, and no further edges are scored."""

    def score(edge: Json) -> float:
        return aside if edge["neighbour"].startswith("SIDE") else ahead

    road = ["TOWN", "BRIDGE", "MILL", "FARM", "COAST"]
    names = [*road, "SIDE STREET", "SIDE ALLEY"]
    ends = [*pairwise(road), ("TOWN", "SIDE STREET"), ("TOWN", "SIDE ALLEY")]
    joins = pd.DataFrame(ends, columns=["source", "target"]).assign(description="leads")
    model = ScriptedModel(score=score, answer=lacking)
    unimproved = walk.is_unimproved
    monkeypatch.setattr(walk, "is_unimproved", partial(unimproved, max_paths=most))
    people = pd.DataFrame({"id": names, "title": names})
    search = tog_search(model, graph_of(people, joins, text_units()), **WALKED)
    found = await search.search("Where does the TOWN lead?")
    assert len(model.scoring) == n_depths
    assert len(model.reasoning) == 1
    assert list(found.context_data["exploration"]["depth"]) == list(range(n_depths + 1))


@pytest.mark.parametrize("grounded", [True, False])
async def test_no_budget_is_exceeded_by_a_single_token(world, grounded):
    """Whatever it is; what a budget leaves out is left out as a whole, and all of it is used."""
    graph = world.graph if grounded else graph_of(entities(), relationships())
    units = text_units() if grounded else text_units().iloc[:0]

    async def context(budget: int) -> str:
        settings = WALKED | {"max_context_tokens": budget, "depth": 1}
        search = tog_search(ScriptedModel(), graph, units, **settings)
        question = "Who melted the Wicked Witch, and what became of 東京?"
        return str((await search.search(question)).context_text)

    whole = await context(4000)
    lines = whole.splitlines()
    n_lines: list[int] = []
    for budget in range(200, 560, 30):
        text = await context(budget)
        assert TOKENIZER.num_tokens(text) <= budget
        assert set(text.splitlines()) <= set(lines)
        n_lines.append(len(text.splitlines()))
    assert n_lines[0] < n_lines[-1] <= len(lines)
    if not grounded:
        # A context that fits exactly is shown as it is; with a token less a row is missing. Rows
        # counted one by one may take a few tokens more than the whole.
        n_tokens = TOKENIZER.num_tokens(whole)
        fits = [await context(n_tokens + more) == whole for more in (-1, 2, 5, 11)]
        assert not fits[0]
        assert fits == sorted(fits)
        assert fits[-1]


@pytest.mark.slow
def test_the_benchmark_runs():
    """On a small graph."""
    script = Folder(__file__).parents[2] / "benchmarks" / "tog.py"
    lines = run_apart(sys.executable, script, "--entities", "1000").splitlines()
    assert "1,000 entities, 10,000 relationships" in lines
    for label in ("build, s", "opening again, ms", "search without model, median ms"):
        assert any(line.startswith(label) for line in lines)
