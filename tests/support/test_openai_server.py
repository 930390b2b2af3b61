"""The local server as the real clients see it."""

import asyncio
import time
from collections.abc import Iterator
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
    Totals,
    echo_reply,
    embed,
    running_server,
)

QUESTION = "Who is the keeper of the old light house?"  # 9 words: a prompt of 12 tokens
MESSAGES: list[Json] = [{"role": "user", "content": QUESTION}]


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


def client_of(base_url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=base_url, api_key="test", max_retries=0, timeout=30)


def ask(client: openai.OpenAI, **options: object) -> Any:
    create: Any = client.chat.completions.create
    return create(model="gpt-4o", messages=MESSAGES, **options)


def last(server: LocalServer) -> Record:
    return server.records[-1]


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


def test_disconnect_in_mid_stream(server: LocalServer, client: openai.OpenAI) -> None:
    server.behaviour = Behaviour(echo_reply, faults=lambda *_: Fault(disconnect="mid-stream"))
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
    with running_server(echo_reply, latency_s=0.2, faults=lambda n, _: plan.get(n)) as server:
        started = time.monotonic()
        client = openai.AsyncOpenAI(base_url=server.base_url, api_key="test", max_retries=0)
        async with client:
            create = client.chat.completions.create
            calls = [create(model="gpt-4o", messages=MESSAGES) for _ in range(20)]
            answers = await asyncio.gather(*calls, return_exceptions=True)
        assert time.monotonic() - started < 4  # one after the other
        kinds = {type(answer) for answer in answers if isinstance(answer, Exception)}
        assert kinds == {openai.InternalServerError, openai.APIConnectionError}
        assert server.totals()["chat"] == Totals(20, 2, 18 * 12, 18 * 9)
        assert server.totals()["embeddings"].calls == 0
        assert server.totals(after=5)["chat"].calls == 15
        assert server.max_in_flight == 20
        ended = [(record.outcome, record.status) for record in server.records]
        assert (ended[2], ended[4]) == (("error", 500), ("cut", None))


def test_stops_at_once_while_a_call_hangs() -> None:
    with ThreadPoolExecutor() as threads, running_server(echo_reply, latency_s=60) as server:
        client = client_of(server.base_url)
        call = threads.submit(ask, client)
        deadline = time.monotonic() + 2
        while not server.records and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.records[-1].outcome == "open"
        stopping = time.monotonic()
    assert time.monotonic() - stopping < 30
    with client, pytest.raises(openai.APIConnectionError):
        call.result()
