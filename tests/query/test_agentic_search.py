"""agentic: hybrid searches that the model sends out again for what it misses, at most three."""

import json

import pytest
from support.lighthouse import SpiedServer
from support.openai_server import Json, offline_reply

from graphrag.query.graph_index import GraphIndex
from graphrag.query.methods import AGENTIC_ROUNDS
from graphrag.query.search_result import CountedSearchResult
from graphrag.text.context_tables import read_context

QUESTION = "Who founded the company that made the lens of the great lamp?"
NEXT = "Merrow Glass Company founded"
BROKEN = '{"missing": "the founder", "query": '

pytestmark = pytest.mark.usefixtures("as_before")


class Scripted:
    """Answers as the embedded model does, but says what is missing as it is told, in turn."""

    def __init__(self, *said: str) -> None:
        self._said = list(said)
        self._otherwise = offline_reply()
        self.asked: list[str] = []

    def __call__(self, request: Json) -> str:
        if '"query"' not in json.dumps(request.get("response_format", "")):
            return self._otherwise(request)
        self.asked.append(request["messages"][0]["content"])
        return self._said.pop(0)


def missing(query: str) -> str:
    return json.dumps({"missing": "the founder" if query else "", "query": query})


async def ask(
    index: GraphIndex, server: SpiedServer, *said: str, **settings: object
) -> tuple[CountedSearchResult, Scripted]:
    model = Scripted(*said)
    server.behave(reply=model)
    given = {"k": 3, "max_context_tokens": 100_000, **settings}
    varied = index.under(index.header.changed("agentic", given))
    return await varied.search("agentic", QUESTION), model


def ids(result: CountedSearchResult) -> list[str]:
    return list(result.context_data["sources"]["id"])


async def shown_by_hybrid(index: GraphIndex, question: str, **settings: object) -> list[str]:
    given = {"k": 3, "max_context_tokens": 100_000, **settings}
    varied = index.under(index.header.changed("hybrid", given))
    return ids(await varied.search("hybrid", question))


async def test_what_is_missing_is_searched_for_and_shown(remote, server):
    of_question = await shown_by_hybrid(remote, QUESTION)
    of_next = await shown_by_hybrid(remote, NEXT)
    server.reset(offline_reply())
    result, model = await ask(remote, server, missing(NEXT), missing(""))

    assert list(result.context_data["searches"]["query"]) == [QUESTION, NEXT]
    expected = [of_question[0], next(name for name in of_next if name != of_question[0])]
    expected.append(next(name for name in of_question if name not in expected))
    assert ids(result) == expected != of_question
    assert f"- {NEXT}" in model.asked[1]
    assert result.context_text in server.requests[max(server.requests)]["messages"][0]["content"]


async def test_three_searches_at_most_each_with_its_share(remote, server):
    result, model = await ask(remote, server, missing(NEXT), missing("Berta Lindqvist craft"))

    assert len(model.asked) == AGENTIC_ROUNDS - 1
    assert list(result.context_data["searches"]["round"]) == [1, 2, 3]
    shown = [[row.id for row in read_context(text)] for text in model.asked]
    assert shown == [ids(result)[:1], ids(result)[:2]]
    assert len(ids(result)) == 3
    assert result.usage.llm_calls_by_phase == {"exploration": 2, "response": 1}
    assert result.usage.embedding_calls == AGENTIC_ROUNDS
    chat = server.of("chat")
    assert len(chat) == result.llm_calls == 3
    assert sum(call.prompt_tokens for call in chat) == result.prompt_tokens
    assert sum(call.completion_tokens for call in chat) == result.output_tokens
    exploring = chat[:2]
    by_phase = result.usage.prompt_tokens_by_phase["exploration"]
    assert by_phase == sum(call.prompt_tokens for call in exploring)


@pytest.mark.parametrize(
    "reply",
    [
        missing(""),
        missing(f"  {QUESTION.upper()} "),
        '{"found": "all of it", "missing": "", "query": null}',
    ],
)
async def test_who_misses_nothing_new_is_shown_what_hybrid_shows(reply, remote, server):
    for budget in (60, 150, 100_000):
        expected = await shown_by_hybrid(remote, QUESTION, max_context_tokens=budget)
        result, _ = await ask(remote, server, reply, max_context_tokens=budget)
        assert ids(result) == expected
        assert result.llm_calls == 2


@pytest.mark.parametrize("n_broken", [1, 2])
async def test_a_broken_reply_is_asked_for_once_more_then_it_answers_from_what_there_is(
    n_broken, remote, server
):
    expected = await shown_by_hybrid(remote, QUESTION)
    replies = [BROKEN, missing(NEXT), missing("")] if n_broken == 1 else [BROKEN, BROKEN]
    result, model = await ask(remote, server, *replies)

    searches = result.context_data["searches"]
    assert "could not be used" in model.asked[1]
    assert result.usage.llm_calls_by_phase == {"exploration": len(replies), "response": 1}
    assert result.response
    if n_broken == 1:
        assert list(searches["query"]) == [QUESTION, NEXT]
        assert list(searches["note"]) == ["", ""]
    else:
        assert ids(result) == expected
        assert "can't be read" in searches["note"].iloc[0]


async def test_the_embedded_model_follows_a_name_from_text_to_text(project):
    index = await GraphIndex.open(project)
    tight = index.under(index.header.changed("agentic", {"k": 3}))
    result = await tight.search("agentic", "Who taught the glassmaker that repaired the lamp?")

    searches = result.context_data["searches"]
    assert len(searches) > 1
    assert "Jonas Feld" in searches["query"].iloc[1]
