"""A clock of a scope's own time, which stands still while its calls wait for their turn."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import Context


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
        self._deadlines: dict[asyncio.Timeout, float] = {}

    @property
    def waited_s(self) -> float:
        """Seconds for which the clock has stood still so far; never more than have gone by."""
        now_s = 0.0 if self._stopped_at is None else time.perf_counter() - self._stopped_at
        return self._waited_s + now_s

    def call(self) -> "_Counted":
        """Count one more call as open inside the ``with`` block."""
        return _Counted(self, 1, 0)

    def waiting(self) -> "_Counted":
        """Count an open call as waiting for its turn inside the ``with`` block."""
        return _Counted(self, 0, 1)

    def count(self, n_open: int, n_waiting: int) -> None:
        """Count so many more, or fewer, calls as open and as waiting."""
        self._n_open += n_open
        self._n_waiting += n_waiting
        stands_still = 0 < self._n_waiting == self._n_open
        if stands_still == (self._stopped_at is not None):
            return
        if stands_still:
            self._stopped_at = time.perf_counter()
        else:
            self._waited_s, self._stopped_at = self.waited_s, None
        for timer, left_s in self._deadlines.items():
            if timer.expired():
                continue
            if stands_still:
                ends_at = timer.when()
                assert ends_at is not None
                self._deadlines[timer] = ends_at - asyncio.get_running_loop().time()
                timer.reschedule(None)
            else:
                start_timer(timer, left_s)

    @asynccontextmanager
    async def deadline(self, seconds: float) -> AsyncGenerator[None]:
        """Give up, by TimeoutError, what is inside the block after seconds of this clock."""
        async with asyncio.timeout(None) as timer:
            self._deadlines[timer] = seconds
            if self._stopped_at is None:
                start_timer(timer, seconds)
            try:
                yield
            finally:
                del self._deadlines[timer]


class _Counted:
    """Counts calls inside a ``with`` block; there are several in every call, so no generator."""

    __slots__ = ("_n_open", "_n_waiting", "_time")

    def __init__(self, own_time: OwnTime, n_open: int, n_waiting: int) -> None:
        self._time, self._n_open, self._n_waiting = own_time, n_open, n_waiting

    def __enter__(self) -> None:
        self._time.count(self._n_open, self._n_waiting)

    def __exit__(self, *_: object) -> None:
        self._time.count(-self._n_open, -self._n_waiting)


def start_timer(timer: asyncio.Timeout, seconds: float) -> None:
    """Let a timer run for so many seconds from now.

    A loop keeps a timer that was canceled until its time would have come, ten minutes perhaps,
    with the context that it was set in: that of a call holds everything the call was about.
    """
    Context().run(timer.reschedule, asyncio.get_running_loop().time() + seconds)
