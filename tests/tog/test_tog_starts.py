"""Where a walk starts, by which ranking, and when it ends before its depth."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pydantic import ValidationError
from support.tog_world import (
    WALKED,
    Embedder,
    ScriptedModel,
    World,
    explore_on,
    store_vectors,
    text_units,
)

from graphrag.config.models.tog_search_config import ToGSearchConfig
from graphrag.query.structured_search.tog_search import GraphStore, ToGSearch
from graphrag.text.ranking import fuse_ranks

QUESTION = "Whose courage, and whose bucket of water?"
THRIFTY = {"preset": "thrifty", "passage_ranking": "pagerank"}


async def starts(world: World, question: str, **settings: Any) -> list[str]:
    """The titles of a search's starts, in their order."""
    options: dict[str, Any] = THRIFTY | settings
    search = world.search(ScriptedModel(), **options)
    found: Any = await search.search(question)
    return list(found.context_data["starts"]["entity"])


async def test_words_find_an_entity_by_its_description(world: World) -> None:
    """Only one description speaks of courage; a title counts as well."""
    assert await starts(world, "Who has courage?", start_ranking=["words"]) == ["COWARDLY LION"]
    found = await starts(world, "Which shoes?", start_ranking=["words"])
    assert found == ["SILVER SHOES"]


async def test_texts_find_the_entities_that_they_name(world: World) -> None:
    """The nearest text's entities come first, those that stand in fewer texts before others."""
    question = "Dorothy lifted the Scarecrow off the pole. He wanted a brain."
    found = await starts(world, question, start_ranking=["texts"], width=2)
    named, near = found[:2], found[2:]
    assert set(named) == {"DOROTHY", "SCARECROW"}
    assert near
    # t1 comes next: both of its entities that are named nowhere else.
    hits = world.text_unit_vectors.similarity_search_by_vector(world.embed(question), k=10)
    order = [str(h.document.id) for h in sorted(hits, key=lambda h: (-h.score, str(h.document.id)))]
    total: dict[str, float] = {}
    for unit, score in fuse_ranks([order]).items():
        for node in world.graph.entities_in(unit, 100):
            row = world.graph.entity_row(node)
            total[row.title] = total.get(row.title, 0.0) + score / len(row.text_unit_ids)
    best = sorted(total, key=lambda title: (-total[title], title))
    assert near == [title for title in best if title not in named][:2]


async def test_who_stands_in_every_text_does_not_come_first_for_that(world: World) -> None:
    """Dorothy is in more texts than anybody else, and the nearest is about the witch."""
    assert await starts(world, QUESTION, start_ranking=["texts"], width=1) == ["WICKED WITCH"]


async def test_rankings_are_fused_by_reciprocal_rank(world: World) -> None:
    """Each alone, and fused, as published."""
    alone = [
        await starts(world, QUESTION, start_ranking=[name], width=10)
        for name in ("descriptions", "texts", "words")
    ]
    both = await starts(world, QUESTION, start_ranking=["descriptions", "texts", "words"])
    assert len({*map(tuple, alone)}) == 3
    assert both == list(fuse_ranks(alone))[:3]


def test_a_ranking_is_named_once() -> None:
    """The sentence says which."""
    with pytest.raises(ValidationError, match="start_ranking names a ranking twice: words, words"):
        ToGSearchConfig(start_ranking=["words", "words"])
    with pytest.raises(ValidationError, match="at least 1 item"):
        ToGSearchConfig(start_ranking=[])


def half_of_everything(edge: dict[str, Any]) -> float:
    """Score so that a path of two edges is worse than any of one."""
    return 0.5


def main_road(edge: dict[str, Any]) -> float:
    """Score so that the road stays better than its side roads however long it is."""
    return 0.1 if edge["neighbour"].startswith("SIDE") else 0.9


@pytest.mark.parametrize(
    ("score", "settings", "n_depths"),
    [
        (half_of_everything, {}, 2),
        (half_of_everything, {"stop_when_unimproved": False}, 3),
        # There is room for further paths.
        (half_of_everything, {"max_exploration_paths": 9}, 3),
        (main_road, {}, 3),
    ],
)
async def test_a_walk_ends_when_no_path_beats_one_that_is_held(
    score: Any, settings: dict[str, Any], n_depths: int, tmp_path: Path
) -> None:
    """Then the check is the last, and no further edges are scored."""
    road = ["TOWN", "BRIDGE", "MILL", "FARM", "COAST"]
    names = [*road, "SIDE STREET", "SIDE ALLEY"]
    ends = [*pairwise(road), ("TOWN", "SIDE STREET"), ("TOWN", "SIDE ALLEY")]
    joins = pd.DataFrame(ends, columns=["source", "target"]).assign(description="leads")
    model = ScriptedModel(score=score, answer=explore_on)
    options: dict[str, Any] = WALKED | {"max_exploration_paths": 3} | settings
    search = ToGSearch(
        model=model,
        text_embedder=Embedder(),
        graph=GraphStore.from_tables(pd.DataFrame({"id": names, "title": names}), joins),
        text_units=text_units(),
        entity_vectors=store_vectors(tmp_path, "road", {"TOWN": "TOWN"}),
        config=ToGSearchConfig(**options),
    )
    found: Any = await search.search("Where does the TOWN lead?")
    assert len(model.scoring) == len(model.reasoning) == n_depths
    finals = ["Final attempt: yes" in text for text in model.reasoning]
    assert finals == [False] * (n_depths - 1) + [True]
    assert list(found.context_data["exploration"]["depth"]) == list(range(n_depths + 1))
