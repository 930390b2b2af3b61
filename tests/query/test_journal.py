"""A search that was broken off and is asked again pays only for what it had not yet got."""

import pytest
from support.lighthouse import MemoryJournal, SpiedServer
from support.openai_server import Fault

from graphrag.query.graph_index import GraphIndex, SearchError
from graphrag.query.models import open_completion
from graphrag.query.usage import CallLog, measure_calls

QUESTION = "Who carried the letter that Marta Quill wrote to Agnes Thorne?"


@pytest.mark.parametrize(
    ("method", "n_before"), [("tog", 1), ("local", 1), ("basic", 1), ("global", 1)]
)
async def test_an_interrupted_search_goes_on_where_it_was(
    method: str, n_before: int, remote: GraphIndex, server: SpiedServer
) -> None:
    whole = await remote.search(method, QUESTION)
    n_calls = len(server.records)
    journal = MemoryJournal()
    server.behave(faults=lambda n, _: Fault(status=400) if n > n_calls + n_before else None)
    with pytest.raises(SearchError):
        await remote.search(method, QUESTION, log=CallLog(journal=journal))
    assert len(journal.calls) == n_before
    seen_before = len(server.records)

    server.behave()
    log = CallLog(journal=journal)
    resumed = await remote.search(method, QUESTION, log=log)

    assert len(server.records) - seen_before == n_calls - n_before
    assert log.replayed == n_before
    assert resumed.response == whole.response
    assert resumed.usage == whole.usage
    assert not +journal.in_flight

    again = await remote.search(method, QUESTION, log=CallLog(journal=journal))
    assert len(server.records) - seen_before == n_calls - n_before
    assert again.usage == whole.usage


async def test_equal_calls_of_one_search_are_kept_apart(
    remote: GraphIndex, server: SpiedServer
) -> None:
    """The second of two equal calls must not be given the reply of the first."""
    replies = iter(["one", "two", "three"])
    server.behave(reply=lambda _: next(replies))
    model = open_completion(remote.header.model_configs("local")["completion"])
    journal = MemoryJournal()
    for _ in range(2):
        with measure_calls(CallLog(journal=journal)):
            answers = [(await model.completion_async(messages="hi")).content for _ in range(2)]
        assert answers == ["one", "two"]


async def test_retried_attempts_are_part_of_a_replayed_call(
    remote: GraphIndex, server: SpiedServer
) -> None:
    failing = iter([Fault(status=500), Fault(status=503)])
    server.behave(faults=lambda _, request: next(failing, None) if "messages" in request else None)
    journal = MemoryJournal()
    first = await remote.search("basic", QUESTION, log=CallLog(journal=journal))
    second = await remote.search("basic", QUESTION, log=CallLog(journal=journal))

    assert first.usage.failed_calls == second.usage.failed_calls == 2
    assert first.usage == second.usage
    assert len(server.records) == 4


async def test_another_model_or_temperature_is_another_call(
    remote: GraphIndex, server: SpiedServer
) -> None:
    server.behave(reply=lambda _: "hello")
    config = remote.header.model_configs("local")["completion"]
    other = config.model_copy(update={"model": "gpt-4o-mini"})
    warmer = config.model_copy(update={"call_args": {"temperature": 0.7}})
    journal = MemoryJournal()
    for given in (config, other, warmer, config):
        with measure_calls(CallLog(journal=journal)):
            await open_completion(given).completion_async(messages="hi")

    assert len(server.of("chat")) == 3
