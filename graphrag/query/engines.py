"""The released search methods behind one call: a question in, an outcome or an error out.

The released engines block the loop while they embed, and keep state; not so here. They swallow
errors: a search whose calls failed is none, whatever its engine gave (see ``GraphIndex.search``).
"""

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from graphrag.callbacks.noop_query_callbacks import NoopQueryCallbacks
from graphrag.config.embeddings import (
    community_full_content_embedding,
    entity_description_embedding,
    text_unit_text_embedding,
)
from graphrag.query.counted_result import OnText, Outcome, SearchEngine
from graphrag.query.factory import (
    get_basic_search_engine,
    get_drift_search_engine,
    get_global_search_engine,
    get_local_search_engine,
)
from graphrag.query.index_header import model_name
from graphrag.query.index_tables import read_text_units
from graphrag.query.indexer_adapters import (
    read_indexer_communities,
    read_indexer_covariates,
    read_indexer_entities,
    read_indexer_relationships,
    read_indexer_report_embeddings,
    read_indexer_reports,
)
from graphrag.query.llm.text_utils import (
    try_parse_json_object,  # pyright: ignore[reportUnknownVariableType]
)
from graphrag.query.models import CountedEmbedding, count_models
from graphrag.query.replies import Embeddings
from graphrag.query.structured_search.drift_search.state import QueryState
from graphrag.query.vector_tables import check_length, open_vectors
from graphrag.utils.api import load_search_prompt

if TYPE_CHECKING:
    from graphrag_vectors import VectorStore

    from graphrag.query.context_builder.builders import ContextBuilderResult
    from graphrag.query.index_header import IndexHeader
    from graphrag.query.index_tables import IndexTables
    from graphrag.query.structured_search.base import SearchResult
    from graphrag.query.structured_search.basic_search.search import BasicSearch
    from graphrag.query.structured_search.drift_search.search import DRIFTSearch
    from graphrag.query.structured_search.global_search.search import GlobalSearch
    from graphrag.query.structured_search.local_search.search import LocalSearch

T = TypeVar("T")


class UnusableReplyError(ValueError):
    """The model answered a step of the search with nothing that the step can use."""


def _copy(engine: T, **changes: object) -> T:
    copied = copy.copy(engine)
    vars(copied).update(changes)
    return copied


class _KnownVectors:
    """The embedding model of an engine, which asks it without waiting: text -> awaited vector."""

    def __init__(self, vectors: Mapping[str, list[float]]) -> None:
        self._vectors = vectors

    def embedding(self, *, input: Sequence[str]) -> Embeddings:
        return Embeddings([self._vectors[text] for text in input])


class ContextSearch:
    """The released local and basic search: one context, one call.

    Each question gets a shallow copy of the engine. The context is built on the loop, never in
    a thread, as the builders write into the records that they share.
    """

    def __init__(self, engine: "LocalSearch | BasicSearch", store: "VectorStore") -> None:
        self._engine, self._store = engine, store
        self._embedding = cast("CountedEmbedding", vars(engine.context_builder)["text_embedder"])

    async def answer(self, question: str, on_text: OnText | None) -> Outcome:
        """Answer a question from one context."""
        vector = await self._embedding.vector_of(question)
        check_length(vector, self._store, model_name(self._embedding.config))
        vectors = _KnownVectors({question: vector})
        builder: Any = _copy(self._engine.context_builder, text_embedder=vectors)
        contexts: list[ContextBuilderResult] = []

        def build_context(*args: object, **kwargs: object) -> "ContextBuilderResult":
            contexts.append(builder.build_context(*args, **kwargs))
            return contexts[-1]

        kept = SimpleNamespace(build_context=build_context)
        engine = _copy(self._engine, context_builder=kept)
        pieces: list[str] = []
        async for piece in cast("AsyncIterator[str]", engine.stream_search(query=question)):
            pieces.append(piece)
            if on_text is not None:
                on_text(piece)
        context = contexts[-1]
        return Outcome("".join(pieces), context.context_records, context.context_chunks)


def _hear(model: Any, hear: Callable[[str], Awaitable[None]]) -> Any:
    """Return a model whose whole replies are heard before the engine gets them."""

    async def completion_async(**kwargs: object) -> object:
        reply = await model.completion_async(**kwargs)
        if not kwargs.get("stream"):
            await hear(str(reply.content))
        return reply

    return _copy(model, completion_async=completion_async)


class GlobalMapReduce:
    """The released global search: a call for each batch of reports, one over what they gave."""

    def __init__(self, engine: "GlobalSearch") -> None:
        self._engine = engine

    async def answer(self, question: str, on_text: OnText | None) -> Outcome:
        """Answer a question from the community reports.

        Raises UnusableReplyError if a batch's reply was not the JSON that the search needs.
        """
        replies: list[str] = []

        async def keep(reply: str) -> None:
            replies.append(reply)

        model = _hear(self._engine.model, keep)
        callbacks = [_copy(NoopQueryCallbacks(), on_llm_new_token=on_text)] if on_text else []
        result = await _copy(self._engine, callbacks=callbacks, model=model).search(query=question)
        parsed: list[dict[str, object]] = [
            try_parse_json_object(reply, verbose=False)[1] for reply in replies
        ]
        unread = sum(not isinstance(reply.get("points"), list) for reply in parsed)
        if unread:
            msg = f"{unread} of {len(replies)} batches had an unreadable reply"
            raise UnusableReplyError(msg)
        # Without a point to answer from, a fixed sentence stands in for the last call.
        n_last = (result.llm_calls_categories or {})["reduce"]
        response = cast("str", result.response)
        return Outcome(response, result.context_data, result.context_text, n_last == 0)


class DriftSearch:
    """The released DRIFT search, with the state of each question kept apart.

    Steps that the engine runs side by side are waited for, not canceled, when one fails: their
    requests are under way and will be charged for.
    """

    def __init__(self, engine: "DRIFTSearch") -> None:
        self._engine = engine

    async def answer(self, question: str, on_text: OnText | None) -> Outcome:
        """Answer a question by follow-up questions and a summary of their answers.

        Raises UnusableReplyError if the reply to a follow-up question was not the JSON that the
        search needs.
        """
        builder, local_search = self._engine.context_builder, self._engine.local_search
        state: Any = QueryState()
        embedding = cast("CountedEmbedding", builder.text_embedder)

        async def search(query: str, **kwargs: Any) -> "SearchResult":
            embedder = _KnownVectors({query: await embedding.vector_of(query)})
            context = _copy(local_search.context_builder, text_embedder=embedder)
            step = _copy(local_search, context_builder=context)
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
                builder, model=_hear(builder.model, embed), text_embedder=_KnownVectors(vectors)
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
        return Outcome(response, result.context_data, result.context_text)


def _run_as_tasks(
    step: Callable[..., Awaitable[T]], tasks: "list[asyncio.Task[Any]]"
) -> Callable[..., Awaitable[T]]:
    """Return a step that runs as a task, which is noted."""

    async def run(*args: object, **kwargs: object) -> T:
        task = asyncio.ensure_future(step(*args, **kwargs))
        tasks.append(cast("asyncio.Task[Any]", task))
        return await task

    return run


def build_released(method: str, header: "IndexHeader", tables: "IndexTables") -> SearchEngine:
    """Make the engine of local, basic, global or DRIFT search, with counted models.

    The released readers write into tables, so each gets a copy.
    """
    config, options = count_models(header.config), header.options
    prompts = {
        key: load_search_prompt(value)
        for key, value in header.section(method)
        if key.endswith("prompt")
    }
    is_dynamic = method == "global" and options.dynamic_community_selection
    parts: dict[str, Any] = {"config": config, "response_type": options.response_type}

    def store(name: str) -> "VectorStore":
        return open_vectors(config, name)

    if method != "global":
        parts["text_units"] = read_text_units(tables)
    if method == "basic":
        vectors = store(text_unit_text_embedding)
        engine = get_basic_search_engine(
            **parts, text_unit_embeddings=vectors, system_prompt=prompts["prompt"]
        )
        return ContextSearch(engine, vectors)
    level, communities = options.community_level, tables.table("communities")
    parts["reports"] = reports = read_indexer_reports(
        tables.table("community_reports"),
        communities,
        level,
        dynamic_community_selection=is_dynamic,
    )
    communities = tables.table("communities")
    parts["entities"] = read_indexer_entities(tables.table("entities"), communities, level)
    if method == "global":
        engine = get_global_search_engine(
            **parts,
            communities=read_indexer_communities(
                tables.table("communities"), tables.table("community_reports")
            ),
            dynamic_community_selection=options.dynamic_community_selection,
            map_system_prompt=prompts["map_prompt"],
            reduce_system_prompt=prompts["reduce_prompt"],
            general_knowledge_inclusion_prompt=prompts["knowledge_prompt"],
        )
        return GlobalMapReduce(engine)
    parts["relationships"] = read_indexer_relationships(tables.table("relationships"))
    vectors = store(entity_description_embedding)
    parts["description_embedding_store"] = vectors
    if method == "local":
        claims = tables.table("covariates") if tables.has("covariates") else None
        covariates = {"claims": [] if claims is None else read_indexer_covariates(claims)}
        engine = get_local_search_engine(
            **parts, covariates=covariates, system_prompt=prompts["prompt"]
        )
        return ContextSearch(engine, vectors)
    read_indexer_report_embeddings(reports, store(community_full_content_embedding))
    return DriftSearch(
        get_drift_search_engine(
            **parts,
            local_system_prompt=prompts["prompt"],
            reduce_system_prompt=prompts["reduce_prompt"],
        )
    )
