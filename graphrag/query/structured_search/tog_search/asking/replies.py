"""What the models of a search are, what they are asked to reply, and how they fail."""

from typing import Any, Protocol, TypeVar, cast

from pydantic import BaseModel, ConfigDict

from graphrag.query.calls import CutOffReplyError
from graphrag.query.output import blame, bound_in_force, describe_cut
from graphrag.query.replies import StructuredReply, UnreadableReplyError, read_reply
from graphrag.query.usage import CUT_OFF, OutputBound

Reply = TypeVar("Reply", bound=BaseModel)
"""The form of a structured reply."""


class ToGSearchError(RuntimeError):
    """A search can't give an answer; the message is one sentence saying why."""


class Tokenizer(Protocol):
    """Counts tokens as the completion model does."""

    def num_tokens(self, text: str) -> int:
        """Return the number of tokens of a text."""
        ...


class CompletionModel(Protocol):
    """The part of graphrag_llm's completion that a search uses."""

    @property
    def tokenizer(self) -> Any:
        """The model's :class:`Tokenizer`."""
        ...

    async def completion_async(self, /, **kwargs: Any) -> Any:
        """Ask; the response, or with ``stream=True`` an async iterator of chunks."""
        ...


class TextEmbedder(Protocol):
    """The part of graphrag_llm's embedding that a search uses."""

    async def embedding_async(self, /, **kwargs: Any) -> Any:
        """Embed ``input``, a list of texts; ``first_embedding`` is the first one's vector."""
        ...


class EdgeScore(StructuredReply):
    """One edge's score, meant to be in [0, 1]; the edge is numbered as in the request."""

    model_config = ConfigDict(extra="forbid")

    edge: int
    score: float


class EdgeScores(StructuredReply):
    """Reply to a scoring call."""

    model_config = ConfigDict(extra="forbid")

    scores: list[EdgeScore]


class ReasonedAnswer(StructuredReply):
    """Reply to a check-and-answer call.

    The order of the fields is the order of writing: a reader of the stream knows whether the
    answer will be used before its first word.

    Attributes
    ----------
    sufficient : bool
        Whether the context holds the whole answer.
    answer : str
        Empty when there is nothing to answer from.
    relationships, sources : list of int
        Ids, as shown in the context, that the answer rests on.
    missing : str
        What the context lacks.
    """

    model_config = ConfigDict(extra="forbid")

    sufficient: bool
    answer: str
    relationships: list[int]
    sources: list[int]
    missing: str


async def ask(
    model: CompletionModel,
    messages: list[dict[str, str]],
    form: type[Reply],
    bound: OutputBound,
) -> Reply:
    """Ask once for a structured reply of bounded length, at temperature 0.

    A ``temperature`` in the model's ``call_args`` goes before.

    Raises
    ------
    UnreadableReplyError
        If the reply is not JSON of that form. Whatever else the model raises passes through.
    CutOffReplyError
        If it is not because it was cut off.
    """
    bound = _in_force(model, bound)
    try:
        response = await model.completion_async(
            messages=messages,
            **_sampling(model),
            response_format=form,
            max_tokens=bound.tokens,
        )
    except CutOffReplyError as error:
        raise blame(error, bound.setting) from error
    reply = response.formatted_response
    return reply if isinstance(reply, form) else read_reply(str(response.content), form)


async def ask_live(
    model: CompletionModel,
    messages: list[dict[str, str]],
    form: type[Reply],
    bound: OutputBound,
    on_partial: "PartialReader",
) -> Reply:
    """Ask once for a structured reply and show it while it arrives.

    Raises
    ------
    UnreadableReplyError, CutOffReplyError
        As :func:`ask`.
    """
    bound = _in_force(model, bound)
    received, reason = "", None
    try:
        chunks = await model.completion_async(
            messages=messages,
            **_sampling(model),
            response_format=form,
            max_tokens=bound.tokens,
            stream=True,
        )
    except CutOffReplyError as error:
        raise blame(error, bound.setting) from error
    async for chunk in chunks:
        if not chunk.choices:  # the chunk that carries only the usage figures
            continue
        reason = getattr(chunk.choices[0], "finish_reason", None) or reason
        piece = cast("str | None", chunk.choices[0].delta.content)
        if piece:
            received += piece
            on_partial(received)
    try:
        return read_reply(received, form)
    except UnreadableReplyError as error:
        if reason != CUT_OFF:
            raise
        raise CutOffReplyError(received, describe_cut(None, bound)) from error


def _sampling(model: CompletionModel) -> dict[str, float]:
    given = getattr(getattr(model, "config", None), "call_args", {})
    return {} if "temperature" in given else {"temperature": 0.0}


def _in_force(model: CompletionModel, wanted: OutputBound) -> OutputBound:
    return bound_in_force(getattr(model, "config", None), wanted)


class PartialReader(Protocol):
    """Looks at a reply that is still being written."""

    def __call__(self, received: str, /) -> None:
        """Take all that was received so far."""
        ...


__all__ = [
    "CompletionModel",
    "EdgeScore",
    "EdgeScores",
    "PartialReader",
    "ReasonedAnswer",
    "TextEmbedder",
    "ToGSearchError",
    "Tokenizer",
    "UnreadableReplyError",
    "ask",
    "ask_live",
]
