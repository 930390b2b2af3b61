"""A model asked directly: what is, in which form, and that all is as through litellm."""

import asyncio
import gc
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Awaitable, Callable
from dataclasses import replace
from enum import Enum
from typing import Annotated, Literal, Optional

import pytest
from pydantic import BaseModel, ConfigDict, Field
from support.lighthouse import SpiedServer, model_config
from support.openai_server import MALFORMED_JSON, Fault, Json

from graphrag.eval.metrics.rubric import RubricReply
from graphrag.query.client.call_errors import RetryPolicy, is_refusal, is_transient, read_symptom
from graphrag.query.client.direct.asking import describe_form
from graphrag.query.client.direct.http import DirectError
from graphrag.query.client.direct.settings import is_asked_directly, read_settings
from graphrag.query.client.model_prices import known_facts
from graphrag.query.client.models import CountedCompletion, open_completion, open_embedding
from graphrag.query.client.tokens import ModelTokenizer
from graphrag.query.client.usage import CallAttempt, CallLog, measure_calls

KINDS = ("litellm", "direct")


@pytest.mark.parametrize(
    ("more", "directly"),
    [
        ({}, True),
        ({"api_base": None}, True),
        ({"call_args": {"temperature": 0.0, "extra_body": {"top_k": 3}}}, True),
        ({"type": "litellm"}, False),
        ({"type": "offline", "model_provider": "offline"}, False),
        ({"model_provider": "mistral"}, False),
        ({"api_version": "2024-06-01"}, False),
        ({"call_args": {"drop_params": True}}, False),
        ({"mock_responses": ["hi"]}, False),
        ({"model": "o3-mini"}, False),
        ({"api_base": "127.0.0.1:8080"}, False),
    ],
)
def test_a_model_of_openai_s_interface_is_asked_directly_where_no_type_is_written(more, directly):
    made = model_config(None, **more)
    assert is_asked_directly(made) is directly
    renamed = made.model_copy(update={"model": made.model})  # as a judge's is
    assert is_asked_directly(renamed) is directly


def test_settings_become_headers_a_body_and_a_query(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://proxy.test:3128")
    monkeypatch.setenv("no_proxy", "")
    call_args = {
        "organization": "us",
        "extra_headers": {"X-Team": "a"},
        "extra_body": {"top_k": 3},
        "extra_query": {"v": 1},
        "timeout": 7,
        "seed": 3,
    }
    found = read_settings(
        model_config(None, api_base="http://ann:p%40ss@models.test/v1/", call_args=call_args)
    )
    assert found.base == "http://models.test/v1"
    assert found.headers["Authorization"] == "Basic YW5uOnBAc3M="
    assert (found.headers["OpenAI-Organization"], found.headers["X-Team"]) == ("us", "a")
    assert found.body == {"model": "gpt-4o", "top_k": 3, "seed": 3}
    assert found.query == {"v": "1"}
    assert found.proxy == "http://proxy.test:3128"
    assert "p@ss" not in repr(found) + repr(found).replace("%40", "@")


def test_no_session_is_left_open_after_a_loop_has_ended(server):
    from graphrag.query.client.direct import http

    async def ask() -> None:
        await asyncio.gather(
            *(
                open_completion(model_config(server)).completion_async(messages=f"{n}")
                for n in range(5)
            )
        )

    server.behave(reply=lambda _: "hi")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with asyncio.Runner() as runner:
            runner.run(ask())
            assert runner.get_loop() in http._SESSIONS
        assert runner._loop not in http._SESSIONS  # pyright: ignore
        gc.collect()
    assert len(server.records) == 5


_ALONE = """
import asyncio, json, sys
from graphrag_llm.config import ModelConfig
from graphrag.eval.metrics import LLMJudge
from graphrag.eval.runner import EvaluationRunner
from graphrag.query.client.models import open_completion
from graphrag.query.client.usage import measure_calls
from graphrag.query.client.model_prices import known_facts
async def main():
    model = open_completion(ModelConfig(**json.loads(sys.argv[1])))
    with measure_calls() as log:
        verdict = await LLMJudge(model).judge_relevance("Who?", "Ann.")
    return verdict.score, log.usage().cost_usd
score, cost = asyncio.run(main())
large = {"lancedb", "litellm", "networkx", "openai", "pandas"}
print(json.dumps([score, cost, sorted(large & set(sys.modules))]))
"""


def test_a_judge_that_is_asked_directly_loads_nothing_large(server):
    server.behave(reply=lambda _: '{"reason": "so", "score": 1}')
    given = model_config(server).model_dump(mode="json", exclude_unset=True)
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", _ALONE, json.dumps(given)],
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        capture_output=True,
        text=True,
        check=True,
    )
    score, cost, loaded = json.loads(done.stdout)
    assert (score, loaded) == (1, [])
    usage = server.totals()["chat"]
    assert cost == pytest.approx(usage.prompt_tokens * 2.5e-6 + usage.output_tokens * 1e-5)
    assert "Unclosed" not in done.stderr


def test_prices_and_tokens_are_those_of_litellm():
    import litellm

    from graphrag.query.client import model_prices

    read = model_prices._read_map()
    local = litellm.litellm_core_utils.get_model_cost_map.get_model_cost_map("")
    assert read == local
    assert known_facts("openai/gpt-4o")["max_input_tokens"] > 0  # pyright: ignore
    for text in ("Grüße 🙂 <|endoftext|>", "", "The lamp\n| of Marta Quill"):
        for model in ("openai/gpt-4o", "openai/smollm2", "offline/rules"):
            tokens = litellm.encode(model=model, text=text)
            assert ModelTokenizer(model).encode(text) == tokens
            assert ModelTokenizer(model).num_tokens(text) == len(tokens)


@pytest.mark.parametrize(
    ("model", "steps"),
    [
        ("openai/gpt-5.4", (272_000,)),
        ("gemini/gemini-2.5-pro", (200_000,)),
        ("xai/grok-3", (200_000,)),
        ("anthropic/claude-sonnet-4-5", (200_000,)),
        ("dashscope/qwen3-max", (32_000, 128_000, 252_000)),
        ("openai/gpt-4o", (272_000,)),
    ],
)
def test_a_long_call_costs_what_litellm_says(model, steps):
    import litellm
    from litellm.types.utils import Usage

    (provider, _, name), replied = model.partition("/"), 1_000
    lengths = [500, *(step + more for step in steps for more in (-1, 0, 1))]
    paid = [
        CallAttempt("completion", model, "response", n, replied, "provider", 1.0).cost_usd
        for n in lengths
    ]
    for n, usd in zip(lengths, paid, strict=True):
        usage = Usage(prompt_tokens=n, completion_tokens=replied, total_tokens=n + replied)
        bill = litellm.cost_per_token(
            model=name, custom_llm_provider=provider, prompt_tokens=n, usage_object=usage
        )
        assert usd == pytest.approx(sum(bill))
    cached = CallAttempt("completion", model, "response", 300_000, 0, "provider", 1.0, 100_000)
    details = {"cached_tokens": 100_000}
    usage = Usage(prompt_tokens=300_000, total_tokens=300_000, prompt_tokens_details=details)
    bill = litellm.cost_per_token(
        model=name, custom_llm_provider=provider, prompt_tokens=300_000, usage_object=usage
    )
    assert cached.cost_usd == pytest.approx(sum(bill))


VERDICT = '{"reason": "as the text says", "correct": true}'
ANSWER = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-4o",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
    ],
    "usage": {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17},
}


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Part(BaseModel):
    """One part."""

    name: str = Field(description="What it is called.")
    weight: float | None = None


class Tree(BaseModel):
    value: int
    children: list["Tree"] = []


class Verdict(BaseModel):
    """A verdict with much that a schema can hold."""

    reason: str
    correct: bool
    grade: Literal["low", "high"] = "low"
    parts: list[Part] = []
    best: Optional[Part] = None  # noqa: UP045


class Whole(BaseModel):
    model_config = ConfigDict(extra="allow")

    part: Part = Field(description="a reference that has company")
    pair: tuple[int, str]
    colour: Colour = Colour.RED
    either: Annotated[int | Part, Field(description="one of two")]
    named: dict[str, int] = {}
    tree: Tree


@pytest.mark.parametrize("form", [RubricReply, Verdict, Whole])
def test_a_form_is_described_as_by_openai(form):
    from openai import pydantic_function_tool

    expected = pydantic_function_tool(form)["function"].get("parameters")
    described = describe_form(form)["json_schema"]
    assert described == {"schema": expected, "name": form.__name__, "strict": True}
    with pytest.raises(TypeError, match="a pydantic model"):
        describe_form(int)


def said(**message: object) -> str:
    choice = {**ANSWER["choices"][0], "message": {"role": "assistant", **message}}
    return json.dumps({**ANSWER, "choices": [choice]})


def with_usage(**usage: object) -> str:
    return json.dumps({**ANSWER, "usage": {**ANSWER["usage"], **usage}})


FAULTS: dict[str, Fault | None] = {
    "an answer": None,
    **{f"status {status}": Fault(status=status) for status in (400, 401, 404, 429, 500)},
    **{
        f"bare status {status}": Fault(status=status, raw='{"error": {"message": "No."}}')
        for status in (402, 403, 408, 409, 413, 422, 502, 504, 529)
    },
    "a page with status 502": Fault(status=502, raw="<html><body>Bad gateway</body></html>"),
    "nothing with status 500": Fault(status=500, raw=""),
    "an error that is text": Fault(status=400, raw='{"error": "no such thing"}'),
    "a short wait": Fault(status=429, retry_after_s=0.02),
    "no credit": Fault(status=429, code="insufficient_quota", message="No quota left."),
    "a full context": Fault(
        status=400,
        code="context_length_exceeded",
        message="This model's maximum context length is 8 tokens.",
    ),
    "a full context of llama.cpp": Fault(
        status=400,
        raw='{"error": {"code": 400, "message": "the request exceeds the available context size, '
        'try increasing it", "type": "exceed_context_size_error"}}',
    ),
    "filtered": Fault(
        status=400, code="content_policy_violation", message="It is against our usage policy."
    ),
    "dropped": Fault(disconnect="before"),
    "empty": Fault(content=""),
    "not the JSON asked for": Fault(content=MALFORMED_JSON),
    "a refusal": Fault(refusal="I can't help with that."),
    "no usage": Fault(omit_usage=True),
    "cached tokens": Fault(cached_tokens=3),
    "cut off": Fault(ramble=True),
    "cut JSON": Fault(ramble=True, content='{"reason": "because'),
    "replacement characters": Fault(content="a \ufffd b"),
    "a page as content": Fault(content="<!doctype html><html></html>"),
    "raw: nothing": Fault(raw=""),
    "raw: half": Fault(raw=json.dumps(ANSWER)[:90]),
    "raw: null": Fault(raw="null"),
    "raw: a list": Fault(raw="[]"),
    "raw: another object": Fault(raw='{"ok": true}'),
    "raw: no choices": Fault(raw=json.dumps({**ANSWER, "choices": []})),
    "raw: an error": Fault(raw='{"error": {"message": "oops", "code": 500}}'),
    "raw: no content": Fault(raw=said(content=None)),
    "raw: thoughts": Fault(raw=said(content="<think>well...</think>\n" + VERDICT)),
    "raw: thoughts apart": Fault(raw=said(content=VERDICT, reasoning_content="well...")),
    "raw: DeepSeek's cached tokens": Fault(raw=with_usage(prompt_cache_hit_tokens=4)),
    "raw: no counts": Fault(raw=json.dumps({**ANSWER, "usage": None})),
}


Ask = Callable[[str], Awaitable[object]]


async def outcome(
    kind: str, server: SpiedServer, fault: Fault | None, ask: Ask, live: bool = False
) -> Json:
    """Ask once with one retry, and tell everything that a run would record of it."""
    server.reset(lambda _: VERDICT)
    server.behave(faults=lambda *_: fault)
    told: Json = {}
    with measure_calls(CallLog(live=live)) as log:
        try:
            told["reply"] = await ask(kind)
        except Exception as error:
            told["kind"] = {each.__name__ for each in type(error).__mro__} & _KINDS
            told["refused"], told["passes"] = is_refusal(error), is_transient(error)
            symptom = read_symptom(error)
            told["symptom"] = symptom.is_throttled, symptom.wait_s, symptom.is_of_service
    # Of a stream that breaks off each client says something else.
    marks = () if live else _ADVICE
    told["attempts"] = [
        replace(attempt, latency_s=0.0, error=_advice(attempt.error, marks))
        for attempt in log.attempts
    ]
    told["failures"] = [_advice(failed.cause, marks) for failed in log.failures]
    told["usage"] = log.usage()
    told["requests"] = [server.requests[n] for n in sorted(server.requests)]
    return told


# Of errors that pass, only these are looked at by name; others are told apart by their status.
_KINDS = {
    "AuthenticationError",
    "BadRequestError",
    "ContextWindowExceededError",
    "ContentPolicyViolationError",
    "CutOffReplyError",
    "NotFoundError",
    "RateLimitError",
    "ServiceUnavailableError",
    "UnreadableReplyError",
}


_ADVICE = (
    *("; check", "; start the service", "was lost before"),
    *("the model's context is too small", "cut off"),
)


def _advice(sentence: str | None, marks: tuple[str, ...]) -> str | None:
    """Return what a user is told to do; the rest of a sentence is in the client's own words."""
    if sentence is None:
        return None
    return next((mark for mark in marks if mark in sentence), "failed")


def assert_same(first: Json, second: Json) -> None:
    for name in sorted({*first, *second}):
        assert second.get(name) == first.get(name), name


@pytest.mark.parametrize("form", [None, Verdict], ids=["text", "structured"])
@pytest.mark.parametrize("name", FAULTS)
async def test_a_completion_is_the_same_through_both(name, form, server):
    async def ask(kind: str) -> object:
        given = model_config(server, kind, call_args={"seed": 7, "top_p": None, "max_tokens": 9})
        model = open_completion(given, RetryPolicy(1, 0.0, 0.0))
        messages = [
            {"role": "system", "content": "Judge."},
            {"role": "user", "content": "Grüße 🙂 \u2028 <b>"},
        ]
        response = await model.completion_async(
            messages=messages, response_format=form, temperature=0.0
        )
        return response.content, response.formatted_response, response.usage

    through, direct = [await outcome(k, server, FAULTS[name], ask) for k in KINDS]
    assert_same(through, direct)


@pytest.mark.parametrize("name", [n for n in FAULTS if "raw" not in n or n == "raw: a list"])
async def test_an_embedding_is_the_same_through_both(name, server):
    async def ask(kind: str) -> object:
        given = model_config(server, kind, model="text-embedding-3-small")
        model = open_embedding(given, RetryPolicy(1, 0.0, 0.0))
        response = await model.embedding_async(input=["the great lamp", "a ferry"], dimensions=8)
        return response.embeddings, response.usage

    through, direct = [await outcome(k, server, FAULTS[name], ask) for k in KINDS]
    assert_same(through, direct)


async def text_of(model: CountedCompletion, live: bool) -> str:
    if not live:
        return (await model.completion_async(messages="count")).content
    chunks = await model.completion_async(messages="count", stream=True, max_tokens=12)
    return "".join([c.delta.content or "" async for chunk in chunks for c in chunk.choices])


STREAMS: dict[str, Fault | None] = {
    "dropped in the middle": Fault(disconnect="mid-stream"),
    **{
        name: FAULTS[name]
        for name in ("an answer", "a refusal", "no usage", "a short wait", "status 401")
    },
    **{name: FAULTS[name] for name in ("cut off", "dropped")},
}


@pytest.mark.parametrize("name", STREAMS)
async def test_a_stream_is_the_same_through_both(name, server):
    async def ask(kind: str) -> object:
        model = open_completion(model_config(server, kind), RetryPolicy(1, 0.0, 0.0))
        return await text_of(model, True)

    through, direct = [await outcome(k, server, STREAMS[name], ask, live=True) for k in KINDS]
    for told in (through, direct):
        told.pop("kind", None)  # litellm calls a broken stream unavailable, we call it unconnected
    if name == "a refusal":  # litellm drops the refusal of a stream
        assert direct["reply"] == "I can't help with that."
        assert direct["requests"] == through["requests"]
    elif name == "no usage":  # litellm counts here itself, and does not say so
        assert [attempt.counted_by for attempt in direct["attempts"]] == ["tokenizer"]
        assert direct["reply"] == through["reply"]
    else:
        assert_same(through, direct)


@pytest.mark.parametrize(
    ("code", "kind", "refused", "n_asked"),
    [
        ("503", "ServiceUnavailableError", False, 2),
        (401, "AuthenticationError", True, 1),
        (429, "RateLimitError", False, 2),
        ("no such code", "InternalServerError", False, 2),
    ],
)
@pytest.mark.parametrize("live", [False, True], ids=["whole", "stream"])
async def test_an_error_that_comes_with_status_200_is_one_of_its_code(
    live, code, kind, refused, n_asked, server
):
    body = json.dumps({"error": {"message": "oops", "code": code}})
    server.behave(faults=lambda *_: Fault(raw=f"data: {body}\n\n" if live else body))
    model = open_completion(model_config(server), RetryPolicy(1, 0.0, 0.0))
    with measure_calls(CallLog(live=live)) as log, pytest.raises(DirectError, match="oops") as said:
        await text_of(model, live)
    assert type(said.value).__name__ == kind
    assert is_refusal(said.value) is refused
    assert len(server.records) == len(log.attempts) == n_asked
