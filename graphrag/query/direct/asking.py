"""Completions and embeddings of one service, asked once each."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from graphrag.query.direct.forms import describe_form
from graphrag.query.direct.http import DirectService, wait_for
from graphrag.query.direct.replies import (
    DirectReply,
    DirectUsage,
    DirectVectors,
    finish_reason,
    first_choice,
    read_completion,
    read_usage_figures,
    read_vectors,
    text_of,
)
from graphrag.query.direct.settings import DirectSettingsError, read_settings

if TYPE_CHECKING:
    from graphrag_llm.config import ModelConfig

# `response_format_json_object`: the release takes it out too, as it always names a form.
_NOT_SENT = ("metrics", "mock_response", "response_format_json_object", "timeout", "max_retries")
_UNSUPPORTED = ("tools", "functions", "audio")


class DirectModel:
    """A model behind OpenAI's interface.

    Parameters
    ----------
    config : ModelConfig
    bounded : bool
        Whether a request ends after ``call_args.timeout`` seconds, 600 without one; False where
        the caller sees to it.

    Raises
    ------
    DirectSettingsError
        If the model can't be asked directly.
    """

    def __init__(self, config: "ModelConfig", bounded: bool) -> None:
        settings = read_settings(config)
        self._given = settings.body
        self._service = DirectService(settings, bounded)

    async def complete(self, **request: Any) -> DirectReply:
        """Ask for a whole completion."""
        return read_completion(await self._service.post("/chat/completions", self._body(request)))

    async def stream(self, **request: Any) -> AsyncIterator[Any]:
        """Ask for a completion and give its pieces, of the release's type, as they come."""
        from graphrag_llm.types import (
            LLMChoiceChunk,
            LLMChoiceDelta,
            LLMCompletionChunk,
            LLMCompletionUsage,
        )

        body = self._body({**request, "stream": True})
        async for event in self._service.stream("/chat/completions", body):
            choice, choices = first_choice(event), list[Any]()
            if choice is not None:
                said: Any = choice.get("delta") or {}
                delta = LLMChoiceDelta(
                    role="assistant",
                    content=text_of(said.get("content")),
                    refusal=said.get("refusal"),
                )
                reason: Any = finish_reason(choice)
                choices = [
                    LLMChoiceChunk.model_construct(index=0, delta=delta, finish_reason=reason)
                ]
            usage = read_usage_figures(event.get("usage"))
            yield LLMCompletionChunk.model_construct(
                id=str(event.get("id") or ""),
                object="chat.completion.chunk",
                created=0,
                model=str(event.get("model") or ""),
                choices=choices,
                usage=None if usage is None else LLMCompletionUsage.model_validate(as_plain(usage)),
            )

    async def ask(self, **request: Any) -> Any:
        """Ask for a completion, whole, or in pieces with ``stream=True``."""
        return self.stream(**request) if request.get("stream") else await self.complete(**request)

    async def embed(self, **request: Any) -> DirectVectors:
        """Ask for one vector for each text of ``input``."""
        sent = {key: value for key, value in request.items() if key not in _NOT_SENT}
        body = {**self._given, **{key: value for key, value in sent.items() if value is not None}}
        body.setdefault("encoding_format", "float")
        return read_vectors(await self._service.post("/embeddings", body, None))

    def embed_and_wait(self, **request: Any) -> DirectVectors:
        """Ask for vectors, and wait also where this thread's loop is running."""
        return wait_for(self.embed(**request))

    def _body(self, request: dict[str, Any]) -> dict[str, Any]:
        for name in _UNSUPPORTED:
            if request.get(name):
                msg = f"type openai_direct does not send {name}; keep litellm for this model."
                raise DirectSettingsError(msg)
        sent = {key: value for key, value in request.items() if key not in _NOT_SENT}
        form = sent.get("response_format")
        if isinstance(form, type):
            sent["response_format"] = describe_form(form)
        given: Any = sent["messages"]
        if isinstance(given, str):
            given = [{"role": "user", "content": given}]
        sent["messages"] = [
            each if isinstance(each, dict) else each.model_dump(exclude_none=True) for each in given
        ]
        return {**self._given, **{key: value for key, value in sent.items() if value is not None}}


def as_plain(usage: DirectUsage) -> dict[str, Any]:
    """Return usage figures in the form of OpenAI's interface."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.prompt_tokens_details.cached_tokens},
    }
