"""Turns a function that pushes items into an async generator of them."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def stream_from(
    work: Callable[[Callable[[T], None]], Awaitable[object]],
) -> AsyncGenerator[T]:
    """Yield the items that ``work`` passes to its argument; then raise its error, if any.

    ``work`` runs in its own task, which ends with the stream, even if that is left early.
    """
    pieces: asyncio.Queue[tuple[T] | None] = asyncio.Queue()

    async def run() -> None:
        try:
            await work(lambda piece: pieces.put_nowait((piece,)))
        finally:
            pieces.put_nowait(None)

    task = asyncio.create_task(run())
    try:
        while (piece := await pieces.get()) is not None:
            yield piece[0]
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
