"""Counting what the released search functions ask, without changing what they do.

The functions of ``graphrag.api`` make their models through the release's own factories, which
take types that are registered with them. :meth:`Observation.over` gives a configuration whose
models are of such a type: each is the model that the release would have made, asked with the
same arguments and passed on as it answers, and what it was asked is recorded.
"""

import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from graphrag_llm.completion import LLMCompletion, create_completion
from graphrag_llm.completion.completion_factory import register_completion
from graphrag_llm.embedding import LLMEmbedding, create_embedding
from graphrag_llm.embedding.embedding_factory import register_embedding
from graphrag_llm.types import LLMCompletionChunk, LLMEmbeddingResponse

from graphrag.query.calls import describe_error, read_usage
from graphrag.query.replies import read_refusal
from graphrag.query.usage import CallAttempt, CallLog, CountedBy
from graphrag.redaction import know_settings

if TYPE_CHECKING:
    from graphrag_llm.config import ModelConfig
    from graphrag_llm.metrics import MetricsStore
    from graphrag_llm.tokenizer import Tokenizer

    from graphrag.config.models.graph_rag_config import GraphRagConfig

_TYPE = "observed"
_Counts = tuple[int, int, int | None, CountedBy]
_NOT_ANSWERED: _Counts = (0, 0, None, "nobody")


class _Ending(NamedTuple):
    """Why a reply ended, and whether it is a refusal."""

    reason: str | None = None
    abstained: bool = False


_UNKNOWN = _Ending()


@dataclass(slots=True)
class Observation:
    """What one search asked of its models.

    A request that a client of the release sends again by itself is seen as one call. A stream's
    tokens are those that the provider reports, else the model's tokenizer counts them.

    Attributes
    ----------
    log : CallLog
        The calls.
    prompts : list of list of dict
        The messages of each completion that was asked for, in that order.
    """

    log: CallLog = field(default_factory=CallLog)
    prompts: list[list[dict[str, Any]]] = field(default_factory=list[list[dict[str, Any]]])

    def over(self, config: "GraphRagConfig") -> "GraphRagConfig":
        """Return the configuration with models that tell this observation what they are asked."""
        register_completion(_TYPE, _ObservedCompletion)
        register_embedding(_TYPE, _ObservedEmbedding)
        know_settings(config.model_dump())
        models = ("completion_models", "embedding_models")
        return config.model_copy(
            update={
                kind: {name: self._observed(model) for name, model in getattr(config, kind).items()}
                for kind in models
            }
        )

    def _observed(self, model: "ModelConfig") -> "ModelConfig":
        # What the release puts around a model is put around the inner one, once.
        around = dict.fromkeys(("retry", "rate_limit", "metrics"))
        return model.model_copy(
            update={**around, "type": _TYPE, "observed": model, "observation": self}
        )

    def record(
        self,
        model: "ModelConfig",
        kind: Literal["completion", "embedding"],
        started: float,
        counts: _Counts = _NOT_ANSWERED,
        error: BaseException | None = None,
        ending: _Ending = _UNKNOWN,
    ) -> None:
        """Record a call that began at ``started`` (perf_counter seconds) and ends now."""
        prompt, output, cached, counted_by = counts
        self.log.attempts.append(
            CallAttempt(
                kind=kind,
                model=f"{model.model_provider}/{model.model}",
                phase="response" if kind == "completion" else "embedding",
                prompt_tokens=prompt,
                output_tokens=output,
                counted_by=counted_by,
                latency_s=time.perf_counter() - started,
                cached_prompt_tokens=cached,
                error=None if error is None else describe_error(error),
                finish_reason=ending.reason,
                abstained=ending.abstained,
            )
        )


class _ObservedCompletion(LLMCompletion):
    """The released completion of a configuration, with each of its calls recorded."""

    def __init__(
        self, *, observed: "ModelConfig", observation: Observation, tokenizer: "Tokenizer", **_: Any
    ) -> None:
        self._config = observed
        self._observation = observation
        self._inner = create_completion(observed, tokenizer=tokenizer)

    @property
    def metrics_store(self) -> "MetricsStore":
        """The released model's own store."""
        return self._inner.metrics_store

    @property
    def tokenizer(self) -> "Tokenizer":
        """The released model's tokenizer."""
        return self._inner.tokenizer

    def completion(self, /, **kwargs: Any) -> Any:
        """Ask the released model."""
        call = self._begin(kwargs)
        reply = call.watch(lambda: self._inner.completion(**kwargs))
        if kwargs.get("stream"):
            return _pass_on(reply, call)
        call.answered(reply.content, reply.usage, _ending_of(reply))
        return reply

    async def completion_async(self, /, **kwargs: Any) -> Any:
        """Ask the released model."""
        call = self._begin(kwargs)
        try:
            reply: Any = await self._inner.completion_async(**kwargs)
        except BaseException as error:
            call.failed(error)
            raise
        if kwargs.get("stream"):
            return _pass_on_async(reply, call)
        call.answered(reply.content, reply.usage, _ending_of(reply))
        return reply

    def _begin(self, request: dict[str, Any]) -> "_Call":
        given: Any = request["messages"]
        messages = [{"role": "user", "content": given}] if isinstance(given, str) else list(given)
        self._observation.prompts.append(messages)

        def count(content: str, usage: Any) -> _Counts:
            prompt, output, cached = read_usage(usage, output=True)
            if prompt:
                return prompt, output, cached, "provider"
            tokenizer = self._inner.tokenizer
            output = tokenizer.num_tokens(content)
            return tokenizer.num_prompt_tokens(messages), output, None, "tokenizer"

        return _Call(self._observation, self._config, "completion", count)


class _ObservedEmbedding(LLMEmbedding):
    """The released embedding of a configuration, with each of its calls recorded."""

    def __init__(
        self, *, observed: "ModelConfig", observation: Observation, tokenizer: "Tokenizer", **_: Any
    ) -> None:
        self._config = observed
        self._observation = observation
        self._inner = create_embedding(observed, tokenizer=tokenizer)

    @property
    def metrics_store(self) -> "MetricsStore":
        """The released model's own store."""
        return self._inner.metrics_store

    @property
    def tokenizer(self) -> "Tokenizer":
        """The released model's tokenizer."""
        return self._inner.tokenizer

    def embedding(self, /, **kwargs: Any) -> LLMEmbeddingResponse:
        """Ask the released model."""
        call = self._begin(kwargs)
        response = call.watch(lambda: self._inner.embedding(**kwargs))
        call.answered("", response.usage)
        return response

    async def embedding_async(self, /, **kwargs: Any) -> LLMEmbeddingResponse:
        """Ask the released model."""
        call = self._begin(kwargs)
        try:
            response = await self._inner.embedding_async(**kwargs)
        except BaseException as error:
            call.failed(error)
            raise
        call.answered("", response.usage)
        return response

    def _begin(self, request: dict[str, Any]) -> "_Call":
        texts: list[str] = request["input"]

        def count(_: str, usage: Any) -> _Counts:
            prompt = read_usage(usage, output=False)[0]
            if prompt:
                return prompt, 0, None, "provider"
            return sum(map(self._inner.tokenizer.num_tokens, texts)), 0, None, "tokenizer"

        return _Call(self._observation, self._config, "embedding", count)


class _Call:
    """One call that is under way."""

    def __init__(
        self,
        observation: Observation,
        model: "ModelConfig",
        kind: Literal["completion", "embedding"],
        count: Callable[[str, Any], _Counts],
    ) -> None:
        self._observation = observation
        self._model = model
        self._kind: Literal["completion", "embedding"] = kind
        self._count = count
        self._started = time.perf_counter()

    def watch(self, ask: Callable[[], Any]) -> Any:
        """Ask, and record a failure."""
        try:
            return ask()
        except BaseException as error:
            self.failed(error)
            raise

    def answered(
        self,
        content: str,
        usage: Any,
        ending: _Ending = _UNKNOWN,
        error: BaseException | None = None,
    ) -> None:
        """Record an answer; with an error it broke off after ``content``."""
        counts = self._count(content, usage)
        self._observation.record(self._model, self._kind, self._started, counts, error, ending)

    def failed(self, error: BaseException) -> None:
        """Record a call that got no answer."""
        self._observation.record(self._model, self._kind, self._started, error=error)


class _Pieces:
    """What a stream has brought so far."""

    def __init__(self, call: _Call) -> None:
        self._call = call
        self._pieces: list[str] = []
        self._usage: Any = None
        self._ending = _Ending()

    def take(self, chunk: LLMCompletionChunk) -> LLMCompletionChunk:
        self._usage = chunk.usage or self._usage
        if chunk.choices:
            choice, ending = chunk.choices[0], self._ending
            self._pieces.append(choice.delta.content or "")
            abstained = ending.abstained or bool(read_refusal(choice.delta))
            self._ending = _Ending(choice.finish_reason or ending.reason, abstained)
        return chunk

    def end(self, error: BaseException | None = None) -> None:
        if error is not None and not self._pieces and not self._usage:
            self._call.failed(error)
        else:
            self._call.answered("".join(self._pieces), self._usage, self._ending, error)


def _ending_of(reply: Any) -> _Ending:
    choice = reply.choices[0]
    return _Ending(choice.finish_reason, bool(read_refusal(choice.message)))


def _pass_on(stream: Iterator[LLMCompletionChunk], call: _Call) -> Iterator[LLMCompletionChunk]:
    pieces = _Pieces(call)
    try:
        for chunk in stream:
            yield pieces.take(chunk)
    except BaseException as error:
        pieces.end(error)
        raise
    pieces.end()


async def _pass_on_async(
    stream: AsyncIterator[LLMCompletionChunk], call: _Call
) -> AsyncIterator[LLMCompletionChunk]:
    pieces = _Pieces(call)
    try:
        async for chunk in stream:
            yield pieces.take(chunk)
    except BaseException as error:
        pieces.end(error)
        raise
    pieces.end()
