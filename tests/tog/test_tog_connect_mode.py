"""Connect mode from the question to the answer, and equal input twice."""

import pytest
from support.openai_server import Json
from support.tog_world import (
    WALKED,
    ScriptedModel,
    entities,
    frames,
    graph_of,
    ids_in,
    lacking,
    relationships,
    section,
    text_units,
)

from graphrag.config.models.tog_search_config import ToGSearchConfig
from graphrag.query.structured_search.base import SearchResult
from graphrag.query.structured_search.tog_search import PPRSearch, ToGSearch, ToGSearchError
from graphrag.query.structured_search.tog_search.answer import NOT_FOUND

QUESTION = "How is Toto related to the Wizard of Oz?"
FRAMES = {"paths", "entities", "relationships", "sources", "exploration", "starts", "edges"}


def notes(result: SearchResult) -> list[str]:
    return list(frames(result)["exploration"]["note"])


async def test_two_named_entities_are_joined_in_one_call(world):
    """No scoring, one answer from the paths and their texts, cited as ever."""
    model = ScriptedModel()
    result = await world.search(model, mode="connect").search(QUESTION)

    assert not model.scoring
    assert len(model.reasoning) == len(model.requests) == result.llm_calls == 1
    context = str(result.context_text)
    assert context in model.reasoning[0]
    assert section(context, "Paths")[0] == (
        "WIZARD OF OZ -[The Wizard sends Dorothy to the west]-> DOROTHY "
        "-[Dorothy owns and loves Toto]-> TOTO"
    )
    assert 4 in ids_in(context, "Sources")
    assert str(result.response).startswith("Dorothy melted her. [Data: Relationships (505); ")
    data = frames(result)
    assert list(data["paths"]["relationship_id"]) == [505, 500]
    assert list(data["paths"]["traversed_forward"]) == [True, True]
    # Nine relationships join Dorothy; a score is 2^-(hops + log2 of the degrees passed).
    assert list(data["paths"]["score"]) == pytest.approx([1 / 18, 1 / 36])
    assert list(data["exploration"]["strategy_used"]) == ["start", "connect"]
    assert notes(result)[0] == "2 named in the question"
    assert notes(result)[1] == ("WIZARD OF OZ and TOTO: 1 path, the cheapest of 2 hops at cost 5.2")


@pytest.mark.parametrize(
    ("question", "settings", "says"),
    [
        (
            "How is Toto related to Kansas?",
            {"max_hops": 1},
            "TOTO and KANSAS are not connected within 1 hop.",
        ),
        ("How is Toto related to 富士山?", {}, "富士山 and TOTO are not connected within 4 hops."),
        # With one relationship an entity, nothing is proven absent.
        (
            "How is the 🎬 {film} related to the Emerald City?",
            {"max_relations_per_entity": 1},
            None,
        ),
    ],
)
async def test_not_connected_is_said_without_a_model_and_no_more_than_was_searched(
    world, question, settings, says
):
    """It counts as an abstention; every frame is there."""
    model = ScriptedModel()
    result = await world.search(model, mode="connect", **settings).search(question)
    response, data = str(result.response), frames(result)
    assert result.abstained
    assert not model.requests
    assert result.llm_calls == 0
    assert result.context_text == ""
    assert set(data) == FRAMES
    assert all(data[name].empty for name in FRAMES - {"exploration", "starts"})
    if says is None:
        assert "No path within 4 hops was found between" in response
        assert "not every relationship was tried" in response
    else:
        assert (response, notes(result)[1]) == (f"{NOT_FOUND} {says}", says)


@pytest.mark.parametrize(
    ("question", "n_named"),
    [("Who is close to Toto, the pet from a farm?", 1), ("Who threw a bucket?", 0)],
)
async def test_missing_entities_are_those_that_it_weighs_most(world, question, n_named):
    """One entity named, once or twice, or none: they are completed, even at width 1, and told."""
    result = await world.search(ScriptedModel(), mode="connect", width=1).search(question)
    assert notes(result)[0].startswith(f"{n_named} named in the question; nearest to it: ")
    near = notes(result)[0].rpartition(": ")[2].split(" and ")
    starts = list(frames(result)["starts"]["entity"])
    assert starts == [*["TOTO"] * n_named, *near]
    assert len({*starts} & {*entities()["title"]}) == 2
    assert notes(result)[1].startswith(f"{starts[0]} and {starts[1]}: ")
    said = r"Connecting needs two entities, and 0 of the index stands .* name both"
    with pytest.raises(ToGSearchError, match=said):
        await world.search(ScriptedModel(), mode="connect").search("Xyzzy?")


async def test_every_two_of_more_entities_are_joined(world):
    """The pair that isn't connected is named after the answer, also where it is streamed."""
    model = ScriptedModel()
    question = "What do Toto, Glinda and 東京 have in common?"
    search = world.search(model, mode="connect")
    result = await search.search(question)
    assert len(model.requests) == 1
    pieces: list[str] = []
    await search.search(question, pieces.append)
    assert "".join(pieces) == result.response
    assert len(frames(result)["exploration"]) == 4
    joined = [note for note in notes(result) if " path" in note]
    assert len(joined) == 1
    assert str(result.response).startswith("Dorothy melted her. [Data: ")
    assert str(result.response).count("are not connected within 4 hops.") == 2


async def test_the_pairs_take_turns_and_entities_beyond_the_width_are_left_out(world):
    """Each two of three have several paths; each pair shows its best before any its second."""
    search = world.search(ScriptedModel(), mode="connect")
    result = await search.search("Dorothy, the Tin Woodman and the Wicked Witch")
    assert all(": 2 paths" in note for note in notes(result)[1:])
    lines = section(str(result.context_text), "Paths")
    ends = {frozenset((line.split(" ")[0], line.split(" ")[-1])) for line in lines[:3]}
    assert len(ends) == 3 < len(lines)
    search = world.search(ScriptedModel(), mode="connect", width=1)
    result = await search.search("Toto, Glinda, Kansas and the Emerald City")
    assert notes(result)[0] == "2 named in the question, 2 more left out"
    assert len(notes(result)) == 2


def shuffled(settings: Json | None) -> ToGSearch | PPRSearch:
    people, joins, texts = (
        make().sample(frac=1, random_state=7) for make in (entities, relationships, text_units)
    )
    graph, model = graph_of(people, joins, texts), ScriptedModel(answer=lacking)
    if settings is None:
        return PPRSearch(model=model, graph=graph, text_units=texts)
    config = ToGSearchConfig(**WALKED | settings)
    return ToGSearch(model=model, graph=graph, text_units=texts, config=config)


@pytest.mark.parametrize(
    "options", [{"mode": "connect"}, {}, {"max_scored_edges": 5}, {"width": 1, "depth": 2}, None]
)
async def test_equal_input_gives_equal_output(world, options):
    """Asked again, and of the same tables with shuffled rows."""
    model = ScriptedModel(answer=lacking)
    search = world.ranked(model) if options is None else world.search(model, **options)
    for question in (QUESTION, "Who melted the Wicked Witch?", "Glinda, Toto and the Winkies"):
        first = await search.search(question)
        again = await search.search(question)
        other = await shuffled(options).search(question)
        assert first.context_text
        for result in (again, other):
            assert result.response == first.response
            assert result.context_text == first.context_text
            for name, frame in frames(first).items():
                assert frame.equals(frames(result)[name]), name
