"""The thrifty walk: what the question's mass reaches, which texts come first, what it asks."""

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from support.tog_world import (
    ScriptedModel,
    World,
    entities,
    explore_on,
    relationships,
    section,
    text_units,
)

from graphrag.config.models.tog_search_config import ToGSearchConfig
from graphrag.query.structured_search.tog_search import GraphStore, ToGSearch
from graphrag.query.structured_search.tog_search.graph.text_units import TextUnits
from graphrag.query.structured_search.tog_search.state import Question
from graphrag.query.structured_search.tog_search.walk.spreading import fused_units, spread
from graphrag.text.ranking import WordIndexes

THRIFTY = {"preset": "thrifty", "passage_ranking": "pagerank"}


def _plain_graph() -> Any:
    """The small index as a graph of titles and text units, weights as documented."""
    graph: Any = nx.Graph()
    people, joins = entities(), relationships()
    for title, units in zip(people["title"], people["text_unit_ids"], strict=True):
        for unit in units:
            graph.add_edge(title, unit, weight=1.0)
    joined: dict[frozenset[str], float] = {}
    known = set(people["title"])
    for source, target, weight in zip(
        joins["source"], joins["target"], joins["weight"], strict=True
    ):
        if source != target and {source, target} <= known:
            ends = frozenset({source, target})
            joined[ends] = joined.get(ends, 0.0) + weight
    for ends, weight in joined.items():
        graph.add_edge(*sorted(ends), weight=float(np.log1p(weight)))
    return graph


def test_mass_spreads_as_personalised_pagerank() -> None:
    """networkx is the oracle; with enough steps and no cut the two agree."""
    store = GraphStore.from_tables(entities(), relationships())
    node = store.node_of_title("WICKED WITCH")
    assert node is not None
    config = ToGSearchConfig(depth=60, width=50)
    found = spread({node: 1.0}, {"t2": 1.0, "t6": 3.0}, store, config)
    seeds = {"WICKED WITCH": 0.5, "t2": 0.125, "t6": 0.375}
    expected = nx.pagerank(
        _plain_graph(), alpha=0.5, personalization=seeds, tol=1e-12, max_iter=500, weight="weight"
    )
    mass = {**found.units, **{store.title(place): m for place, m in found.entities.items()}}
    assert sum(mass.values()) == pytest.approx(1, abs=1e-9)
    for place, share in expected.items():
        assert mass.get(place, 0.0) == pytest.approx(share, abs=1e-8), place


def test_without_seeds_nothing_is_reached() -> None:
    store = GraphStore.from_tables(entities(), relationships())
    assert spread({}, {}, store, ToGSearchConfig()).ranked_units() == []
    lonely = spread({}, {"unknown": 1.0}, store, ToGSearchConfig(depth=1))
    assert lonely.ranked_units() == ["unknown"]


async def test_ranks_of_words_and_vectors_are_fused(world: World) -> None:
    """What both rank first leads; the scores are sums of 1 / (60 + rank)."""
    units = TextUnits.from_table(text_units())
    text = "Who threw the bucket of water?"
    question = Question(text, world.embed(text))
    words = units.rank_by_words(text, 50)
    assert words[0] == "t5"
    hits = world.text_unit_vectors.similarity_search_by_vector(question.vector, k=50)
    near = [str(h.document.id) for h in sorted(hits, key=lambda h: (-h.score, str(h.document.id)))]
    expected = {
        name: sum(1 / (61 + ranking.index(name)) for ranking in (words, near) if name in ranking)
        for name in near
    }
    found = await fused_units(question, units, world.text_unit_vectors)
    assert found == pytest.approx(expected)
    assert next(iter(found)) == "t5"
    assert list(await fused_units(question, units, None)) == words


def test_words_are_compared_by_their_stems_in_any_script() -> None:
    units = TextUnits.from_table(text_units())
    assert units.rank_by_words("Which buckets are thrown?", 1) == ["t5"]
    assert units.rank_by_words("富士山はどこから見えますか", 1) == ["t7"]
    assert units.rank_by_words("zircon", 5) == []
    assert TextUnits.from_table(pd.DataFrame({"id": [], "text": []})).rank_by_words("x", 1) == []


def test_of_texts_that_fit_equally_the_first_number_leads() -> None:
    """Whatever the order of the table, which other methods go by."""
    table = pd.DataFrame(
        {
            "id": ["d", "b", "e", "a", "c"],
            "human_readable_id": [1, 7, 0, 1, 7],
            "text": ["A mill.", "A mill.", "No word of it.", "A mill.", "A mill, a mill."],
        }
    )
    words = WordIndexes()
    units = TextUnits.from_table(table).counted_in(words)

    assert units.rank_by_words("Which mill?", 9) == ["c", "a", "d", "b"]
    assert units.rank_by_words("Which mill?", 2) == ["c", "a"]
    assert words.of(table["text"].tolist()).rank("Which mill?") == [4, 0, 1, 3]


async def test_a_thrifty_search_asks_once_and_shows_the_walk(world: World) -> None:
    model = ScriptedModel()
    result = await world.search(model, **THRIFTY).search("How did Dorothy melt the wicked witch?")
    assert len(model.requests) == 1
    assert result.llm_calls_categories == {"exploration": 0, "reasoning": 1}
    rounds = result.context_data["exploration"]
    assert list(rounds["strategy_used"][1:]) == ["pagerank"] * (len(rounds) - 1)
    assert "Final attempt: yes" in model.reasoning[0]
    assert section(str(result.context_text), "Sources")[1].startswith("5|")
    assert len(result.context_data["paths"])


async def test_a_text_far_from_every_path_is_found_by_its_words(world: World) -> None:
    """The walk from Dorothy never comes to the Nile; its text does, by the question's words."""
    question = "What does DOROTHY know of ضفاف?"
    shown: dict[str, list[int]] = {}
    for ranking in ("pagerank", "paths"):
        model = ScriptedModel()
        search = world.search(
            model, **THRIFTY | {"passage_ranking": ranking, "width": 1, "depth": 1}
        )
        result = await search.search(question)
        shown[ranking] = list(result.context_data["sources"]["id"])
    assert 8 in shown["pagerank"]
    assert 8 not in shown["paths"]


async def test_it_works_without_vectors_of_texts_and_without_texts(world: World) -> None:
    for units in (text_units(), text_units().iloc[:0]):
        search = ToGSearch(
            model=ScriptedModel(),
            text_embedder=world.embedder,
            graph=world.graph,
            text_units=units,
            entity_vectors=world.entity_vectors,
        )
        result = await search.search("Who melts when DOROTHY throws water?")
        assert bool(len(result.context_data["sources"])) is bool(len(units))
        assert "Dorothy melted her." in str(result.response)


async def test_the_model_is_shown_the_most_promising_edges_only(world: World) -> None:
    model = ScriptedModel(answer=explore_on)
    search = world.search(model, max_scored_edges=3, depth=1)
    result = await search.search("Who melts when DOROTHY throws water?")
    edges = model.scoring[0]["edges"]
    assert len(edges) == 3
    assert [edge["edge"] for edge in edges] == [1, 2, 3]
    assert "WICKED WITCH" in {edge["neighbour"] for edge in edges}
    told = result.context_data["exploration"]
    assert told["note"][1].startswith("the model was shown the 3 most promising of ")
    scored = result.context_data["edges"]
    assert (scored["score"] > 0).sum() == 3
    assert len(scored) == told["n_edges"][1] > 3


def test_a_preset_gives_way_to_what_is_given() -> None:
    plain = ToGSearchConfig()
    assert (plain.prune_strategy, plain.check, plain.graph_share) == ("pagerank", "once", 0.1)
    full = ToGSearchConfig(preset="thorough", graph_share=0.3)
    assert (full.prune_strategy, full.check, full.graph_share) == ("llm", "each_depth", 0.3)
    # As a variant makes it: what was given, and the changes.
    again = ToGSearchConfig(**{**plain.model_dump(exclude_unset=True), "preset": "thorough"})
    assert again.prune_strategy == "llm"
    assert ToGSearchConfig(mode="connect").graph_share == 0.4
