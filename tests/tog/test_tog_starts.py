"""Where a walk starts, and when it ends before its depth."""

from functools import partial
from itertools import pairwise
from typing import Any

import pandas as pd
import pytest
from support.tog_world import WALKED, ScriptedModel, World, lacking, text_units

from graphrag.config.models.tog_search_config import ToGSearchConfig
from graphrag.query.structured_search.tog_search import GraphStore, ToGSearch, walk
from graphrag.query.structured_search.tog_search import search as tog


async def test_named_entities_come_before_those_that_the_question_weighs(world: World) -> None:
    """At most ``width`` of each, and which is said."""
    search = world.search(ScriptedModel(), width=2)
    found: Any = await search.search("Did TOTO see who threw a bucket of water?")
    starts = list(found.context_data["starts"]["entity"])
    assert starts[0] == "TOTO"
    assert len(starts) == 3
    assert "DOROTHY" in starts[1:]  # named in the text with the bucket
    note = found.context_data["exploration"]["note"][0]
    assert note == "1 named in the question, 2 near it"


def half_of_everything(edge: dict[str, Any]) -> float:
    """Score so that a path of two edges is worse than any of one."""
    return 0.5


def main_road(edge: dict[str, Any]) -> float:
    """Score so that the road stays better than its side roads however long it is."""
    return 0.1 if edge["neighbour"].startswith("SIDE") else 0.9


@pytest.mark.parametrize(
    ("score", "most", "n_depths"),
    [
        (half_of_everything, 3, 2),
        # There is room for further paths.
        (half_of_everything, 9, 3),
        (main_road, 3, 3),
    ],
)
async def test_a_walk_ends_when_no_path_beats_one_that_is_held(
    score: Any, most: int, n_depths: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the check is the last, and no further edges are scored."""
    road = ["TOWN", "BRIDGE", "MILL", "FARM", "COAST"]
    names = [*road, "SIDE STREET", "SIDE ALLEY"]
    ends = [*pairwise(road), ("TOWN", "SIDE STREET"), ("TOWN", "SIDE ALLEY")]
    joins = pd.DataFrame(ends, columns=["source", "target"]).assign(description="leads")
    model = ScriptedModel(score=score, answer=lacking)
    unimproved = walk.is_unimproved
    monkeypatch.setattr(tog, "is_unimproved", partial(unimproved, max_paths=most))
    search = ToGSearch(
        model=model,
        graph=GraphStore.from_tables(
            pd.DataFrame({"id": names, "title": names}), joins, text_units()
        ),
        text_units=text_units(),
        config=ToGSearchConfig(**WALKED),
    )
    found: Any = await search.search("Where does the TOWN lead?")
    assert len(model.scoring) == n_depths
    assert len(model.reasoning) == 1
    assert list(found.context_data["exploration"]["depth"]) == list(range(n_depths + 1))
