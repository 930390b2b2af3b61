"""The time a search takes itself, without that in which all its calls wait for their turn."""

import asyncio
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager


class OwnTime:
    """A clock that stands still while every open call of a scope waits for its turn.

    Turns are given by a run's limit and by a model's configured rate. While one call is in
    flight, or pauses before it is sent again, or nothing is asked at all, the clock goes on. Calls
    that wait side by side stop it once, not once each.
    """

    def __init__(self) -> None:
        self._n_open = 0
        self._n_waiting = 0
        self._waited_s = 0.0
        self._stopped_at: float | None = None
        self._deadlines: dict[asyncio.Timeout, float] = {}

    @property
    def waited_s(self) -> float:
        """Seconds for which the clock has stood still so far; never more than have gone by."""
        now_s = 0.0 if self._stopped_at is None else time.perf_counter() - self._stopped_at
        return self._waited_s + now_s

    @contextmanager
    def call(self) -> Generator[None]:
        """Count one more call as open inside the ``with`` block."""
        self._n_open += 1
        self._update()
        try:
            yield
        finally:
            self._n_open -= 1
            self._update()

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Count an open call as waiting for its turn inside the ``with`` block."""
        self._n_waiting += 1
        self._update()
        try:
            yield
        finally:
            self._n_waiting -= 1
            self._update()

    @asynccontextmanager
    async def deadline(self, seconds: float) -> AsyncGenerator[None]:
        """Give up what is inside the block after so many seconds of this clock.

        Raises
        ------
        TimeoutError
            When they are over.
        """
        async with asyncio.timeout(None) as timer:
            self._deadlines[timer] = seconds
            if self._stopped_at is None:
                _start(timer, seconds)
            try:
                yield
            finally:
                del self._deadlines[timer]

    def _update(self) -> None:
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
                _start(timer, left_s)


def _start(timer: asyncio.Timeout, seconds: float) -> None:
    timer.reschedule(asyncio.get_running_loop().time() + seconds)
