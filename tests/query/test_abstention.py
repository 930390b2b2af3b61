"""Whether a search found an answer: told by the method or the reply, never by how it reads."""

from pathlib import Path
from typing import Any

import pytest
from support.lighthouse import QUESTION, MakeProject, MemoryJournal, SpiedServer, chat_gets
from support.openai_server import Fault

from graphrag import api
from graphrag.offline import NOT_FOUND
from graphrag.prompts.query.global_search_reduce_system_prompt import NO_DATA_ANSWER
from graphrag.query.graph_index import GraphIndex, SearchError
from graphrag.query.usage import CallLog

UNANSWERABLE = "Which planet has purple volcanoes?"
REFUSAL = "I can't help with that."
NO_POINTS = '{"points": []}'


def of_global_search(index: GraphIndex) -> dict[str, Any]:
    names = ("entities", "communities", "community_reports")
    return {
        **{name: index.tables.table(name) for name in names},
        "config": index.header.config,
        "community_level": 2,
        "dynamic_community_selection": False,
        "response_type": "Multiple Paragraphs",
        "query": QUESTION,
    }


@pytest.mark.parametrize("method", ["local", "basic"])
async def test_a_refusal_is_an_abstention_and_stays_one_when_it_is_replayed(
    method: str, remote: GraphIndex, server: SpiedServer
) -> None:
    server.behave(faults=chat_gets(Fault(refusal=REFUSAL)))
    journal = MemoryJournal()
    for _ in range(2):
        found = await remote.search(method, QUESTION, log=CallLog(journal=journal))
        assert (found.response, found.abstained) == (REFUSAL, True)
    assert len(server.of("chat")) == 1


@pytest.mark.parametrize("method", ["local", "basic"])
async def test_a_refusal_reaches_a_stream_where_the_client_does_not_drop_it(
    method: str, make_project: MakeProject, server: SpiedServer
) -> None:
    server.behave(faults=chat_gets(Fault(refusal=REFUSAL)))
    index, shown = await GraphIndex.open(make_project()), list[str]()
    found = await index.search(method, QUESTION, on_text=shown.append)
    assert "".join(shown) == found.response == REFUSAL
    assert found.abstained
    through = make_project(name="litellm", model_extra="    type: litellm")
    with pytest.raises(SearchError, match="empty response"):
        await (await GraphIndex.open(through)).search(method, QUESTION, on_text=lambda _: None)


@pytest.mark.parametrize("said", [NOT_FOUND, NO_DATA_ANSWER])
@pytest.mark.parametrize("method", ["local", "basic"])
async def test_a_sentence_of_a_model_is_a_response(
    method: str, said: str, remote: GraphIndex, server: SpiedServer
) -> None:
    server.behave(faults=chat_gets(Fault(content=said)))
    found = await remote.search(method, QUESTION)
    assert (found.response, found.abstained) == (said, False)


@pytest.mark.parametrize("is_live", [False, True])
@pytest.mark.parametrize("method", ["local", "basic", "global", "drift"])
async def test_the_embedded_model_says_that_it_abstains(
    method: str, is_live: bool, project: Path
) -> None:
    index = await GraphIndex.open(project)
    pieces: list[str] = []
    on_text = pieces.append if is_live else None
    found = await index.search(method, UNANSWERABLE, on_text)
    assert found.abstained
    assert found.response == (NO_DATA_ANSWER if method == "global" else NOT_FOUND)
    assert "".join(pieces) in ("", found.response)
    other = await index.search(method, QUESTION, on_text)
    assert other.abstained is (other.response == found.response)


async def test_global_search_without_data_asks_no_model_for_the_response(
    remote: GraphIndex, server: SpiedServer
) -> None:
    answered = await remote.search("global", QUESTION)
    released = await api.global_search(**of_global_search(remote))
    assert not answered.abstained
    assert not released.abstained
    server.behave(faults=chat_gets(Fault(content=NO_POINTS)))
    assert (await remote.search("global", QUESTION)).abstained
    assert (await api.global_search(**of_global_search(remote))).abstained


async def test_a_released_search_says_that_the_embedded_model_abstained(project: Path) -> None:
    index = await GraphIndex.open(project)
    given = {"config": index.header.config, "text_units": index.tables.table("text_units")}
    given["response_type"] = "Multiple Paragraphs"
    found = await api.basic_search(**given, query=UNANSWERABLE)
    assert (found.response, found.abstained) == (NOT_FOUND, True)
    assert not (await api.basic_search(**given, query=QUESTION)).abstained
