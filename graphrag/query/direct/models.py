"""``type: openai_direct`` in the release's own commands: its interfaces over ``DirectModel``.

Retries, rate limits, caches and metrics are the release's, as the settings name them.
"""

from typing import TYPE_CHECKING, Any, cast

from graphrag_llm.completion import LLMCompletion
from graphrag_llm.embedding import LLMEmbedding
from graphrag_llm.types import (
    LLMChoice,
    LLMCompletionMessage,
    LLMCompletionResponse,
    LLMCompletionUsage,
    LLMEmbeddingResponse,
    LLMEmbeddingUsage,
)
from graphrag_llm.types import LLMEmbedding as EmbeddingRow
from pydantic import BaseModel

from graphrag.query.direct.asking import DirectModel, as_plain
from graphrag.query.direct.http import wait_for
from graphrag.query.direct.replies import DirectReply, DirectVectors

if TYPE_CHECKING:
    from graphrag_llm.config import ModelConfig
    from graphrag_llm.metrics import MetricsStore
    from graphrag_llm.tokenizer import Tokenizer


class _Asked:
    """What both kinds of model share: the release's middleware around one call."""

    def __init__(
        self,
        kind: Any,
        ask: Any,
        config: "ModelConfig",
        given: dict[str, Any],
    ) -> None:
        from graphrag_llm.middleware import with_middleware_pipeline

        self.tracks = given.get("metrics_processor") is not None

        async def send(**request: Any) -> Any:
            request.pop("metrics", None)
            return await ask(**request)

        def send_and_wait(**request: Any) -> Any:
            return wait_for(send(**request))

        self.once, self.once_async = with_middleware_pipeline(
            model_config=config,
            model_fn=cast("Any", send_and_wait),
            async_model_fn=cast("Any", send),
            request_type=kind,
            metrics_processor=given.get("metrics_processor"),
            cache=given.get("cache"),
            cache_key_creator=cast("Any", given.get("cache_key_creator")),
            tokenizer=cast("Any", given.get("tokenizer")),
            rate_limiter=given.get("rate_limiter"),
            retrier=given.get("retrier"),
        )


class DirectCompletion(LLMCompletion):
    """A completion model that the release's factory makes.

    Parameters
    ----------
    model_config : ModelConfig
    tokenizer : Tokenizer
    metrics_store : MetricsStore
    **given : Any
        The other things that the factory passes.

    Raises
    ------
    DirectSettingsError
        If the model can't be asked directly.
    """

    def __init__(
        self,
        *,
        model_config: "ModelConfig",
        tokenizer: "Tokenizer",
        metrics_store: "MetricsStore",
        **given: Any,
    ) -> None:
        self._tokenizer, self._metrics_store = tokenizer, metrics_store
        model = DirectModel(model_config, bounded=True)

        async def ask(**request: Any) -> Any:
            if request.get("stream"):
                return model.stream(**request)
            return _as_released(await model.complete(**request))

        self._asked = _Asked("chat", ask, model_config, {**given, "tokenizer": tokenizer})

    @property
    def metrics_store(self) -> "MetricsStore":
        """Where metrics are added up."""
        return self._metrics_store

    @property
    def tokenizer(self) -> "Tokenizer":
        """The model's tokenizer."""
        return self._tokenizer

    def completion(self, /, **kwargs: Any) -> Any:
        """Ask and wait; see :meth:`completion_async`. Nothing is streamed this way.

        Raises
        ------
        NotImplementedError
            With ``stream=True``.
        """
        if kwargs.get("stream"):
            msg = "type openai_direct streams in completion_async alone"
            raise NotImplementedError(msg)
        request, metrics, form = self._prepare(kwargs)
        try:
            return _structured(self._asked.once(**request), form)
        finally:
            self._keep(metrics)

    async def completion_async(self, /, **kwargs: Any) -> Any:
        """Ask for a completion; ``response_format`` is a pydantic class, ``stream`` gives pieces.

        Raises
        ------
        ValueError
            With both, as of the release's own models.
        """
        request, metrics, form = self._prepare(kwargs)
        try:
            return _structured(await self._asked.once_async(**request), form)
        finally:
            self._keep(metrics)

    def _prepare(
        self, kwargs: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float] | None, Any]:
        form = kwargs.pop("response_format", None)
        if form is not None and kwargs.get("stream"):
            msg = "response_format is not supported for streaming completions."
            raise ValueError(msg)
        metrics: dict[str, float] | None = kwargs.pop("metrics", None) or {}
        metrics = metrics if self._asked.tracks else None
        return {**kwargs, "response_format": form, "metrics": metrics}, metrics, form

    def _keep(self, metrics: dict[str, float] | None) -> None:
        if metrics is not None:
            self._metrics_store.update_metrics(metrics=metrics)


class DirectEmbedding(LLMEmbedding):
    """An embedding model that the release's factory makes; see :class:`DirectCompletion`."""

    def __init__(
        self,
        *,
        model_config: "ModelConfig",
        tokenizer: "Tokenizer",
        metrics_store: "MetricsStore",
        **given: Any,
    ) -> None:
        self._tokenizer, self._metrics_store = tokenizer, metrics_store
        model = DirectModel(model_config, bounded=True)

        async def ask(**request: Any) -> Any:
            return vectors_as_released(await model.embed(**request))

        self._asked = _Asked("embedding", ask, model_config, {**given, "tokenizer": tokenizer})

    @property
    def metrics_store(self) -> "MetricsStore":
        """Where metrics are added up."""
        return self._metrics_store

    @property
    def tokenizer(self) -> "Tokenizer":
        """The model's tokenizer."""
        return self._tokenizer

    def embedding(self, /, **kwargs: Any) -> LLMEmbeddingResponse:
        """Ask for one vector for each text of ``input``, and wait."""
        metrics: Any = (kwargs.pop("metrics", None) or {}) if self._asked.tracks else None
        kwargs["metrics"] = metrics
        try:
            return self._asked.once(**kwargs)
        finally:
            if metrics:
                self._metrics_store.update_metrics(metrics=metrics)

    async def embedding_async(self, /, **kwargs: Any) -> LLMEmbeddingResponse:
        """Ask for one vector for each text of ``input``."""
        metrics: Any = (kwargs.pop("metrics", None) or {}) if self._asked.tracks else None
        kwargs["metrics"] = metrics
        try:
            return await self._asked.once_async(**kwargs)
        finally:
            if metrics:
                self._metrics_store.update_metrics(metrics=metrics)


def vectors_as_released(found: DirectVectors) -> LLMEmbeddingResponse:
    """Return vectors as graphrag_llm gives them."""
    tokens = found.usage.prompt_tokens if found.usage else 0
    return LLMEmbeddingResponse(
        object="list",
        data=[
            EmbeddingRow(object="embedding", embedding=vector, index=index)
            for index, vector in enumerate(found.embeddings)
        ],
        model=found.model,
        usage=LLMEmbeddingUsage(prompt_tokens=tokens, total_tokens=tokens),
    )


def _as_released(reply: DirectReply) -> LLMCompletionResponse[BaseModel]:
    choice = reply.choices[0]
    reason: Any = choice.finish_reason if choice.finish_reason in _REASONS else "stop"
    message = LLMCompletionMessage(
        role="assistant", content=choice.message.content, refusal=choice.message.refusal
    )
    return LLMCompletionResponse[BaseModel](
        id="direct",
        object="chat.completion",
        created=0,
        model=reply.model,
        choices=[LLMChoice(index=0, message=message, finish_reason=reason)],
        usage=None
        if reply.usage is None
        else LLMCompletionUsage.model_validate(as_plain(reply.usage)),
    )


_REASONS = ("stop", "length", "content_filter")


def _structured(response: Any, form: Any) -> Any:
    if form is not None:
        response.formatted_response = form.model_validate_json(response.content)
    return response
