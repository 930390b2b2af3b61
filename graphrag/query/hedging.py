"""Asking a second time for what is late, and taking the answer that comes first."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

T = TypeVar("T")
_LOST = "an equal request was answered first"


async def first_answer(
    first: Callable[[], Coroutine[Any, Any, T]],
    again: Callable[[], AbstractAsyncContextManager[Callable[[], Coroutine[Any, Any, T]] | None]],
    after_s: float,
) -> T:
    """Return the first answer to a request that is sent a second time when it is late.

    Parameters
    ----------
    first : callable
        Sends the request.
    again : callable
        Gives, for as long as its block lasts, what sends it again; None where that can't be.
    after_s : float
        Seconds after which it is late.

    Raises
    ------
    Exception
        What the first raised, when neither was answered.

    Notes
    -----
    The one that is not needed is cancelled, and has ended when this returns (Dean and Barroso
    2013, "The tail at scale", https://doi.org/10.1145/2408776.2408794).
    """
    tasks = [asyncio.create_task(first())]
    try:
        await asyncio.wait(tasks, timeout=after_s)
        if tasks[0].done():
            return tasks[0].result()
        async with again() as send:
            if send is None:
                return await tasks[0]
            tasks.append(asyncio.create_task(send()))
            try:
                return await _first_of(tasks)
            finally:
                await _end(tasks)
    finally:
        await _end(tasks)


async def _first_of(tasks: Sequence["asyncio.Task[T]"]) -> T:
    waiting = set(tasks)
    while waiting:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if task.exception() is None:
                return task.result()
    return tasks[0].result()


async def _end(tasks: Sequence["asyncio.Task[Any]"]) -> None:
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel(_LOST)
    if running:
        await asyncio.wait(running)
