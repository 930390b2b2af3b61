"""The embedded embedding models behind graphrag's embedding interface.

Hashed n-grams need nothing; the static words of ``model: wordllama`` need that package.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from graphrag_llm.config import ModelConfig
from graphrag_llm.embedding import LLMEmbedding
from graphrag_llm.middleware import with_middleware_pipeline
from graphrag_llm.types import LLMEmbedding as EmbeddingRow
from graphrag_llm.types import LLMEmbeddingResponse, LLMEmbeddingUsage

from graphrag.offline import static_words
from graphrag.offline.counted import CountedModel
from graphrag.offline.errors import OfflineModelError, refuse_unknown_fields
from graphrag.offline.vectors import embed_text

if TYPE_CHECKING:
    from graphrag_llm.metrics import MetricsStore
    from graphrag_llm.tokenizer import Tokenizer

DEFAULT_DIMENSIONS = 384
"""Length of the vectors of hashed n-grams when the settings name none; of static words: 256."""

_FACTORY_ARGUMENTS = frozenset(
    {"metrics_processor", "rate_limiter", "retrier", "cache", "cache_key_creator"}
)


class OfflineEmbedding(CountedModel, LLMEmbedding):
    """Vectors from hashed n-grams or static words: deterministic, without a network, any script.

    Holds no state between calls, so threads may share one. Cache, retries and rate limits
    of the settings are not used.

    Parameters
    ----------
    model_id : str
        What responses name as their model, such as "offline/hashed-ngrams".
    model_config : ModelConfig
        The model's settings; fields that it does not know are refused.
    tokenizer : Tokenizer
        Counts the usage.
    metrics_store : MetricsStore
        Adds up metrics of all calls.
    dimensions : int or None
        Length of the vectors: at least 8 of hashed n-grams, 64, 128 or 256 of static words;
        `vector_store.vector_size` must equal it. None: 384 of the former, 256 of the latter.
    **kwargs : Any
        The other things that graphrag's factory passes, and unknown settings.

    Raises
    ------
    OfflineModelError
        On an unknown setting, naming the nearest known one, a bad length, or static words whose
        package is not installed.
    """

    _asked_for = "embedding"

    def __init__(
        self,
        *,
        model_id: str,
        model_config: ModelConfig,
        tokenizer: "Tokenizer",
        metrics_store: "MetricsStore",
        dimensions: int | None = None,
        **kwargs: Any,
    ) -> None:
        refuse_unknown_fields(
            f"The embedding model {model_id}",
            {*(model_config.model_extra or {}), *kwargs} - _FACTORY_ARGUMENTS,
            {*ModelConfig.model_fields, "dimensions"},
        )
        self._is_static = model_config.model == static_words.NAME
        if self._is_static:
            static_words.check_installed()
        default = max(static_words.LENGTHS) if self._is_static else DEFAULT_DIMENSIONS
        self._dimensions = self._checked(default if dimensions is None else dimensions)
        self._model_id = model_id
        self._tokenizer = tokenizer
        self._metrics_store = metrics_store
        self._track_metrics = kwargs.get("metrics_processor") is not None
        self._call, self._call_async = with_middleware_pipeline(
            model_config=model_config,
            model_fn=self._embed,
            async_model_fn=self._embed_async,
            metrics_processor=kwargs.get("metrics_processor"),
            cache=None,
            cache_key_creator=cast("Any", kwargs.get("cache_key_creator")),
            request_type="embedding",
            tokenizer=tokenizer,
            rate_limiter=None,
            retrier=None,
        )

    def embedding(self, /, **kwargs: Any) -> LLMEmbeddingResponse:
        """Embed texts.

        Parameters
        ----------
        **kwargs : Any
            `input` (a list of texts, or one), `dimensions` (another length than the
            settings name), `metrics`.

        Returns
        -------
        LLMEmbeddingResponse
            One vector a text, of Euclidean norm 1; usage counted by the tokenizer.

        Raises
        ------
        OfflineModelError
            When `input` is missing or `dimensions` is a length that the model does not give.
        """
        metrics = self._metrics_of(kwargs)
        try:
            return cast("Any", self._call)(metrics=metrics, **kwargs)
        finally:
            self._keep_metrics(metrics)

    async def embedding_async(self, /, **kwargs: Any) -> LLMEmbeddingResponse:
        """Embed texts; the same as `embedding`."""
        metrics = self._metrics_of(kwargs)
        try:
            return await cast("Any", self._call_async)(metrics=metrics, **kwargs)
        finally:
            self._keep_metrics(metrics)

    async def _embed_async(self, **kwargs: Any) -> LLMEmbeddingResponse:
        await asyncio.sleep(0)  # as the completion model does
        return self._embed(**kwargs)

    def _embed(self, **kwargs: Any) -> LLMEmbeddingResponse:
        given = cast("str | Sequence[str] | None", kwargs.get("input"))
        if given is None:
            raise OfflineModelError("Embedding needs `input`, a list of texts.")
        texts = [given] if isinstance(given, str) else list(given)
        dimensions = self._checked(kwargs.get("dimensions") or self._dimensions)
        tokens = sum(self._tokenizer.num_tokens(text) for text in texts)
        vectors = (
            static_words.embed_texts(texts, dimensions)
            if self._is_static
            else [embed_text(text, dimensions) for text in texts]
        )
        return LLMEmbeddingResponse(
            object="list",
            data=[
                EmbeddingRow(object="embedding", index=at, embedding=vector.tolist())
                for at, vector in enumerate(vectors)
            ],
            model=self._model_id,
            usage=LLMEmbeddingUsage(prompt_tokens=tokens, total_tokens=tokens),
        )

    def _checked(self, dimensions: object) -> int:
        if isinstance(dimensions, int) and not isinstance(dimensions, bool):
            known = static_words.LENGTHS
            if dimensions in known if self._is_static else dimensions >= 8:
                return dimensions
        *shorter, longest = static_words.LENGTHS
        allowed = (
            f"{', '.join(map(str, shorter))} or {longest} of {static_words.NAME}"
            if self._is_static
            else "a whole number of at least 8"
        )
        raise OfflineModelError(f"`dimensions` must be {allowed}, not {dimensions!r}.")
