"""Asking a judge: one structured reply, asked for again while it can't be read, never raising."""

import inspect
import sys
from collections.abc import AsyncIterable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, cast

from pydantic import BaseModel

from graphrag.eval.records import Failure
from graphrag.query.calls import CutOffReplyError, describe_error, is_refusal, name_remedy
from graphrag.query.models import CountedCompletion
from graphrag.query.replies import UnreadableReplyError, read_reply

Form = TypeVar("Form", bound=BaseModel)
_COMPLETION, _STREAM = "completion_async", "achat_stream"
_Way = Literal["completion_async", "achat_stream"]
_NO_WAY = "a judge's model needs completion_async (graphrag_llm) or achat_stream"


@dataclass(frozen=True, slots=True)
class ReplyForm(Generic[Form]):
    """What a judge must reply: the pydantic class, and its shape as shown to the judge."""

    form: type[Form]
    shape: str


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A judge that gave no usable reply.

    Attributes
    ----------
    failure : Failure
        ``unreadable``, ``cut_off``, ``error`` or ``refused``.
    replies : tuple of str
        The replies that can't be used as they came, in order; empty when the first call failed.
    """

    failure: Failure
    replies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgeModel:
    """A model and how it is asked, its attributes as :class:`LLMJudge` has them.

    Raises
    ------
    TypeError
        If the model has neither ``completion_async`` nor ``achat_stream``.
    """

    model: object
    temperature: float = 0.0
    max_retries: int = 2

    def __post_init__(self) -> None:
        if not _can_be_asked(self.model):
            raise TypeError(_NO_WAY)

    async def ask(self, prompt: str, wanted: ReplyForm[Form]) -> Form | Unanswered:
        """Ask until the reply has the form, at most ``max_retries`` times more; never raises.

        A reply that was cut off is not asked for again.
        """
        messages = [{"role": "user", "content": prompt}]
        replies: list[str] = []
        problem = ""
        for _ in range(self.max_retries + 1):
            try:
                return await self._ask_once(messages, wanted.form)
            except UnreadableReplyError as error:
                problem = str(error)
                replies.append(error.content)
                messages = [messages[0], *_repair(error, wanted.shape)]
            except CutOffReplyError as error:  # asked again, it would be cut off again
                return Unanswered(judge_failure(error), (*replies, error.content))
            except Exception as error:
                return Unanswered(judge_failure(error), tuple(replies))
        return Unanswered(Failure("judge", "unreadable", problem), tuple(replies))

    async def _ask_once(self, messages: list[dict[str, str]], form: type[Form]) -> Form:
        shown = "\n".join(each["content"] for each in messages if each["role"] == "user")
        model: Any = self.model
        if _way_to_ask(model) == _COMPLETION:
            text, formatted = await _read_completion(
                model.completion_async(
                    messages=messages, temperature=self.temperature, response_format=form
                )
            )
            return formatted if isinstance(formatted, form) else read_reply(text, form, shown)
        streamed = model.achat_stream(
            prompt=messages[-1]["content"],
            history=messages[:-1],
            model_parameters={"temperature": self.temperature},
        )
        return read_reply(await _read_stream(streamed), form, shown)


NO_REASON = "No reason provided"
"""Stands for the reason of a grade that came without one."""


def fill_reason(values: object, name: str) -> object:
    """Put :data:`NO_REASON` where a reply's reason is missing: the grade counts without one."""
    if not isinstance(values, Mapping):
        return values
    given = cast("Mapping[str, object]", values)
    return {**given, name: NO_REASON} if given.get(name) in (None, "") else given


def whole_number(value: object) -> object:
    """Read a grade: 4, 4.0 and "4" are 4; true is none; all else is left for the form to refuse."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and len(value.strip()) == 1 and value.strip() in "0123456789":
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _repair(error: UnreadableReplyError, shape: str) -> list[dict[str, str]]:
    request = f"{error} Grade the same material again and reply with only the JSON object {shape}."
    return [
        {"role": "assistant", "content": error.content},
        {"role": "user", "content": request},
    ]


_JUDGE_BUDGET = "the max_context_tokens of the methods, or choose a judge with a larger context"


def judge_failure(error: Exception) -> Failure:
    """Return the failure of a judge's call that raised."""
    message = name_remedy(describe_error(error), _JUDGE_BUDGET)
    if isinstance(error, CutOffReplyError):
        return Failure("judge", "cut_off", message)
    return Failure("judge", "refused" if is_refusal(error) else "error", message)


def _can_be_asked(model: object) -> bool:
    """Say whether an object has, or may have, one of the two methods."""
    # Nothing is looked up on an object that makes up its attributes: it would remember them.
    is_dynamic = hasattr(cast("object", type(model)), "__getattr__")
    return is_dynamic or hasattr(model, _COMPLETION) or hasattr(model, _STREAM)


def _way_to_ask(model: object) -> _Way:
    """Choose how a model is asked; a TypeError if it can be asked in neither way.

    A released completion model, and one whose ``completion_async`` is a coroutine function, is
    asked so; else one with ``achat_stream`` by that. Objects of ``unittest.mock`` answer to every
    name: what ``dir()`` lists was set, so that goes before what they make up.
    """
    if isinstance(model, CountedCompletion):
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
    raise TypeError(_NO_WAY)


async def _read_stream(streamed: object) -> str:
    """Return the text of what ``achat_stream`` gave: pieces, or an awaitable of them."""
    if inspect.isawaitable(streamed):
        streamed = await streamed
    if isinstance(streamed, str):
        return streamed
    if isinstance(streamed, AsyncIterable):
        return "".join([_text(piece) async for piece in cast("AsyncIterable[object]", streamed)])
    if isinstance(streamed, Iterable):
        return "".join(_text(piece) for piece in cast("Iterable[object]", streamed))
    return _text(streamed)


async def _read_completion(asked: object) -> tuple[str, object]:
    """Return the text of a response, and its form where the model reads its replies itself."""
    response: Any = await asked if inspect.isawaitable(asked) else asked
    if isinstance(response, str):
        return response, None
    return _text(response.content), getattr(response, "formatted_response", None)


def _text(value: object) -> str:
    if value is None:  # the last piece of a stream, or a reply that was cut off before its start
        return ""
    if not isinstance(value, str):
        msg = f"the model must give text, not {type(value).__name__}"
        raise TypeError(msg)
    return value
