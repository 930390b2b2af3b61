"""What a service of OpenAI's interface sends, read without converting what nobody looks at."""

import base64
import binascii
import re
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from graphrag.query.calls import GarbledReplyError
from graphrag.query.direct.forms import describe_form as describe_form

_THOUGHTS = re.compile(
    r"<(?:think|thinking|budget:thinking)>(.*?)</(?:think|thinking|budget:thinking)>(.*)", re.DOTALL
)
_CUT_OFF = {"max_tokens": "length", "MAX_TOKENS": "length"}


@dataclass(slots=True)
class CachedTokens:
    """Prompt tokens that the service read from a cache of its own, >= 0; None: it does not say."""

    cached_tokens: int | None


@dataclass(slots=True)
class DirectUsage:
    """Tokens by the service's own count, >= 0."""

    prompt_tokens: int
    completion_tokens: int
    prompt_tokens_details: CachedTokens


@dataclass(slots=True)
class DirectMessage:
    """What the model said; ``refusal`` where it says that it gives no answer."""

    content: str | None
    refusal: str | None = None


@dataclass(slots=True)
class DirectChoice:
    """A reply or a piece of it, and why it ended."""

    message: DirectMessage
    finish_reason: str | None


@dataclass(slots=True)
class DirectReply:
    """A completion, with the names that the release's replies have."""

    choices: list[DirectChoice]
    usage: DirectUsage | None
    model: str = ""

    @property
    def content(self) -> str:
        """The text of the first choice."""
        return self.choices[0].message.content or ""


@dataclass(slots=True)
class DirectVectors:
    """Embeddings in the order of their texts."""

    embeddings: list[list[float]]
    usage: DirectUsage | None = None
    model: str = field(default="")


def read_completion(body: Mapping[str, Any]) -> DirectReply:
    """Read a completion.

    Raises
    ------
    GarbledReplyError
        If it holds no message.
    """
    choice = first_choice(body)
    message: Any = None if choice is None else choice.get("message")
    if choice is None or not isinstance(message, dict):
        msg = "it holds no message"
        raise GarbledReplyError(msg)
    said = cast("Mapping[str, Any]", message)
    content = text_of(said.get("content"))
    if content is not None and not said.get("reasoning_content") and not said.get("reasoning"):
        content = _without_thoughts(content)
    refusal: Any = said.get("refusal")
    return DirectReply(
        choices=[
            DirectChoice(
                DirectMessage(content, refusal if isinstance(refusal, str) else None),
                finish_reason(choice),
            )
        ],
        usage=read_usage_figures(body.get("usage")),
        model=str(body.get("model") or ""),
    )


def first_choice(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the first choice of a completion or of a piece of one, None without any."""
    choices: Any = body.get("choices")
    if not isinstance(choices, list) or not choices:
        return None
    first: Any = cast("list[Any]", choices)[0]
    return cast("Mapping[str, Any]", first) if isinstance(first, dict) else None


def finish_reason(choice: Mapping[str, Any]) -> str | None:
    """Return why a reply ended, None where the service does not say."""
    reason: Any = choice.get("finish_reason")
    return _CUT_OFF.get(reason, reason) if isinstance(reason, str) else None


def text_of(content: Any) -> str | None:
    """Return the text of a message's content, None where it has none.

    Raises
    ------
    GarbledReplyError
        If it is neither text nor a list of parts.
    """
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list):
        texts: list[str] = []
        for part in cast("list[Any]", content):
            if isinstance(part, dict):
                texts.append(str(cast("Mapping[str, Any]", part).get("text") or ""))
        return "".join(texts)
    msg = "its content is no text"
    raise GarbledReplyError(msg)


def _without_thoughts(content: str) -> str:
    found = _THOUGHTS.match(content)
    return content if found is None else found.group(2)


def read_usage_figures(given: Any) -> DirectUsage | None:
    """Read usage figures; None where there are none, or none that could be right."""
    if not isinstance(given, dict):
        return None
    usage = cast("Mapping[str, Any]", given)
    prompt = _count(usage.get("prompt_tokens"))
    details: Any = usage.get("prompt_tokens_details")
    told: Any = None
    if isinstance(details, dict):
        told = cast("Mapping[str, Any]", details).get("cached_tokens")
    said = (_known_count(told), _known_count(usage.get("prompt_cache_hit_tokens")))
    cached = max((count for count in said if count is not None), default=None)
    output = _count(usage.get("completion_tokens"))
    return DirectUsage(prompt, output, CachedTokens(cached))


def _count(value: Any) -> int:
    return _known_count(value) or 0


def _known_count(value: Any) -> int | None:
    is_count = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return int(value) if is_count and value == int(value) else None


def read_vectors(body: Mapping[str, Any]) -> DirectVectors:
    """Read embeddings, as numbers or in base64 (32-bit floats, the lowest byte first).

    Raises
    ------
    GarbledReplyError
        If it holds none.
    """
    rows: Any = body.get("data")
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and "embedding" in row for row in cast("list[Any]", rows)
    ):
        msg = "it holds no embeddings"
        raise GarbledReplyError(msg)
    given = cast("list[Mapping[str, Any]]", rows)
    if all(isinstance(row.get("index"), int) for row in given):
        given = sorted(given, key=lambda row: int(row["index"]))
    return DirectVectors(
        [_vector(row["embedding"]) for row in given],
        read_usage_figures(body.get("usage")),
        str(body.get("model") or ""),
    )


def _vector(given: Any) -> list[float]:
    if isinstance(given, str):
        try:
            numbers = array("f", base64.b64decode(given, validate=True))
        except (binascii.Error, ValueError) as error:
            msg = "an embedding is not base64"
            raise GarbledReplyError(msg) from error
        return numbers.tolist()
    if isinstance(given, list) and all(type(n) in (int, float) for n in cast("list[Any]", given)):
        return cast("list[float]", given)
    msg = "an embedding is no list of numbers"
    raise GarbledReplyError(msg)
