"""Asking any model for text: graphrag_llm's, one with ``achat_stream``, or a stand-in of a test.

Some objects answer to every name, as those of ``unittest.mock`` do. What ``dir()`` lists of them is
what was set, so that is looked at first, and nothing is touched before it is asked.
"""

import inspect
import sys
from collections.abc import AsyncIterable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, cast

from graphrag.query.plain_completion import CompletionCalls

_COMPLETION, _STREAM = "completion_async", "achat_stream"
Way = Literal["completion_async", "achat_stream"]
"""The method of a model that is asked."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a model replied.

    Attributes
    ----------
    text : str
    formatted : object
        The reply in the form that was asked for, where the model reads its replies itself.
    """

    text: str
    formatted: object = None


def can_be_asked(model: object) -> bool:
    """Say whether an object has, or may have, one of the two methods."""
    # Nothing is looked up on an object that makes up its attributes: it would remember them.
    is_dynamic = hasattr(cast("object", type(model)), "__getattr__")
    return is_dynamic or hasattr(model, _COMPLETION) or hasattr(model, _STREAM)


def way_to_ask(model: object) -> Way:
    """Choose how a model is asked.

    A released completion model, and one whose ``completion_async`` is a coroutine function, is
    asked so; else one with ``achat_stream`` by that. Of what a model was given goes before what
    it makes up.

    Raises
    ------
    TypeError
        If it can be asked in neither way.
    """
    if isinstance(model, CompletionCalls):
        return _COMPLETION
    released: Any = sys.modules.get("graphrag_llm.completion")  # nobody has one before it is loaded
    if released is not None and isinstance(model, released.LLMCompletion):
        return _COMPLETION
    listed = dir(model)
    if _COMPLETION in listed and inspect.iscoroutinefunction(getattr(model, _COMPLETION)):
        return _COMPLETION
    if _STREAM in listed:
        return _STREAM
    if inspect.iscoroutinefunction(getattr(model, _COMPLETION, None)):  # of a proxy
        return _COMPLETION
    if callable(getattr(model, _STREAM, None)):
        return _STREAM
    if callable(getattr(model, _COMPLETION, None)):
        return _COMPLETION
    msg = "a judge's model needs completion_async (graphrag_llm) or achat_stream"
    raise TypeError(msg)


async def read_stream(streamed: object) -> str:
    """Return the text of what ``achat_stream`` gave: an async iterator of text, or awaits to one.

    Raises
    ------
    TypeError
        If it gives something else than text.
    """
    if inspect.isawaitable(streamed):
        streamed = await streamed
    if isinstance(streamed, str):
        return streamed
    if isinstance(streamed, AsyncIterable):
        return "".join([_text(piece) async for piece in cast("AsyncIterable[object]", streamed)])
    if isinstance(streamed, Iterable):
        return "".join(_text(piece) for piece in cast("Iterable[object]", streamed))
    return _text(streamed)


async def read_completion(asked: object) -> Told:
    """Return what ``completion_async`` gave: a response of graphrag_llm, or an object like it.

    Raises
    ------
    TypeError
        If it holds no text.
    """
    response: Any = await asked if inspect.isawaitable(asked) else asked
    if isinstance(response, str):
        return Told(response)
    return Told(_text(response.content), getattr(response, "formatted_response", None))


def _text(value: object) -> str:
    if value is None:  # the last piece of a stream, or a reply that was cut off before its start
        return ""
    if not isinstance(value, str):
        msg = f"the model must give text, not {type(value).__name__}"
        raise TypeError(msg)
    return value
