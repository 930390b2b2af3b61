"""The walk against a plain one that looks through all relationships, and its outer limits."""

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path as Folder
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tog_world import (
    TOKENIZER,
    WALKED,
    ScriptedModel,
    World,
    entities,
    lacking,
    relationships,
    section,
    text_units,
)

from graphrag.config.models.tog_search_config import ToGSearchConfig
from graphrag.query.structured_search.tog_search import GraphStore, ToGSearch
from graphrag.query.structured_search.tog_search.state import Exploration, Path, Scores
from graphrag.query.structured_search.tog_search.store import TableFiles, open_graph
from graphrag.query.structured_search.tog_search.walk import keep_best, list_candidates
from graphrag.text.terms import split_terms, word_keys

TITLES = ["北京", "القاهرة", "🎬 {FILM}", "A", "B", "C {x}", "D"]
# The last one is no entity: edges to it dangle. Cycles, parallel edges and self-loops abound.
ENDS = st.integers(0, len(TITLES))
EDGES = st.lists(st.tuples(ENDS, ENDS, st.sampled_from([1.0, 2.0, 2.5])), max_size=30)


@dataclass(frozen=True)
class Limits:
    """How a walk is bounded."""

    width: int
    depth: int
    retained: int


LIMITS = st.builds(
    Limits, width=st.integers(1, 4), depth=st.integers(1, 4), retained=st.integers(1, 4)
)


@dataclass(frozen=True)
class Walk:
    """A path of the plain walk: nodes, relationships as (row, forward) of each hop, score."""

    nodes: tuple[int, ...]
    hops: tuple[tuple[tuple[int, bool], ...], ...] = ()
    score: float = 1.0
    weight: float = 0.0


def score_of(row: int, seed: int) -> float:
    """Some score for a relationship, ties and zeros included."""
    return ((row * 7 + seed) % 5) / 4


def plain_walk(
    edges: list[tuple[int, int, float]], config: Limits, seed: int
) -> list[tuple[list[Walk], set[Walk]]]:
    """Walk from nodes 0 and 1; the beam and the paths kept so far, for each depth."""
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
    """A path of the real walk in the plain form."""
    return Walk(
        path.nodes,
        tuple(
            tuple((link.relationship, link.forward) for link in step.edge.links)
            for step in path.steps
        ),
        path.score,
        path.steps[-1].edge.weight if path.steps else 0.0,
    )


def real_walk(graph: GraphStore, config: Limits, seed: int) -> list[tuple[list[Walk], set[Walk]]]:
    """The same by the graph store."""
    state = Exploration(starts=(0, 1), beam=(Path(0), Path(1)))
    depths: list[tuple[list[Walk], set[Walk]]] = []
    for _ in range(config.depth):
        candidates = list_candidates(state, graph, "{x} 北京", 50)
        if not candidates:
            break
        values = tuple(score_of(c.edge.links[0].relationship, seed) for c in candidates)
        state = keep_best(
            state, candidates, Scores(values, "llm"), graph, config.width, config.retained
        )
        kept = {as_walk(path) for path in (*state.strong, *state.weaker)}
        depths.append(([as_walk(path) for path in state.beam], kept))
    return depths


def make_tables(edges: list[tuple[int, int, float]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables of a graph over TITLES."""
    titles = [*TITLES, "no entity"]
    people = pd.DataFrame({"id": TITLES, "title": TITLES})
    joins = pd.DataFrame(
        {
            "source": pd.Series([titles[source] for source, _, _ in edges], dtype=str),
            "target": pd.Series([titles[target] for _, target, _ in edges], dtype=str),
            "weight": pd.Series([weight for _, _, weight in edges], dtype=float),
        }
    )
    return people, joins


@settings(max_examples=200)
@given(EDGES, LIMITS, st.integers(0, 4))
def test_paths_and_scores_are_those_of_a_plain_walk(
    edges: list[tuple[int, int, float]], config: Limits, seed: int
) -> None:
    """Beam and kept paths agree at every depth, relationship by relationship."""
    graph = GraphStore.from_tables(*make_tables(edges))
    assert real_walk(graph, config, seed) == plain_walk(edges, config, seed)


@settings(max_examples=30)
@given(EDGES, LIMITS, st.integers(0, 4))
def test_a_mapped_graph_walks_alike(
    edges: list[tuple[int, int, float]], config: Limits, seed: int
) -> None:
    """Built in a file, the same paths and scores."""
    people, joins = make_tables(edges)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Folder(folder) / f"{name}.parquet" for name in ("e", "r", "t")]
        for path, frame in zip(paths, (people, joins, text_units()), strict=True):
            frame.to_parquet(path)
        graph = open_graph(TableFiles(*paths)).graph
        assert real_walk(graph, config, seed) == plain_walk(edges, config, seed)


class Textless:
    """The small index without text units."""

    def search(self, model: ScriptedModel, **settings: Any) -> ToGSearch:
        """Make a search with these settings."""
        return ToGSearch(
            model=model,
            graph=GraphStore.from_tables(entities(), relationships()),
            text_units=text_units().iloc[:0],
            config=ToGSearchConfig(**WALKED | settings),
        )


@pytest.mark.parametrize("grounded", [True, False])
async def test_no_budget_is_exceeded_by_a_single_token(world: World, grounded: bool) -> None:
    """Whatever it is; and what a budget leaves out is left out as a whole."""
    question = "Who melted the Wicked Witch, and what became of 東京?"
    whole: set[str] = set()
    n_lines: list[int] = []
    for budget in [4000, *range(200, 560, 9)]:
        settings = {"max_context_tokens": budget, "depth": 1}
        search = (world if grounded else Textless()).search(ScriptedModel(), **settings)
        text = str((await search.search(question)).context_text)
        whole = whole or set(text.splitlines())
        assert TOKENIZER.num_tokens(text) <= budget
        assert set(text.splitlines()) <= whole
        n_lines.append(len(text.splitlines()))
    assert n_lines[1] < n_lines[-1] <= n_lines[0]


async def test_a_budget_can_be_used_up_to_the_last_token() -> None:
    """A context that fits exactly is shown as it is; with a token less a row is missing."""

    async def context(budget: int) -> str:
        settings = {"max_context_tokens": budget, "depth": 1}
        search = Textless().search(ScriptedModel(), **settings)
        return str((await search.search("Who melted the Wicked Witch?")).context_text)

    whole = await context(4000)
    n_tokens = TOKENIZER.num_tokens(whole)
    assert n_tokens > 204
    # Rows counted one by one may take a few tokens more than the whole.
    fits = [await context(n_tokens + more) == whole for more in range(-1, 12)]
    assert not fits[0]
    assert fits == sorted(fits)
    assert fits[-1]


async def test_a_hub_of_100_000_edges_is_shown_within_the_cap() -> None:
    """The heaviest are; the request does not grow with the hub."""
    n = 100_000
    names = ["HUB", *(f"SPOKE {i}" for i in range(n))]
    people = pd.DataFrame({"id": names, "title": names, "description": "A spoke."})
    joins = pd.DataFrame(
        {"source": "HUB", "target": names[1:], "weight": np.arange(n), "description": "joins"}
    )
    model = ScriptedModel(answer=lacking)
    search = ToGSearch(
        model=model,
        graph=GraphStore.from_tables(people, joins, text_units()),
        text_units=text_units(),
        config=ToGSearchConfig(**WALKED, max_relations_per_entity=50, depth=1),
    )
    await search.search("What does the HUB join?")
    shown = [edge["neighbour"] for asked in model.scoring for edge in asked["edges"]]
    assert len(shown) == 50
    assert f"SPOKE {n - 1}" in shown


async def test_a_graph_of_one_entity_answers_from_its_text() -> None:
    """There is nothing to walk to, and one call answers."""
    people: Any = pd.DataFrame(
        {"id": ["e"], "title": ["القاهرة"], "description": ["{a} city"], "text_unit_ids": [["t8"]]}
    )
    model = ScriptedModel()
    search = ToGSearch(
        model=model,
        graph=GraphStore.from_tables(
            people, pd.DataFrame({"source": [], "target": []}), text_units()
        ),
        text_units=text_units(),
    )
    result = await search.search("أين تقع القاهرة؟")
    assert len(model.requests) == 1
    assert section(str(result.context_text), "Entities")[1] == "0|القاهرة|{a} city"
    assert "[Data: Sources (8)]" in str(result.response)


@given(st.text(st.characters(max_codepoint=127), max_size=60))
def test_ascii_texts_are_split_as_any_other(text: str) -> None:
    """The fast way for them and the general one agree."""
    general = split_terms([f"{text} é"])[0]
    assert [*split_terms([text])[0], "é"] == general
    assert f"{word_keys([text])[0]} é".strip() == word_keys([f"{text} é"])[0]


PUNCTUATION = "\u2026\u201c\u201d\u2018\u2019\u2013\u2014"


@given(st.text(st.sampled_from(f"ab- {PUNCTUATION}"), max_size=30))
def test_printed_punctuation_separates_words(text: str) -> None:
    """As it does beside letters that are not ASCII."""
    spaced = text.translate(dict.fromkeys(map(ord, PUNCTUATION), " "))
    assert split_terms([text]) == split_terms([spaced])
    assert [*split_terms([text])[0], "é"] == split_terms([f"{text} é"])[0]


def test_the_benchmark_runs() -> None:
    """On a small graph, and compares the three structures."""
    script = Folder(__file__).parents[2] / "benchmarks" / "tog.py"
    done = subprocess.run(
        [sys.executable, str(script), "--entities", "1000"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert "1,000 entities, 10,000 relationships" in lines
    heading = next(line for line in lines if "dict of lists" in line)
    assert heading.split("  ")[-1].strip() == "networkx"
    for label in ("build, s", "opening again, ms", "search without model, median ms"):
        assert any(line.startswith(label) for line in lines)
