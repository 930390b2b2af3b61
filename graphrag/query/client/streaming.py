"""Passing on what arrives piece by piece."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def stream_from(
    work: Callable[[Callable[[T], None]], Awaitable[object]],
) -> AsyncGenerator[T]:
    """Yield what work, in a task of its own, hands to its argument; then raise what it raised.

    Work ends with the stream, also with one that is left early.
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
