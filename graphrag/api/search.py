"""Defines the search functions of ``graphrag.api``: the released ones, counted, and gtog's own.

Importing this module imports nothing that the release has not imported already.
"""

import functools
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from inspect import Signature, signature
from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd
from pydantic import BeforeValidator, ValidationError, validate_call

from graphrag.callbacks.noop_query_callbacks import NoopQueryCallbacks
from graphrag.callbacks.query_callbacks import QueryCallbacks
from graphrag.config.models.graph_rag_config import GraphRagConfig
from graphrag.query.client.streaming import stream_from
from graphrag.query.search_result import CountedSearchResult, OnText, Outcome, make_result

if TYPE_CHECKING:
    from graphrag.query.client.usage import CallLog
    from graphrag.query.graph_index import GraphIndex

__all__ = [
    "agentic_search",
    "agentic_search_streaming",
    "basic_search",
    "basic_search_streaming",
    "bm25_search",
    "bm25_search_streaming",
    "drift_search",
    "drift_search_streaming",
    "global_search",
    "global_search_streaming",
    "hybrid_search",
    "hybrid_search_streaming",
    "local_search",
    "local_search_streaming",
    "ppr_search",
    "ppr_search_streaming",
    "tog_search",
    "tog_search_streaming",
]

released: Any = import_module("graphrag.api.query")
_FORM = "Multiple Paragraphs"
_Callbacks = list[QueryCallbacks] | None
_Search = Callable[..., Awaitable[CountedSearchResult]]
_Stream = Callable[..., AsyncGenerator[str]]
_Args = dict[str, Any]
"""The arguments of a search, by name."""
_ContextFinder = Callable[[GraphRagConfig, _Args, "CallLog"], Any]
_checked = validate_call(config={"arbitrary_types_allowed": True})


def _read_own_sections(config: object) -> object:
    """Read settings with the sections of gtog's searches, which the released class drops."""
    from graphrag.config.project_settings import ProjectConfig

    if isinstance(config, GraphRagConfig) and not isinstance(config, ProjectConfig):
        return ProjectConfig.model_construct(**dict(config))
    return ProjectConfig.model_validate(config) if isinstance(config, dict) else config


_Config = Annotated[GraphRagConfig, BeforeValidator(_read_own_sections)]


def _counted(search: Callable[..., Any], finder: _ContextFinder | None = None) -> _Search:
    """Return a released function that counts its calls.

    ``finder`` finds the context that the model was shown; None for the batches of reports.
    """
    parameters = signature(search)

    @functools.wraps(search)
    async def counted(*args: object, **kwargs: object) -> CountedSearchResult:
        try:
            arguments, config = _read_arguments(parameters, args, kwargs)
        except (TypeError, KeyError, ValidationError):
            await search(*args, **kwargs)  # it raises the error
            raise
        arguments.setdefault("response_type", _FORM)
        batches = _Batches()
        if finder is None:
            arguments["callbacks"] = [*(arguments.get("callbacks") or []), batches]
        started = time.perf_counter()
        with _own_log() as log:
            log.prompts = []
            response, context = await search(**{**arguments, "config": _count(config)})
        seconds = time.perf_counter() - started
        text = batches.texts if finder is None else finder(config, arguments, log)
        abstained = log.abstained or (finder is None and not batches.is_reduced)
        return make_result(
            Outcome(
                response=response, context_data=context, context_text=text, abstained=abstained
            ),
            log.usage(),
            seconds,
        )

    counted.__module__ = __name__
    return counted


def _counted_stream(search: Callable[..., Any]) -> _Stream:
    """Return a released function that streams, with counted models.

    So a model's thoughts are not shown, and parameters that its service refuses are left out.
    """
    parameters = signature(search)

    @functools.wraps(search)
    def streaming(*args: object, **kwargs: object) -> AsyncGenerator[str]:
        try:
            arguments, config = _read_arguments(parameters, args, kwargs)
        except (TypeError, KeyError, ValidationError):
            search(*args, **kwargs)  # it raises the error
            raise
        pieces = search(**{**arguments, "config": _count(config)})

        async def pass_on(emit: OnText) -> None:
            with _own_log():
                async for piece in pieces:
                    emit(piece)

        return stream_from(pass_on)

    streaming.__module__ = __name__
    return streaming


def _read_arguments(
    parameters: Signature, args: tuple[object, ...], kwargs: _Args
) -> tuple[_Args, GraphRagConfig]:
    arguments = parameters.bind_partial(*args, **kwargs).arguments
    return arguments, GraphRagConfig.model_validate(arguments["config"])


def _count(config: GraphRagConfig) -> GraphRagConfig:
    from graphrag.query.client.models import count_models

    return count_models(config)


@contextmanager
def _own_log() -> "Generator[CallLog]":
    """Count the calls of the block in a log of its own, and add them to the outer log, if any."""
    from graphrag.query.client.usage import CallLog, current_scope, measure_calls

    outer, log = current_scope(), CallLog(live=True)
    try:
        with measure_calls(log):
            yield log
    finally:
        if outer is not None:
            outer.attempts += log.attempts
            outer.failures += log.failures


class _Batches(NoopQueryCallbacks):
    """Keeps the batches of reports that a global search shows its model.

    If these contain no point to answer from, it gives a fixed sentence that no model wrote.
    """

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.is_reduced = False

    def on_map_response_start(self, map_response_contexts: list[str]) -> None:
        self.texts = map_response_contexts

    def on_llm_new_token(self, token: str) -> None:
        self.is_reduced = True


def find_context(template: str, fields: _Args, prompt: str) -> str | None:
    """Return the part of a prompt that replaces its template's ``{context_data}``.

    None if the prompt was not made from the template; "" if the template has no such field.
    """
    mark = "\x00context\x00"
    first, *others = template.format(context_data=mark, **fields).split(mark)
    if not others:
        return "" if prompt == first else None
    room = len(prompt) - len(first) - sum(map(len, others))
    context = prompt[len(first) : len(first) + max(0, room // len(others))]
    return context if context.join([first, *others]) == prompt else None


def _context_in_answer(method: str) -> _ContextFinder:
    """Return a finder of the context, for a search whose only completion is its answer."""

    def find(config: GraphRagConfig, arguments: _Args, log: "CallLog") -> str:
        if not log.prompts:
            return ""
        prompt = str(log.prompts[0][0]["content"])
        fields = {"response_type": arguments["response_type"]}
        context = find_context(_read_template(config, method), fields, prompt)
        return prompt if context is None else context

    return find


def _follow_up_contexts(config: GraphRagConfig, arguments: _Args, log: "CallLog") -> dict[str, str]:
    """Return the contexts of a DRIFT search: follow-up question -> its context."""
    fields = {
        "response_type": "multiple paragraphs",  # the release fixes it, whatever the caller's
        "global_query": arguments["query"],
        "followups": config.drift_search.drift_k_followups,
    }
    contexts: dict[str, str] = {}
    for messages in log.prompts or ():
        if len(messages) == 2:
            template, prompt = _read_template(config, "drift"), str(messages[0]["content"])
            context = find_context(template, fields, prompt)
            if context is not None:
                contexts[str(messages[1]["content"])] = context
    return contexts


def _read_template(config: GraphRagConfig, method: str) -> str:
    from graphrag.prompts.query import basic_search_system_prompt as basic
    from graphrag.prompts.query import drift_search_system_prompt as drift
    from graphrag.prompts.query import local_search_system_prompt as local
    from graphrag.utils.api import load_search_prompt

    templates = {
        "basic": basic.BASIC_SEARCH_SYSTEM_PROMPT,
        "local": local.LOCAL_SEARCH_SYSTEM_PROMPT,
        "drift": drift.DRIFT_LOCAL_SYSTEM_PROMPT,
    }
    own = load_search_prompt(getattr(config, f"{method}_search").prompt)
    return own or templates[method]


local_search = _counted(released.local_search, _context_in_answer("local"))
basic_search = _counted(released.basic_search, _context_in_answer("basic"))
global_search = _counted(released.global_search)
drift_search = _counted(released.drift_search, _follow_up_contexts)
local_search_streaming = _counted_stream(released.local_search_streaming)
basic_search_streaming = _counted_stream(released.basic_search_streaming)
global_search_streaming = _counted_stream(released.global_search_streaming)
drift_search_streaming = _counted_stream(released.drift_search_streaming)


async def _answer(
    method: str,
    index: "GraphIndex",
    query: str,
    callbacks: _Callbacks,
    on_text: OnText | None = None,
) -> CountedSearchResult:
    def emit(piece: str) -> None:
        for callback in callbacks or ():
            callback.on_llm_new_token(piece)
        if on_text is not None:
            on_text(piece)

    result = await index.search(method, query, on_text=emit if callbacks or on_text else None)
    for callback in callbacks or ():
        callback.on_context(result.context_data)
    return result


def _open_index(
    config: GraphRagConfig, response_type: str, verbose: bool, **tables: pd.DataFrame | None
) -> "GraphIndex":
    from graphrag.query.graph_index import GraphIndex
    from graphrag.query.index.header import IndexHeader, SearchOptions
    from graphrag.query.index.tables import IndexTables

    # Open the released log file, unless the caller has handlers, which that would drop.
    if not logging.getLogger("graphrag").handlers:
        from graphrag.logger.standard_logging import init_loggers

        init_loggers(config=config, verbose=verbose, filename="query.log")
    header = IndexHeader(config=config, options=SearchOptions(response_type=response_type))
    return GraphIndex(header, IndexTables(**tables))


_DOC = """{first}

{parameters}

``response_type``: free-form description of the answer's form; "Multiple Paragraphs" by default.
``callbacks``: called with the context, and with every piece of the response as it arrives. Without
callbacks the reply is not streamed, and its tokens are those that the provider reports.
``verbose``: whether the log file gets debug lines.

Returns a CountedSearchResult, which also unpacks as ``(response, context_data)``; the function
with ``_streaming`` in its name takes the same arguments and yields the response piece by piece.
Raises SearchError if the search gave no usable response.
"""
_GRAPH_PARAMETERS = """\
Call ``tog_search`` and ``ppr_search`` alike:

    result = await tog_search(
        config=config, entities=entities, relationships=relationships, text_units=text_units,
        query="Who signed?",
    )
    response = result.response

``config``: a GraphRagConfig, or a mapping of settings; its section for the method, if it has one,
sets how the method searches. ``entities``, ``relationships``, ``text_units``: tables of the index;
without text units the answer rests on relationships."""
_RANKED_PARAMETERS = """\
Call ``bm25_search``, ``hybrid_search`` and ``agentic_search`` alike:

    result = await hybrid_search(config=config, text_units=text_units, query="Who signed?")
    response = result.response

``config``: a GraphRagConfig, or a mapping of settings; its section ``basic_search`` applies, and
``passage_tokens`` in it only if ``config`` is a mapping. ``text_units``: a table of the index. Each
call prepares it anew, which takes seconds for a large table."""


_Opened = tuple[Any, str, _Callbacks]
"""The index, the question, the callbacks."""


@_checked
def _open_graph(
    config: _Config,
    entities: pd.DataFrame,
    relationships: pd.DataFrame,
    query: str,
    text_units: pd.DataFrame | None = None,
    response_type: str = _FORM,
    callbacks: _Callbacks = None,
    verbose: bool = False,
) -> _Opened:
    frames = {"entities": entities, "relationships": relationships, "text_units": text_units}
    return _open_index(config, response_type, verbose, **frames), query, callbacks


@_checked
def _open_texts(
    config: _Config,
    text_units: pd.DataFrame,
    response_type: str,
    query: str,
    callbacks: _Callbacks = None,
    verbose: bool = False,
) -> _Opened:
    return _open_index(config, response_type, verbose, text_units=text_units), query, callbacks


def _make_searches(
    method: str, first: str, open_index: Callable[..., _Opened], parameters: str
) -> tuple[_Search, _Stream]:
    """Make the two functions of a method: the full response, and its pieces as they arrive."""

    def read(*args: object, **kwargs: object) -> _Opened:
        if open_index is _open_texts and len(args) < 3:  # before the query, it takes no default
            kwargs.setdefault("response_type", _FORM)
        return open_index(*args, **kwargs)

    async def search(*args: object, **kwargs: object) -> CountedSearchResult:
        return await _answer(method, *read(*args, **kwargs))

    def streaming(*args: object, **kwargs: object) -> AsyncGenerator[str]:
        opened = read(*args, **kwargs)
        return stream_from(lambda emit: _answer(method, *opened, emit))

    for function, name in ((search, "search"), (streaming, "search_streaming")):
        function.__name__ = function.__qualname__ = f"{method}_{name}"
        function.__doc__ = _DOC.format(first=first, parameters=parameters)
        result = signature(function).return_annotation
        vars(function)["__signature__"] = signature(open_index).replace(return_annotation=result)
    return search, streaming


_GRAPH, _RANKED = (_open_graph, _GRAPH_PARAMETERS), (_open_texts, _RANKED_PARAMETERS)
tog_search, tog_search_streaming = _make_searches(
    "tog", "Answer a question by Think-on-Graph search.", *_GRAPH
)
ppr_search, ppr_search_streaming = _make_searches(
    "ppr",
    "Answer a question in one call from the texts that personalized PageRank ranks first.",
    *_GRAPH,
)
bm25_search, bm25_search_streaming = _make_searches(
    "bm25", "Answer a question from the text units whose words fit it best (BM25).", *_RANKED
)
hybrid_search, hybrid_search_streaming = _make_searches(
    "hybrid",
    "Answer a question from the text units that fit it best by words and by vectors.",
    *_RANKED,
)
agentic_search, agentic_search_streaming = _make_searches(
    "agentic",
    "Answer a question by up to three hybrid searches, each for what was missing before.",
    *_RANKED,
)
