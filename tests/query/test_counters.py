"""What a search says it cost is what the server saw, call by call and token by token."""

import asyncio
from types import SimpleNamespace

import pytest
from graphrag_llm.completion import create_completion
from graphrag_llm.config import ModelConfig, TokenizerConfig
from graphrag_llm.tokenizer.tokenizer_factory import create_tokenizer
from hypothesis import given
from hypothesis import strategies as st
from support.lighthouse import METHODS, QUESTION, MemoryJournal, counted, model_config, seen
from support.openai_server import Fault, Json, running_server

from graphrag.query.client.call_errors import GarbledReplyError, RetryPolicy, read_usage
from graphrag.query.client.model_prices import model_price
from graphrag.query.client.models import open_completion, open_embedding
from graphrag.query.client.rate_limit import CallLimit, Spending
from graphrag.query.client.usage import (
    CallAttempt,
    CallLog,
    Usage,
    measure_calls,
    sum_usages,
    summarize_attempts,
)
from graphrag.query.graph_index import GraphIndex, SearchError
from graphrag.query.methods import embeds
from graphrag.query.search_result import CountedSearchResult
from graphrag.query.structured_search.tog_search import ToGSearch, build_in_memory

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


async def test_a_search_of_the_graph_made_by_hand_counts_a_released_model(remote, server):
    server.behave(faults=lambda n, _: Fault(status=500) if n == 1 else None)
    model = create_completion(remote.header.model_configs("tog")["completion"])
    names = ("entities", "relationships", "text_units")
    opened = build_in_memory(*map(remote.tables.table, names))
    parts = {"graph": opened.graph, "text_units": opened.text_units}
    result = await ToGSearch(model=model, **parts).search(QUESTION)
    assert counted(result.usage) == seen(server.records)
    assert (result.usage.failed_calls, result.usage.is_counted) == (1, True)
    other = SimpleNamespace(tokenizer=model.tokenizer, completion_async=model.completion_async)
    uncounted = await ToGSearch(model=other, **parts).search(QUESTION)
    assert (uncounted.usage.is_counted, uncounted.usage.cost_usd) == (False, None)


@pytest.mark.parametrize("method", METHODS)
async def test_concurrent_searches_count_exactly_their_own_calls(method, remote, server):
    server.behave(faults=unlucky)
    marks = [f"zz{number:02d}zz" for number in range(N_SEARCHES)]
    logs = [CallLog() for _ in marks]
    asked = [
        remote.search(method, f"{QUESTION[:-1]}, {mark}?", log=log)
        for mark, log in zip(marks, logs, strict=True)
    ]
    results = await asyncio.gather(*asked, return_exceptions=True)

    assert isinstance(results[0], SearchError)
    assert sum(isinstance(result, SearchError) for result in results) < N_SEARCHES / 2
    assert counted(sum_usages(log.usage() for log in logs)) == seen(server.records)
    assert server.totals()["chat"].failed_calls > 0
    assert len(server.of("embeddings")) > 0 or not embeds(method)
    for mark, log, result in zip(marks, logs, results, strict=True):
        assert counted(log.usage()) == seen(server.naming(mark)), mark
        if isinstance(result, SearchError):
            continue
        assert isinstance(result, CountedSearchResult), result
        usage = result.usage
        assert usage == log.usage() == Usage.from_dict(usage.to_dict())
        for name in ("llm_calls", "prompt_tokens", "output_tokens"):
            parts = getattr(result, f"{name}_categories")
            assert sum(parts.values()) == getattr(result, name) == getattr(usage, name)


@pytest.mark.parametrize("method", ["tog", "local", "basic", "global"])
async def test_live_streams_count_exactly(method, remote, server):
    server.behave(faults=lambda n, request: Fault(status=503) if n in (2, 5) else None)
    pieces: list[str] = []
    result = await remote.search(method, QUESTION, on_text=pieces.append)

    assert any(record.stream for record in server.of("chat"))
    assert "".join(pieces) == result.response
    assert counted(result.usage) == seen(server.records)
    assert result.usage.failed_calls >= 1
    assert result.usage.tokens_counted_here == 0
    if method == "tog":
        assert set(result.llm_calls_categories) <= {"exploration", "reasoning"}
        reasoning = [r for r in server.of("chat") if r.messages[-1]["content"] == QUESTION]
        assert result.llm_calls_categories["reasoning"] == len(reasoning)
        tokens = sum(record.prompt_tokens for record in reasoning)
        assert result.prompt_tokens_categories["reasoning"] == tokens


async def test_tokens_are_counted_here_when_the_provider_counts_none(remote, server):
    server.behave(faults=lambda _, request: Fault(omit_usage=True))
    result = await remote.search("basic", QUESTION)

    tokenizer = create_tokenizer(TokenizerConfig(model_id="openai/gpt-4o"))
    [chat] = server.of("chat")
    assert result.usage.tokens_counted_here == 2
    assert result.prompt_tokens == tokenizer.num_prompt_tokens(list(chat.messages))
    assert result.output_tokens == tokenizer.num_tokens(str(result.response))
    assert result.usage.embedding_tokens == tokenizer.num_tokens(QUESTION)


@pytest.mark.parametrize("method", ["tog", "local", "basic"])
async def test_a_stream_cut_in_the_middle_is_an_error_that_was_paid_for(method, remote, server):
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


async def usage_of(
    config: ModelConfig, live: bool, n: int, limit: CallLimit | None = None
) -> Usage:
    """Ask as a ``GraphIndex`` does."""
    model = open_completion(config)
    options = {"stream": True, "stream_options": {"include_usage": True}} if live else {}
    with measure_calls(CallLog(limit, live=live)) as log:
        for _ in range(n):
            reply = await model.completion_async(messages="hi", **options)
            if live:
                async for _ in reply:
                    pass
    return log.usage()


@pytest.mark.parametrize("live", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("kind", ["litellm", "direct"])
async def test_what_is_reported_is_counted_and_nothing_else(kind, live, server):
    for reported, total, n in (
        ((None, None, None), None, 0),
        ((0, 0, 0), 0, 3),
        ((3, 0, 2), 5, 3),
        ((None, 3, 0), 3, 2),
    ):
        server.reset(lambda _: "hello")
        server.behave(faults=lambda n, _, each=reported: Fault(cached_tokens=each[n - 1]))
        usage = await usage_of(model_config(server, kind), live, 3)
        assert (usage.cached_prompt_tokens, usage.calls_reporting_cached_tokens) == (total, n)
        assert usage.prompt_tokens == sum(record.prompt_tokens for record in server.records)
        assert usage.llm_calls == 3


@pytest.mark.parametrize("live", [False, True], ids=["whole", "stream"])
async def test_an_allowance_is_what_replies_cost(live, server):
    server.behave(reply=lambda _: "hello")
    spending = Spending(1.0)
    limit = CallLimit(1, spending=spending)
    usage = await usage_of(model_config(server), live, 2, limit)
    assert usage.cost_usd == pytest.approx(spending.spent_usd)
    assert spending.spent_usd > 0


async def test_cached_tokens_cost_no_less_than_all_and_nothing_known_without_a_price(server):
    server.behave(faults=lambda *_: Fault(cached_tokens=9_999), reply=lambda _: "hello")
    usage = await usage_of(model_config(server), False, 1)
    assert usage.cached_prompt_tokens == usage.prompt_tokens > 0
    cost = usage.prompt_tokens * 1.25e-6 + usage.output_tokens * 1e-5
    assert usage.cost_usd == pytest.approx(cost)

    # The map has no price of this model's cached tokens.
    model = model_config(server, model="gpt-4-turbo")
    server.reset(lambda _: "hello")
    server.behave(faults=lambda n, _: Fault(cached_tokens=3 * (n == 1)))
    usage = await usage_of(model, False, 2)
    most = pytest.approx(usage.prompt_tokens * 1e-5 + usage.output_tokens * 3e-5)
    assert (usage.cost_usd, usage.cost_usd_at_most, usage.spent_usd) == (None, most, most)
    assert usage.cost_usd_by_model == {"openai/gpt-4-turbo": None}

    fresh = await usage_of(model, False, 2)
    assert (fresh.cost_usd, fresh.cost_usd_at_most) == (most, None)
    both = sum_usages([usage, fresh])
    assert (both.cost_usd, both.cost_usd_at_most) == (None, pytest.approx(2 * fresh.spent_usd))
    assert sum_usages([usage, Usage(cost_usd=None)]).cost_usd_at_most is None


def test_a_count_below_0_is_none_that_a_service_gave():
    details = SimpleNamespace(cached_tokens=-3)
    odd = SimpleNamespace(prompt_tokens=-5, completion_tokens=-2, prompt_tokens_details=details)
    assert read_usage(odd) == (None, None, None)


@pytest.mark.parametrize(
    ("kind", "value"),
    [*(("direct", v) for v in ("1e308", "NaN", "1" + "0" * 400)), ("litellm", "1" + "0" * 400)],
)
async def test_an_absurd_count_of_a_model_fails_its_answer_once(kind, value, server):
    choice = '{"index": 0, "message": {"role": "assistant", "content": "Ann."}}'
    usage = f'{{"prompt_tokens": {value}, "completion_tokens": 2, "total_tokens": 9}}'
    raw = '{"id": "1", "object": "chat.completion", "created": 1, "model": "gpt-4o", '
    raw += f'"choices": [{choice}], "usage": {usage}}}'
    server.behave(faults=lambda *_: Fault(raw=raw))
    model = open_completion(model_config(server, kind), RetryPolicy(0, 0.0, 0.0))
    with measure_calls(CallLog()) as log, pytest.raises(GarbledReplyError, match="its usage says"):
        await model.completion_async(messages="Who?")
    (attempt,) = log.attempts
    assert (attempt.prompt_tokens, attempt.output_tokens) == (0, 0)
    assert "its usage says that prompt_tokens is " in str(attempt.error)


@pytest.mark.parametrize(("method", "live"), [("drift", False), ("local", True)])
async def test_a_shared_limit_holds_over_all_searches(method, live, make_project):
    with running_server(latency_s=0.02) as limited:
        index = await GraphIndex.open(make_project(base_url=limited.base_url))
        limit = CallLimit(3)
        logs = [CallLog(limit=limit, live=live) for _ in range(6)]
        await asyncio.gather(
            *(index.search(method, f"{QUESTION} {n}", log=log) for n, log in enumerate(logs))
        )
        assert limited.max_in_flight == 3
        assert sum(log.own_time.waited_s for log in logs) > 0

        slot = await limit.acquire(limit.queue("other", "other"), object(), 0)
        others = [await limit.acquire(slot.queue, object(), 0) for _ in range(2)]
        for each in (slot, *others):
            asyncio.get_running_loop().call_later(1.5, limit.release, each)
        log = CallLog(limit=limit)
        result = await index.search("basic", QUESTION, log=log)
        assert log.own_time.waited_s > 0.4
        assert result.completion_time < 0.4, "waiting for a slot is not part of the time"


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
def test_sums_are_the_same_in_parts_and_as_a_whole(parts):
    whole = summarize_attempts(attempt for part in parts for attempt in part)
    summed = sum_usages(summarize_attempts(part) for part in parts)
    assert summed.cached_prompt_tokens == whole.cached_prompt_tokens
    assert summed.calls_reporting_cached_tokens == whole.calls_reporting_cached_tokens
    assert summed.cost_usd == pytest.approx(whole.cost_usd)
    assert summed.cost_usd_at_most == pytest.approx(whole.cost_usd_at_most)
    assert (whole.cached_prompt_tokens is None) == (whole.calls_reporting_cached_tokens == 0)


LETTER = "Who carried the letter that Marta Quill wrote to Agnes Thorne?"


@pytest.mark.parametrize("method", ["tog", "local", "basic", "global"])
async def test_an_interrupted_search_goes_on_where_it_was(method, remote, server):
    """What is asked again pays only for what it had not yet got; what failed before counts."""
    whole = await remote.search(method, LETTER)
    n_calls = len(server.records)
    journal = MemoryJournal()
    server.behave(faults=lambda n, _: Fault(status=400) if n > n_calls + 1 else None)
    with pytest.raises(SearchError):
        await remote.search(method, LETTER, log=CallLog(journal=journal))
    assert len(journal.calls) == 1
    seen_before = len(server.records)

    server.behave()
    log = CallLog(journal=journal)
    resumed = await remote.search(method, LETTER, log=log)

    assert len(server.records) - seen_before == n_calls - 1
    assert log.replayed == 1
    assert resumed.response == whole.response
    assert resumed.usage == whole.usage
    assert not +journal.in_flight

    again = await remote.search(method, LETTER, log=CallLog(journal=journal))
    assert len(server.records) - seen_before == n_calls - 1
    assert again.usage == whole.usage

    failing, journal = iter([Fault(status=500), Fault(status=503)]), MemoryJournal()
    server.behave(faults=lambda _, request: next(failing, None) if "messages" in request else None)
    first, second = [
        await remote.search(method, LETTER, log=CallLog(journal=journal)) for _ in range(2)
    ]
    assert first.usage.failed_calls == 2
    assert first.usage == second.usage


async def test_an_equal_call_another_model_and_another_temperature_are_other_calls(remote, server):
    """The second of two equal calls of a search must not be given the reply of the first."""
    replies = iter(["one", "two", "three", "four", "five", "six"])
    server.behave(reply=lambda _: next(replies))
    config = remote.header.model_configs("local")["completion"]
    other = config.model_copy(update={"model": "gpt-4o-mini"})
    warmer = config.model_copy(update={"call_args": {"temperature": 0.7}})
    journal, answers = MemoryJournal(), list[str]()
    for each in (config, other, warmer, config):
        model = open_completion(each)
        with measure_calls(CallLog(journal=journal)):
            answers += [(await model.completion_async(messages="hi")).content for _ in range(2)]

    assert answers == ["one", "two", "three", "four", "five", "six", "one", "two"]


def test_a_watch_is_told_of_an_embedding_that_blocks(remote, server):
    told = []
    log = CallLog(watch=lambda attempt, request, reply: told.append((attempt, request["input"])))
    with measure_calls(log):
        open_embedding(remote.header.model_configs("local")["embedding"]).embedding(input=["hi"])
    ((attempt, texts),) = told
    assert (attempt.kind, texts) == ("embedding", ["hi"])
    assert log.usage().embedding_calls == len(server.of("embeddings")) == 1


@pytest.mark.parametrize(("usd", "price"), [(0.0123, "about $0.0123"), (3e-5, "less than $0.0001")])
def test_a_call_that_is_not_sent_is_never_said_to_cost_nothing(usd, price):
    assert str(Spending(1e-5).refuse(usd)) == f"the next call takes {price}"


def test_a_long_call_is_set_aside_at_the_price_above_its_step():
    spending, model, n = Spending(100.0), "gemini/gemini-2.5-pro", 200_000
    short, long = model_price(model), model_price(model, n + 1)
    assert short is not None
    assert long is not None
    assert long.prompt_usd > short.prompt_usd
    assert spending.estimate_usd("embedding", model, n) == pytest.approx(n * short.prompt_usd)
    estimate = spending.estimate_usd("embedding", model, n + 1)
    assert estimate == pytest.approx((n + 1) * long.prompt_usd)
