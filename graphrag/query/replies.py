"""Reading a model's reply: is it one at all, its refusal, or one JSON object, without guessing."""

import json
import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from graphrag.query.calls import Answer, GarbledReplyError

Reply = TypeVar("Reply", bound=BaseModel)

_BRACE = re.compile(r"[{}]")
_FENCE_BEFORE = re.compile(r"\s*(?:```[\w-]*\s*)?")
_FENCE_AFTER = re.compile(r"\s*(?:```\s*)?")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""What stands in no JSON, and says nothing where a model lets it slip in."""
MOST_CHARACTERS = 2_000_000
"""Of one reply: several times what any model writes at most."""
_BROKEN = "\N{REPLACEMENT CHARACTER}"
_STRAY = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f]")
_ENVELOPE = re.compile(
    r'\s*\{\s*"(?:choices"\s*:\s*\[|object"\s*:\s*"chat\.completion|id"\s*:\s*"chatcmpl-)'
)
_PAGE = re.compile(r"\s*(?:<!doctype html|<html[\s>])", re.IGNORECASE)
_NOT_COMPARED = re.compile(r"\\[bfnrt]|[\\\s]")


class StructuredReply(BaseModel):
    """The form of a reply that is asked for often: its schema, sent each time, is made once."""

    @classmethod
    def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the schema as pydantic makes it, one's own to change."""
        return deepcopy(_make_schema(super().model_json_schema, args, tuple(kwargs.items())))


class UnreadableReplyError(ValueError):
    """A reply, already paid for and counted, is not the JSON that was asked for: ``content``."""

    def __init__(self, content: str, reason: str) -> None:
        super().__init__(f"the model's reply can't be read: {reason}")
        self.content = content


@dataclass(frozen=True, slots=True)
class _Found:
    """A JSON object of a text, and where it stands."""

    start: int
    end: int
    value: dict[str, Any]


def read_refusal(said: Any) -> str:
    """Return the refusal that a reply's message, or a piece of a stream, carries; "" without one.

    litellm passes a message's on among the fields that it does not know, and a stream's not at all.
    """
    unknown: Any = getattr(said, "provider_specific_fields", None) or {}
    return getattr(said, "refusal", None) or unknown.get("refusal") or ""


def read_reply(content: str, form: type[Reply], shown: str = "") -> Reply:
    """Read the one JSON object of a reply that has the form.

    It may be the whole reply, stand in a code block, closed or not, or have prose around it. An
    object within another is a part of that one and no reply. One among prose that stands in what
    the model was ``shown`` too may be a quotation and is not taken; escapes and spacing make no
    difference.

    Raises
    ------
    UnreadableReplyError
        If no object has the form, more than one has, or it can't be told whether one is the reply.
    """
    text = _CONTROL.sub("", content)
    found, is_balanced = _find_objects(text)
    fitting: list[tuple[_Found, Reply]] = []
    problem: ValidationError | None = None
    for each in found:
        try:
            fitting.append((each, form.model_validate(each.value)))
        except ValidationError as error:
            problem = error
    if not fitting:
        raise UnreadableReplyError(content, _explain(found, problem)) from problem
    if len(fitting) > 1:
        msg = f"{len(fitting)} JSON objects in it have the form, so that neither counts"
        raise UnreadableReplyError(content, msg)
    if not is_balanced:
        raise UnreadableReplyError(content, "there are braces without a counterpart in it")
    (place, reply) = fitting[0]
    if shown and not _is_alone(place, text) and _is_quoted(place, text, shown):
        raise UnreadableReplyError(content, "its JSON object may be quoted from the material")
    return reply


@lru_cache(maxsize=256)
def _make_schema(
    make: Callable[..., dict[str, Any]], args: tuple[Any, ...], kwargs: tuple[tuple[str, Any], ...]
) -> dict[str, Any]:
    return make(*args, **dict(kwargs))


def _explain(found: list[_Found], problem: ValidationError | None) -> str:
    if problem is None:
        return "it is not JSON"
    if len(found) > 1:
        return f"none of the {len(found)} JSON objects in it has the form"
    first = problem.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else first["msg"]


def _find_objects(text: str) -> tuple[list[_Found], bool]:
    """Return the outermost JSON objects, and whether all other braces come in pairs.

    What is within braces that are no JSON is passed over: it may be a part of an object that is
    broken off or wrongly written.
    """
    found: list[_Found] = []
    at = depth = 0
    while depth >= 0 and (brace := _BRACE.search(text, at)) is not None:
        at = brace.end()
        if brace.group() == "}":
            depth -= 1
            continue
        decoded = _decode(text, brace.start()) if depth == 0 else None
        if decoded is None:
            depth += 1
        else:
            found.append(decoded)
            at = decoded.end
    return found, depth == 0


def _decode(text: str, start: int) -> _Found | None:
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):  # RecursionError: nested deeper than any form
        return None
    return _Found(start, end, value)


def _without_contradiction(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its pairs; the decoder alone would take the last of different values."""
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values and values[key] != value:
            msg = f"{key!r} has two values"
            raise ValueError(msg)
        values[key] = value
    return values


_DECODER = json.JSONDecoder(object_pairs_hook=_without_contradiction, strict=False)


def _is_alone(place: _Found, content: str) -> bool:
    """Say whether nothing but a code block stands around an object."""
    before = _FENCE_BEFORE.fullmatch(content, 0, place.start)
    return before is not None and _FENCE_AFTER.fullmatch(content, place.end) is not None


def _is_quoted(place: _Found, content: str, shown: str) -> bool:
    return _bare(content[place.start : place.end]) in _bare(shown)


def _bare(text: str) -> str:
    return _NOT_COMPARED.sub("", text)


def check_size(n_characters: int, answer: Answer | None = None) -> None:
    """Refuse a reply that is longer than any model writes; it is not asked for again."""
    if n_characters > MOST_CHARACTERS:
        msg = f"it has {n_characters:,} characters or more, where {MOST_CHARACTERS:,} are taken"
        raise GarbledReplyError(msg, answer, may_pass=False)


def holds_stray_control(text: str, shown: str) -> bool:
    """Say whether a text holds a control character, and the model was not shown it."""
    control = _STRAY.search(text)
    return control is not None and control.group() not in shown


def check_content(answer: Answer, shown: str, takes_controls: bool = False) -> None:
    """Refuse a completion whose text was damaged on its way or is not the model's.

    It is refused if it holds replacement or control characters, is a web page or a service's own
    envelope, and the model was ``shown`` none, or if it is longer than any model writes.
    ``takes_controls`` says that stray control characters are the model's own: they stood in its
    last reply to the same request, too.
    """
    text = cast("str", answer.reply)
    check_size(len(text), answer)
    if _BROKEN in text and _BROKEN not in shown:
        raise GarbledReplyError("its text was damaged (replacement characters)", answer)
    if not takes_controls and holds_stray_control(text, shown):
        raise GarbledReplyError("its text was damaged (control characters)", answer)
    if _PAGE.match(text) and "<html" not in shown.lower():
        raise GarbledReplyError("it is a web page", answer)
    if _ENVELOPE.match(text) and '"choices"' not in shown:
        raise GarbledReplyError("it is the service's own envelope, not a model's text", answer)


def check_vectors(answer: Answer, n_texts: int) -> None:
    """Refuse embeddings that are not one vector of finite numbers, all as long, for each text."""
    vectors = cast("list[list[Any]]", answer.reply)
    if len(vectors) != n_texts:
        msg = f"{len(vectors)} embeddings came for {n_texts} texts"
        raise GarbledReplyError(msg, answer)
    if len({len(vector) for vector in vectors}) > 1 or not all(vectors):
        raise GarbledReplyError("its embeddings are empty or of different lengths", answer)
    if not all(isfinite(number) for vector in vectors for number in vector):
        raise GarbledReplyError("its embeddings are not finite numbers", answer)
