"""The search functions of ``graphrag.api``: the released arguments, counted results."""

import asyncio
import copy
import json
import logging
import pickle
from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest
from support.lighthouse import METHODS, QUESTION, MemoryJournal, chat_gets, counted, seen
from support.openai_server import Fault, Json

from graphrag import api
from graphrag.callbacks.noop_query_callbacks import NoopQueryCallbacks
from graphrag.embedded import NOT_FOUND
from graphrag.prompts.query.global_search_reduce_system_prompt import NO_DATA_ANSWER
from graphrag.query.client.direct.settings import is_asked_directly
from graphrag.query.client.usage import CallLog, Usage, sum_usages
from graphrag.query.graph_index import GraphIndex, SearchError
from graphrag.query.index.header import SearchOptions
from graphrag.query.search_result import CountedSearchResult, Outcome, make_result
from graphrag.query.structured_search.base import SearchResult


@pytest.fixture(autouse=True)
def _own_handlers() -> Iterator[None]:
    """Take away what the release adds to its logger."""
    logger = logging.getLogger("graphrag")
    before = list(logger.handlers)
    yield
    for handler in [handler for handler in logger.handlers if handler not in before]:
        logger.removeHandler(handler)
        handler.close()


@pytest.fixture(scope="session")
def index(project: Path) -> GraphIndex:
    loop = asyncio.new_event_loop()
    opened = loop.run_until_complete(GraphIndex.open(project))
    loop.close()
    return opened


GRAPH = ("entities", "relationships", "text_units")
COMMUNITIES = ("entities", "communities", "community_reports")
TABLES = {
    **dict.fromkeys(("tog", "ppr"), GRAPH),
    **dict.fromkeys(("basic", "bm25", "hybrid", "agentic"), ("text_units",)),
    "global": COMMUNITIES,
    **dict.fromkeys(("local", "drift"), (*COMMUNITIES, "text_units", "relationships")),
}
MORE: dict[str, dict[str, object]] = {
    "local": {"community_level": 2, "covariates": None},
    "drift": {"community_level": 2},
    "global": {"community_level": 2, "dynamic_community_selection": False},
}


def arguments(method: str, index: GraphIndex) -> Json:
    form = {} if method in ("tog", "ppr") else {"response_type": "Multiple Paragraphs"}
    tables = {name: index.tables.table(name) for name in TABLES[method]}
    given = {"config": index.header.config, "query": QUESTION}
    return {**tables, **given, **form, **MORE.get(method, {})}


@pytest.mark.parametrize("method", METHODS)
async def test_a_search_function_gives_a_result_that_unpacks(method, index):
    given = arguments(method, index)
    tables = {name: frame.copy() for name, frame in given.items() if hasattr(frame, "equals")}
    result = await getattr(api, f"{method}_search")(**given)

    assert isinstance(result, SearchResult)
    assert isinstance(result, CountedSearchResult)
    response, context = result
    assert response == result.response != ""
    assert context is result.context_data
    assert result.usage.llm_calls == result.llm_calls > 0
    assert [name for name, frame in tables.items() if not frame.equals(given[name])] == []
    if method == "drift":
        assert len(result.context_text) > 1
        assert all(QUESTION in asked for asked in result.context_text)
        assert all("-----Entities-----" in shown for shown in result.context_text.values())
    else:
        assert result.context_text == (await index.search(method, QUESTION)).context_text
        assert result.context_text
    if method in ("basic", "hybrid"):  # a form of the answer may be left out by name
        search, form = getattr(api, f"{method}_search"), given.pop("response_type")
        placed = await search(given["config"], given["text_units"], form, QUESTION)
        assert (await search(**given)).response == placed.response == response


@pytest.mark.parametrize("config", ["settings", "mapping"])
async def test_tog_without_text_units_answers_from_relationships(config, index):
    given = arguments("tog", index)
    settings = given.pop("config")
    if config == "mapping":
        settings = {**settings.model_dump(mode="json"), "tog_search": {"max_rows": 1}}
    frames = given["entities"], given["relationships"]
    alone = await api.tog_search(settings, *frames, QUESTION)
    grounded = await api.tog_search(settings, *frames, QUESTION, given["text_units"])

    assert alone.response != ""
    assert len(alone.context_data["relationships"]) > 0
    assert len(alone.context_data["sources"]) == 0 < len(grounded.context_data["sources"])
    if config == "mapping":
        assert len(alone.context_data["exploration"]["rows"][0]) == 1, "its section is read"


@pytest.mark.parametrize("kind", ["", "    type: litellm\n"])
async def test_a_released_search_counts_what_the_server_saw(kind, make_project, server):
    remote = await GraphIndex.open(make_project(model_extra=kind))
    server.behave(faults=lambda n, _: Fault(status=503) if n in (2, 5) else None)
    configs = remote.header.model_configs("local")
    assert {name for name in configs if is_asked_directly(configs[name])} == {
        *(() if kind else ("completion",)),
        "embedding",
    }
    found = [
        await getattr(api, f"{name}_search")(**arguments(name, remote))
        for name in ("local", "basic", "global", "drift")
    ]

    usage = sum_usages(each.usage for each in found)
    assert counted(usage) == seen(server.records)
    assert (usage.failed_calls, usage.tokens_counted_here) == (2, 0)
    assert usage.llm_calls == sum(each.llm_calls for each in found)
    assert found[0].usage.models == ("openai/gpt-4o", "openai/text-embedding-3-small")


@pytest.mark.parametrize(("method", "n_forms"), [("global", 0), ("drift", 5)])
async def test_an_evaluated_search_asks_for_no_form_that_the_release_does_not(
    method, n_forms, make_project, server
):
    await (await GraphIndex.open(make_project())).search(method, QUESTION)
    forms = [request.get("response_format") for request in server.requests.values()]
    assert [form["type"] for form in forms if form] == ["json_schema"] * n_forms


@pytest.mark.parametrize("method", ["tog", "bm25", "hybrid"])
async def test_the_streamed_pieces_are_the_response(method, index):
    given = arguments(method, index)
    streamed = getattr(api, f"{method}_search_streaming")(**given)
    pieces = [piece async for piece in streamed]

    assert len(pieces) > 1
    given.pop("response_type", None)  # may be left out by name of both functions
    whole = await getattr(api, f"{method}_search")(**given)
    assert "".join(pieces) == whole.response
    assert [p async for p in getattr(api, f"{method}_search_streaming")(**given)] == pieces


async def test_callbacks_hear_the_text_and_the_context_and_handlers_stay(index):
    class Heard(NoopQueryCallbacks):
        def __init__(self) -> None:
            self.text, self.contexts = "", []

        def on_llm_new_token(self, token: str) -> None:
            self.text += token

        def on_context(self, context: object) -> None:
            self.contexts.append(context)

    streamed, whole, mine = Heard(), Heard(), logging.NullHandler()
    logging.getLogger("graphrag").addHandler(mine)
    stream = api.tog_search_streaming(**arguments("tog", index), callbacks=[streamed])
    pieces = [piece async for piece in stream]
    assert mine in logging.getLogger("graphrag").handlers
    result = await api.local_search(**arguments("local", index), callbacks=[whole])

    assert streamed.text == "".join(pieces)
    assert len(streamed.contexts) == 1
    assert (whole.text, whole.contexts) == (result.response, [result.context_data])


async def test_a_stream_that_fails_says_so_and_one_left_early_leaves_nothing_running(index):
    given = arguments("tog", index)
    with pytest.raises(SearchError, match="question is empty"):
        await anext(api.tog_search_streaming(**{**given, "query": "   "}))
    stream = api.tog_search_streaming(**given)
    assert await anext(stream)
    await stream.aclose()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize("method", ["tog", "local", "global"])
async def test_concurrent_searches_see_the_same_contexts_as_single_ones(method, index):
    people = ("Marta Quill", "Jonas Feld", "Silas Crane", "Agnes Thorne", "Rufus Doyle")
    questions = [f"What has {people[n % 5]} to do with number {n}?" for n in range(12)]
    single = [await index.search(method, question) for question in questions]
    together = await asyncio.gather(*(index.search(method, question) for question in questions))

    assert [found.context_text for found in together] == [found.context_text for found in single]
    assert [found.response for found in together] == [found.response for found in single]
    assert len({str(found.context_text) for found in single}) > 1 or method not in ("tog", "local")


async def test_dynamic_selection_of_communities_is_counted_too(make_project, server):
    options = SearchOptions(dynamic_community_selection=True)
    index = await GraphIndex.open(make_project(), options=options)
    result = await index.search("global", QUESTION)

    assert result.llm_calls == len(server.of("chat")) > 2
    assert result.prompt_tokens == server.totals()["chat"].prompt_tokens


UNANSWERABLE = "Which planet has purple volcanoes?"
REFUSAL = "I can't help with that."


@pytest.mark.parametrize("method", ["local", "basic"])
async def test_a_refusal_is_an_abstention_and_stays_one_when_it_is_replayed(method, remote, server):
    server.behave(faults=chat_gets(Fault(refusal=REFUSAL)))
    journal = MemoryJournal()
    for _ in range(2):
        result = await remote.search(method, QUESTION, log=CallLog(journal=journal))
        assert (result.response, result.abstained) == (REFUSAL, True)
    assert len(server.of("chat")) == 1


async def test_a_refusal_reaches_a_stream_where_the_client_does_not_drop_it(
    remote, make_project, server
):
    server.behave(faults=chat_gets(Fault(refusal=REFUSAL)))
    shown = list[str]()
    result = await remote.search("basic", QUESTION, on_text=shown.append)
    assert "".join(shown) == result.response == REFUSAL
    assert result.abstained
    through = make_project(name="litellm", model_extra="    type: litellm")
    with pytest.raises(SearchError, match="empty response"):
        await (await GraphIndex.open(through)).search("basic", QUESTION, on_text=lambda _: None)


@pytest.mark.parametrize("said", [NOT_FOUND, NO_DATA_ANSWER])
@pytest.mark.parametrize("method", ["local", "basic"])
async def test_a_sentence_of_a_model_is_a_response(method, said, remote, server):
    server.behave(faults=chat_gets(Fault(content=said)))
    result = await remote.search(method, QUESTION)
    assert (result.response, result.abstained) == (said, False)


@pytest.mark.parametrize("is_live", [False, True])
@pytest.mark.parametrize("method", ["local", "basic", "global", "drift"])
async def test_the_embedded_model_says_that_it_abstains(method, is_live, index):
    pieces: list[str] = []
    on_text = pieces.append if is_live else None
    result = await index.search(method, UNANSWERABLE, on_text)
    assert result.abstained
    assert result.response == (NO_DATA_ANSWER if method == "global" else NOT_FOUND)
    assert "".join(pieces) in ("", result.response)
    other = await index.search(method, QUESTION, on_text)
    assert other.abstained is (other.response == result.response)
    if method == "basic":
        given = arguments("basic", index)
        assert not (await api.basic_search(**given)).abstained
        assert (await api.basic_search(**given | {"query": UNANSWERABLE})).abstained


async def test_global_search_without_data_asks_no_model_and_counts_what_failed(remote, server):
    for abstained in (False, True):
        released = await api.global_search(**arguments("global", remote))
        answered = await remote.search("global", QUESTION)
        assert (answered.abstained, released.abstained) == (abstained, abstained)
        server.behave(faults=chat_gets(Fault(content='{"points": []}')))
    n_before = len(server.of("chat"))
    server.behave(faults=chat_gets(Fault(status=400)))
    failed = await api.global_search(**arguments("global", remote))
    assert failed.usage.failed_calls == failed.llm_calls == len(server.of("chat")) - n_before == 1
    assert failed.prompt_tokens == 0


PAIRED = {"sources": [1, 2]}
SPENT = Usage(llm_calls=2, prompt_tokens=30, output_tokens=4, llm_calls_by_phase={"response": 2})
RESULT = make_result(Outcome("Yes.", PAIRED, "shown"), SPENT, 1.5)


@pytest.mark.parametrize(
    "make", [copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r)), replace]
)
def test_a_copy_is_whole(make):
    made = make(RESULT)
    assert type(made) is CountedSearchResult
    assert made == RESULT == ("Yes.", PAIRED) != ("No.", PAIRED)
    assert [getattr(made, f.name) for f in fields(made)] == [
        getattr(RESULT, f.name) for f in fields(made)
    ]


def test_the_pair_and_the_fields_cannot_come_apart():
    result = copy.copy(RESULT)
    with pytest.raises(AttributeError, match=r"dataclasses\.replace"):
        result.response = "No."
    assert replace(result, response="No.")[0] == "No."
    assert hash(replace(result, context_data="text")) == hash(("Yes.", "text"))
    assert json.dumps(result) == json.dumps(["Yes.", PAIRED])
    result.completion_time = 2.0
    assert result.completion_time == 2.0
    assert (result.llm_calls, result.llm_calls_categories) == (2, {"response": 2})
    assert (result.prompt_tokens, result.output_tokens) == (30, 4)
    assert asdict(result)["context_text"] == "shown"
