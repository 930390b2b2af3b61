"""What a search says it cost is what the server saw, call by call and token by token."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from graphrag_llm.config import TokenizerConfig
from graphrag_llm.tokenizer.tokenizer_factory import create_tokenizer
from support.lighthouse import METHODS, SpiedServer
from support.openai_server import Fault, Record, running_server

from graphrag.query.calls import read_usage
from graphrag.query.counted_result import CountedSearchResult
from graphrag.query.graph_index import GraphIndex, SearchError
from graphrag.query.methods import embeds
from graphrag.query.models import open_completion
from graphrag.query.usage import CallLog, Usage, sum_usages

QUESTION = "Who repaired the great lamp with Marta Quill?"
N_SEARCHES = 16


def unlucky(number: int, request: dict[str, Any]) -> Fault | None:
    """Fail about every third call in one way or another, and one question for good."""
    if "zz00zz" in str(request) and "messages" in request:
        return Fault(status=400)
    for every, fault in (
        (5, Fault(status=429, retry_after_ms=2)),
        (7, Fault(status=500)),
        (9, Fault(status=503)),
        (11, Fault(disconnect="before")),
    ):
        if number % every == 0:
            return fault
    return None


def seen(records: list[Record]) -> tuple[int, ...]:
    """Sum records up as :func:`counted` does a usage."""
    chat = [record for record in records if record.endpoint == "chat"]
    embeddings = [record for record in records if record.endpoint == "embeddings"]
    return (
        len(chat),
        sum(record.prompt_tokens for record in chat),
        sum(record.completion_tokens for record in chat),
        len(embeddings),
        sum(record.prompt_tokens for record in embeddings),
        sum(record.outcome != "answered" for record in records),
    )


def counted(usage: Usage) -> tuple[int, ...]:
    return (
        usage.llm_calls,
        usage.prompt_tokens,
        usage.output_tokens,
        usage.embedding_calls,
        usage.embedding_tokens,
        usage.failed_calls,
    )


@pytest.mark.parametrize("method", METHODS)
async def test_concurrent_searches_count_exactly_their_own_calls(
    method: str, remote: GraphIndex, server: SpiedServer
) -> None:
    server.behave(faults=unlucky)
    marks = [f"zz{number:02d}zz" for number in range(N_SEARCHES)]
    logs = [CallLog() for _ in marks]

    async def ask(mark: str, log: CallLog) -> CountedSearchResult | SearchError:
        try:
            return await remote.search(method, f"{QUESTION[:-1]}, {mark}?", log=log)
        except SearchError as error:
            return error

    results = await asyncio.gather(*map(ask, marks, logs))

    failed = [result for result in results if isinstance(result, SearchError)]
    assert isinstance(results[0], SearchError)
    assert len(failed) < N_SEARCHES / 2
    assert counted(sum_usages(log.usage() for log in logs)) == seen(server.records)
    assert server.totals()["chat"].failed_calls > 0
    assert len(server.of("embeddings")) > 0 or not embeds(method)
    for mark, log, result in zip(marks, logs, results, strict=True):
        assert counted(log.usage()) == seen(server.naming(mark)), mark
        if isinstance(result, CountedSearchResult):
            assert result.usage == log.usage()
            assert result.llm_calls == sum(result.llm_calls_categories.values())
            assert result.llm_calls == result.usage.llm_calls
            assert result.prompt_tokens == sum(result.prompt_tokens_categories.values())
            assert result.prompt_tokens == result.usage.prompt_tokens
            assert result.output_tokens == sum(result.output_tokens_categories.values())
            assert result.output_tokens == result.usage.output_tokens


async def test_tog_calls_are_counted_by_phase(remote: GraphIndex, server: SpiedServer) -> None:
    result = await remote.search("tog", QUESTION)

    assert set(result.llm_calls_categories) == {"exploration", "reasoning"}
    assert result.llm_calls_categories["exploration"] > 0
    reasoning = [
        record
        for record in server.of("chat")
        if record.messages[-1]["content"] == QUESTION and record.messages[0]["role"] == "system"
    ]
    assert result.llm_calls_categories["reasoning"] == len(reasoning)
    assert result.prompt_tokens_categories["reasoning"] == sum(r.prompt_tokens for r in reasoning)


async def test_cached_prompt_tokens_are_cheaper(remote: GraphIndex, server: SpiedServer) -> None:
    fresh = (await remote.search("basic", QUESTION)).usage
    server.behave(faults=lambda _, request: Fault(cached_tokens=100))
    cached = (await remote.search("basic", QUESTION)).usage

    assert cached.cached_prompt_tokens == 100
    assert cached.prompt_tokens == fresh.prompt_tokens
    # gpt-4o: 2.50 dollars a million prompt tokens, 1.25 for cached ones
    assert fresh.cost_usd is not None
    assert cached.cost_usd is not None
    assert fresh.cost_usd - cached.cost_usd == pytest.approx(100 * 1.25e-6)


async def test_tokens_are_counted_here_when_the_provider_counts_none(
    remote: GraphIndex, server: SpiedServer
) -> None:
    server.behave(faults=lambda _, request: Fault(omit_usage=True))
    result = await remote.search("basic", QUESTION)

    tokenizer = create_tokenizer(TokenizerConfig(model_id="openai/gpt-4o"))
    [chat] = server.of("chat")
    assert result.usage.tokens_counted_here == 2
    assert result.prompt_tokens == tokenizer.num_prompt_tokens(list(chat.messages))
    assert result.output_tokens == tokenizer.num_tokens(str(result.response))
    assert result.usage.embedding_tokens == tokenizer.num_tokens(QUESTION)


@pytest.mark.parametrize("method", ["tog", "local", "basic", "global"])
async def test_live_streams_count_exactly(
    method: str, remote: GraphIndex, server: SpiedServer
) -> None:
    server.behave(faults=lambda n, request: Fault(status=503) if n in (2, 5) else None)
    pieces: list[str] = []
    result = await remote.search(method, QUESTION, on_text=pieces.append)

    assert any(record.stream for record in server.of("chat"))
    assert "".join(pieces) == result.response
    assert counted(result.usage) == seen(server.records)
    assert result.usage.failed_calls >= 1
    assert result.usage.tokens_counted_here == 0


@pytest.mark.parametrize("method", ["tog", "local", "basic"])
async def test_a_stream_cut_in_the_middle_is_an_error_that_was_paid_for(
    method: str, remote: GraphIndex, server: SpiedServer
) -> None:
    server.behave(
        faults=lambda _, request: Fault(disconnect="mid-stream") if request.get("stream") else None
    )
    log = CallLog(live=True)
    with pytest.raises(SearchError):
        await remote.search(method, QUESTION, on_text=lambda _: None, log=log)

    streamed = [record for record in server.of("chat") if record.stream]
    assert len(streamed) == 1, "what was begun to be shown must not be asked for again"
    usage = log.usage()
    assert usage.llm_calls == len(server.of("chat"))
    assert usage.failed_calls == 1
    assert usage.tokens_counted_here == 1
    assert log.attempts[-1].prompt_tokens > 0
    assert log.attempts[-1].output_tokens > 0


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("method", METHODS)
async def test_a_shared_limit_holds_over_all_searches(
    method: str, live: bool, make_project: Any
) -> None:
    # Searches of one call each meet only where it lasts.
    with running_server(latency_s=0.1 if method in ("bm25", "ppr") else 0.01) as limited:
        index = await GraphIndex.open(make_project(base_url=limited.base_url))
        limit = asyncio.Semaphore(3)
        logs = [CallLog(limit=limit, live=live) for _ in range(20)]
        await asyncio.gather(
            *(
                index.search(method, f"{QUESTION} {n}", log=log)
                for n, log in enumerate(logs[: 6 if method == "drift" else 20])
            )
        )

    assert limited.max_in_flight == 3
    assert sum(log.waited_s for log in logs) > 0


async def test_waiting_for_a_place_is_not_part_of_the_time(
    remote: GraphIndex, server: SpiedServer
) -> None:
    await remote.search("basic", QUESTION)
    limit = asyncio.Semaphore(1)
    await limit.acquire()
    asyncio.get_running_loop().call_later(0.5, limit.release)
    log = CallLog(limit=limit)
    result = await remote.search("basic", QUESTION, log=log)

    assert log.waited_s > 0.4
    assert result.completion_time < 0.4


async def test_a_configured_rate_is_kept_without_blocking_the_loop(
    make_project: Any, server: SpiedServer
) -> None:
    rate = """\
    rate_limit: {type: sliding_window, period_in_seconds: 1, requests_per_period: 4}
"""
    index = await GraphIndex.open(make_project(model_extra=rate))
    server.behave(reply=lambda request: "yes")
    model = open_completion(index.header.model_configs("local")["completion"])
    await model.completion_async(messages="connect")  # a client's first call is a slow one
    await asyncio.sleep(1)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    ticking = asyncio.create_task(tick())
    await asyncio.gather(*(model.completion_async(messages=f"hello {n}") for n in range(8)))
    ticking.cancel()

    arrived = sorted(record.arrived_s for record in server.of("chat")[1:])
    assert arrived[-1] - arrived[0] > 0.7
    assert ticks > 50  # a loop that is blocked while it waits has a handful


def test_a_count_below_0_is_none_that_a_service_gave():
    details = SimpleNamespace(cached_tokens=-3)
    odd = SimpleNamespace(prompt_tokens=-5, completion_tokens=-2, prompt_tokens_details=details)
    assert read_usage(odd, output=True) == (0, 0, None)
