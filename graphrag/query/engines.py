"""The search methods behind one call: a question in, an outcome or an error out.

The released engines swallow errors, block the loop while they embed the question and keep
state between questions; each adapter here asks such an engine in a way that does not.
"""

import asyncio
import copy
from collections.abc import AsyncGenerator, Callable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from graphrag_llm.embedding import LLMEmbedding
from graphrag_llm.types import LLMEmbedding as EmbeddingRow
from graphrag_llm.types import LLMEmbeddingResponse, LLMEmbeddingUsage

from graphrag.callbacks.noop_query_callbacks import NoopQueryCallbacks
from graphrag.query.llm.text_utils import (
    try_parse_json_object,  # pyright: ignore[reportUnknownVariableType]
)
from graphrag.query.structured_search.drift_search.state import QueryState
from graphrag.query.usage import phase

if TYPE_CHECKING:
    from collections.abc import Generator

    from graphrag_llm.metrics import MetricsStore
    from graphrag_llm.tokenizer import Tokenizer

    from graphrag.query.structured_search.base import SearchResult
    from graphrag.query.structured_search.tog_search import GraphSearch

OnText = Callable[[str], None]
"""Receives the response piece by piece as it arrives."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a method answered: response, the records it retrieved, and the text it was shown.

    ``abstained`` is set by a method that knows of itself that it found no answer; a refusal by
    its model is told by the calls.
    """

    response: str
    context_data: Any
    context_text: Any
    abstained: bool = False


class SearchEngine(Protocol):
    """One search method over one index; asked concurrently."""

    async def answer(self, question: str, on_text: OnText | None) -> Outcome:
        """Answer a question, passing the response on as it arrives."""
        ...


class UnusableReplyError(ValueError):
    """The model answered a step of the search with nothing that the step can use."""


_known_vectors: ContextVar[dict[str, list[float]] | None] = ContextVar(
    "gtog_known_vectors", default=None
)


@contextmanager
def _known(vectors: dict[str, list[float]]) -> "Generator[None]":
    token = _known_vectors.set(vectors)
    try:
        yield
    finally:
        _known_vectors.reset(token)


class AwaitedEmbedding(LLMEmbedding):
    """An embedding whose vector was awaited beforehand, for builders that ask without waiting."""

    def __init__(self, inner: LLMEmbedding) -> None:
        self._inner = inner

    @property
    def metrics_store(self) -> "MetricsStore":
        """The wrapped model's own store."""
        return self._inner.metrics_store

    @property
    def tokenizer(self) -> "Tokenizer":
        """The wrapped model's tokenizer."""
        return self._inner.tokenizer

    async def vector_of(self, question: str) -> list[float]:
        """Embed a question under the phase ``embedding``."""
        with phase("embedding"):
            return (await self._inner.embedding_async(input=[question])).first_embedding

    async def embedding_async(self, /, **kwargs: Any) -> LLMEmbeddingResponse:
        """Ask the wrapped model."""
        return await self._inner.embedding_async(**kwargs)

    def embedding(self, /, **kwargs: Any) -> LLMEmbeddingResponse:
        """Return the vectors awaited beforehand, else ask the wrapped model."""
        known = _known_vectors.get() or {}
        texts: list[str] = kwargs["input"]
        if any(text not in known for text in texts):
            with phase("embedding"):
                return self._inner.embedding(**kwargs)
        rows = [
            EmbeddingRow(object="embedding", embedding=known[text], index=index)
            for index, text in enumerate(texts)
        ]
        usage = LLMEmbeddingUsage(prompt_tokens=0, total_tokens=0)
        return LLMEmbeddingResponse(object="list", data=rows, model="awaited", usage=usage)


class _KeptContext:
    """Builds contexts with the wrapped builder and keeps the last one."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self.built: Any = None

    def build_context(self, *args: Any, **kwargs: Any) -> Any:
        self.built = self._builder.build_context(*args, **kwargs)
        return self.built


class ContextSearch:
    """The released local and basic search: one context, one call.

    Each question gets a shallow copy of the engine. The context is built on the loop, never in
    a thread, as the builders write into the records that they share.
    """

    def __init__(self, engine: Any, embedding: LLMEmbedding) -> None:
        self._engine = engine
        self._embedding = AwaitedEmbedding(embedding)
        engine.context_builder.text_embedder = self._embedding

    async def answer(self, question: str, on_text: OnText | None) -> Outcome:
        """Answer a question from one context."""
        vector = await self._embedding.vector_of(question)
        with _known({question: vector}):
            return await answer_from_context(self._engine, question, on_text)


async def answer_from_context(engine: Any, question: str, on_text: OnText | None) -> Outcome:
    """Answer a question by a released engine of one context and one call, which stays as it is."""
    engine = copy.copy(engine)
    engine.context_builder = context = _KeptContext(engine.context_builder)
    pieces: list[str] = []
    async for piece in engine.stream_search(query=question):
        pieces.append(piece)
        if on_text is not None:
            on_text(piece)
    return Outcome("".join(pieces), context.built.context_records, context.built.context_chunks)


class _Watched:
    """A model whose errors and whole replies are kept, for engines that swallow the errors."""

    def __init__(self, inner: Any) -> None:
        self.tokenizer = inner.tokenizer
        self.errors: list[Exception] = []
        self.replies: list[str] = []
        self._inner = inner

    async def completion_async(self, **kwargs: Any) -> Any:
        try:
            reply = await self._inner.completion_async(**kwargs)
        except Exception as error:
            self.errors.append(error)
            raise
        if kwargs.get("stream"):
            return self._pass_on(reply)
        self.replies.append(str(reply.content))
        return reply

    async def _pass_on(self, stream: Any) -> AsyncGenerator[Any]:
        try:
            async for chunk in stream:
                yield chunk
        except Exception as error:
            self.errors.append(error)
            raise

    def raise_first_error(self) -> None:
        if self.errors:
            raise self.errors[0]


class GlobalMapReduce:
    """The released global search: a call for each batch of reports, one over what they gave."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        selection = engine.context_builder.dynamic_community_selection
        if selection is not None:
            selection.model = engine.model

    async def answer(self, question: str, on_text: OnText | None) -> Outcome:
        """Answer a question from the community reports.

        Raises
        ------
        UnusableReplyError
            If a batch's reply was not the JSON that the search needs.
        """
        engine = copy.copy(self._engine)
        engine.callbacks = [_TextCallback(on_text)] if on_text else []
        engine.model = model = _Watched(self._engine.model)
        found = await engine.search(query=question)
        model.raise_first_error()
        unread = sum(1 for reply in model.replies if not _has_points(reply))
        if unread:
            msg = f"{unread} of {len(model.replies)} batches had an unreadable reply"
            raise UnusableReplyError(msg)
        # Without a point to answer from, a fixed sentence stands in for the last call.
        n_last: int = found.llm_calls_categories["reduce"]
        return Outcome(found.response, found.context_data, found.context_text, n_last == 0)


def _has_points(reply: str) -> bool:
    parsed = cast("dict[str, object]", try_parse_json_object(reply, verbose=False)[1])
    return isinstance(parsed.get("points"), list)


class _TextCallback(NoopQueryCallbacks):
    def __init__(self, on_text: OnText) -> None:
        super().__init__()
        self._on_text = on_text

    def on_llm_new_token(self, token: str) -> None:
        self._on_text(token)


class DriftSearch:
    """The released DRIFT search, with the state of each question kept apart."""

    def __init__(self, engine: Any, embedding: LLMEmbedding) -> None:
        self._engine = engine
        self._embedding = AwaitedEmbedding(embedding)
        engine.context_builder.text_embedder = self._embedding
        engine.context_builder.local_mixed_context.text_embedder = self._embedding

    async def answer(self, question: str, on_text: OnText | None) -> Outcome:
        """Answer a question by follow-up questions and a summary of their answers.

        Raises
        ------
        UnusableReplyError
            If the reply to a follow-up question was not the JSON that the search needs.
        """
        engine = copy.copy(self._engine)
        state: Any = QueryState()
        engine.query_state = state
        local = copy.copy(self._engine.local_search)
        local.model = model = _Watched(local.model)
        engine.local_search = _EmbedsFirst(local, self._embedding)
        engine.context_builder = copy.copy(self._engine.context_builder)
        vectors: dict[str, list[float]] = {}
        engine.context_builder.model = _EmbedsItsReply(
            self._engine.context_builder.model, self._embedding, question, vectors
        )
        steps = _Steps()
        engine.primer = copy.copy(self._engine.primer)
        engine.primer.decompose_query = steps.started(engine.primer.decompose_query)
        engine.local_search.search = steps.started(engine.local_search.search)
        try:
            with _known(vectors):
                found = cast("SearchResult", await engine.search(query=question))
        finally:
            await steps.end()
        model.raise_first_error()
        asked = [step for step in state.graph if step.metadata["llm_calls"]]
        unread = sum(1 for step in asked if step.answer is None)
        if unread:
            msg = f"{unread} of {len(asked)} follow-up questions had an unreadable reply"
            raise UnusableReplyError(msg)
        response = str(found.response)
        if on_text is not None:
            on_text(response)
        return Outcome(response, found.context_data, found.context_text)


class _Steps:
    """Steps that an engine runs side by side, so that none outlives a search that failed.

    They are waited for, not cancelled: their requests are under way and will be charged for.
    """

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[Any]] = []

    def started(self, step: Callable[..., Any]) -> Callable[..., Any]:
        async def run(*args: Any, **kwargs: Any) -> Any:
            task = asyncio.create_task(step(*args, **kwargs))
            self._tasks.append(task)
            return await task

        return run

    async def end(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)


class _EmbedsItsReply:
    """The model of DRIFT's primer, which embeds the hypothetical answer without waiting.

    Its vector is awaited here, so that the request obeys the limit and is retried.
    """

    def __init__(
        self,
        inner: Any,
        embedding: AwaitedEmbedding,
        question: str,
        vectors: dict[str, list[float]],
    ) -> None:
        self.tokenizer = inner.tokenizer
        self._inner = inner
        self._embedding = embedding
        self._question = question
        self._vectors = vectors

    async def completion_async(self, **kwargs: Any) -> Any:
        response = await self._inner.completion_async(**kwargs)
        embedded = str(response.content) or self._question
        self._vectors[embedded] = await self._embedding.vector_of(embedded)
        return response


class _EmbedsFirst:
    """A local search that awaits the question's vector before its context is built."""

    def __init__(self, inner: Any, embedding: AwaitedEmbedding) -> None:
        self._inner = inner
        self._embedding = embedding

    async def search(self, query: str, **kwargs: Any) -> Any:
        vector = await self._embedding.vector_of(query)
        with _known({query: vector}):
            return await self._inner.search(query=query, **kwargs)


class OfGraph:
    """Think-on-Graph or PageRank search as one of the methods."""

    def __init__(self, search: "GraphSearch") -> None:
        self._search = search

    async def answer(self, question: str, on_text: OnText | None) -> Outcome:
        """Answer a question from the graph and its texts."""
        found = await self._search.run(question, on_text)
        shown = found.context_data, found.context_text
        return Outcome(str(found.response), *shown, found.abstained)
