"""Reads the messages of a completion request into a Request, whatever their shape."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from pydantic import BaseModel

from graphrag.embedded import OfflineModelError

Message = Mapping[str, object]


@dataclass(frozen=True)
class Request:
    """One completion request: all system messages, joined; the last user message; the first one.

    ``reply_type``: the class whose shape the reply must have; None for plain text.
    """

    system: str
    user: str
    first_user: str
    reply_type: type[BaseModel] | None = None

    @property
    def fields(self) -> frozenset[str]:
        """Field names of the reply's class; empty for plain text."""
        return frozenset(self.reply_type.model_fields) if self.reply_type else frozenset()

    @cached_property
    def material(self) -> dict[str, Any]:
        """The JSON object at the end of the user message; empty if there is none."""
        for match in re.finditer(r"\{", self.user):
            try:
                value, end = json.JSONDecoder().raw_decode(self.user, match.start())
            except ValueError:
                continue
            if isinstance(value, dict) and not self.user[end:].strip(" \n\t`"):
                return cast("dict[str, Any]", value)
        return {}


@dataclass(frozen=True, slots=True)
class Reply:
    """The text of a reply, and whether it abstains."""

    text: str
    abstains: bool = False


def plain_messages(messages: object) -> list[Message]:
    """Return messages as dictionaries."""
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    listed = cast("Iterable[BaseModel | Message]", messages or ())
    return [one.model_dump() if isinstance(one, BaseModel) else dict(one) for one in listed]


def read_request(messages: Iterable[Message], reply_type: object = None) -> Request:
    """Sort messages by role into a request.

    Raises OfflineModelError if there is no user message, or ``reply_type`` is no pydantic model.
    """
    if reply_type is not None and not (
        isinstance(reply_type, type) and issubclass(reply_type, BaseModel)
    ):
        raise OfflineModelError("response_format must be a pydantic model class.")
    texts = [(message.get("role"), _text(message.get("content"))) for message in messages]
    user = [text for role, text in texts if role == "user"]
    if not user:
        raise OfflineModelError("A request needs a user message.")
    system = "\n\n".join(text for role, text in texts if role in {"system", "developer"})
    return Request(system=system, user=user[-1], first_user=user[0], reply_type=reply_type)


def _text(content: object) -> str:
    if content is not None and not isinstance(content, str):
        raise OfflineModelError("A message's `content` must be text.")
    return content or ""
