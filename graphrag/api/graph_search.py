"""The search functions of ``graphrag.api`` that read the graph: Think-on-Graph and PageRank."""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd
from pydantic import BeforeValidator, validate_call

from graphrag.api.asking import answer, start_log, stream
from graphrag.callbacks.query_callbacks import QueryCallbacks
from graphrag.config.models.graph_rag_config import GraphRagConfig
from graphrag.query.counted_result import CountedSearchResult

if TYPE_CHECKING:
    from graphrag.query.graph_index import GraphIndex

_Callbacks = list[QueryCallbacks] | None
_checked = validate_call(config={"arbitrary_types_allowed": True})


def _read_config(given: Any) -> Any:
    """Read a mapping with its own sections of these searches, which the released class drops."""
    if not isinstance(given, dict):
        return given
    from graphrag.config.project_settings import ProjectConfig

    return ProjectConfig.model_validate(given)


_Config = Annotated[GraphRagConfig, BeforeValidator(_read_config)]


@_checked
async def tog_search(
    config: _Config,
    entities: pd.DataFrame,
    relationships: pd.DataFrame,
    query: str,
    text_units: pd.DataFrame | None = None,
    response_type: str = "Multiple Paragraphs",
    callbacks: _Callbacks = None,
    verbose: bool = False,
) -> CountedSearchResult:
    """Answer a question by Think-on-Graph search.

    Parameters
    ----------
    config : GraphRagConfig
        The project's settings, or a mapping of them; its ``tog_search`` section, where it has
        one, sets the walk.
    entities, relationships : pandas.DataFrame
        Tables of the index.
    query : str
        The question.
    text_units : pandas.DataFrame or None
        The texts; None answers from the paths alone.
    response_type : str
        Free-form description of the answer's form.
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
    index = _open(config, entities, relationships, text_units, response_type)
    start_log(config, verbose)
    return await answer("tog", index, query, callbacks or [])


@_checked
def tog_search_streaming(
    config: _Config,
    entities: pd.DataFrame,
    relationships: pd.DataFrame,
    query: str,
    text_units: pd.DataFrame | None = None,
    response_type: str = "Multiple Paragraphs",
    callbacks: _Callbacks = None,
    verbose: bool = False,
) -> AsyncGenerator[str]:
    """Yield the response of :func:`tog_search` piece by piece; same parameters and errors."""
    index = _open(config, entities, relationships, text_units, response_type)
    start_log(config, verbose)
    return stream("tog", index, query, callbacks or [])


@_checked
async def ppr_search(
    config: _Config,
    entities: pd.DataFrame,
    relationships: pd.DataFrame,
    query: str,
    text_units: pd.DataFrame | None = None,
    response_type: str = "Multiple Paragraphs",
    callbacks: _Callbacks = None,
    verbose: bool = False,
) -> CountedSearchResult:
    """Answer a question in one call from the texts that personalised PageRank ranks first.

    Parameters and errors are those of :func:`tog_search`; the section is ``ppr_search``.
    """
    index = _open(config, entities, relationships, text_units, response_type)
    start_log(config, verbose)
    return await answer("ppr", index, query, callbacks or [])


@_checked
def ppr_search_streaming(
    config: _Config,
    entities: pd.DataFrame,
    relationships: pd.DataFrame,
    query: str,
    text_units: pd.DataFrame | None = None,
    response_type: str = "Multiple Paragraphs",
    callbacks: _Callbacks = None,
    verbose: bool = False,
) -> AsyncGenerator[str]:
    """Yield the response of :func:`ppr_search` piece by piece; same parameters and errors."""
    index = _open(config, entities, relationships, text_units, response_type)
    start_log(config, verbose)
    return stream("ppr", index, query, callbacks or [])


def _open(
    config: GraphRagConfig,
    entities: pd.DataFrame,
    relationships: pd.DataFrame,
    text_units: pd.DataFrame | None,
    response_type: str,
) -> "GraphIndex":
    from graphrag.query.graph_index import GraphIndex
    from graphrag.query.index_header import IndexHeader, SearchOptions
    from graphrag.query.index_tables import IndexTables

    header = IndexHeader(config, SearchOptions(response_type=response_type))
    tables = IndexTables(entities=entities, relationships=relationships, text_units=text_units)
    return GraphIndex(header, tables)
