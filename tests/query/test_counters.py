"""What a search says it cost is what the server saw, call by call and token by token."""

import asyncio
from types import SimpleNamespace

import pytest
from graphrag_llm.config import ModelConfig, TokenizerConfig
from graphrag_llm.tokenizer.tokenizer_factory import create_tokenizer
from hypothesis import given
from hypothesis import strategies as st
from support.lighthouse import METHODS, QUESTION, MakeProject, SpiedServer, model_config
from support.openai_server import Fault, Json, Record, running_server

from graphrag.query.calls import read_usage
from graphrag.query.counted_result import CountedSearchResult
from graphrag.query.graph_index import GraphIndex, SearchError
from graphrag.query.limits import CallLimit
from graphrag.query.methods import embeds
from graphrag.query.models import CountedCompletion, open_completion
from graphrag.query.usage import (
    CallAttempt,
    CallLog,
    Usage,
    measure_calls,
    sum_usages,
    summarize_attempts,
)

N_SEARCHES = 8


def unlucky(number: int, request: Json) -> Fault | None:
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
            assert result.usage == log.usage() == Usage.from_dict(result.usage.to_dict())
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


@pytest.mark.parametrize(
    ("method", "live"),
    [("tog", False), ("drift", False), ("hybrid", False), ("local", True), ("global", True)],
)
async def test_a_shared_limit_holds_over_all_searches(
    method: str, live: bool, make_project: MakeProject
) -> None:
    with running_server(latency_s=0.02) as limited:
        index = await GraphIndex.open(make_project(base_url=limited.base_url))
        limit = CallLimit(3)
        logs = [CallLog(limit=limit, live=live) for _ in range(6)]
        await asyncio.gather(
            *(index.search(method, f"{QUESTION} {n}", log=log) for n, log in enumerate(logs))
        )

    assert limited.max_in_flight == 3
    assert sum(log.waited_s for log in logs) > 0


async def test_waiting_for_a_place_is_not_part_of_the_time(
    remote: GraphIndex, server: SpiedServer
) -> None:
    await remote.search("basic", QUESTION)
    limit = CallLimit(1)
    place = await limit.acquire(limit.lane("other", "other"), object(), 0)
    asyncio.get_running_loop().call_later(0.5, limit.release, place)
    log = CallLog(limit=limit)
    result = await remote.search("basic", QUESTION, log=log)

    assert log.waited_s > 0.4
    assert result.completion_time < 0.4


def test_a_count_below_0_is_none_that_a_service_gave():
    details = SimpleNamespace(cached_tokens=-3)
    odd = SimpleNamespace(prompt_tokens=-5, completion_tokens=-2, prompt_tokens_details=details)
    assert read_usage(odd, output=True) == (0, 0, None)


KINDS = ("litellm", "direct")


async def ask(model: CountedCompletion, live: bool) -> None:
    options = {"stream": True, "stream_options": {"include_usage": True}} if live else {}
    said = await model.completion_async(messages="hi", **options)
    if live:
        async for _ in said:
            pass


async def usage_of(config: ModelConfig, live: bool, n: int) -> Usage:
    """Ask as a ``GraphIndex`` does."""
    model = open_completion(config)
    with measure_calls(CallLog(live=live)) as log:
        for _ in range(n):
            await ask(model, live)
    return log.usage()


@pytest.mark.parametrize("live", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_reported_is_counted_and_nothing_else(
    kind: str, live: bool, server: SpiedServer
) -> None:
    for reported, total, n in (
        ((None, None, None), None, 0),
        ((0, 0, 0), 0, 3),
        ((3, 0, 2), 5, 3),
        ((None, 3, 0), 3, 2),
    ):
        server.reset(lambda _: "hello")
        server.behave(faults=lambda n, _, told=reported: Fault(cached_tokens=told[n - 1]))
        usage = await usage_of(model_config(server, kind), live, 3)
        assert (usage.cached_prompt_tokens, usage.calls_reporting_cached_tokens) == (total, n)
        assert usage.prompt_tokens == sum(record.prompt_tokens for record in server.records)
        assert usage.llm_calls == 3


@pytest.mark.parametrize("kind", KINDS)
async def test_more_cached_tokens_than_there_are_cost_no_less_than_all(
    kind: str, server: SpiedServer
) -> None:
    server.behave(faults=lambda *_: Fault(cached_tokens=9_999), reply=lambda _: "hello")
    usage = await usage_of(model_config(server, kind), False, 1)
    assert usage.cached_prompt_tokens == usage.prompt_tokens > 0
    assert usage.cost_usd == pytest.approx(
        usage.prompt_tokens * 1.25e-6 + usage.output_tokens * 1e-5
    )


@pytest.mark.parametrize("kind", KINDS)
async def test_the_cost_is_not_known_where_cached_tokens_have_no_price(
    kind: str, server: SpiedServer
) -> None:
    model = model_config(
        server, kind, model="gpt-4-turbo"
    )  # the map has no price of its cached tokens
    server.behave(faults=lambda n, _: Fault(cached_tokens=3 * (n == 1)), reply=lambda _: "hello")
    usage = await usage_of(model, False, 2)
    most = pytest.approx(usage.prompt_tokens * 1e-5 + usage.output_tokens * 3e-5)
    assert (usage.cost_usd, usage.cost_usd_at_most, usage.spent_usd) == (None, most, most)
    assert usage.cost_usd_by_model == {"openai/gpt-4-turbo": None}

    fresh = await usage_of(model, False, 2)
    assert (fresh.cost_usd, fresh.cost_usd_at_most) == (most, None)
    both = sum_usages([usage, fresh])
    assert (both.cost_usd, both.cost_usd_at_most) == (None, pytest.approx(2 * fresh.spent_usd))
    assert sum_usages([usage, Usage(cost_usd=None)]).cost_usd_at_most is None


ATTEMPTS = st.lists(
    st.builds(
        CallAttempt,
        kind=st.sampled_from(["completion", "embedding"]),
        model=st.sampled_from(["openai/gpt-4o", "openai/gpt-4-turbo", "nobody/knows"]),
        phase=st.just("response"),
        prompt_tokens=st.integers(50, 99),
        output_tokens=st.integers(0, 9),
        counted_by=st.just("provider"),
        latency_s=st.just(0.1),
        cached_prompt_tokens=st.none() | st.integers(0, 50),
    ),
    max_size=5,
)


@given(st.lists(ATTEMPTS, max_size=4))
def test_sums_are_the_same_in_parts_and_as_a_whole(parts: list[list[CallAttempt]]) -> None:
    whole = summarize_attempts(attempt for part in parts for attempt in part)
    summed = sum_usages(summarize_attempts(part) for part in parts)
    assert summed.cached_prompt_tokens == whole.cached_prompt_tokens
    assert summed.calls_reporting_cached_tokens == whole.calls_reporting_cached_tokens
    assert summed.cost_usd == pytest.approx(whole.cost_usd)
    assert summed.cost_usd_at_most == pytest.approx(whole.cost_usd_at_most)
    assert (whole.cached_prompt_tokens is None) == (whole.calls_reporting_cached_tokens == 0)
