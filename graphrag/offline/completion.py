"""The embedded completion model: rules behind graphrag's completion interface."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, cast

from graphrag_llm.completion import LLMCompletion
from graphrag_llm.config import ModelConfig
from graphrag_llm.middleware import with_middleware_pipeline
from graphrag_llm.types import (
    LLMChoice,
    LLMChoiceChunk,
    LLMChoiceDelta,
    LLMCompletionChunk,
    LLMCompletionMessage,
    LLMCompletionResponse,
    LLMCompletionUsage,
)
from pydantic import BaseModel

from graphrag.offline.counted import CountedModel
from graphrag.offline.dispatch import reply
from graphrag.offline.errors import OfflineModelError, refuse_unknown_fields
from graphrag.offline.requests import plain_messages, read_request

if TYPE_CHECKING:
    from graphrag_llm.metrics import MetricsStore
    from graphrag_llm.tokenizer import Tokenizer

_WORDS_A_CHUNK = re.compile(r"(?:\s*\S+){1,8}|\s+")
_UNSUPPORTED = ("tools", "functions", "audio", "prediction", "logprobs")
_FACTORY_ARGUMENTS = frozenset(
    {"metrics_processor", "rate_limiter", "retrier", "cache", "cache_key_creator"}
)


class OfflineCompletion(CountedModel, LLMCompletion):
    """Replies by rules: deterministic, without a network, in milliseconds.

    Holds no state between calls, so threads may share one. Sampling arguments
    (temperature, seed, ...) and token limits change nothing. Cache, retries and rate limits of
    the settings are not used: there is nothing to spare or to wait for.

    Parameters
    ----------
    model_id : str
        What responses name as their model, such as "offline/rules".
    model_config : ModelConfig
        The model's settings; fields that it does not know are refused.
    tokenizer : Tokenizer
        Counts the usage.
    metrics_store : MetricsStore
        Adds up metrics of all calls.
    **kwargs : Any
        The other things that graphrag's factory passes, and unknown settings.

    Raises
    ------
    OfflineModelError
        On an unknown setting, naming the nearest known one.
    """

    _asked_for = "completion"

    def __init__(
        self,
        *,
        model_id: str,
        model_config: ModelConfig,
        tokenizer: "Tokenizer",
        metrics_store: "MetricsStore",
        **kwargs: Any,
    ) -> None:
        refuse_unknown_fields(
            f"The completion model {model_id}",
            {*(model_config.model_extra or {}), *kwargs} - _FACTORY_ARGUMENTS,
            ModelConfig.model_fields,
        )
        self._model_id = model_id
        self._tokenizer = tokenizer
        self._metrics_store = metrics_store
        self._track_metrics = kwargs.get("metrics_processor") is not None
        self._call, self._call_async = with_middleware_pipeline(
            model_config=model_config,
            model_fn=self._complete,  # pyright: ignore[reportArgumentType]
            async_model_fn=self._complete_async,  # pyright: ignore[reportArgumentType]
            metrics_processor=kwargs.get("metrics_processor"),
            cache=None,
            cache_key_creator=cast("Any", kwargs.get("cache_key_creator")),
            request_type="chat",
            tokenizer=tokenizer,
            rate_limiter=None,
            retrier=None,
        )

    def completion(self, /, **kwargs: Any) -> Any:
        """Reply to messages.

        Parameters
        ----------
        **kwargs : Any
            `messages` (a string or role-content mappings), `response_format` (a pydantic
            class; may be combined with `stream`), `stream`, `stream_options`, `metrics`.

        Returns
        -------
        LLMCompletionResponse | Iterator[LLMCompletionChunk]
            With usage counted by the tokenizer; streamed, usage comes on a last chunk when
            ``stream_options={"include_usage": True}``. Where a search's question has no answer
            in its context, the field ``refusal`` has the text too.

        Raises
        ------
        OfflineModelError
            When the rules have no answer to such a request.
        """
        metrics = self._metrics_of(kwargs)
        try:
            return self._call(metrics=metrics, **kwargs)  # pyright: ignore[reportCallIssue]
        finally:
            self._keep_metrics(metrics)

    async def completion_async(self, /, **kwargs: Any) -> Any:
        """Reply to messages; `completion` with an async iterator when streaming."""
        metrics = self._metrics_of(kwargs)
        try:
            return await self._call_async(metrics=metrics, **kwargs)  # pyright: ignore[reportCallIssue]
        finally:
            self._keep_metrics(metrics)

    def _complete(self, **kwargs: Any) -> Any:
        response = self._respond(kwargs)
        return iter(self._chunks(response, kwargs)) if kwargs.get("stream") else response

    async def _complete_async(self, **kwargs: Any) -> Any:
        # Nothing else here waits: of a thousand calls at once none would let Ctrl-C through.
        await asyncio.sleep(0)
        response = self._respond(kwargs)
        if not kwargs.get("stream"):
            return response
        return _as_async(iter(self._chunks(response, kwargs)))

    def _respond(self, kwargs: dict[str, Any]) -> LLMCompletionResponse[Any]:
        for name in _UNSUPPORTED:
            if kwargs.get(name):
                raise OfflineModelError(f"The offline model does not support `{name}`.")
        if kwargs.get("n") not in {None, 1}:
            raise OfflineModelError("The offline model gives one reply; `n` must be 1.")
        messages = plain_messages(kwargs.get("messages"))
        reply_type = cast("type[BaseModel] | None", kwargs.get("response_format"))
        given = reply(read_request(messages, reply_type))
        text = given.text
        prompt_tokens = self._tokenizer.num_prompt_tokens(messages)
        completion_tokens = self._tokenizer.num_tokens(text)
        return LLMCompletionResponse[Any](
            id="offline-" + blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest(),
            object="chat.completion",
            created=0,
            model=self._model_id,
            choices=[
                LLMChoice(
                    index=0,
                    message=LLMCompletionMessage(
                        role="assistant", content=text, refusal=text if given.abstains else None
                    ),
                    finish_reason="stop",
                )
            ],
            usage=LLMCompletionUsage(
                prompt_tokens=prompt_tokens,
                completion_tokens=completion_tokens,
                total_tokens=prompt_tokens + completion_tokens,
            ),
            formatted_response=reply_type.model_validate_json(text) if reply_type else None,
        )

    def _chunks(
        self, response: LLMCompletionResponse[Any], kwargs: dict[str, Any]
    ) -> list[LLMCompletionChunk]:
        pieces = _WORDS_A_CHUNK.findall(response.content) or [""]
        refuses = response.choices[0].message.refusal is not None
        chunks = [self._chunk(response.id, piece, refuses) for piece in pieces]
        chunks[-1].choices[0].finish_reason = "stop"
        if (kwargs.get("stream_options") or {}).get("include_usage"):
            # OpenAI sends no choice here, but released callers read choices[0] of every chunk.
            last = self._chunk(response.id, None)
            last.usage = response.usage
            chunks.append(last)
        return chunks

    def _chunk(self, reply_id: str, piece: str | None, refuses: bool = False) -> LLMCompletionChunk:
        refusal = piece if refuses else None
        return LLMCompletionChunk(
            id=reply_id,
            object="chat.completion.chunk",
            created=0,
            model=self._model_id,
            choices=[
                LLMChoiceChunk(
                    index=0,
                    delta=LLMChoiceDelta(role="assistant", content=piece, refusal=refusal),
                )
            ],
        )


async def _as_async(chunks: Iterator[LLMCompletionChunk]) -> AsyncIterator[LLMCompletionChunk]:
    for chunk in chunks:
        yield chunk
