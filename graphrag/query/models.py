"""The models that searches and judges ask, each call of them counted.

:func:`open_completion` and :func:`open_embedding` make them from a model's configuration; they
are graphrag_llm models, so the released search engines work with them unchanged.
"""

import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

from graphrag.query.later_litellm import import_types

import_types()

from graphrag_llm.completion import LLMCompletion, create_completion
from graphrag_llm.config import LLMProviderType
from graphrag_llm.embedding import LLMEmbedding, create_embedding
from graphrag_llm.metrics.noop_metrics_store import NoopMetricsStore
from graphrag_llm.types import (
    LLMCompletionChunk,
    LLMCompletionResponse,
    LLMEmbeddingResponse,
)
from pydantic import BaseModel, ValidationError

from graphrag.query.caller import ModelCaller
from graphrag.query.calls import (
    Answer,
    GarbledReplyError,
    NoReplyError,
    RetryPolicy,
    read_retry_policy,
    read_usage,
)
from graphrag.query.direct.asking import DirectModel
from graphrag.query.direct.settings import DIRECT
from graphrag.query.garbled import check_size, check_vectors
from graphrag.query.later_tokenizer import LaterTokenizer
from graphrag.query.limits import Place
from graphrag.query.plain_completion import CompletionCalls, bare_config
from graphrag.query.recorded_replies import (
    completion_response,
    embedding_response,
    in_one_chunk,
)
from graphrag.query.replies import UnreadableReplyError as UnreadableReplyError
from graphrag.query.replies import read_refusal
from graphrag.query.replies import read_reply as read_reply
from graphrag.query.spending import NotAskedError
from graphrag.query.usage import (
    CallLog,
    OutputBound,
    RecordedCall,
    current_scope,
)
from graphrag.redaction import StreamRedactor

if TYPE_CHECKING:
    from graphrag_llm.config import ModelConfig
    from graphrag_llm.metrics import MetricsStore
    from graphrag_llm.tokenizer import Tokenizer


class _NoRetries(int):
    """Zero that is true: litellm reads a false ``max_retries`` of an embedding as its default."""

    def __bool__(self) -> bool:
        return True


def open_completion(config: "ModelConfig", retry: RetryPolicy | None = None) -> "CountedCompletion":
    """Make the counted completion of a model's configuration."""
    return CountedCompletion(config, retry or read_retry_policy(config))


def open_embedding(config: "ModelConfig", retry: RetryPolicy | None = None) -> "CountedEmbedding":
    """Make the counted embedding of a model's configuration."""
    return CountedEmbedding(config, retry or read_retry_policy(config))


def _is_litellm(config: "ModelConfig") -> bool:
    return config.type == LLMProviderType.LiteLLM


class CountedCompletion(CompletionCalls, LLMCompletion):
    """A completion model whose every request is counted in the open scope.

    A streamed request is sent as an ordinary one, whose usage figures and retries are exact,
    unless the scope is live.
    """

    def __init__(self, config: "ModelConfig", retry: RetryPolicy) -> None:
        self.config, self._bounds = config, {}
        self._caller = ModelCaller("completion", config, retry)
        bare = bare_config(config, config.call_args)
        model_id = f"{config.model_provider}/{config.model}"
        self._metrics: MetricsStore = NoopMetricsStore()
        self._tokenizer = LaterTokenizer(model_id)
        self._ask: Callable[..., Any]
        if config.type == DIRECT:
            self._ask = DirectModel(bare, bounded=False).ask
        elif _is_litellm(config):
            from graphrag.query.litellm_models import OneAttemptLiteLLM

            self._ask = OneAttemptLiteLLM(config, self._tokenizer).ask
        else:
            self._ask = create_completion(bare, tokenizer=self._tokenizer).completion_async

    @property
    def metrics_store(self) -> "MetricsStore":
        """A store that keeps nothing: usage goes to the open scope."""
        return self._metrics

    @property
    def tokenizer(self) -> "Tokenizer":
        """The model's tokenizer."""
        return self._tokenizer

    def completion(
        self, /, **kwargs: Any
    ) -> LLMCompletionResponse[BaseModel] | Iterator[LLMCompletionChunk]:
        """Refuse: searches ask asynchronously, and an uncounted call must not slip through."""
        msg = "counted models are asked with completion_async"
        raise NotImplementedError(msg)

    async def completion_async(self, /, **kwargs: Any) -> Any:
        """Ask the model.

        Returns
        -------
        LLMCompletionResponse or async iterator of LLMCompletionChunk
            The iterator when ``stream=True``.

        Raises
        ------
        UnreadableReplyError
            If ``response_format`` was given and the reply is not JSON of that form.
        CutOffReplyError
            If it is not because the reply was cut off.

        Notes
        -----
        The output is bounded by the model's own ``call_args``, else by the request, else by the
        scope; one bound is sent, never two.
        """
        scope = current_scope() or CallLog()
        bound, kwargs = self._prepare(kwargs, scope)
        if kwargs.pop("stream", False):
            if scope.live:
                return self._stream_live(kwargs, scope)
            return in_one_chunk(await self._complete(kwargs, bound))
        return await self._complete(kwargs, bound)

    async def _complete(
        self, request: dict[str, Any], bound: OutputBound | None
    ) -> LLMCompletionResponse[BaseModel]:
        call, formatted = await self._call(request, bound)
        response = completion_response(call)
        response.formatted_response = formatted
        return response

    async def _stream_live(
        self, request: dict[str, Any], scope: CallLog
    ) -> AsyncIterator[LLMCompletionChunk]:
        """Stream under the limit; a stream that fails before its first chunk is tried again."""
        begun, n_failed, mark = False, 0, object()

        def count_tokens() -> int:
            return self._count_prompt(request)

        try:
            with scope.own_time.call():
                while True:
                    try:
                        async with self._caller.admitted(mark, count_tokens, scope) as place:
                            async for chunk in self._stream_once(request, scope, place):
                                begun = True
                                yield chunk
                        return
                    except Exception as error:
                        if begun:
                            raise
                        n_failed = await self._caller.wait_to_retry(error, n_failed, scope)
        except Exception as error:
            self._caller.note_failure(error, scope)
            raise

    async def _stream_once(
        self, request: dict[str, Any], scope: CallLog, place: Place
    ) -> AsyncIterator[LLMCompletionChunk]:
        started, allowed, n_characters = time.perf_counter(), self._caller.time(scope), 0
        pieces: list[str] = []
        usage: Any = None
        reason: str | None = None
        abstained = False
        failed: str | None = None
        shown = StreamRedactor()
        last: LLMCompletionChunk | None = None
        try:
            stream = await self._ask(**request, stream=True, stream_options={"include_usage": True})
            async for chunk in stream:
                usage = chunk.usage or usage
                if chunk.choices:
                    reason = chunk.choices[0].finish_reason or reason
                    delta = chunk.choices[0].delta
                    refusal = read_refusal(delta)
                    abstained = abstained or bool(refusal)
                    delta.content = delta.content or refusal
                    pieces.append(delta.content)
                    n_characters += len(delta.content)
                    check_size(n_characters)
                    if time.perf_counter() - started > allowed.seconds:
                        raise NoReplyError(allowed.exceeded())
                    delta.content = shown.feed(delta.content)
                    last = chunk
                    yield chunk
            if last is not None and (rest := shown.end()):
                last.choices[0].delta.content = rest
                yield last
        except BaseException as error:
            failed = self._caller.describe(error)
            raise
        finally:
            answered = None
            if pieces or usage:
                answered = self._count(request, "".join(pieces), usage, reason, abstained)
            attempt = self._caller.attempt(started, answered, failed)
            scope.attempts.append(attempt)
            if failed is None:
                place.answered(attempt.prompt_tokens + attempt.output_tokens)


class CountedEmbedding(LLMEmbedding):
    """An embedding model whose every request is counted in the open scope."""

    def __init__(self, config: "ModelConfig", retry: RetryPolicy) -> None:
        self.config = config
        self._caller = ModelCaller("embedding", config, retry)
        given: dict[str, Any] = config.call_args
        bare = bare_config(
            config, {**given, "max_retries": _NoRetries(0)} if _is_litellm(config) else given
        )
        self._metrics: MetricsStore = NoopMetricsStore()
        self._tokenizer = LaterTokenizer(f"{config.model_provider}/{config.model}")
        self._ask: Callable[..., Any]
        self._ask_and_wait: Callable[..., Any]
        if config.type == DIRECT:
            model = DirectModel(bare, bounded=False)
            self._ask, self._ask_and_wait = model.embed, model.embed_and_wait
        else:
            inner = create_embedding(bare, tokenizer=self._tokenizer)
            self._ask, self._ask_and_wait = inner.embedding_async, inner.embedding

    @property
    def metrics_store(self) -> "MetricsStore":
        """A store that keeps nothing: usage goes to the open scope."""
        return self._metrics

    @property
    def tokenizer(self) -> "Tokenizer":
        """The model's tokenizer."""
        return self._tokenizer

    async def embedding_async(self, /, **kwargs: Any) -> LLMEmbeddingResponse:
        """Embed ``input``, a list of texts, to one vector each."""
        kwargs.pop("metrics", None)

        async def send() -> Answer:
            try:
                response = await self._ask(**kwargs)
            except ValidationError as error:
                msg = "it holds no embeddings"
                raise GarbledReplyError(msg) from error
            answer = self._count(kwargs, response)
            check_vectors(answer, len(kwargs["input"]))
            return answer

        return embedding_response(
            await self._caller.call(kwargs, send, lambda: self._count_prompt(kwargs))
        )

    def embedding(self, /, **kwargs: Any) -> LLMEmbeddingResponse:
        """Embed without waiting on the loop, once and counted; the searches ask otherwise."""
        kwargs.pop("metrics", None)
        scope = current_scope() or CallLog()
        try:
            spending = self._caller.afford(lambda: self._count_prompt(kwargs), scope)
        except NotAskedError as error:
            self._caller.note_failure(error, scope)
            raise
        started = time.perf_counter()
        try:
            answer = self._count(kwargs, self._ask_and_wait(**kwargs))
        except Exception as error:
            failed = self._caller.describe(error)
            scope.attempts.append(self._caller.attempt(started, error=failed))
            scope.failures.append(failed)
            raise
        attempt = self._caller.attempt(started, answer)
        scope.attempts.append(attempt)
        spending.count(attempt)
        return embedding_response(RecordedCall(answer.reply, (attempt,)))

    def _count(self, request: dict[str, Any], response: LLMEmbeddingResponse) -> Answer:
        prompt, _, _ = read_usage(response.usage, output=False)
        if prompt:
            return Answer(response.embeddings, prompt, 0, "provider")
        return Answer(response.embeddings, self._count_prompt(request), 0, "tokenizer")

    def _count_prompt(self, request: dict[str, Any]) -> int:
        return sum(self.tokenizer.num_tokens(text) for text in request["input"])
