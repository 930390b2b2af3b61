"""The search functions of ``graphrag.api`` that are basic search with another ranking."""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

import pandas as pd
from pydantic import validate_call

from graphrag.api.asking import answer, default_response_type, start_log, stream
from graphrag.callbacks.query_callbacks import QueryCallbacks
from graphrag.config.models.graph_rag_config import GraphRagConfig
from graphrag.query.counted_result import CountedSearchResult

if TYPE_CHECKING:
    from graphrag.query.graph_index import GraphIndex

_Callbacks = list[QueryCallbacks] | None
_checked = validate_call(config={"arbitrary_types_allowed": True})


@default_response_type
@_checked
async def bm25_search(
    config: GraphRagConfig,
    text_units: pd.DataFrame,
    response_type: str,
    query: str,
    callbacks: _Callbacks = None,
    verbose: bool = False,
) -> CountedSearchResult:
    """Answer a question from the text units whose words fit it best (BM25).

    It is basic search with another ranking: its prompt, its settings (``basic_search``) and its
    form of context, best text unit first. Nothing is embedded, and no vector is read.

    Parameters
    ----------
    config : GraphRagConfig
    text_units : pandas.DataFrame
        Table of the index. It is prepared anew by each call, which takes seconds for a large
        one; a :class:`~graphrag.query.graph_index.GraphIndex` prepares it once.
    response_type : str
        Free-form description of the answer's form. It may be left out where ``query`` is given
        by name, and is then "Multiple Paragraphs".
    query : str
        The question.
    callbacks : list of QueryCallbacks or None
        Told of the context, and of every piece of the response as it arrives. Without any, the
        reply is not streamed, and its tokens are those that the provider reports.
    verbose : bool
        Whether the log file gets debug lines.

    Raises
    ------
    SearchError
        If the search gave no usable response.
    """
    index = _open(config, text_units, response_type)
    start_log(config, verbose)
    return await answer("bm25", index, query, callbacks or [])


@_checked
def bm25_search_streaming(
    config: GraphRagConfig,
    text_units: pd.DataFrame,
    response_type: str,
    query: str,
    callbacks: _Callbacks = None,
    verbose: bool = False,
) -> AsyncGenerator[str]:
    """Yield the response of :func:`bm25_search` piece by piece; same parameters and errors."""
    index = _open(config, text_units, response_type)
    start_log(config, verbose)
    return stream("bm25", index, query, callbacks or [])


@default_response_type
@_checked
async def hybrid_search(
    config: GraphRagConfig,
    text_units: pd.DataFrame,
    response_type: str,
    query: str,
    callbacks: _Callbacks = None,
    verbose: bool = False,
) -> CountedSearchResult:
    """Answer a question from the text units that fit it best by words and by vectors together.

    BM25 and the vectors that basic search looks up each score the text units, and their z-scores
    are added; hashed n-grams take no part. Parameters, errors and the rest are those of
    :func:`bm25_search`; the question is embedded once.
    """
    index = _open(config, text_units, response_type)
    start_log(config, verbose)
    return await answer("hybrid", index, query, callbacks or [])


@_checked
def hybrid_search_streaming(
    config: GraphRagConfig,
    text_units: pd.DataFrame,
    response_type: str,
    query: str,
    callbacks: _Callbacks = None,
    verbose: bool = False,
) -> AsyncGenerator[str]:
    """Yield the response of :func:`hybrid_search` piece by piece; same parameters and errors."""
    index = _open(config, text_units, response_type)
    start_log(config, verbose)
    return stream("hybrid", index, query, callbacks or [])


@default_response_type
@_checked
async def agentic_search(
    config: GraphRagConfig,
    text_units: pd.DataFrame,
    response_type: str,
    query: str,
    callbacks: _Callbacks = None,
    verbose: bool = False,
) -> CountedSearchResult:
    """Answer a question by up to three hybrid searches, each for what the model missed before.

    Parameters, errors and the rest are those of :func:`bm25_search`. Each search embeds its query;
    ``context_data["searches"]`` has a row for each.
    """
    index = _open(config, text_units, response_type)
    start_log(config, verbose)
    return await answer("agentic", index, query, callbacks or [])


@_checked
def agentic_search_streaming(
    config: GraphRagConfig,
    text_units: pd.DataFrame,
    response_type: str,
    query: str,
    callbacks: _Callbacks = None,
    verbose: bool = False,
) -> AsyncGenerator[str]:
    """Yield the response of :func:`agentic_search` piece by piece; same parameters and errors."""
    index = _open(config, text_units, response_type)
    start_log(config, verbose)
    return stream("agentic", index, query, callbacks or [])


def _open(config: GraphRagConfig, text_units: pd.DataFrame, response_type: str) -> "GraphIndex":
    from graphrag.query.graph_index import GraphIndex
    from graphrag.query.index_header import IndexHeader, SearchOptions
    from graphrag.query.index_tables import IndexTables

    header = IndexHeader(config, SearchOptions(response_type=response_type))
    return GraphIndex(header, IndexTables(text_units=text_units))
