"""The embedded models behind graphrag's completion and embedding interfaces."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from graphrag_llm.completion import LLMCompletion
from graphrag_llm.config import ModelConfig
from graphrag_llm.embedding import LLMEmbedding
from graphrag_llm.middleware import with_middleware_pipeline
from graphrag_llm.types import (
    LLMChoice,
    LLMChoiceChunk,
    LLMChoiceDelta,
    LLMCompletionChunk,
    LLMCompletionMessage,
    LLMCompletionResponse,
    LLMCompletionUsage,
    LLMEmbeddingResponse,
    LLMEmbeddingUsage,
)
from graphrag_llm.types import LLMEmbedding as EmbeddingRow

from graphrag.offline import OfflineModelError, note_call
from graphrag.offline.dispatch import reply
from graphrag.offline.requests import plain_messages, read_request
from graphrag.offline.vectors import (
    WORDLLAMA,
    WORDLLAMA_LENGTHS,
    average_words,
    find_wordllama,
    hash_text,
)

if TYPE_CHECKING:
    from graphrag_llm.metrics import MetricsStore
    from graphrag_llm.tokenizer import Tokenizer

DEFAULT_DIMENSIONS = 384
"""Length of the vectors of hashed n-grams when the settings name none; of learnt words: 256."""

_WORDS_A_CHUNK = re.compile(r"(?:\s*\S+){1,8}|\s+")
_UNSUPPORTED = ("tools", "functions", "audio", "prediction", "logprobs")
_FACTORY_ARGUMENTS = frozenset(
    {"metrics_processor", "rate_limiter", "retrier", "cache", "cache_key_creator"}
)


class _OfflineModel:
    """What both models are: a tokenizer, and metrics that are added up somewhere.

    They hold no state between calls, so threads may share one. Cache, retries and rate limits of
    the settings are not used: there is nothing to spare or to wait for. What the model does not
    know among its settings, or graphrag's factory passes beyond its own arguments, raises an
    OfflineModelError that names the nearest known setting.
    """

    _role: ClassVar[Literal["completion", "embedding"]]
    _further_settings: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        *,
        model_id: str,
        model_config: ModelConfig,
        tokenizer: "Tokenizer",
        metrics_store: "MetricsStore",
        **kwargs: Any,
    ) -> None:
        unknown = {*(model_config.model_extra or {}), *kwargs} - _FACTORY_ARGUMENTS
        known = [*ModelConfig.model_fields, *self._further_settings]
        _refuse_unknown(f"The {self._role} model {model_id}", unknown, known)
        self._model_id = model_id
        self._tokenizer = tokenizer
        self._metrics_store = metrics_store
        self._tracks_metrics = kwargs.get("metrics_processor") is not None
        pipeline: Any = with_middleware_pipeline
        self._call, _ = pipeline(
            model_config=model_config,
            model_fn=self._respond,
            async_model_fn=None,  # the async pipeline would do the same, and nothing here waits
            metrics_processor=kwargs.get("metrics_processor"),
            cache=None,
            cache_key_creator=kwargs.get("cache_key_creator"),
            request_type="chat" if self._role == "completion" else "embedding",
            tokenizer=tokenizer,
            rate_limiter=None,
            retrier=None,
        )

    @property
    def metrics_store(self) -> "MetricsStore":
        """Where metrics of all calls are added up."""
        return self._metrics_store

    @property
    def tokenizer(self) -> "Tokenizer":
        """What the usage is counted with."""
        return self._tokenizer

    def _respond(self, **kwargs: Any) -> Any:
        raise NotImplementedError

    def _run(self, kwargs: dict[str, Any]) -> Any:
        note_call(self._role, self._model_id)
        metrics: dict[str, float] | None = kwargs.pop("metrics", None)
        if not self._tracks_metrics:
            return self._call(metrics=None, **kwargs)
        metrics = {} if metrics is None else metrics
        try:
            return self._call(metrics=metrics, **kwargs)
        finally:
            self._metrics_store.update_metrics(metrics=metrics)

    async def _run_async(self, kwargs: dict[str, Any]) -> Any:
        # Nothing else here waits: of a thousand calls at once none would let Ctrl-C through.
        await asyncio.sleep(0)
        response = self._run(kwargs)
        return _as_async(cast("Any", response)) if isinstance(response, Iterator) else response


class OfflineCompletion(_OfflineModel, LLMCompletion):
    """Replies by rules: deterministic, without a network, in milliseconds.

    Sampling arguments (temperature, seed, ...) and token limits change nothing.
    """

    _role = "completion"

    def completion(self, /, **kwargs: Any) -> Any:
        """Reply to `messages`, a string or role-content mappings, or raise an OfflineModelError.

        `response_format`, a pydantic class, may be combined with `stream`; usage, counted by the
        tokenizer, then comes on a last chunk if ``stream_options={"include_usage": True}``. Where
        a search's question has no answer in its context, ``refusal`` has the text too.
        """
        return self._run(kwargs)

    async def completion_async(self, /, **kwargs: Any) -> Any:
        """Reply to messages; `completion` with an async iterator when streaming."""
        return await self._run_async(kwargs)

    def _respond(self, **kwargs: Any) -> Any:
        for name in _UNSUPPORTED:
            if kwargs.get(name):
                raise OfflineModelError(f"The offline model does not support `{name}`.")
        if kwargs.get("n") not in {None, 1}:
            raise OfflineModelError("The offline model gives one reply; `n` must be 1.")
        messages = plain_messages(kwargs.get("messages"))
        request = read_request(messages, kwargs.get("response_format"))
        answer = reply(request)
        text, refusal = answer.text, answer.text if answer.abstains else None
        n_prompt = self._tokenizer.num_prompt_tokens(cast("Any", messages))
        n_output = self._tokenizer.num_tokens(text)
        response = LLMCompletionResponse[Any](
            id="offline-" + blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest(),
            object="chat.completion",
            created=0,
            model=self._model_id,
            choices=[
                LLMChoice(
                    index=0,
                    message=LLMCompletionMessage(role="assistant", content=text, refusal=refusal),
                    finish_reason="stop",
                )
            ],
            usage=LLMCompletionUsage(
                prompt_tokens=n_prompt,
                completion_tokens=n_output,
                total_tokens=n_prompt + n_output,
            ),
            formatted_response=request.reply_type and request.reply_type.model_validate_json(text),
        )
        if not kwargs.get("stream"):
            return response
        return iter(self._chunks(response, kwargs.get("stream_options") or {}))

    def _chunks(
        self, response: LLMCompletionResponse[Any], options: Mapping[str, object]
    ) -> list[LLMCompletionChunk]:
        refuses = response.choices[0].message.refusal is not None

        def chunk(piece: str | None) -> LLMCompletionChunk:
            refusal = piece if refuses else None
            delta = LLMChoiceDelta(role="assistant", content=piece, refusal=refusal)
            return LLMCompletionChunk(
                id=response.id,
                object="chat.completion.chunk",
                created=0,
                model=self._model_id,
                choices=[LLMChoiceChunk(index=0, delta=delta)],
            )

        chunks = [chunk(piece) for piece in _WORDS_A_CHUNK.findall(response.content) or [""]]
        chunks[-1].choices[0].finish_reason = "stop"
        if options.get("include_usage"):
            # OpenAI sends no choice here, but released callers read choices[0] of every chunk.
            last = chunk(None)
            last.usage = response.usage
            chunks.append(last)
        return chunks


class OfflineEmbedding(_OfflineModel, LLMEmbedding):
    """Vectors from hashed n-grams or learnt words: deterministic, without a network, any script.

    Their length, which `vector_store.vector_size` must equal, is the setting `dimensions`: at
    least 8 of hashed n-grams (384 where it is None), 64, 128 or 256 (None) of learnt words.
    Another length, or learnt words whose package is not installed, raise an OfflineModelError.
    """

    _role = "embedding"
    _further_settings = ("dimensions",)

    def __init__(
        self, *, model_config: ModelConfig, dimensions: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(model_config=model_config, **kwargs)
        self._is_learnt = model_config.model == WORDLLAMA
        if self._is_learnt:
            find_wordllama()
        default = max(WORDLLAMA_LENGTHS) if self._is_learnt else DEFAULT_DIMENSIONS
        self._dimensions = self._check_length(default if dimensions is None else dimensions)

    def embedding(self, /, **kwargs: Any) -> LLMEmbeddingResponse:
        """Embed `input`, a list of texts, or one: a vector each, of Euclidean norm 1.

        `dimensions` is another length than the settings name; usage is counted by the tokenizer.
        """
        return self._run(kwargs)

    async def embedding_async(self, /, **kwargs: Any) -> LLMEmbeddingResponse:
        """Embed texts; the same as `embedding`."""
        return await self._run_async(kwargs)

    def _respond(self, **kwargs: Any) -> LLMEmbeddingResponse:
        given = cast("str | Sequence[str] | None", kwargs.get("input"))
        if given is None:
            raise OfflineModelError("Embedding needs `input`, a list of texts.")
        texts = [given] if isinstance(given, str) else list(given)
        dimensions = self._check_length(kwargs.get("dimensions") or self._dimensions)
        tokens = sum(self._tokenizer.num_tokens(text) for text in texts)
        vectors = (
            average_words(texts, dimensions)
            if self._is_learnt
            else [hash_text(text, dimensions) for text in texts]
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

    def _check_length(self, dimensions: object) -> int:
        length = dimensions if isinstance(dimensions, int) and dimensions is not True else 0
        if length in WORDLLAMA_LENGTHS if self._is_learnt else length >= 8:
            return length
        *shorter, longest = WORDLLAMA_LENGTHS
        allowed = (
            f"{', '.join(map(str, shorter))} or {longest} of {WORDLLAMA}"
            if self._is_learnt
            else "a whole number of at least 8"
        )
        raise OfflineModelError(f"`dimensions` must be {allowed}, not {dimensions!r}.")


async def _as_async(chunks: Iterator[LLMCompletionChunk]) -> AsyncIterator[LLMCompletionChunk]:
    for chunk in chunks:
        yield chunk


def _refuse_unknown(model: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse settings that nothing would read, naming the nearest known one."""
    listed = sorted(known)
    for name in sorted(set(names) - set(listed)):
        near = get_close_matches(name, listed, n=1, cutoff=0.6)
        advice = f"did you mean `{near[0]}`?" if near else f"it may have only: {', '.join(listed)}."
        raise OfflineModelError(f"{model} has no setting `{name}`; {advice}")
