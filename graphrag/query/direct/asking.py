"""Completions and embeddings of one service of OpenAI's interface, asked once each.

What comes is read without converting what nobody looks at.
"""

import base64
import binascii
import re
from array import array
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from graphrag.query.calls import GarbledReplyError
from graphrag.query.direct.forms import describe_form
from graphrag.query.direct.http import DirectService
from graphrag.query.direct.settings import read_settings
from graphrag.query.reply_types import Completion, Embeddings, TokenUsage

if TYPE_CHECKING:
    from graphrag_llm.config import ModelConfig

_Json = Mapping[str, Any]
# `response_format_json_object`: the release takes it out too, as it always names a form.
_NOT_SENT = ("metrics", "mock_response", "response_format_json_object", "timeout", "max_retries")
_THOUGHTS = re.compile(
    r"<(?:think|thinking|budget:thinking)>(.*?)</(?:think|thinking|budget:thinking)>(.*)", re.DOTALL
)
_CUT_OFF = {"max_tokens": "length", "MAX_TOKENS": "length"}


class DirectModel:
    """A model behind OpenAI's interface."""

    def __init__(self, config: "ModelConfig") -> None:
        settings = read_settings(config)
        self._given = settings.body
        self._service = DirectService(settings)

    async def ask(self, **request: Any) -> Any:
        """Ask for a completion, whole, or in pieces with ``stream=True``."""
        body = self._body(request)
        form = body.get("response_format")
        if isinstance(form, type):
            body["response_format"] = describe_form(form)
        messages: list[Any] = body["messages"]
        body["messages"] = [
            each if isinstance(each, dict) else each.model_dump(exclude_none=True)
            for each in messages
        ]
        if request.get("stream"):
            return self._stream(body)
        return _read_completion(await self._service.post("/chat/completions", body))

    async def _stream(self, body: dict[str, Any]) -> AsyncIterator[Completion]:
        async for event in self._service.stream("/chat/completions", body):
            usage = _read_usage(event.get("usage"))
            choice = _first_choice(event)
            if choice is None:
                yield Completion([], usage)
                continue
            delta: Any = choice.get("delta") or {}
            text, refusal = _text_of(delta.get("content")), delta.get("refusal")
            yield Completion.of(text, _finish_reason(choice), refusal, usage)

    async def embed(self, **request: Any) -> Embeddings:
        """Ask for one vector for each text of ``input``."""
        body = {"encoding_format": "float", **self._body(request)}
        return _read_vectors(await self._service.post("/embeddings", body, None))

    def _body(self, request: dict[str, Any]) -> dict[str, Any]:
        sent = {k: v for k, v in request.items() if k not in _NOT_SENT and v is not None}
        return {**self._given, **sent}


def _read_completion(body: _Json) -> Completion:
    choice = _first_choice(body)
    message: Any = None if choice is None else choice.get("message")
    if choice is None or not isinstance(message, dict):
        msg = "it holds no message"
        raise GarbledReplyError(msg)
    values = cast("_Json", message)
    content = _text_of(values.get("content"))
    if content is not None and not values.get("reasoning_content") and not values.get("reasoning"):
        thoughts = _THOUGHTS.match(content)
        content = content if thoughts is None else thoughts.group(2)
    refusal: Any = values.get("refusal")
    usage = _read_usage(body.get("usage"))
    refused = refusal if isinstance(refusal, str) else None
    return Completion.of(content, _finish_reason(choice), refused, usage)


def _first_choice(body: _Json) -> _Json | None:
    choices: Any = body.get("choices")
    first: Any = cast("list[Any]", choices)[0] if isinstance(choices, list) and choices else None
    return cast("_Json", first) if isinstance(first, dict) else None


def _finish_reason(choice: _Json) -> str | None:
    reason: Any = choice.get("finish_reason")
    return _CUT_OFF.get(reason, reason) if isinstance(reason, str) else None


def _text_of(content: Any) -> str | None:
    """Return the text of a message's content, which may be a list of parts; None without one."""
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = cast("list[Any]", content)
        texts = (cast("_Json", part).get("text") for part in parts if isinstance(part, dict))
        return "".join(str(text or "") for text in texts)
    msg = "its content is no text"
    raise GarbledReplyError(msg)


def _read_usage(given: Any) -> TokenUsage | None:
    """Read usage figures; a count that can't be right is 0, of cached tokens None."""
    if not isinstance(given, dict):
        return None
    usage = cast("_Json", given)
    details: Any = usage.get("prompt_tokens_details")
    named = cast("_Json", details).get("cached_tokens") if isinstance(details, dict) else None
    counts = (_count(named), _count(usage.get("prompt_cache_hit_tokens")))
    cached = max((count for count in counts if count is not None), default=None)
    prompt, output = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    return TokenUsage(prompt or 0, output or 0, cached)


def _count(value: Any) -> int | None:
    is_count = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return int(value) if is_count and value == int(value) else None


def _read_vectors(body: _Json) -> Embeddings:
    """Read embeddings, as numbers or in base64 (32-bit floats, the lowest byte first)."""
    rows: Any = body.get("data")
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and "embedding" in row for row in cast("list[Any]", rows)
    ):
        msg = "it holds no embeddings"
        raise GarbledReplyError(msg)
    given = cast("list[_Json]", rows)
    if all(isinstance(row.get("index"), int) for row in given):
        given = sorted(given, key=lambda row: int(row["index"]))
    return Embeddings([_vector(row["embedding"]) for row in given], _read_usage(body.get("usage")))


def _vector(given: Any) -> list[float]:
    if isinstance(given, str):
        try:
            return array("f", base64.b64decode(given, validate=True)).tolist()
        except (binascii.Error, ValueError) as error:
            msg = "an embedding is not base64"
            raise GarbledReplyError(msg) from error
    if isinstance(given, list) and all(type(n) in (int, float) for n in cast("list[Any]", given)):
        return cast("list[float]", given)
    msg = "an embedding is no list of numbers"
    raise GarbledReplyError(msg)
