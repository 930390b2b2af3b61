"""The local server as the real clients see it."""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import openai
import pytest
from support.openai_server import (
    Behaviour,
    Fault,
    Json,
    LocalServer,
    Record,
    echo_reply,
    embed,
    running_server,
)

QUESTION = "Who is the keeper of the old light house?"  # 9 words: a prompt of 12 tokens
MESSAGES: list[Json] = [{"role": "user", "content": QUESTION}]
ERROR_CLASSES = [
    (400, openai.BadRequestError),
    (401, openai.AuthenticationError),
    (404, openai.NotFoundError),
    (429, openai.RateLimitError),
    (500, openai.InternalServerError),
    (503, openai.InternalServerError),
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


def ask(client: openai.OpenAI, **options: object) -> Any:
    create: Any = client.chat.completions.create
    return create(model="gpt-4o", messages=MESSAGES, **options)


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


@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_embeddings(client: openai.OpenAI, server: LocalServer, encoding: str) -> None:
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


@pytest.mark.parametrize(("status", "kind"), ERROR_CLASSES)
def test_error_status(
    server: LocalServer, client: openai.OpenAI, status: int, kind: type[openai.APIStatusError]
) -> None:
    fail(server, Fault(status=status))
    with pytest.raises(kind) as caught:
        ask(client)
    assert caught.value.status_code == status
    with pytest.raises(kind):
        client.embeddings.create(model="small", input="text")
    record = last(server)
    assert (record.outcome, record.status, record.prompt_tokens) == ("error", status, 0)


@pytest.mark.parametrize("stream", [False, True])
def test_disconnect_before_the_answer(
    server: LocalServer, client: openai.OpenAI, stream: bool
) -> None:
    fail(server, Fault(disconnect="before"))
    with pytest.raises(openai.APIConnectionError):
        ask(client, stream=stream)
    assert (last(server).outcome, last(server).status) == ("cut", None)


def test_disconnect_in_mid_stream(server: LocalServer, client: openai.OpenAI) -> None:
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
