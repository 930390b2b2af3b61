"""The search functions of ``graphrag.api``: those of the release, counted, and our own.

The released functions do the searching, untouched: same requests, callbacks, log file, errors
and conversions of arguments. What they return is a
:class:`~graphrag.query.counted_result.CountedSearchResult`, which is the released pair and says
what it cost. To ask many questions of one index, open a
:class:`~graphrag.query.graph_index.GraphIndex`, which prepares the tables once and counts what
the release's clients send again by themselves.

Importing this module imports nothing that the release has not imported already.
"""

import time
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pandas as pd
from pydantic import validate_call

from graphrag.api.asking import default_response_type
from graphrag.api.graph_search import (
    ppr_search,
    ppr_search_streaming,
    tog_search,
    tog_search_streaming,
)
from graphrag.api.ranked_search import (
    agentic_search,
    agentic_search_streaming,
    bm25_search,
    bm25_search_streaming,
    hybrid_search,
    hybrid_search_streaming,
)
from graphrag.callbacks.noop_query_callbacks import NoopQueryCallbacks
from graphrag.callbacks.query_callbacks import QueryCallbacks
from graphrag.config.models.graph_rag_config import GraphRagConfig
from graphrag.query.counted_result import CountedSearchResult, make_result

if TYPE_CHECKING:
    from graphrag.query.observed import Observation

__all__ = [
    "agentic_search",
    "agentic_search_streaming",
    "basic_search",
    "bm25_search",
    "bm25_search_streaming",
    "drift_search",
    "global_search",
    "hybrid_search",
    "hybrid_search_streaming",
    "local_search",
    "ppr_search",
    "ppr_search_streaming",
    "tog_search",
    "tog_search_streaming",
]

_Callbacks = list[QueryCallbacks] | None
_checked = validate_call(config={"arbitrary_types_allowed": True})


@_checked
async def local_search(
    config: GraphRagConfig,
    entities: pd.DataFrame,
    communities: pd.DataFrame,
    community_reports: pd.DataFrame,
    text_units: pd.DataFrame,
    relationships: pd.DataFrame,
    covariates: pd.DataFrame | None,
    community_level: int,
    response_type: str,
    query: str,
    callbacks: _Callbacks = None,
    verbose: bool = False,
) -> CountedSearchResult:
    """Answer a question from the neighbourhood of the entities nearest to it.

    Parameters, errors and the pair that is returned are those of the released function.
    """
    given = {
        "entities": entities,
        "communities": communities,
        "community_reports": community_reports,
        "text_units": text_units,
        "relationships": relationships,
        "covariates": covariates,
        "community_level": community_level,
        "response_type": response_type,
        "query": query,
        "callbacks": callbacks,
        "verbose": verbose,
    }

    def shown(observed: "Observation") -> Any:
        from graphrag.query.shown_context import local_context

        return local_context(config, response_type, observed.prompts)

    return await _count("local_search", config, given, shown)


@default_response_type
@_checked
async def basic_search(
    config: GraphRagConfig,
    text_units: pd.DataFrame,
    response_type: str,
    query: str,
    callbacks: _Callbacks = None,
    verbose: bool = False,
) -> CountedSearchResult:
    """Answer a question from the text units nearest to it.

    Parameters, errors and the pair that is returned are those of the released function, except
    that ``response_type`` may be left out where ``query`` is given by name: it is then
    "Multiple Paragraphs".
    """
    given = {
        "text_units": text_units,
        "response_type": response_type,
        "query": query,
        "callbacks": callbacks,
        "verbose": verbose,
    }

    def shown(observed: "Observation") -> Any:
        from graphrag.query.shown_context import basic_context

        return basic_context(config, response_type, observed.prompts)

    return await _count("basic_search", config, given, shown)


@_checked
async def global_search(
    config: GraphRagConfig,
    entities: pd.DataFrame,
    communities: pd.DataFrame,
    community_reports: pd.DataFrame,
    community_level: int | None,
    dynamic_community_selection: bool,
    response_type: str,
    query: str,
    callbacks: _Callbacks = None,
    verbose: bool = False,
) -> CountedSearchResult:
    """Answer a question from the community reports.

    Parameters, errors and the pair that is returned are those of the released function: a batch
    of reports whose call failed, or whose reply can't be read, is left out of the answer, and
    only ``usage.failed_calls`` tells of the former.
    """
    contexts = _MapContexts()
    given = {
        "entities": entities,
        "communities": communities,
        "community_reports": community_reports,
        "community_level": community_level,
        "dynamic_community_selection": dynamic_community_selection,
        "response_type": response_type,
        "query": query,
        "callbacks": [*(callbacks or []), contexts],
        "verbose": verbose,
    }
    result = await _count("global_search", config, given, lambda _: contexts.shown)
    result.abstained = result.abstained or not contexts.is_reduced
    return result


@_checked
async def drift_search(
    config: GraphRagConfig,
    entities: pd.DataFrame,
    communities: pd.DataFrame,
    community_reports: pd.DataFrame,
    text_units: pd.DataFrame,
    relationships: pd.DataFrame,
    community_level: int,
    response_type: str,
    query: str,
    callbacks: _Callbacks = None,
    verbose: bool = False,
) -> CountedSearchResult:
    """Answer a question by DRIFT search.

    Parameters, errors and the pair that is returned are those of the released function: the
    context is that of the follow-up question which was answered last. ``context_text`` holds
    that of each of them, by follow-up question.
    """
    given = {
        "entities": entities,
        "communities": communities,
        "community_reports": community_reports,
        "text_units": text_units,
        "relationships": relationships,
        "community_level": community_level,
        "response_type": response_type,
        "query": query,
        "callbacks": callbacks,
        "verbose": verbose,
    }

    def shown(observed: "Observation") -> Any:
        from graphrag.query.shown_context import drift_contexts

        return drift_contexts(config, query, observed.prompts)

    return await _count("drift_search", config, given, shown)


class _MapContexts(NoopQueryCallbacks):
    """Keeps the batches of reports that a global search shows its model.

    Without a point to answer from it gives a fixed sentence, and no model writes the response.
    """

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[str] = []
        self.is_reduced = False

    def on_map_response_start(self, map_response_contexts: list[str]) -> None:
        self.shown = map_response_contexts

    def on_llm_new_token(self, token: str) -> None:
        self.is_reduced = True


async def _count(
    name: str,
    config: GraphRagConfig,
    given: dict[str, Any],
    shown: "Callable[[Observation], Any]",
) -> CountedSearchResult:
    """Call the released function of a name and say what it asked of its models."""
    from graphrag.query.observed import Observation

    released = import_module("graphrag.api.query")
    observed = Observation()
    started = time.perf_counter()
    response, context = await getattr(released, name)(config=observed.over(config), **given)
    seconds = time.perf_counter() - started
    log = observed.log
    shown_text = shown(observed)
    return make_result(response, context, shown_text, log.usage(), seconds, log.abstained)
