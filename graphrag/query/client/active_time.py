"""A clock of a scope's own time, which stands still while its calls wait for their turn."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from contextvars import Context

_LEAST_WAIT_S = 0.05
"""A deadline that is near while the clock stands still is looked at again no sooner."""


class OwnTime:
    """A clock that stands still while every open call of a scope waits for its turn.

    Turns are given by a run's limit and by a model's configured rate. While one call is in
    flight, or pauses before it is sent again, or nothing is asked at all, the clock goes on. Calls
    that wait side by side stop it once, not once each.
    """

    def __init__(self) -> None:
        self._n_open = self._n_waiting = 0
        self._waited_s = 0.0
        self._stopped_at: float | None = None

    @property
    def waited_s(self) -> float:
        """Seconds for which the clock has stood still so far; never more than have gone by."""
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
        stands_still = 0 < self._n_waiting == self._n_open
        if stands_still == (self._stopped_at is not None):
            return
        if stands_still:
            self._stopped_at = time.perf_counter()
        else:
            self._waited_s, self._stopped_at = self.waited_s, None

    @asynccontextmanager
    async def deadline(self, seconds: float) -> AsyncGenerator[asyncio.Timeout]:
        """Give up, by TimeoutError, what is inside the block after seconds of this clock.

        A timer runs for the seconds that are left, and for those that the clock stood still once
        more.
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

    A loop keeps a timer that was canceled until its time would have come, ten minutes perhaps,
    with the context that it was set in: that of a call holds everything the call was about.
    """
    return asyncio.get_running_loop().call_later(seconds, function, context=Context())
