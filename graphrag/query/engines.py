"""Runs the released search methods behind one call: a question in, an outcome or an error out.

The released engines block the event loop while they embed, and keep state; these don't. The
released engines also swallow errors: here a search with a failed call counts as failed, whatever
its engine returned (see ``GraphIndex.search``).
"""

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from graphrag.callbacks.noop_query_callbacks import NoopQueryCallbacks
from graphrag.config.embeddings import (
    community_full_content_embedding,
    entity_description_embedding,
    text_unit_text_embedding,
)
from graphrag.query.client.models import CountedEmbedding, count_models
from graphrag.query.client.structured_output import Embeddings
from graphrag.query.factory import (
    get_basic_search_engine,
    get_drift_search_engine,
    get_global_search_engine,
    get_local_search_engine,
)
from graphrag.query.index.context_records import CLAIMS
from graphrag.query.index.header import model_name
from graphrag.query.index.vector_tables import check_length, open_vectors
from graphrag.query.indexer_adapters import (
    read_indexer_communities,
    read_indexer_entities,
    read_indexer_report_embeddings,
    read_indexer_reports,
)
from graphrag.query.llm.text_utils import (
    try_parse_json_object,  # pyright: ignore[reportUnknownVariableType]
)
from graphrag.query.search_result import OnText, Outcome, SearchEngine
from graphrag.query.structured_search.drift_search.state import QueryState
from graphrag.utils.api import load_search_prompt

if TYPE_CHECKING:
    from graphrag_vectors import VectorStore, VectorStoreSearchResult

    from graphrag.query.context_builder.builders import ContextBuilderResult
    from graphrag.query.index.header import IndexHeader
    from graphrag.query.index.tables import IndexTables
    from graphrag.query.structured_search.base import SearchResult
    from graphrag.query.structured_search.basic_search.search import BasicSearch
    from graphrag.query.structured_search.drift_search.search import DRIFTSearch
    from graphrag.query.structured_search.global_search.search import GlobalSearch
    from graphrag.query.structured_search.local_search.search import LocalSearch

T = TypeVar("T")


class UnusableReplyError(ValueError):
    """Raised when the model's reply to a step of the search has nothing that the step can use."""


def _copy(engine: T, **changes: object) -> T:
    copied = copy.copy(engine)
    vars(copied).update(changes)
    return copied


class _KnownVectors:
    """Replaces an engine's embedding model: it returns vectors that were awaited before."""

    def __init__(self, vectors: Mapping[str, list[float]]) -> None:
        self._vectors = vectors

    def embedding(self, *, input: Sequence[str]) -> Embeddings:
        return Embeddings([self._vectors[text] for text in input])


class _ReportingStore:
    """Wraps a store of vectors, and reports the ids that it finds before it returns them."""

    def __init__(self, store: "VectorStore", report: Callable[[list[str]], None]) -> None:
        self._store, self._report = store, report

    def similarity_search_by_text(self, **kwargs: Any) -> "list[VectorStoreSearchResult]":
        hits = self._store.similarity_search_by_text(**kwargs)
        self._report([str(hit.document.id) for hit in hits])
        return hits


class Records(Protocol):
    """Finds the records of an index around those that the vectors of a question find."""

    def around(self, ids: list[str] | None) -> dict[str, Any]:
        """Return the records for a builder, by its attributes' names; None for those of all ids."""
        ...


class ContextMaker:
    """Makes contexts by a released builder, one at a time and in a thread.

    The builder has no records. Each context is made from a copy of the builder with the few
    ``records`` around those that its vectors find. ``store`` names the builder's attribute with the
    vectors, ``without`` an attribute that it is not given.
    """

    def __init__(self, builder: object, store: str, records: Records, without: str = "") -> None:
        self._builder, self._store = builder, store
        self._records, self._without = records, without
        # Several threads would take no less time, and would slow down the event loop.
        self._thread = ThreadPoolExecutor(1)

    async def make(
        self, question: str, vector: list[float], **params: Any
    ) -> "ContextBuilderResult":
        """Return the context of a question.

        ``vector`` is the question's, ``params`` are the builder's parameters.
        """
        context = copy_context()

        def make() -> "ContextBuilderResult":
            return context.run(self._make, question, vector, params)

        return await asyncio.get_running_loop().run_in_executor(self._thread, make)

    def _make(
        self, question: str, vector: list[float], params: Mapping[str, Any]
    ) -> "ContextBuilderResult":
        entities: dict[str, Any] = {}
        builder: Any = _copy(cast("Any", self._builder), entities=entities)

        def hand_in(ids: list[str] | None) -> None:
            records = self._records.around(ids)
            records.pop(self._without, None)
            entities.update(records.pop("entities", {}))  # by then the builder has this mapping
            vars(builder).update(records)

        store = _ReportingStore(getattr(builder, self._store), hand_in)
        known = _KnownVectors({question: vector})
        vars(builder).update({self._store: store, "text_embedder": known})
        if not question:  # then no vectors are searched
            hand_in(None)
        return builder.build_context(query=question, **params)


class ContextSearch:
    """Runs the released local or basic search: one context, one call."""

    def __init__(
        self, engine: "LocalSearch | BasicSearch", store: "VectorStore", contexts: ContextMaker
    ) -> None:
        self._engine, self._store, self._contexts = engine, store, contexts
        self._embedding = cast("CountedEmbedding", vars(engine.context_builder)["text_embedder"])

    async def answer(self, question: str, on_text: OnText | None) -> Outcome:
        """Answer a question from one context."""
        vector = await self._embedding.vector_of(question)
        check_length(vector, self._store, model_name(self._embedding.config))
        context = await self._contexts.make(question, vector, **self._engine.context_builder_params)
        engine = _copy(self._engine, context_builder=_Made(context))
        pieces: list[str] = []
        async for piece in cast("AsyncIterator[str]", engine.stream_search(query=question)):
            pieces.append(piece)
            if on_text is not None:
                on_text(piece)
        return Outcome(
            response="".join(pieces),
            context_data=context.context_records,
            context_text=context.context_chunks,
        )


class _Made:
    """Replaces a builder: it returns a context that was made before."""

    def __init__(self, context: "ContextBuilderResult") -> None:
        self._context = context

    def build_context(self, **_: object) -> "ContextBuilderResult":
        return self._context


def _observe(model: Any, on_reply: Callable[[str], Awaitable[None]]) -> Any:
    """Return a model that passes each full reply to ``on_reply`` before the engine gets it."""

    async def completion_async(**kwargs: object) -> object:
        reply = await model.completion_async(**kwargs)
        if not kwargs.get("stream"):
            await on_reply(str(reply.content))
        return reply

    return _copy(model, completion_async=completion_async)


class GlobalMapReduce:
    """Runs the released global search: a call for each batch of reports, one over their points."""

    def __init__(self, engine: "GlobalSearch") -> None:
        self._engine = engine

    async def answer(self, question: str, on_text: OnText | None) -> Outcome:
        """Answer a question from the community reports.

        Raises UnusableReplyError if a batch's reply was not the JSON that the search needs.
        """
        replies: list[str] = []

        async def keep(reply: str) -> None:
            replies.append(reply)

        model = _observe(self._engine.model, keep)
        callbacks = [_copy(NoopQueryCallbacks(), on_llm_new_token=on_text)] if on_text else []
        result = await _copy(self._engine, callbacks=callbacks, model=model).search(query=question)
        parsed: list[dict[str, object]] = [
            try_parse_json_object(reply, verbose=False)[1] for reply in replies
        ]
        unread = sum(not isinstance(reply.get("points"), list) for reply in parsed)
        if unread:
            msg = f"{unread} of {len(replies)} batches had an unreadable reply"
            raise UnusableReplyError(msg)
        # Without a point to answer from, a fixed sentence replaces the last call.
        n_last = (result.llm_calls_categories or {})["reduce"]
        response = cast("str", result.response)
        return Outcome(
            response=response,
            context_data=result.context_data,
            context_text=result.context_text,
            abstained=n_last == 0,
        )


class DriftSearch:
    """Runs the released DRIFT search, with the state of each question kept apart.

    When a step fails, the steps that run with it are waited for, not canceled: their requests are
    under way and will be charged for.
    """

    def __init__(self, engine: "DRIFTSearch", contexts: ContextMaker) -> None:
        self._engine, self._contexts = engine, contexts

    async def answer(self, question: str, on_text: OnText | None) -> Outcome:
        """Answer a question by follow-up questions and a summary of their answers.

        Raises UnusableReplyError if the reply to a follow-up question was not the JSON that the
        search needs.
        """
        builder, local_search = self._engine.context_builder, self._engine.local_search
        state: Any = QueryState()
        embedding = cast("CountedEmbedding", builder.text_embedder)

        async def search(query: str, **kwargs: Any) -> "SearchResult":
            vector, params = await embedding.vector_of(query), local_search.context_builder_params
            context = await self._contexts.make(query, vector, **kwargs, **params)
            step = _copy(local_search, context_builder=_Made(context))
            return await step.search(query=query, **kwargs)

        vectors: dict[str, list[float]] = {}

        async def embed(reply: str) -> None:
            # The primer embeds its hypothetical answer without waiting: here that is awaited, so
            # that the request obeys the limit and is retried.
            text = reply or question
            vectors[text] = await embedding.vector_of(text)

        tasks: list[asyncio.Task[Any]] = []
        primer: Any = self._engine.primer
        decompose_query = _run_as_tasks(primer.decompose_query, tasks)
        engine = _copy(
            self._engine,
            query_state=state,
            local_search=SimpleNamespace(search=_run_as_tasks(search, tasks)),
            context_builder=_copy(
                builder, model=_observe(builder.model, embed), text_embedder=_KnownVectors(vectors)
            ),
            primer=_copy(primer, decompose_query=decompose_query),
        )
        try:
            result = await engine.search(query=question)
        finally:
            await asyncio.gather(*tasks, return_exceptions=True)
        steps = [step for step in state.graph if step.metadata["llm_calls"]]
        unread = sum(step.answer is None for step in steps)
        if unread:
            msg = f"{unread} of {len(steps)} follow-up questions had an unreadable reply"
            raise UnusableReplyError(msg)
        response = str(result.response)
        if on_text is not None:
            on_text(response)
        return Outcome(
            response=response, context_data=result.context_data, context_text=result.context_text
        )


def _run_as_tasks(
    step: Callable[..., Awaitable[T]], tasks: "list[asyncio.Task[Any]]"
) -> Callable[..., Awaitable[T]]:
    """Return a step that runs as a task, which is added to ``tasks``.

    The first task to fail ends the search. Errors of the others are dropped, because nobody waits
    for them and Python would print them.
    """
    has_failed = False

    async def run(*args: object, **kwargs: object) -> T:
        nonlocal has_failed
        task = asyncio.ensure_future(step(*args, **kwargs))
        tasks.append(cast("asyncio.Task[Any]", task))
        try:
            return await task
        except Exception:
            if has_failed:
                return cast("T", None)
            has_failed = True
            raise

    return run


def build_global(header: "IndexHeader", tables: "IndexTables") -> SearchEngine:
    """Make the engine of global search, with counted models."""
    config, options = count_models(header.config), header.options
    level, is_dynamic = options.community_level, options.dynamic_community_selection
    prompts = _read_prompts(header, "global")

    def table(name: str) -> Any:  # the released readers write into tables, so each gets a copy
        return tables.table(name)

    engine = get_global_search_engine(
        config=config,
        response_type=options.response_type,
        reports=read_indexer_reports(
            table("community_reports"),
            table("communities"),
            level,
            dynamic_community_selection=is_dynamic,
        ),
        entities=read_indexer_entities(table("entities"), table("communities"), level),
        communities=read_indexer_communities(table("communities"), table("community_reports")),
        dynamic_community_selection=is_dynamic,
        map_system_prompt=prompts["map_prompt"],
        reduce_system_prompt=prompts["reduce_prompt"],
        general_knowledge_inclusion_prompt=prompts["knowledge_prompt"],
    )
    return GlobalMapReduce(engine)


def build_released(
    method: str, header: "IndexHeader", tables: "IndexTables", records: Records
) -> SearchEngine:
    """Make the engine of local, basic or DRIFT search, with counted models.

    ``records`` finds the records that the contexts are made of.
    """
    config, options = count_models(header.config), header.options
    prompts = _read_prompts(header, method)
    parts: dict[str, Any] = {"config": config, "response_type": options.response_type}
    parts["text_units"] = []
    if method == "basic":
        vectors = open_vectors(config, text_unit_text_embedding)
        engine = get_basic_search_engine(
            **parts, text_unit_embeddings=vectors, system_prompt=prompts["prompt"]
        )
        maker = ContextMaker(engine.context_builder, "text_unit_embeddings", records)
        return ContextSearch(engine, vectors, maker)
    vectors = open_vectors(config, entity_description_embedding)
    parts |= {"entities": [], "relationships": [], "description_embedding_store": vectors}
    if method == "local":
        engine = get_local_search_engine(
            **parts, reports=[], covariates={CLAIMS: []}, system_prompt=prompts["prompt"]
        )
        maker = ContextMaker(engine.context_builder, "entity_text_embeddings", records)
        return ContextSearch(engine, vectors, maker)
    reports = read_indexer_reports(
        tables.table("community_reports"), tables.table("communities"), options.community_level
    )
    read_indexer_report_embeddings(reports, open_vectors(config, community_full_content_embedding))
    engine = get_drift_search_engine(
        **parts,
        reports=reports,
        local_system_prompt=prompts["prompt"],
        reduce_system_prompt=prompts["reduce_prompt"],
    )
    builder = engine.context_builder.local_mixed_context
    # The release gives it no claims.
    maker = ContextMaker(builder, "entity_text_embeddings", records, without="covariates")
    return DriftSearch(engine, maker)


def _read_prompts(header: "IndexHeader", method: str) -> dict[str, str | None]:
    section = header.section(method)
    return {key: load_search_prompt(value) for key, value in section if key.endswith("prompt")}
