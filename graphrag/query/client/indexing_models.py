"""Defines the completion model that builds an index and leaves out parameters it refuses.

It extends the completion model of the released graphrag.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from graphrag_llm.completion.completion_factory import register_completion
from graphrag_llm.completion.lite_llm_completion import (
    LiteLLMCompletion,
    _create_base_completions,  # pyright: ignore[reportPrivateUsage]
)
from graphrag_llm.middleware.with_middleware_pipeline import with_middleware_pipeline
from pydantic import BaseModel

from graphrag.query.client.call_errors import name_service
from graphrag.query.client.refused_parameters import RefusedParameters, adapt
from graphrag.query.client.structured_output import UnreadableReplyError, read_reply
from graphrag.query.client.thoughts import without_thoughts

if TYPE_CHECKING:
    from graphrag_llm.config import ModelConfig

_Ask = Callable[..., Awaitable[Any]]
INDEXING = "indexing"
"""The ``type`` of such a model in settings; it is set in memory only."""


def register_indexing() -> None:
    """Register the model type ``INDEXING`` with the released graphrag's model factory."""
    register_completion(INDEXING, _IndexingCompletion)


class _IndexingCompletion(LiteLLMCompletion):
    """Asks again without a parameter that the model refuses, as searches do.

    Its replies contain no thoughts; a reply in a requested form is the JSON alone.
    """

    def __init__(self, *, model_config: "ModelConfig", **parts: Any) -> None:
        super().__init__(model_config=model_config, **parts)
        self._refused = RefusedParameters(name_service(model_config))
        self._asks: dict[frozenset[str], _Ask] = {}
        self._drops = bool(parts.get("drop_unsupported_params", True))
        # This runs inside the cache, the retries and the counting: these see a single request.
        self._completion, self._completion_async = cast("Any", with_middleware_pipeline)(
            model_config=model_config,
            model_fn=self._bases(frozenset())[0],
            async_model_fn=self._ask_adapted,
            request_type="chat",
            cache=self._cache,
            cache_key_creator=self._cache_key_creator,
            tokenizer=self._tokenizer,
            metrics_processor=self._metrics_processor,
            rate_limiter=self._rate_limiter,
            retrier=self._retrier,
        )

    def _bases(self, left_out: frozenset[str]) -> tuple[Any, _Ask]:
        config = self._model_config
        changes = {"call_args": adapt(config.call_args, left_out)}
        audience = "https://cognitiveservices.azure.com/.default"
        return cast("Any", _create_base_completions)(
            model_config=config.model_copy(update=changes),
            drop_unsupported_params=self._drops,
            azure_cognitive_services_audience=audience,
        )

    async def _ask_adapted(self, **request: Any) -> Any:
        left_out = self._refused.left_out
        while True:
            if left_out not in self._asks:
                self._asks[left_out] = self._bases(left_out)[1]
            try:
                reply = await self._asks[left_out](**adapt(request, left_out))
                break
            except Exception as error:
                settings = self._model_config.call_args
                more = self._refused.concede(error, request, settings, left_out)
                if more is None:
                    raise
                left_out = more
        self._refused.confirm(request, left_out)
        return _as_asked(reply, request.get("response_format"))


def _as_asked(reply: Any, form: object) -> Any:
    """Return a reply without its thoughts; a reply in a form is reduced to its JSON."""
    message = reply.choices[0].message if getattr(reply, "choices", None) else None
    if message is None or not message.content:
        return reply
    message.content = without_thoughts(message.content)
    if isinstance(form, type) and issubclass(form, BaseModel):
        with suppress(UnreadableReplyError):
            message.content = read_reply(message.content, form, "").model_dump_json()
    return reply
