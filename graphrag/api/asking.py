"""What the search functions of ``graphrag.api`` share: asking an index, callbacks, the log file."""

import asyncio
import functools
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

from graphrag.callbacks.query_callbacks import QueryCallbacks
from graphrag.config.models.graph_rag_config import GraphRagConfig
from graphrag.query.counted_result import CountedSearchResult

if TYPE_CHECKING:
    from graphrag.query.graph_index import GraphIndex


async def answer(
    method: str, index: "GraphIndex", query: str, callbacks: list[QueryCallbacks]
) -> CountedSearchResult:
    """Ask an index by a method and tell the callbacks of the text and the context."""

    def tell(piece: str) -> None:
        for callback in callbacks:
            callback.on_llm_new_token(piece)

    result = await index.search(method, query, on_text=tell if callbacks else None)
    for callback in callbacks:
        callback.on_context(result.context_data)
    return result


async def stream(
    method: str, index: "GraphIndex", query: str, callbacks: list[QueryCallbacks]
) -> AsyncGenerator[str]:
    """Yield the response piece by piece, as it arrives; otherwise as :func:`answer`."""
    pieces: asyncio.Queue[str | None] = asyncio.Queue()

    async def run() -> CountedSearchResult:
        try:
            return await index.search(method, query, on_text=pieces.put_nowait)
        finally:
            pieces.put_nowait(None)

    task = asyncio.create_task(run())
    try:
        while (piece := await pieces.get()) is not None:
            for callback in callbacks:
                callback.on_llm_new_token(piece)
            yield piece
        result = await task
        for callback in callbacks:
            callback.on_context(result.context_data)
    finally:
        task.cancel()


def default_response_type(
    search: Callable[..., Awaitable[CountedSearchResult]],
) -> Callable[..., Awaitable[CountedSearchResult]]:
    """Let the response type be left out, which stands before the query and so takes no default."""

    @functools.wraps(search)
    async def with_default(*args: Any, **kwargs: Any) -> CountedSearchResult:
        if len(args) < 3:
            kwargs.setdefault("response_type", "Multiple Paragraphs")
        return await search(*args, **kwargs)

    return with_default


def start_log(config: GraphRagConfig, verbose: bool) -> None:
    """Open the released log file unless the caller has handlers of its own, which it would drop."""
    if not logging.getLogger("graphrag").handlers:
        from graphrag.logger.standard_logging import init_loggers

        init_loggers(config=config, verbose=verbose, filename="query.log")
