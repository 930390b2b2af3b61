"""The released search methods behind one call: a question in, an outcome or an error out.

The released engines swallow errors, block the loop while they embed the question and keep
state between questions; each adapter here asks such an engine in a way that does not.
:func:`build_released` makes them from an index's tables; importing this module imports the
engines, and with them openai.
"""

import asyncio
import copy
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any, cast

from graphrag.callbacks.noop_query_callbacks import NoopQueryCallbacks
from graphrag.config.embeddings import (
    community_full_content_embedding,
    entity_description_embedding,
    text_unit_text_embedding,
)
from graphrag.query.factory import (
    get_basic_search_engine,
    get_drift_search_engine,
    get_global_search_engine,
    get_local_search_engine,
)
from graphrag.query.indexer_adapters import (
    read_indexer_communities,
    read_indexer_covariates,
    read_indexer_entities,
    read_indexer_relationships,
    read_indexer_report_embeddings,
    read_indexer_reports,
    read_indexer_text_units,
)
from graphrag.query.llm.text_utils import (
    try_parse_json_object,  # pyright: ignore[reportUnknownVariableType]
)
from graphrag.query.models import CountedEmbedding, count_models, known_vectors
from graphrag.query.outcome import OnText, Outcome, SearchEngine
from graphrag.query.structured_search.drift_search.state import QueryState
from graphrag.utils.api import get_embedding_store, load_search_prompt

if TYPE_CHECKING:
    from graphrag_vectors import VectorStore

    from graphrag.query.index_header import IndexHeader
    from graphrag.query.index_tables import IndexTables
    from graphrag.query.structured_search.base import SearchResult


class UnusableReplyError(ValueError):
    """The model answered a step of the search with nothing that the step can use."""


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

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    async def answer(self, question: str, on_text: OnText | None) -> Outcome:
        """Answer a question from one context."""
        engine = copy.copy(self._engine)
        engine.context_builder = context = _KeptContext(engine.context_builder)
        vector = await self._engine.context_builder.text_embedder.vector_of(question)
        pieces: list[str] = []
        with known_vectors({question: vector}):
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

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._embedding: CountedEmbedding = engine.context_builder.text_embedder

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
            with known_vectors(vectors):
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
        embedding: CountedEmbedding,
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

    def __init__(self, inner: Any, embedding: CountedEmbedding) -> None:
        self._inner = inner
        self._embedding = embedding

    async def search(self, query: str, **kwargs: Any) -> Any:
        vector = await self._embedding.vector_of(query)
        with known_vectors({query: vector}):
            return await self._inner.search(query=query, **kwargs)


def build_released(method: str, header: "IndexHeader", tables: "IndexTables") -> SearchEngine:
    """Make the engine of local, basic, global or DRIFT search, with counted models.

    The released readers write into tables, so each gets a copy.
    """
    config, options = count_models(header.config), header.options
    section = header.section(method)
    prompts = {key: load_search_prompt(value) for key, value in section if key.endswith("prompt")}

    def store(name: str) -> "VectorStore":
        return get_embedding_store(config.vector_store, name)

    def entities() -> Any:
        level = options.community_level
        return read_indexer_entities(tables.table("entities"), tables.table("communities"), level)

    def reports() -> Any:
        return read_indexer_reports(
            tables.table("community_reports"),
            tables.table("communities"),
            options.community_level,
            dynamic_community_selection=method == "global" and options.dynamic_community_selection,
        )

    given: dict[str, Any] = {"config": config, "response_type": options.response_type}
    if method == "global":
        given |= {
            "reports": reports(),
            "communities": read_indexer_communities(
                tables.table("communities"), tables.table("community_reports")
            ),
            "entities": entities(),
            "dynamic_community_selection": options.dynamic_community_selection,
            "map_system_prompt": prompts["map_prompt"],
            "reduce_system_prompt": prompts["reduce_prompt"],
            "general_knowledge_inclusion_prompt": prompts["knowledge_prompt"],
        }
        return GlobalMapReduce(get_global_search_engine(**given))
    given["text_units"] = read_indexer_text_units(tables.table("text_units"))
    if method == "basic":
        vectors = store(text_unit_text_embedding)
        return ContextSearch(
            get_basic_search_engine(
                **given, text_unit_embeddings=vectors, system_prompt=prompts["prompt"]
            )
        )
    given |= {
        "reports": reports(),
        "entities": entities(),
        "relationships": read_indexer_relationships(tables.table("relationships")),
        "description_embedding_store": store(entity_description_embedding),
    }
    if method == "local":
        claims = tables.table("covariates") if tables.has("covariates") else None
        covariates = {"claims": [] if claims is None else read_indexer_covariates(claims)}
        engine = get_local_search_engine(
            **given, covariates=covariates, system_prompt=prompts["prompt"]
        )
        return ContextSearch(engine)
    read_indexer_report_embeddings(given["reports"], store(community_full_content_embedding))
    return DriftSearch(
        get_drift_search_engine(
            **given,
            local_system_prompt=prompts["prompt"],
            reduce_system_prompt=prompts["reduce_prompt"],
        )
    )
