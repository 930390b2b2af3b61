"""Think-on-Graph search from the question to the cited answer."""

import pytest
from support.openai_server import Json
from support.tog_world import (
    TOKENIZER,
    ScriptedModel,
    cite_all,
    entities,
    frames,
    go_on,
    graph_of,
    ids_in,
    in_turn,
    lacking,
    relationships,
    section,
    text_units,
    tog_search,
)

from graphrag.config.models.tog_search_config import ToGSearchConfig
from graphrag.query.graph import ToGSearch, ToGSearchError
from graphrag.query.graph.answer import NOT_FOUND, WITHDRAWN

QUESTION = "Who melted the Wicked Witch?"
UNCITED = {"answer": "Paris.", "relationships": [], "sources": []}


async def test_a_call_answers_at_once_from_what_it_is_shown_with_checked_citations(world):
    """Calls that go on are exploration, the one that answers is reasoning."""
    model = ScriptedModel()
    result = await world.search(model).search(QUESTION)
    context = str(result.context_text)
    source = ids_in(context, "Sources")[0]
    assert result.response == f"Dorothy melted her. [Data: Sources ({source})]"
    assert context in model.exploring[-1]
    assert result.llm_calls_categories == {"exploration": 0, "reasoning": 1}
    data = frames(result)
    assert list(data["sources"]["id"]) == ids_in(context, "Sources")
    columns = "path_id hop source target relationship_id traversed_forward score text_unit_ids"
    assert list(data["paths"].columns) == columns.split()
    columns = "call shown rows kept followed looked_up missing note"
    assert list(data["exploration"].columns) == columns.split()


async def test_a_later_call_reads_what_earlier_ones_lacked_and_searched_for(world):
    first, second = (go_on(keep=[5], look_up=[text]) for text in ("silver shoes", "Kansas"))
    model = ScriptedModel(in_turn(first, second))
    result = await world.search(model, max_context_tokens=260).search(QUESTION)
    before, after = model.exploring
    assert "-----Earlier calls-----" not in before
    assert after.endswith(
        "-----Earlier calls-----\nmissing|searched for\nwho did it|silver shoes\n"
    )
    assert "Earlier calls" not in str(result.context_text), "the last call may no longer search"


async def test_what_is_kept_followed_and_looked_up_stands_in_the_last_prompt(world):
    """Kept texts first; and each call tells what it read, said and lacked."""
    small = {"max_context_tokens": 260}
    first = go_on(keep=[5, 99], follow=[1, 77], look_up=["silver shoes", "Silver  shoes", QUESTION])
    model = ScriptedModel(in_turn(first, go_on(keep=[5], look_up=["silver shoes"])))
    result = await world.search(model, **small).search(QUESTION)
    calls = frames(result)["exploration"].to_dict("records")
    assert [call["call"] for call in calls] == [1, 2, 3]
    assert calls[0]["kept"] == [5], "what was not shown can't be kept"
    assert calls[0]["looked_up"] == ["silver shoes"], "neither twice nor the question itself"
    assert calls[0]["followed"] == calls[0]["rows"][:1]
    assert calls[0]["missing"] == "who did it"
    assert calls[1]["looked_up"] == [], "it was looked up before"
    assert ids_in(str(result.context_text), "Sources")[0] == 5
    assert 6 in calls[1]["shown"], "the text about the shoes"
    assert calls[1]["shown"][0] == 5
    assert result.llm_calls_categories == {"exploration": 2, "reasoning": 1}
    assert len(model.exploring) == 2
    assert len(model.reasoning) == 1


async def test_a_followed_row_is_read_in_the_next_call_where_the_whole_context_has_room(world):
    model = ScriptedModel(in_turn(go_on(keep=[*range(1, 10)], follow=[1, 2, 3]), go_on()))
    result = await world.search(model, max_context_tokens=260).search(QUESTION)
    first, second, _ = frames(result)["exploration"].to_dict("records")
    assert [first["shown"], len(first["followed"])] == [[5, 3, 1, 2], 3]
    assert second["shown"] == [1, 2, 3, 5, 6, 4, 9], "those that were kept, then those followed"


async def test_the_best_text_is_not_passed_over_for_a_shorter_one():
    texts = text_units()
    texts.loc[4, "text"] += " Who melted the Wicked Witch? Dorothy did." * 10
    graph = graph_of(entities(), relationships(), texts)
    search = tog_search(ScriptedModel(go_on()), graph, texts, max_context_tokens=260)
    first, *_ = frames(await search.search(QUESTION))["exploration"]["shown"]
    assert first == [5]


async def test_a_row_names_the_relationship_or_the_name_that_leads_to_a_text(world):
    model = ScriptedModel(go_on())
    await world.search(model, max_context_tokens=260).search("Who lifted the SCARECROW?")
    rows = section(model.exploring[0], "Rows")
    assert rows[0] == "number|from -> to|document|sentence"
    ends = {row.split("|")[1] for row in rows[1:]}
    assert any(" -> " in each for each in ends)
    assert [row.split("|")[0] for row in rows[1:]] == [str(n) for n in range(1, len(rows))]


async def test_a_row_shows_words_of_its_text_and_no_mark_alone():
    texts = text_units()
    texts.loc[texts.index != 4, "text"] = [
        f"! Zinc {n}." + " Iron." * 80 for n in texts.index if n != 4
    ]
    model = ScriptedModel(go_on())
    graph = graph_of(entities(), relationships(), texts)
    await tog_search(model, graph, texts, max_context_tokens=260).search(QUESTION)
    sentences = {row.split("|")[-1] for row in section(model.exploring[0], "Rows")[1:]}
    assert {sentence[:4] for sentence in sentences} == {"Zinc"}


async def test_a_followed_relationship_is_a_path_as_it_is_stored(world):
    model = ScriptedModel(in_turn(go_on(follow=[*range(1, 20)]), go_on()))
    search = world.search(model, max_context_tokens=260, width=20)
    data = frames(await search.search("Who lifted the SCARECROW?"))
    rows = data["paths"].to_dict("records")
    stored = relationships().set_index("human_readable_id")
    assert rows
    for row in rows:
        told = stored.loc[row["relationship_id"]]
        assert (row["source"], row["target"]) == (told["source"], told["target"])
    assert {row["relationship_id"] for row in rows} <= {*data["relationships"]["id"]}


async def test_what_is_said_about_main_persons_leaves_room_for_the_texts_that_are_kept():
    said = relationships()
    said["description"] += " More is said about both of them." * 40
    graph = graph_of(entities(), said, text_units())
    model = ScriptedModel(in_turn(go_on(keep=[1], follow=[*range(1, 20)]), go_on()))
    search = tog_search(model, graph, max_context_tokens=260, width=20)
    data = frames(await search.search("Who lifted the SCARECROW?"))
    assert max(map(len, data["relationships"]["description"])) == 200
    assert 1 in {*data["sources"]["id"]}


async def test_nothing_that_leads_on_means_that_the_next_call_answers(world):
    model = ScriptedModel(go_on(keep=[1]), answer=lacking)
    result = await world.search(model, depth=5).search(QUESTION)
    assert [len(model.exploring), len(model.reasoning)] == [1, 1]
    last = frames(result)["exploration"].iloc[-1]
    assert (last["call"], last["missing"]) == (2, "the rest")
    assert {request["temperature"] for request in model.requests} == {0}


async def test_an_answer_of_a_first_call_that_cites_nothing_shown_goes_on(world):
    """What the model knows by itself is no answer, whatever it says is missing."""
    model = ScriptedModel(lambda _: go_on()("") | {"missing": "", "answer": "Me.", "sources": [99]})
    result = await world.search(model).search(QUESTION)
    assert str(result.response).startswith("Dorothy melted her. [Data: ")
    assert "cited nothing" in frames(result)["exploration"]["note"][0]
    assert [len(model.exploring), len(model.reasoning)] == [1, 1]


async def test_what_a_search_does_without_is_told_of_it_whatever_its_calls_note(world):
    class Nothing:
        async def near(self, question: str) -> tuple[dict[str, float], str]:
            return {}, "words alone"

    model = ScriptedModel(lambda _: go_on()("") | {"missing": "", "answer": "Me.", "sources": [99]})
    settings = {"text_units": text_units(), "meaning": Nothing()}
    result = await ToGSearch(model=model, graph=world.graph, **settings).search(QUESTION)
    assert result.note == "words alone"
    noted = frames(result)["exploration"]["note"][0]
    assert noted == "words alone; its answer cited nothing that it was shown"
    assert (await world.search(model).search(QUESTION)).note == ""


@pytest.mark.parametrize(
    ("more", "n_calls"),
    [
        ({}, 1),
        ({"keep": [5]}, 2),
        ({"follow": [1]}, 2),
        ({"sources": []}, 2),
        ({"answer": "..."}, 2),
    ],
)
async def test_a_cited_answer_counts_unless_the_model_would_read_on(world, more, n_calls):
    """Small models write what they have found under what is missing, and look it up."""
    reply = {"missing": "Dorothy", "answer": "Dorothy.", "sources": [5], "look_up": ["Dorothy"]}
    model = ScriptedModel(lambda _: go_on()("") | {"keep": [], "follow": []} | reply | more)
    result = await world.search(model, depth=1).search(QUESTION)
    assert result.llm_calls == n_calls
    assert (result.response == "Dorothy. [Data: Sources (5)]") == (n_calls == 1)


@pytest.mark.parametrize(
    "reply",
    [
        '[{"missing": "", "answer": "She did.", "sources": ["Sources 5"], "mood": 1}]',
        '{"missing": "", "answer": "She did.", "sources": "[99, 5]", "relationships": ["2.0"]}',
        '<think>{"missing": "all"}? no.</think>{"missing": "None.", "answer": "She did.", '
        '"relationships": null, "sources": [5], "follow": [], "sufficient": true}',
    ],
)
async def test_replies_are_read_with_more_or_fewer_keys(world, reply):
    result = await world.search(ScriptedModel(raw=[reply])).search(QUESTION)
    assert result.response == "She did. [Data: Sources (5)]"


async def test_what_cannot_be_read_twice_lets_the_ranking_go_on_and_is_told(world):
    model = ScriptedModel(raw=["Follow 1 and 2.", "{}"])
    result = await world.search(model, depth=1).search(QUESTION)
    assert [len(model.exploring), len(model.reasoning)] == [2, 1]
    assert "Reply again" in model.exploring[1]
    assert "so the ranking went on" in frames(result)["exploration"]["note"][0]
    assert "[Data: " in str(result.response)


@pytest.mark.parametrize("budget", [260, 400, 8000])
async def test_no_call_reads_more_than_the_context_may_have(world, budget):
    model = ScriptedModel(go_on(follow=[1, 2, 3], look_up=["silver shoes", "Kansas"]))
    await world.search(model, max_context_tokens=budget).search("What did DOROTHY do?")
    for system in (*model.exploring, *model.reasoning):
        text = system[system.index("-----Sources-----") :]
        assert TOKENIZER.num_tokens(text) <= budget


async def test_without_texts_rows_are_relationships_and_those_followed_answer():
    graph = graph_of(entities(), relationships())
    model = ScriptedModel(in_turn(go_on(follow=[1]), cite_all))
    search = tog_search(model, graph, text_units().iloc[:0])
    result = await search.search("Who melted the WICKED WITCH?")
    data = frames(result)
    assert data["sources"].empty
    assert len(data["paths"]) == 1
    followed = data["paths"]["relationship_id"][0]
    assert result.response == f"Dorothy melted her. [Data: Relationships ({followed})]"
    assert "WICKED WITCH" in {*data["entities"]["entity"]}
    assert data["exploration"]["rows"][0]


async def test_data_can_hold_braces_bars_and_line_breaks(world):
    model = ScriptedModel(go_on())
    result = await world.search(model, depth=1).search("the 🎬 {FILM} {response_type}")
    context = str(result.context_text)
    assert "write {response_type}." in context
    assert '"The film | says ""no place like home"".' in context
    assert context in model.reasoning[-1]


async def test_own_prompts_are_used_with_their_braces(world, tmp_path):
    """Only known fields are filled in; a prompt that can't be used is refused by its setting."""
    paths = {name: tmp_path / name for name in ("reasoning_prompt", "exploration_prompt")}
    for name, path in paths.items():
        path.write_text(f'{name} {{"a": {{x}}}} {{response_type}}|{{context_data}}', "utf-8")
    prompts, model = {name: str(path) for name, path in paths.items()}, ScriptedModel(go_on())
    result = await world.search(model, **prompts, depth=1).search(QUESTION)
    expected = f'{{"a": {{x}}}} Multiple Paragraphs|{result.context_text}'
    assert model.reasoning[-1] == f"reasoning_prompt {expected}"
    assert model.exploring[-1].startswith('exploration_prompt {"a": {x}} Multiple Paragraphs|---')

    for name, path in paths.items():
        for text, says in (
            ("Answer from {context_data}.", r"lacks \{response_type\}\."),
            (" \n", r"lacks \{context_data\}, \{response_type\}\."),
            (None, "can't be read"),
        ):
            path.unlink() if text is None else path.write_text(text, encoding="utf-8")
            with pytest.raises(ToGSearchError, match=rf"tog_search\.{name}: .*{says}"):
                world.search(ScriptedModel(), **{name: str(path)})


def test_settings_of_1_0_0_are_read_with_one_warning_that_says_what_took_their_place(caplog):
    old = {"mode": "connect", "max_scored_edges": 9, "graph_share": 0.2, "scoring_prompt": "p.txt"}
    config = ToGSearchConfig.model_validate({**old, "max_hops": 2, "depth": 3})
    assert config == ToGSearchConfig(depth=3)
    [record] = caplog.records
    assert all(key in record.message for key in (*old, "max_hops", "look-ups"))
    with pytest.raises(ValueError, match="did you mean 'width'"):
        ToGSearchConfig.model_validate({"widht": 3})
    assert len(ToGSearchConfig.model_fields) <= 12


async def test_ids_that_were_not_shown_never_reach_the_response(world):
    """Made up, they are dropped and counted; written into the answer, they are taken out."""

    def answer(context: str) -> Json:
        reply = cite_all(context) | {"answer": "She did [Data: Sources (77, 78)]. Yes."}
        return reply | {"relationships": [424242], "sources": [-3, *reply["sources"]]}

    result = await world.search(ScriptedModel(answer=answer)).search(QUESTION)
    assert str(result.response).startswith("She did. Yes. [Data: Sources (")
    assert "424242" not in str(result.response)
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
        ([UNCITED | {"answer": "", "missing": "it"}], f"{NOT_FOUND} Missing: it", 1),
    ],
)
async def test_an_answer_that_cites_nothing_is_asked_for_again_and_never_given(
    world, replies, response, n_calls
):
    left = list(replies)
    model = ScriptedModel(go_on(), answer=lambda context: cite_all(context) | left.pop(0))
    result = await world.search(model).search(QUESTION)
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


async def pieces_of(search: ToGSearch, question: str) -> list[str]:
    pieces: list[str] = []
    await search.search(question, pieces.append)
    return pieces


def with_citations(context: str) -> Json:
    return cite_all(context) | {"answer": "She did [Data: Sources (77)]. [Draft] Yes."}


@pytest.mark.parametrize("answer", [cite_all, with_citations])
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
