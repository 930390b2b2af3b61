"""Sends completions and embeddings to a service with OpenAI's interface, without retries."""

import base64
import binascii
from array import array
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import TYPE_CHECKING, TypeGuard, cast

from pydantic import BaseModel

from graphrag.query.client.call_errors import GarbledReplyError, read_usage
from graphrag.query.client.direct import http
from graphrag.query.client.direct.http import Json
from graphrag.query.client.direct.settings import read_settings
from graphrag.query.client.structured_output import Completion, Embeddings, TokenUsage
from graphrag.query.client.usage import CUT_OFF, FILTERED

if TYPE_CHECKING:
    from graphrag_llm.config import ModelConfig

# The release leaves out `response_format_json_object`, too, because it always names a form.
_NOT_SENT = ("metrics", "mock_response", "response_format_json_object", "timeout", "max_retries")
_MOST_BYTES_A_TEXT = 1_000_000
"""Limit of an embedding reply for each text: four times the longest vector of any model, 8,192
numbers of up to 25 bytes."""
_THOUGHT = ("thinking", "reasoning")
"""Types of the parts of a content that contain thoughts."""
_REASONS = {
    **dict.fromkeys(("max_tokens", "MAX_TOKENS"), CUT_OFF),
    **dict.fromkeys(("SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "sensitive"), FILTERED),
}
"""Finish reasons of other services -> OpenAI's."""


class DirectModel:
    """Asks one model through OpenAI's interface, once for each request."""

    def __init__(self, config: "ModelConfig") -> None:
        self._service = read_settings(config)

    async def ask(self, **request: object) -> Completion | AsyncIterator[Completion]:
        """Return a completion or, with ``stream=True``, an iterator of its pieces."""
        body = self._body(request)
        if isinstance(form := body.get("response_format"), type):
            body["response_format"] = describe_form(form)
        body["messages"] = [
            message.model_dump(exclude_none=True) if isinstance(message, BaseModel) else message
            for message in cast("list[object]", body["messages"])
        ]
        if request.get("stream"):
            return self._stream(body)
        return _read_completion(await http.post(self._service, "/chat/completions", body))

    async def _stream(self, body: Json) -> AsyncIterator[Completion]:
        async for event in http.stream(self._service, "/chat/completions", body):
            usage = _read_usage(event.get("usage"))
            choice = _first_choice(event)
            if choice is None:
                yield Completion([], usage)
                continue
            delta = _mapping(choice.get("delta") or choice.get("message"))
            text, refusal = _text_of(delta.get("content")), _text_or_none(delta.get("refusal"))
            yield Completion.of(text, _finish_reason(choice), refusal, usage, _thoughts_of(delta))

    async def embed(self, **request: object) -> Embeddings:
        """Return one vector for each text in ``input``."""
        body = self._body(request)
        n_texts = len(cast("list[str]", request["input"]))
        most = _MOST_BYTES_A_TEXT * max(1, n_texts)
        return _read_vectors(await http.post(self._service, "/embeddings", body, most))

    def _body(self, request: Json) -> dict[str, object]:
        sent = {k: v for k, v in request.items() if k not in _NOT_SENT and v is not None}
        return {**self._service.body, **sent}


@lru_cache(maxsize=256)
def describe_form(form: type) -> dict[str, object]:
    """Return the ``response_format`` that asks for JSON of a pydantic class.

    It is written as openai's client writes it. Raises TypeError if ``form`` is no pydantic class.
    """
    if not issubclass(form, BaseModel):
        raise TypeError(f"a reply's form is a pydantic model, not {form!r}")
    schema = cast("dict[str, object]", form.model_json_schema())
    strict = _make_strict(schema, schema)
    return {
        "type": "json_schema",
        "json_schema": {"schema": strict, "name": form.__name__, "strict": True},
    }


def _make_strict(part: Json, top: Json) -> dict[str, object]:
    """Return a schema without optional fields; its references point into ``top``.

    The rules are those of https://platform.openai.com/docs/guides/structured-outputs, supported
    schemas.
    """
    if "$ref" in part and len(part) > 1:
        target: object = top
        for name in str(part["$ref"]).removeprefix("#/").split("/"):
            target = _mapping(target)[name]
        rest = {key: value for key, value in part.items() if key != "$ref"}
        return _make_strict({**_mapping(target), **rest}, top)
    schema = {key: value for key, value in part.items() if key != "default" or value is not None}
    for key in ("$defs", "definitions", "properties"):
        if _is_mapping(named := schema.get(key)):
            schema[key] = {name: _make_strict(_mapping(item), top) for name, item in named.items()}
    if schema.get("type") == "object":
        schema.setdefault("additionalProperties", False)
    if _is_mapping(properties := schema.get("properties")):
        schema["required"] = list(properties)
    if _is_mapping(items := schema.get("items")):
        schema["items"] = _make_strict(items, top)
    for key in ("anyOf", "allOf"):
        if _is_list(several := schema.get(key)):
            schema[key] = [_make_strict(_mapping(choice), top) for choice in several]
    if _is_list(only := schema.get("allOf")) and len(only) == 1:
        schema |= _mapping(only[0])
        del schema["allOf"]
    return schema


def _read_completion(body: Json) -> Completion:
    choice = _first_choice(body)
    message = None if choice is None else choice.get("message")
    if choice is None or not _is_mapping(message):
        raise GarbledReplyError("it has no message")
    content, reason = _text_of(message.get("content")), _finish_reason(choice)
    refusal, usage = _text_or_none(message.get("refusal")), _read_usage(body.get("usage"))
    return Completion.of(content, reason, refusal, usage, _thoughts_of(message))


def _first_choice(body: Json) -> Json | None:
    choices = body.get("choices")
    first = choices[0] if _is_list(choices) and choices else None
    return first if _is_mapping(first) else None


def _finish_reason(choice: Json) -> str | None:
    reason = _text_or_none(choice.get("finish_reason"))
    return None if reason is None else _REASONS.get(reason, reason)


def _text_of(content: object) -> str | None:
    """Return the text of a message's content, which may be a list of parts; None without one."""
    if content is None or isinstance(content, str):
        return content
    if _is_list(content):
        parts = [part for part in content if _is_mapping(part) and part.get("type") not in _THOUGHT]
        return "".join(str(part.get("text") or "") for part in parts)
    raise GarbledReplyError("its content is no text")


def _thoughts_of(message: Json) -> str | None:
    """Return the thoughts in a message outside of its answer; None without any."""
    thoughts = message.get("reasoning_content") or message.get("reasoning")
    content = message.get("content")
    if thoughts or not _is_list(content):
        return _text_or_none(thoughts)
    parts = [part for part in content if _is_mapping(part) and part.get("type") in _THOUGHT]
    return "".join(str(part.get("text") or part.get("thinking") or "") for part in parts) or None


def _read_usage(usage: object) -> TokenUsage | None:
    return TokenUsage(*read_usage(usage)) if _is_mapping(usage) else None


def _read_vectors(body: Json) -> Embeddings:
    """Read embeddings, sent as numbers or in base64 (little-endian 32-bit floats)."""
    data = body.get("data")
    entries = data if _is_list(data) else [None]
    rows = [row for row in entries if _is_mapping(row) and "embedding" in row]
    if len(rows) < len(entries):
        raise GarbledReplyError("it has no embeddings")
    positions = [row.get("index") for row in rows]
    if all(isinstance(position, int) for position in positions):
        rows = sorted(rows, key=lambda row: cast("int", row["index"]))
    return Embeddings([_vector(row["embedding"]) for row in rows], _read_usage(body.get("usage")))


def _vector(numbers: object) -> list[float]:
    if isinstance(numbers, str):
        try:
            return array("f", base64.b64decode(numbers, validate=True)).tolist()
        except (binascii.Error, ValueError) as error:
            raise GarbledReplyError("an embedding is not base64") from error
    if _is_list(numbers) and all(type(number) in (int, float) for number in numbers):
        return cast("list[float]", numbers)
    raise GarbledReplyError("an embedding is no list of numbers")


def _is_mapping(value: object) -> TypeGuard[Json]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def _mapping(value: object) -> Json:
    return value if _is_mapping(value) else {}


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None
