"""The search functions of ``graphrag.api``: the released names and arguments, counted results.

Each takes the tables of a built index, as the released function of its name does, and returns
a :class:`~graphrag.query.graph_index.CountedSearchResult`, which still unpacks as
``response, context_data``. To ask many questions of one index, open a
:class:`~graphrag.query.graph_index.GraphIndex`, which prepares the tables once.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from graphrag.config.models.graph_rag_config import GraphRagConfig
from graphrag.query.graph_index import CountedSearchResult, GraphIndex
from graphrag.query.index_header import IndexHeader, SearchOptions
from graphrag.query.index_tables import IndexTables

if TYPE_CHECKING:
    import pandas as pd

    from graphrag.callbacks.query_callbacks import QueryCallbacks

__all__ = [
    "basic_search",
    "drift_search",
    "global_search",
    "local_search",
    "tog_search",
    "tog_search_streaming",
]


async def tog_search(
    config: GraphRagConfig,
    entities: "pd.DataFrame",
    relationships: "pd.DataFrame",
    text_units: "pd.DataFrame",
    query: str,
    response_type: str = "Multiple Paragraphs",
    callbacks: "list[QueryCallbacks] | None" = None,
    verbose: bool = False,
) -> CountedSearchResult:
    """Answer a question by Think-on-Graph search.

    Parameters
    ----------
    config : GraphRagConfig
        The project's settings; its ``tog_search`` section, where it has one, sets the walk.
    entities, relationships, text_units : pandas.DataFrame
        The tables of the index.
    query : str
        The question.
    response_type : str
        Free-form description of the answer's form.
    callbacks : list of QueryCallbacks or None
        Told of every piece of text and of the context.
    verbose : bool
        Whether the log file gets debug lines.

    Raises
    ------
    SearchError
        If the search gave no usable response.
    """
    tables = IndexTables(entities=entities, relationships=relationships, text_units=text_units)
    index = GraphIndex(IndexHeader(config, SearchOptions(response_type=response_type)), tables)
    return await _search(index, "tog", query, callbacks, verbose)


async def tog_search_streaming(
    config: GraphRagConfig,
    entities: "pd.DataFrame",
    relationships: "pd.DataFrame",
    text_units: "pd.DataFrame",
    query: str,
    response_type: str = "Multiple Paragraphs",
    callbacks: "list[QueryCallbacks] | None" = None,
    verbose: bool = False,
) -> AsyncGenerator[str]:
    """Yield the response of :func:`tog_search` piece by piece; same parameters and errors."""
    pieces: asyncio.Queue[str | None] = asyncio.Queue()
    tables = IndexTables(entities=entities, relationships=relationships, text_units=text_units)
    index = GraphIndex(IndexHeader(config, SearchOptions(response_type=response_type)), tables)
    _start_log(config, verbose)

    async def run() -> CountedSearchResult:
        try:
            return await index.search("tog", query, on_text=pieces.put_nowait)
        finally:
            pieces.put_nowait(None)

    task = asyncio.create_task(run())
    try:
        while (piece := await pieces.get()) is not None:
            for callback in callbacks or []:
                callback.on_llm_new_token(piece)
            yield piece
        result = await task
        for callback in callbacks or []:
            callback.on_context(result.context_data)
    finally:
        task.cancel()


async def local_search(
    config: GraphRagConfig,
    entities: "pd.DataFrame",
    communities: "pd.DataFrame",
    community_reports: "pd.DataFrame",
    text_units: "pd.DataFrame",
    relationships: "pd.DataFrame",
    covariates: "pd.DataFrame | None",
    community_level: int,
    response_type: str,
    query: str,
    callbacks: "list[QueryCallbacks] | None" = None,
    verbose: bool = False,
) -> CountedSearchResult:
    """Answer a question from the neighbourhood of the entities nearest to it.

    The parameters are those of the released function; raises SearchError where that one
    returned an empty response.
    """
    tables = IndexTables(
        entities=entities,
        relationships=relationships,
        text_units=text_units,
        communities=communities,
        community_reports=community_reports,
        covariates=covariates,
    )
    options = SearchOptions(community_level, response_type)
    index = GraphIndex(IndexHeader(config, options), tables)
    return await _search(index, "local", query, callbacks, verbose)


async def basic_search(
    config: GraphRagConfig,
    text_units: "pd.DataFrame",
    response_type: str,
    query: str,
    callbacks: "list[QueryCallbacks] | None" = None,
    verbose: bool = False,
) -> CountedSearchResult:
    """Answer a question from the text units nearest to it.

    The parameters are those of the released function; raises SearchError where that one
    returned an empty response.
    """
    options = SearchOptions(response_type=response_type)
    index = GraphIndex(IndexHeader(config, options), IndexTables(text_units=text_units))
    return await _search(index, "basic", query, callbacks, verbose)


async def global_search(
    config: GraphRagConfig,
    entities: "pd.DataFrame",
    communities: "pd.DataFrame",
    community_reports: "pd.DataFrame",
    community_level: int | None,
    dynamic_community_selection: bool,
    response_type: str,
    query: str,
    callbacks: "list[QueryCallbacks] | None" = None,
    verbose: bool = False,
) -> CountedSearchResult:
    """Answer a question from the community reports.

    The parameters are those of the released function; raises SearchError where that one
    returned an empty response or left a failed batch out.
    """
    tables = IndexTables(
        entities=entities, communities=communities, community_reports=community_reports
    )
    options = SearchOptions(community_level, response_type, dynamic_community_selection)
    index = GraphIndex(IndexHeader(config, options), tables)
    return await _search(index, "global", query, callbacks, verbose)


async def drift_search(
    config: GraphRagConfig,
    entities: "pd.DataFrame",
    communities: "pd.DataFrame",
    community_reports: "pd.DataFrame",
    text_units: "pd.DataFrame",
    relationships: "pd.DataFrame",
    community_level: int,
    response_type: str,
    query: str,
    callbacks: "list[QueryCallbacks] | None" = None,
    verbose: bool = False,
) -> CountedSearchResult:
    """Answer a question by DRIFT search.

    The parameters are those of the released function; raises SearchError where that one left a
    failed step out.
    """
    tables = IndexTables(
        entities=entities,
        relationships=relationships,
        text_units=text_units,
        communities=communities,
        community_reports=community_reports,
    )
    options = SearchOptions(community_level, response_type)
    index = GraphIndex(IndexHeader(config, options), tables)
    return await _search(index, "drift", query, callbacks, verbose)


async def _search(
    index: GraphIndex,
    method: str,
    query: str,
    callbacks: "list[QueryCallbacks] | None",
    verbose: bool,
) -> CountedSearchResult:
    _start_log(index.header.config, verbose)
    result = await index.search(method, query)
    for callback in callbacks or []:
        callback.on_llm_new_token(str(result.response))
        callback.on_context(result.context_data)
    return result


def _start_log(config: GraphRagConfig, verbose: bool) -> None:
    """Open the released log file unless the caller has handlers of its own, which it would drop."""
    if not logging.getLogger("graphrag").handlers:
        from graphrag.logger.standard_logging import init_loggers

        init_loggers(config=config, verbose=verbose, filename="query.log")
