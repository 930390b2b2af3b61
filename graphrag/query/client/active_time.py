"""A clock for the calls of one scope: it stops while all of them wait for their turn.

A scope is the group of model calls that one ``measure_calls`` block records.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from contextvars import Context

_LEAST_WAIT_S = 0.05
"""The least wait, in seconds, before a deadline is checked again."""


class OwnTime:
    """Stops while every open call of a scope waits for its turn, and runs otherwise.

    A run's limit and a model's configured rate decide whose turn it is. The clock runs while any
    call is in flight or pauses before a retry, and while no call is open. Calls that wait side by
    side stop it once, not once each.
    """

    def __init__(self) -> None:
        self._n_open = self._n_waiting = 0
        self._waited_s = 0.0
        self._stopped_at: float | None = None

    @property
    def waited_s(self) -> float:
        """Seconds for which the clock has been stopped so far; never more than have gone by."""
        now_s = 0.0 if self._stopped_at is None else time.perf_counter() - self._stopped_at
        return self._waited_s + now_s

    def call(self) -> AbstractContextManager[None]:
        """Count one more call as open inside the ``with`` block."""
        return self._count(1, 0)

    def waiting(self) -> AbstractContextManager[None]:
        """Count an open call as waiting for its turn inside the ``with`` block."""
        return self._count(0, 1)

    @contextmanager
    def _count(self, n_open: int, n_waiting: int) -> Generator[None]:
        self._change(n_open, n_waiting)
        try:
            yield
        finally:
            self._change(-n_open, -n_waiting)

    def _change(self, n_open: int, n_waiting: int) -> None:
        self._n_open += n_open
        self._n_waiting += n_waiting
        is_stopped = 0 < self._n_waiting == self._n_open
        if is_stopped == (self._stopped_at is not None):
            return
        if is_stopped:
            self._stopped_at = time.perf_counter()
        else:
            self._waited_s, self._stopped_at = self.waited_s, None

    @asynccontextmanager
    async def deadline(self, seconds: float) -> AsyncGenerator[asyncio.Timeout]:
        """Raise TimeoutError inside the block after so many seconds of this clock.

        A timer runs for the seconds that are left. If the clock was stopped meanwhile, the timer is
        set again for the time that is still missing.
        """
        ends_at = self._now() + seconds
        async with asyncio.timeout(None) as timer:

            def look() -> None:
                nonlocal handle
                left_s = ends_at - self._now()
                if left_s <= 0:
                    timer.reschedule(asyncio.get_running_loop().time())
                else:
                    handle = call_later(max(left_s, _LEAST_WAIT_S), look)

            handle = call_later(seconds, look)
            try:
                yield timer
            finally:
                handle.cancel()

    def _now(self) -> float:
        return time.perf_counter() - self.waited_s


def call_later(seconds: float, function: Callable[[], None]) -> asyncio.TimerHandle:
    """Call a function after so many seconds, in an empty context.

    An event loop keeps a canceled timer until it was due (in ten minutes, perhaps), together with
    the context in which it was set. The context of a model call would keep all of the call's data
    in memory.
    """
    return asyncio.get_running_loop().call_later(seconds, function, context=Context())
