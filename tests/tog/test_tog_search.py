"""Think-on-Graph search from the question to the cited answer."""

import pandas as pd
import pytest
from graphrag_llm.config import ModelConfig
from support.openai_server import Json
from support.tog_world import (
    TOKENIZER,
    WALKED,
    ScriptedModel,
    cite_all,
    entities,
    frames,
    graph_of,
    hub,
    ids_in,
    lacking,
    relationships,
    section,
    text_units,
    tog_search,
)

from graphrag.query.structured_search.tog_search import ToGSearch, ToGSearchError
from graphrag.query.structured_search.tog_search.answer import NOT_FOUND, WITHDRAWN

QUESTION = "Who melted the Wicked Witch?"
UNCITED = {"answer": "Paris.", "relationships": [], "sources": []}


async def test_answers_with_checked_citations_and_what_it_was_shown(world):
    model = ScriptedModel()
    result = await world.search(model).search(QUESTION)

    relationship = ids_in(str(result.context_text), "Relationships")[0]
    source = ids_in(str(result.context_text), "Sources")[0]
    assert result.response == (
        f"Dorothy melted her. [Data: Relationships ({relationship}); Sources ({source})]"
    )
    assert str(result.context_text) in model.reasoning[-1]
    data = frames(result)
    assert list(data["sources"]["id"]) == ids_in(str(result.context_text), "Sources")
    assert set(data["paths"]["relationship_id"]) == set(data["relationships"]["id"])
    columns = "path_id hop source target relationship_id traversed_forward score text_unit_ids"
    assert list(data["paths"].columns) == columns.split()


async def test_edges_are_rows_below_their_entity(world):
    """An entity is named once, a neighbour described once, a direction is an arrow."""
    model = ScriptedModel()
    await world.search(model, depth=1, width=3).search("Did the SCARECROW meet TOTO?")
    request = model.requests[0]["messages"][1]["content"]
    assert request.startswith("Question: Did the SCARECROW meet TOTO?\n\nEdges of ")
    rows = request.splitlines()
    edge = next(row for row in rows if "guards Dorothy at" in row).split("|")
    told = "Dorothy frees the Scarecrow from his pole; (SCARECROW to DOROTHY) The Scarecrow guards "
    assert edge[1:4] == ["<-", "DOROTHY", f"{told}Dorothy at…"]
    assert sum("|DOROTHY|" in row for row in rows) > request.count("A farm girl from Kansas") == 1
    assert len({row for row in rows if row.startswith("Edges of ")}) == request.count("Edges of ")


async def test_one_call_a_depth_at_temperature_0_and_one_that_checks_and_answers(world):
    """Also where the model finds that something is lacking: it is told, and the answer stands."""
    model = ScriptedModel(answer=lacking)
    result = await world.search(model).search("What became of Toto?")
    assert {request["temperature"] for request in model.requests} == {0}
    own = ScriptedModel()
    own.config = ModelConfig(
        model_provider="openai", model="gpt-5.1", api_key="k", call_args={"temperature": 1}
    )
    await world.search(own, depth=1).search(QUESTION)
    assert all("temperature" not in request for request in own.requests)
    assert 1 < len(model.scoring) == len(frames(result)["exploration"]) - 1 <= 3
    assert len(model.reasoning) == 1
    assert len(model.requests) == len(model.scoring) + 1
    assert "[Data: " in str(result.response)
    note = frames(result)["exploration"]["note"].iloc[-1]
    assert "the model says that the context lacks this: the rest" in note


@pytest.mark.parametrize(("budget", "most"), [(8000, 400), (200, 200)])
async def test_what_a_walk_costs_is_bounded_whatever_the_graph(budget, most):
    """A scoring call reads a twentieth of the context; edges beyond that are left out and told."""
    long = "known for " + "a very long and winding tale " * 30
    titles = ["HUB", *(f"PLACE {n}" for n in range(60))]
    people = pd.DataFrame({"id": titles, "title": titles, "description": long})
    joins = pd.DataFrame({"source": "HUB", "target": titles[1:], "description": long})
    model = ScriptedModel()
    search = tog_search(model, graph_of(people, joins), max_context_tokens=budget)
    found = await search.search("Where does the HUB lead?")
    asked = [r["messages"][1]["content"] for r in model.requests]
    tokens = [TOKENIZER.num_tokens(text) for text in asked if "Edges of" in text]
    assert 0 < max(tokens) <= most
    n_shown = len(model.scoring[0]["edges"])
    assert 1 < n_shown < 30
    assert f"the {n_shown} most promising of" in frames(found)["exploration"]["note"].iloc[1]


async def test_a_relationship_walked_against_its_direction_is_shown_as_stored(world):
    result = await world.search(ScriptedModel(), width=1, depth=1).search("TOTO?")
    lines = section(str(result.context_text), "Paths")
    assert "TOTO <-[Dorothy owns and loves Toto]- DOROTHY" in lines
    shown = frames(result)["paths"]
    row = shown[shown["relationship_id"] == 500].iloc[0]
    assert (row["source"], row["target"], row["traversed_forward"]) == ("DOROTHY", "TOTO", False)


async def test_what_is_no_score_counts_as_zero(world):
    """An edge left out, 7, -1 and NaN: none ever beats an explicit low score; the note counts."""
    wrong = {"TOTO": 7.0, "SILVER SHOES": float("nan"), "TIN WOODMAN": -1.0, "SCARECROW": None}

    def score(edge: Json) -> float | None:
        return wrong.get(edge["neighbour"], 0.2)

    result = await world.search(ScriptedModel(score=score), depth=1, width=1).search("Dorothy")
    kept = frames(result)["paths"]
    assert not {*kept["target"], *kept["source"]} & {*wrong}
    note = frames(result)["exploration"]["note"].iloc[1]
    assert note == "3 scores outside 0 to 1 counted as 0"


@pytest.mark.parametrize("reply", ["1. 9\n2. 3", '{"scores": [{"edge": 99999, "score": 1}]}'])
@pytest.mark.parametrize("strategy", ["llm", "bm25"])
async def test_unusable_scores_are_asked_for_once_more_then_words_score(world, reply, strategy):
    """Numbers in prose and unknown edges are never taken for scores; the fallback is told."""
    model = ScriptedModel(raw=[reply] if strategy == "llm" else [reply, reply])
    result = await world.search(model, depth=1).search(QUESTION)
    assert len(model.scoring) == 2
    assert model.scoring[0]["question"] == QUESTION
    row = frames(result)["exploration"].iloc[1]
    assert row["strategy_used"] == strategy
    assert ("could not be read" in row["note"]) == (strategy == "bm25")
    assert row["n_edges"] > 0


async def test_a_hub_is_capped_and_its_matching_edge_is_seen():
    """A thousand spokes give a bounded request; the one that matches is in it."""
    people, joins = hub(150)
    model = ScriptedModel()
    graph = graph_of(people, joins, text_units())
    search = tog_search(model, graph, **WALKED, max_relations_per_entity=40, depth=1)
    await search.search("Where does the HUB hide the zircon treasure?")
    shown = [edge for asked in model.scoring for edge in asked["edges"]]
    assert len(shown) == 40
    assert "SPOKE 7" in {edge["neighbour"] for edge in shown}
    assert sorted(edge["edge"] for edge in shown) == list(range(1, 41))
    assert len(model.scoring) == 1


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("富士山はどこから見えますか", "富士山"),
        ("أين تقع القاهرة؟", "القاهرة"),
        ("Who is in 🎬 {film}?", "🎬 {FILM}"),
        ("is the \uff37izard of oz a humbug", "WIZARD OF OZ"),
    ],
)
async def test_entities_named_in_the_question_are_starts(world, question, title):
    """In any script, width and case; "OZ" inside "WIZARD OF OZ" is not another start."""
    model = ScriptedModel()
    result = await world.search(model, depth=1).search(question)
    assert title in set(frames(result)["entities"]["entity"])
    note = frames(result)["exploration"]["note"].iloc[0]
    assert note.startswith("1 named in the question")


async def test_named_entities_come_before_those_that_the_question_weighs(world):
    """At most ``width`` of each; where nothing is named or held by texts, those that words fit."""
    search = world.search(ScriptedModel(), width=2)
    found = await search.search("Did TOTO see who threw a bucket of water?")
    starts = list(frames(found)["starts"]["entity"])
    assert (starts[0], len(starts)) == ("TOTO", 3)
    assert "DOROTHY" in starts[1:]  # named in the text with the bucket
    assert frames(found)["exploration"]["note"][0] == "1 named in the question, 2 near it"

    graph = graph_of(entities(), relationships())
    search = tog_search(ScriptedModel(), graph, text_units().iloc[:0])
    result = await search.search("Who has courage?")
    assert list(frames(result)["starts"]["entity"]) == ["COWARDLY LION"]
    assert frames(result)["sources"].empty
    assert "Sources (" not in str(result.response)


async def test_data_can_hold_braces_bars_and_line_breaks(world):
    model = ScriptedModel()
    result = await world.search(model, depth=1).search("the 🎬 {FILM} {response_type}")
    context = str(result.context_text)
    assert "The film {final} is about Dorothy | a girl" in "\n".join(section(context, "Paths"))
    assert '"A film | with ""quotes""\nand {context_data} braces"' in context
    assert "write {response_type}." in context
    assert context in model.reasoning[-1]


async def test_own_prompts_are_used_with_their_braces(world, tmp_path):
    """Only known fields are filled in; a prompt that can't be used is refused by its setting."""
    reasoning, scoring = tmp_path / "reasoning.txt", tmp_path / "scoring.txt"
    reasoning.write_text('{"a": {x}} {response_type}|{context_data}', encoding="utf-8")
    scoring.write_text("Mine, of {most}: {scores} {}", encoding="utf-8")
    prompts, model = {"reasoning_prompt": str(reasoning)}, ScriptedModel()
    search = world.search(model, **prompts, scoring_prompt=str(scoring), depth=1)
    result = await search.search(QUESTION)
    assert model.reasoning[-1] == f'{{"a": {{x}}}} Multiple Paragraphs|{result.context_text}'
    assert model.requests[0]["messages"][0]["content"] == "Mine, of 6: {scores} {}"

    for text, says in (
        ("Answer from {context_data}.", r"lacks \{response_type\}\."),
        (" \n", "is empty"),
        (None, "can't be read"),
    ):
        reasoning.unlink() if text is None else reasoning.write_text(text, encoding="utf-8")
        with pytest.raises(ToGSearchError, match=rf"tog_search\.reasoning_prompt: .*{says}"):
            world.search(ScriptedModel(), **prompts)


async def test_ids_that_were_not_shown_never_reach_the_response(world):
    """Made up, they are dropped and counted; written into the answer, they are taken out."""

    def answer(context: str) -> Json:
        reply = cite_all(context) | {"answer": "She did [Data: Sources (77, 78)]. Yes."}
        return reply | {"relationships": [424242, *reply["relationships"]], "sources": [-3]}

    result = await world.search(ScriptedModel(answer=answer)).search(QUESTION)
    assert str(result.response).startswith("She did. Yes. [Data: Relationships (")
    assert "424242" not in str(result.response)
    assert "Sources" not in str(result.response)
    assert "2 cited ids were not in the context" in frames(result)["exploration"]["note"].iloc[-1]


@pytest.mark.parametrize(
    ("replies", "response", "n_calls"),
    [
        # The repair names the problem; a cited answer is then taken.
        ([UNCITED, {}], "Dorothy melted her. [Data: ", 2),
        # What the model knows by itself is no answer.
        (
            [UNCITED | {"missing": "any mention\nof Paris"}] * 2,
            f"{NOT_FOUND} Missing: any mention of Paris",
            2,
        ),
        # An empty final answer is no fault to repair.
        ([UNCITED | {"answer": "", "sufficient": False}], NOT_FOUND, 1),
    ],
)
async def test_an_answer_that_cites_nothing_is_asked_for_again_and_never_given(
    world, replies, response, n_calls
):
    left = list(replies)
    model = ScriptedModel(answer=lambda context: cite_all(context) | left.pop(0))
    result = await world.search(model, depth=1).search(QUESTION)
    assert str(result.response).startswith(response)
    assert result.abstained == response.startswith(NOT_FOUND)
    assert len(model.reasoning) == n_calls
    assert ("cites no id" in model.reasoning[-1]) == (n_calls == 2)


@pytest.mark.parametrize("kind", ["search", "ranked"])
async def test_a_question_without_words_or_of_which_the_index_holds_none_asks_nobody(world, kind):
    """As does a graph without entities."""
    model, nothing = ScriptedModel(), graph_of(entities()[:0], relationships()[:0])
    search = getattr(world, kind)(model)
    result = await search.search("Xyzzy?")
    assert (result.response, result.context_text) == (NOT_FOUND, "")
    assert result.abstained
    assert result.llm_calls == 0
    with pytest.raises(ToGSearchError, match="question is empty"):
        await search.search("  \n")
    with pytest.raises(ToGSearchError, match="no entities"):
        await pieces_of(tog_search(model, nothing), QUESTION)
    assert not model.requests


async def test_entities_without_usable_edges_still_answer():
    """Only a self-loop and dangling relationships: descriptions and texts remain."""
    graph = graph_of(entities(), relationships().iloc[[13, 14, 15]], text_units())
    model = ScriptedModel()
    result = await tog_search(model, graph).search("Who is Dorothy?")
    assert not model.scoring
    assert "DOROTHY" in set(frames(result)["entities"]["entity"])
    assert frames(result)["paths"].empty
    assert "[Data: Sources (" in str(result.response)


async def pieces_of(search: ToGSearch, question: str) -> list[str]:
    pieces: list[str] = []
    await search.search(question, pieces.append)
    return pieces


def with_citations(context: str) -> Json:
    return lacking(context) | {"answer": "She did [Data: Sources (77)]. [Draft] Yes."}


@pytest.mark.parametrize("answer", [lacking, with_citations])
async def test_a_stream_is_the_response_in_pieces(world, answer):
    """The citations come last, in one piece; nothing of an unchecked one is shown."""
    result = await world.search(ScriptedModel(answer=answer)).search(QUESTION)
    pieces = await pieces_of(world.search(ScriptedModel(answer=answer)), QUESTION)
    assert "".join(pieces) == result.response
    assert len(pieces) > 3
    assert pieces[-1].startswith(" [Data: ")
    assert "77" not in "".join(pieces)
    # What was shown of an answer that cites nothing can't be taken back: it is said to be void.
    model = ScriptedModel(answer=lambda context: cite_all(context) | UNCITED)
    pieces = await pieces_of(world.search(model), QUESTION)
    assert "".join(pieces) == f"Paris.\n\n{WITHDRAWN}\n\n{NOT_FOUND}"


async def test_every_scored_edge_and_what_became_of_it_is_told(world):
    """As many a round as the round says; walked on is what the next round starts from.

    An edge that was kept names what the model was shown of it.
    """

    def score(edge: Json) -> float:
        return {"TOTO": 0.9, "SCARECROW": 0.6}.get(edge["neighbour"], 0.1)

    search = world.search(ScriptedModel(score=score), depth=2, width=2)
    data = frames(await search.search("Dorothy"))
    edges = data["edges"].to_dict("records")
    known = set(data["starts"]["entity"])
    for told in data["exploration"].to_dict("records")[1:]:
        here = [edge for edge in edges if edge["depth"] == told["depth"]]
        assert len(here) == told["n_edges"]
        assert sum(edge["fate"] != "pruned" for edge in here) == told["n_kept"]
        assert {edge["source"] for edge in here} <= known
        known = {edge["target"] for edge in here if edge["fate"] == "walked"}
    kept = {frozenset((e["source"], e["target"])) for e in edges if e["fate"] != "pruned"}
    paths = data["paths"].to_dict("records")
    assert {frozenset((row["source"], row["target"])) for row in paths} <= kept
    assert {edge["fate"] for edge in edges} == {"walked", "kept", "pruned"}

    unit_of = dict(zip(text_units()["human_readable_id"], text_units()["id"], strict=True))
    texts = {f"Sources ({short})": unit_of[short] for short in data["sources"]["id"]}
    stored, shown = relationships().to_dict("records"), {*data["relationships"]["id"]}
    for edge in edges:
        ends = {edge["source"], edge["target"]}
        rows = [row for row in stored if {row["source"], row["target"]} == ends]
        ids = {row["human_readable_id"] for row in rows} & shown
        units = {unit for row in rows for unit in row["text_unit_ids"]}
        expected = {f"Relationships ({number})" for number in ids}
        expected |= {name for name, unit in texts.items() if unit in units}
        assert set(edge["rests_on"]) == (set() if edge["fate"] == "pruned" else expected)
    assert sum("Sources" in name for edge in edges for name in edge["rests_on"]) > 1
