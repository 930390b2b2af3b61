"""Doing many jobs side by side: a few at once, none begun after a stop, none left behind."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable

Job = Callable[[], Awaitable[object]]


async def run_bounded(
    jobs: Iterable[Job],
    concurrency: int,
    stop: asyncio.Event | None = None,
    may_begin: Callable[[], bool] = lambda: True,
    finish_s: float = 10.0,
) -> None:
    """Do jobs in their order, a few at the same time.

    Parameters
    ----------
    jobs : iterable of callables
        Each makes the awaitable that is the job.
    concurrency : int
        Jobs at once, >= 1.
    stop : asyncio.Event, optional
        When set, no job is begun any more. It is set here when a job raises, so that those in
        flight can see it too.
    may_begin : callable
        Asked before each job; the first no is final, and what is in flight is waited for.
    finish_s : float
        Seconds that what is in flight has after a stop or an error, before it is cancelled.

    Raises
    ------
    Exception
        The first that a job raised, after what was in flight had its time; later ones are
        dropped. A job that is worth going on without catches its errors itself.

    Notes
    -----
    However it ends, cancelled from outside included, no task of it is left.
    """
    waiting, errors = deque(jobs), list[BaseException]()
    asked = stop or asyncio.Event()

    async def work() -> None:
        try:
            while waiting:
                if asked.is_set() or not may_begin():
                    waiting.clear()
                    return
                await waiting.popleft()()
        except (Exception, asyncio.CancelledError) as error:
            errors.append(error)
            asked.set()

    workers = set[asyncio.Task[None]]()
    stopping = asyncio.create_task(asked.wait())
    try:
        for _ in range(min(concurrency, len(waiting))):
            workers.add(asyncio.create_task(work()))
            await asyncio.sleep(0)  # the first request of each is sent before the next begins
        running = set(workers)
        while running and not stopping.done():
            done, _ = await asyncio.wait({*running, stopping}, return_when=asyncio.FIRST_COMPLETED)
            running -= done
        if running:
            await asyncio.wait(running, timeout=finish_s)
        first = errors[:1]  # what the cancelling below makes is no error
    finally:
        for task in (*workers, stopping):
            task.cancel()
        await asyncio.wait({*workers, stopping})
    for error in first:
        raise error
