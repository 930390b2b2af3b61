"""What a caller asked, freed of the shapes that messages come in."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import BaseModel

from graphrag.offline.errors import OfflineModelError


@dataclass(frozen=True, slots=True)
class Request:
    """One completion request.

    Parameters
    ----------
    system : str
        All system messages, joined; "" when there are none.
    user : str
        The last user message.
    first_user : str
        The first user message; the same one when there is just one.
    reply_type : type[BaseModel] or None
        The pydantic class that the reply must have the shape of.
    """

    system: str
    user: str
    first_user: str
    reply_type: type[BaseModel] | None

    @property
    def fields(self) -> frozenset[str]:
        """Field names of the reply's shape; empty for plain text."""
        return frozenset(self.reply_type.model_fields) if self.reply_type else frozenset()


@dataclass(frozen=True, slots=True)
class Reply:
    """The text of a reply, and whether it says that there is no answer."""

    text: str
    abstains: bool = False


def plain_messages(messages: Any) -> list[dict[str, Any]]:
    """Messages as dictionaries with role and content.

    Raises
    ------
    OfflineModelError
        When there is none, or one has no role.
    """
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    found: list[dict[str, Any]] = []
    for message in cast("Iterable[Any]", messages or ()):
        if isinstance(message, Mapping):
            plain = dict(cast("Mapping[str, Any]", message))
        elif isinstance(message, BaseModel):
            plain = message.model_dump()
        else:
            raise OfflineModelError("A message must be a mapping with `role` and `content`.")
        if "role" not in plain:
            raise OfflineModelError("A message has no `role`.")
        found.append(plain)
    if not found:
        raise OfflineModelError("A request needs at least one message.")
    return found


def read_request(messages: list[dict[str, Any]], reply_type: type[BaseModel] | None) -> Request:
    """Sort messages by role.

    Raises
    ------
    OfflineModelError
        When there is no user message, or `reply_type` is no pydantic class.
    """
    if reply_type is not None and not (
        isinstance(reply_type, type) and issubclass(reply_type, BaseModel)  # pyright: ignore[reportUnnecessaryIsInstance]
    ):
        raise OfflineModelError("response_format must be a pydantic model class.")
    said = [_text(m.get("content")) for m in messages if m["role"] == "user"]
    if not said:
        raise OfflineModelError("A request needs a user message.")
    system = [_text(m.get("content")) for m in messages if m["role"] in {"system", "developer"}]
    return Request("\n\n".join(system), said[-1], said[0], reply_type)


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    parts = cast("Iterable[Any]", content)
    return "\n".join(
        str(cast("Mapping[str, Any]", part).get("text", ""))
        for part in parts
        if isinstance(part, Mapping)
    )
