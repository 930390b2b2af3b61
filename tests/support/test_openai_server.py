"""The local server as the real clients see it."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import httpx
import litellm
import numpy as np
import openai
import pytest
from litellm import exceptions
from support.openai_server import (
    Behaviour,
    Fault,
    LocalServer,
    Record,
    echo_reply,
    embed,
    read_log,
    running_server,
    server_process,
)

untyped_litellm: Any = cast(Any, litellm)
QUESTION = "Who is the keeper of the old light house?"  # 9 words: a prompt of 12 tokens
MESSAGES: list[Any] = [{"role": "user", "content": QUESTION}]
ERROR_CLASSES = [
    (400, openai.BadRequestError, exceptions.BadRequestError),
    (401, openai.AuthenticationError, exceptions.AuthenticationError),
    (404, openai.NotFoundError, exceptions.NotFoundError),
    (429, openai.RateLimitError, exceptions.RateLimitError),
    (500, openai.InternalServerError, exceptions.InternalServerError),
    (503, openai.InternalServerError, exceptions.ServiceUnavailableError),
]


@pytest.fixture(scope="module")
def shared() -> Iterator[LocalServer]:
    with running_server(echo_reply) as server:
        yield server


@pytest.fixture
def server(shared: LocalServer) -> LocalServer:
    shared.behaviour = Behaviour(echo_reply)
    return shared


@pytest.fixture
def client(server: LocalServer) -> Iterator[openai.OpenAI]:
    with client_of(server.base_url) as client:
        yield client


def client_of(base_url: str, max_retries: int = 0, timeout: float = 30) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=base_url, api_key="test", max_retries=max_retries, timeout=timeout
    )


def ask(client: openai.OpenAI, **options: Any) -> Any:
    create: Any = client.chat.completions.create
    return create(model="gpt-4o", messages=MESSAGES, **options)


async def ask_litellm(server: LocalServer, **options: Any) -> Any:
    arguments: dict[str, Any] = {"messages": MESSAGES, "max_retries": 0, **options}
    return await untyped_litellm.acompletion(
        "openai/gpt-4o", api_base=server.base_url, api_key="test", **arguments
    )


def fail(server: LocalServer, fault: Fault) -> None:
    server.behaviour = Behaviour(echo_reply, faults=lambda sequence, request: fault)


def last(server: LocalServer) -> Record:
    return server.records[-1]


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 2
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)


def text_of(chunks: list[Any]) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def test_whole_answer_and_its_record(server: LocalServer, client: openai.OpenAI) -> None:
    before = time.monotonic()
    answer = ask(client)
    record = last(server)
    assert answer.choices[0].message.content == QUESTION
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (12, 9)
    assert (record.prompt_tokens, record.completion_tokens) == (12, 9)
    assert record.messages == tuple(MESSAGES)
    assert (record.endpoint, record.model, record.stream) == ("chat", "gpt-4o", False)
    assert (record.status, record.outcome, record.retry_count) == (200, "answered", 0)
    assert record.finished_s is not None
    assert before <= record.arrived_s <= record.finished_s <= time.monotonic()


@pytest.mark.parametrize("include_usage", [True, False])
def test_stream(server: LocalServer, client: openai.OpenAI, include_usage: bool) -> None:
    options = {"stream_options": {"include_usage": True}} if include_usage else {}
    chunks = list(ask(client, stream=True, **options))
    usages = [chunk.usage for chunk in chunks if chunk.usage]
    assert text_of(chunks) == QUESTION
    assert len(chunks) > 4
    assert [usage.total_tokens for usage in usages] == ([21] if include_usage else [])
    assert chunks[-1].usage or not include_usage
    assert (last(server).stream, last(server).completion_tokens) == (True, 9)


@pytest.mark.parametrize("text", ["", " ", "\n\n one  two\tthree\n", "ünï — 漢字 " * 9])
def test_stream_keeps_every_character(
    server: LocalServer, client: openai.OpenAI, text: str
) -> None:
    server.behaviour = Behaviour(lambda request: text)
    assert text_of(list(ask(client, stream=True))) == text


@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_embeddings(client: openai.OpenAI, server: LocalServer, encoding: Any) -> None:
    texts = ["the old light house", "a new light house", "bread and butter"]
    # The client decodes base64 itself unless it was asked for by name.
    options = {} if encoding == "base64" else {"encoding_format": encoding}
    answer = client.embeddings.create(model="small", input=texts, **options)
    vectors = np.array([item.embedding for item in answer.data])
    assert vectors.shape == (3, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(vectors[0], embed(texts[0], 384), atol=1e-7)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]
    assert answer.usage.prompt_tokens == last(server).prompt_tokens == 11
    assert last(server).endpoint == "embeddings"


@pytest.mark.parametrize(("status", "of_openai", "of_litellm"), ERROR_CLASSES)
async def test_error_status(
    server: LocalServer,
    client: openai.OpenAI,
    status: int,
    of_openai: type[openai.APIStatusError],
    of_litellm: type[Exception],
) -> None:
    fail(server, Fault(status=status))
    with pytest.raises(of_openai) as caught:
        ask(client)
    assert caught.value.status_code == status
    with pytest.raises(of_litellm):
        await ask_litellm(server)
    with pytest.raises(of_openai):
        client.embeddings.create(model="small", input="text")
    record = last(server)
    assert (record.outcome, record.status, record.prompt_tokens) == ("error", status, 0)


@pytest.mark.parametrize("wait", [Fault(429, retry_after_s=0.6), Fault(429, retry_after_ms=600)])
def test_client_retries_after_the_time_it_is_told(server: LocalServer, wait: Fault) -> None:
    first = last(server).sequence + 1 if server.records else 1
    server.behaviour = Behaviour(
        echo_reply, lambda sequence, _: wait if sequence == first else None
    )
    with client_of(server.base_url, max_retries=1) as client:
        assert ask(client).choices[0].message.content == QUESTION
    refused, answered = server.records[-2:]
    assert (refused.status, answered.status) == (429, 200)
    assert (refused.retry_count, answered.retry_count) == (0, 1)
    assert refused.finished_s is not None
    # Left to itself, the client pauses for at most 0.5 s before its first retry.
    assert 0.59 <= answered.arrived_s - refused.finished_s < 2


def test_client_that_gives_up_on_a_hang(server: LocalServer) -> None:
    fail(server, Fault(hang_s=30))
    with client_of(server.base_url, timeout=0.2) as client, pytest.raises(openai.APITimeoutError):
        ask(client)
    wait_until(lambda: last(server).outcome != "open")
    assert (last(server).outcome, last(server).status) == ("client-gone", None)


@pytest.mark.parametrize("stream", [False, True])
async def test_disconnect_before_the_answer(
    server: LocalServer, client: openai.OpenAI, stream: bool
) -> None:
    fail(server, Fault(disconnect="before"))
    with pytest.raises(openai.APIConnectionError):
        ask(client, stream=stream)
    assert (last(server).outcome, last(server).status) == ("cut", None)
    with pytest.raises(exceptions.InternalServerError):
        await ask_litellm(server, stream=stream)


async def test_disconnect_in_mid_stream(server: LocalServer, client: openai.OpenAI) -> None:
    fail(server, Fault(disconnect="mid-stream"))
    stream = iter(ask(client, stream=True))
    chunks = [next(stream), next(stream)]  # the role, then the first words
    # Newer clients may wrap the error of the transport below them.
    with pytest.raises((httpx.RemoteProtocolError, openai.APIConnectionError)):
        next(stream)
    assert text_of(chunks) == "Who is the keeper "
    record = last(server)
    assert (record.outcome, record.status) == ("cut", 200)
    assert (record.prompt_tokens, record.completion_tokens) == (12, 4)
    with pytest.raises(exceptions.MidStreamFallbackError):
        _ = [chunk async for chunk in await ask_litellm(server, stream=True)]


def test_missing_usage(server: LocalServer, client: openai.OpenAI) -> None:
    fail(server, Fault(omit_usage=True))
    assert ask(client).usage is None
    chunks = list(ask(client, stream=True, stream_options={"include_usage": True}))
    assert not any(chunk.usage for chunk in chunks)
    assert last(server).prompt_tokens == 12


def test_error_in_a_test_function_is_told(server: LocalServer, client: openai.OpenAI) -> None:
    server.behaviour = Behaviour(lambda request: request["nothing"])
    with pytest.raises(openai.BadRequestError, match="KeyError: 'nothing'"):
        ask(client)
    assert last(server).outcome == "error"


async def test_many_at_once() -> None:
    plan = {3: Fault(status=500), 5: Fault(disconnect="before")}
    with running_server(
        echo_reply, latency_s=lambda request: 0.2, faults=lambda n, _: plan.get(n)
    ) as server:
        client = openai.AsyncOpenAI(base_url=server.base_url, api_key="test", max_retries=0)
        started = time.monotonic()
        async with client:
            calls = [
                client.chat.completions.create(model="gpt-4o", messages=MESSAGES) for _ in range(20)
            ]
            answers = await asyncio.gather(*calls, return_exceptions=True)
        assert time.monotonic() - started < 4  # one after the other
        assert sum(isinstance(answer, Exception) for answer in answers) == 2
        totals = server.totals()
        assert (totals["chat"].calls, totals["chat"].failed_calls) == (20, 2)
        assert totals["chat"].prompt_tokens == 18 * 12
        assert totals["chat"].output_tokens == 18 * 9
        assert totals["embeddings"].calls == 0
        assert server.totals(after=5)["chat"].calls == 15
        assert server.max_in_flight == 20


def test_stops_at_once_while_a_call_hangs() -> None:
    with ThreadPoolExecutor() as threads, running_server(echo_reply, latency_s=60) as server:
        client = client_of(server.base_url)
        call = threads.submit(ask, client)
        wait_until(lambda: len(server.records) == 1)
        assert last(server).outcome == "open"
        stopping = time.monotonic()
    assert time.monotonic() - stopping < 30
    with client, pytest.raises(openai.APIConnectionError):
        call.result()


def test_as_a_process_with_a_log(tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    assert read_log(log) == []
    options = ("--reply", "echo", "--faults", '{"2": {"status": 503}}')
    with server_process(log=log, arguments=options) as base_url, client_of(base_url) as client:
        ask(client)
        with pytest.raises(openai.InternalServerError):
            ask(client)
        client.embeddings.create(model="small", input="one two")
        records = read_log(log)
    assert [record.status for record in records] == [200, 503, 200]
    assert records[0].messages == tuple(MESSAGES)
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert events == ["arrived", "finished"] * 3
