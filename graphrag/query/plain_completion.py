"""Completions that are sent, counted and read, without the release's types around them.

The release's types load openai, which takes a second. A judge whose service is asked directly
needs neither; :mod:`graphrag.query.models` puts the types around the same calls for the searches.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel

from graphrag.query.caller import ModelCaller
from graphrag.query.calls import (
    Answer,
    CutOffReplyError,
    RetryPolicy,
    read_retry_policy,
    read_usage,
)
from graphrag.query.direct.asking import DirectModel
from graphrag.query.direct.settings import DIRECT
from graphrag.query.garbled import check_content, check_size, holds_stray_control
from graphrag.query.output import BOUND_KEYS, bind_output, describe_cut
from graphrag.query.replies import UnreadableReplyError, read_refusal, read_reply
from graphrag.query.usage import CUT_OFF, CallLog, OutputBound, RecordedCall, current_scope

if TYPE_CHECKING:
    from graphrag_llm.completion import LLMCompletion
    from graphrag_llm.config import ModelConfig
    from graphrag_llm.tokenizer import Tokenizer

_LITELLM = "litellm"
_TAKEN_OVER = ("metrics", "stream_options", "max_retries")


def bare_config(config: "ModelConfig", call_args: dict[str, Any]) -> "ModelConfig":
    """Return the configuration without the layers that :class:`ModelCaller` takes over."""
    changes = {"retry": None, "rate_limit": None, "metrics": None, "call_args": call_args}
    return config.model_copy(update=changes)


class CompletionCalls:
    """What every counted completion shares: one request sent, counted, checked and read."""

    config: "ModelConfig"
    _caller: ModelCaller
    _ask: Callable[..., Any]
    _tokenizer: "Tokenizer"
    _bounds: dict[OutputBound | None, tuple[OutputBound | None, dict[str, Any]]]

    def _prepare(
        self, given: dict[str, Any], scope: CallLog
    ) -> tuple[OutputBound | None, dict[str, Any]]:
        """Return the bound of a request's output, and the request as it is sent."""
        if isinstance(given["messages"], str):
            given["messages"] = [{"role": "user", "content": given["messages"]}]
        for taken_over in _TAKEN_OVER:
            given.pop(taken_over, None)
        if any(key in given for key in BOUND_KEYS):
            return bind_output(given, self.config, scope.bound)
        if scope.bound not in self._bounds:  # the same for every request that brings none
            self._bounds[scope.bound] = bind_output({}, self.config, scope.bound)
        bound, sent = self._bounds[scope.bound]
        return bound, {**given, **sent}

    async def _call(
        self, request: dict[str, Any], bound: OutputBound | None
    ) -> tuple[RecordedCall, BaseModel | None]:
        """Return what a request came to, and the reply in the form that it asked for."""
        form = cast("type[BaseModel] | None", request.get("response_format"))
        described = {**request, "response_format": _schema(form) if form else None}
        shown = _shown(request["messages"])
        was_stray = False

        async def send() -> Answer:
            nonlocal was_stray
            response = await self._ask(**request)
            choice: Any = response.choices[0] if response.choices else None
            refusal = read_refusal(choice.message) if choice else ""
            # Services that refuse leave the content out: what they say instead is the reply.
            text = response.content or refusal
            if not read_usage(response.usage, output=True)[0]:
                check_size(len(text))  # before it is counted, which would take minutes
            reason = choice.finish_reason if choice else None
            answer = self._count(request, text, response.usage, reason, bool(refusal))
            takes_controls, was_stray = was_stray, holds_stray_control(text, shown)
            check_content(answer, shown, takes_controls)
            return answer

        call = await self._caller.call(described, send, lambda: self._count_prompt(request))
        if form is None:
            return call, None
        content: str = call.reply
        try:
            return call, read_reply(content, form, shown)
        except UnreadableReplyError as error:
            answered = call.attempts[-1]
            if answered.finish_reason != CUT_OFF:
                raise
            cut = describe_cut(answered.output_tokens, bound)
            raise CutOffReplyError(error.content, cut) from error

    def _count(
        self,
        request: dict[str, Any],
        content: str,
        usage: Any,
        reason: str | None,
        abstained: bool,
    ) -> Answer:
        prompt, output, cached = read_usage(usage, output=True)
        if prompt:
            return Answer(content, prompt, output, "provider", cached, reason, abstained)
        prompt, output = self._count_prompt(request), self._tokenizer.num_tokens(content)
        return Answer(content, prompt, output, "tokenizer", None, reason, abstained)

    def _count_prompt(self, request: dict[str, Any]) -> int:
        return self._tokenizer.num_prompt_tokens(request["messages"])


@dataclass(frozen=True, slots=True)
class PlainReply:
    """A reply, and in the form that was asked for; None where none was."""

    content: str
    formatted_response: BaseModel | None


class PlainCompletion(CompletionCalls):
    """A completion model for a judge, whose service is asked directly or through litellm.

    Parameters
    ----------
    config : ModelConfig
        Of ``type: openai_direct`` or ``litellm``.
    retry : RetryPolicy

    Raises
    ------
    DirectSettingsError
        If the model can't be asked directly.
    """

    def __init__(self, config: "ModelConfig", retry: RetryPolicy) -> None:
        from graphrag.query.later_tokenizer import LaterTokenizer

        self.config, self._bounds = config, {}
        self._caller = ModelCaller("completion", config, retry)
        self._tokenizer = LaterTokenizer(f"{config.model_provider}/{config.model}")
        if config.type == DIRECT:
            self._ask = DirectModel(bare_config(config, config.call_args), bounded=False).complete
        else:
            from graphrag.query.litellm_models import OneAttemptLiteLLM

            self._ask = OneAttemptLiteLLM(config, self._tokenizer).ask

    async def completion_async(self, /, **kwargs: Any) -> PlainReply:
        """Ask the model; see ``CountedCompletion.completion_async``. Nothing is streamed."""
        bound, request = self._prepare(kwargs, current_scope() or CallLog())
        call, formatted = await self._call(request, bound)
        return PlainReply(call.reply, formatted)


def open_plain(
    config: "ModelConfig", retry: RetryPolicy | None = None
) -> "PlainCompletion | LLMCompletion":
    """Make a counted completion that is asked for whole replies alone, as a judge is."""
    if config.type in {DIRECT, _LITELLM}:
        return PlainCompletion(config, retry or read_retry_policy(config))
    from graphrag.query.models import open_completion

    return open_completion(config, retry)


@lru_cache(maxsize=256)
def _schema(form: type[BaseModel]) -> dict[str, Any]:
    return form.model_json_schema()


def _shown(messages: list[Any]) -> str:
    """Return what a model was shown, its own replies left out."""
    given = (cast("dict[str, Any]", each) for each in messages if isinstance(each, dict))
    return "\n".join(str(each["content"]) for each in given if each["role"] != "assistant")
