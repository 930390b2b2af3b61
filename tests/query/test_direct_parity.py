"""A model asked directly does what it does through litellm: call by call, fault by fault."""

import json
from dataclasses import replace
from typing import Any, Literal

import pytest
from graphrag_llm.config import ModelConfig
from pydantic import BaseModel, Field
from support.lighthouse import SpiedServer
from support.openai_server import MALFORMED_JSON, Fault

from graphrag.query.calls import RetryPolicy, is_refusal, is_transient, read_symptom
from graphrag.query.models import open_completion, open_embedding
from graphrag.query.usage import CallLog, measure_calls

VERDICT = '{"reason": "as the text says", "correct": true}'
ANSWER = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-4o",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "hi"},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17},
}


class Part(BaseModel):
    """One part."""

    name: str = Field(description="What it is called.")
    weight: float | None = None


class Verdict(BaseModel):
    """A verdict with everything that a schema can hold."""

    reason: str
    correct: bool
    grade: Literal["low", "high"] = "low"
    parts: list[Part] = []
    best: Part | None = None


def said(**message: Any) -> str:
    choice = {**ANSWER["choices"][0], "message": {"role": "assistant", **message}}
    return json.dumps({**ANSWER, "choices": [choice]})


def with_usage(**usage: Any) -> str:
    return json.dumps({**ANSWER, "usage": {**ANSWER["usage"], **usage}})


FAULTS: dict[str, Fault | None] = {
    "an answer": None,
    **{f"status {status}": Fault(status=status) for status in (400, 401, 404, 429, 500, 503)},
    **{
        f"bare status {status}": Fault(status=status, raw='{"error": {"message": "No."}}')
        for status in (402, 403, 408, 409, 413, 422, 502, 504, 529)
    },
    "a page with status 502": Fault(status=502, raw="<html><body>Bad gateway</body></html>"),
    "nothing with status 500": Fault(status=500, raw=""),
    "an error that is text": Fault(status=400, raw='{"error": "no such thing"}'),
    "a short wait": Fault(status=429, retry_after_s=0.02),
    "a short wait in milliseconds": Fault(status=503, retry_after_ms=15),
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


def config(kind: str, server: SpiedServer, **more: Any) -> ModelConfig:
    given = {"model": "gpt-4o", "api_base": server.base_url, "api_key": "none", **more}
    written: Any = {"type": kind} if kind == "litellm" else {}
    return ModelConfig(**written, model_provider="openai", **given)


async def outcome(kind: str, server: SpiedServer, fault: Fault | None, ask: Any) -> dict[str, Any]:
    """Ask once with one retry, and tell everything that a run would record of it."""
    server.reset(lambda _: VERDICT)
    server.behave(faults=lambda *_: fault)
    told: dict[str, Any] = {}
    with measure_calls(CallLog()) as log:
        try:
            told["reply"] = await ask(kind)
        except Exception as error:
            told["kind"] = {each.__name__ for each in type(error).__mro__} & _KINDS
            told["refused"], told["passes"] = is_refusal(error), is_transient(error)
            symptom = read_symptom(error)
            told["symptom"] = symptom.is_throttled, symptom.wait_s, symptom.is_of_service
    told["attempts"] = [
        replace(attempt, latency_s=0.0, error=_advice(attempt.error)) for attempt in log.attempts
    ]
    told["failures"] = [_advice(failure) for failure in log.failures]
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


def _advice(sentence: str | None) -> str | None:
    """Return what a user is told to do; the rest of a sentence is in the client's own words."""
    if sentence is None:
        return None
    marks = ("; check", "; start the service", "the model's context is too small", "cut off")
    return next((mark for mark in marks if mark in sentence), "failed")


def assert_same(first: dict[str, Any], second: dict[str, Any]) -> None:
    for name in sorted({*first, *second}):
        assert second.get(name) == first.get(name), name


@pytest.mark.parametrize("form", [None, Verdict], ids=["text", "structured"])
@pytest.mark.parametrize("name", FAULTS)
async def test_a_completion_is_the_same_through_both(
    name: str, form: Any, server: SpiedServer
) -> None:
    async def ask(kind: str) -> Any:
        given = config(kind, server, call_args={"seed": 7, "top_p": None, "max_tokens": 9})
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


KINDS = ("litellm", "direct")


@pytest.mark.parametrize("name", [n for n in FAULTS if "raw" not in n or n == "raw: a list"])
async def test_an_embedding_is_the_same_through_both(name: str, server: SpiedServer) -> None:
    async def ask(kind: str) -> Any:
        given = config(kind, server, model="text-embedding-3-small")
        model = open_embedding(given, RetryPolicy(1, 0.0, 0.0))
        response = await model.embedding_async(input=["the great lamp", "a ferry"], dimensions=8)
        return response.embeddings, response.usage

    through, direct = [await outcome(k, server, FAULTS[name], ask) for k in KINDS]
    assert_same(through, direct)
