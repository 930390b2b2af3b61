"""The embedded embedding model: hashed n-grams behind graphrag's embedding interface."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from graphrag_llm.config import ModelConfig
from graphrag_llm.embedding import LLMEmbedding
from graphrag_llm.middleware import with_middleware_pipeline
from graphrag_llm.types import LLMEmbedding as EmbeddingRow
from graphrag_llm.types import LLMEmbeddingResponse, LLMEmbeddingUsage

from graphrag.offline.counted import CountedModel
from graphrag.offline.errors import OfflineModelError, refuse_unknown_fields
from graphrag.offline.vectors import embed_text

if TYPE_CHECKING:
    from graphrag_llm.metrics import MetricsStore
    from graphrag_llm.tokenizer import Tokenizer

DEFAULT_DIMENSIONS = 384
"""Length of the vectors when the settings name none."""

_FACTORY_ARGUMENTS = frozenset(
    {"metrics_processor", "rate_limiter", "retrier", "cache", "cache_key_creator"}
)


class OfflineEmbedding(CountedModel, LLMEmbedding):
    """Vectors from hashed n-grams: deterministic, without a network, for any script.

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
    dimensions : int
        Length of the vectors (>= 8); `vector_store.vector_size` must equal it.
    **kwargs : Any
        The other things that graphrag's factory passes, and unknown settings.

    Raises
    ------
    OfflineModelError
        On an unknown setting, naming the nearest known one, or a bad length.
    """

    _asked_for = "embedding"

    def __init__(
        self,
        *,
        model_id: str,
        model_config: ModelConfig,
        tokenizer: "Tokenizer",
        metrics_store: "MetricsStore",
        dimensions: int = DEFAULT_DIMENSIONS,
        **kwargs: Any,
    ) -> None:
        refuse_unknown_fields(
            f"The embedding model {model_id}",
            {*(model_config.model_extra or {}), *kwargs} - _FACTORY_ARGUMENTS,
            {*ModelConfig.model_fields, "dimensions"},
        )
        self._dimensions = _checked(dimensions)
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
            When `input` is missing or `dimensions` is below 8.
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
        return self._embed(**kwargs)

    def _embed(self, **kwargs: Any) -> LLMEmbeddingResponse:
        given = cast("str | Sequence[str] | None", kwargs.get("input"))
        if given is None:
            raise OfflineModelError("Embedding needs `input`, a list of texts.")
        texts = [given] if isinstance(given, str) else list(given)
        dimensions = _checked(kwargs.get("dimensions") or self._dimensions)
        tokens = sum(self._tokenizer.num_tokens(text) for text in texts)
        return LLMEmbeddingResponse(
            object="list",
            data=[
                EmbeddingRow(
                    object="embedding", index=at, embedding=embed_text(text, dimensions).tolist()
                )
                for at, text in enumerate(texts)
            ],
            model=self._model_id,
            usage=LLMEmbeddingUsage(prompt_tokens=tokens, total_tokens=tokens),
        )


def _checked(dimensions: object) -> int:
    if not isinstance(dimensions, int) or isinstance(dimensions, bool) or dimensions < 8:
        raise OfflineModelError(
            f"`dimensions` must be a whole number of at least 8, not {dimensions!r}."
        )
    return dimensions
