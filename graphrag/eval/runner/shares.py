"""A worker's share of what a run may ask at once: the shares of all add up to the configured."""

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from graphrag.query.limits import CallLimit, Lane, Place


@dataclass(frozen=True, slots=True)
class Share:
    """The part of one worker.

    Attributes
    ----------
    index : int
        Which worker, from 0.
    of : int
        How many there are, at most ``concurrency``.
    concurrency : int
        Requests in flight of all workers together.
    patience_s : float
        Seconds that a service which is down is waited for.
    is_successor : bool
        Whether it takes the place of a worker that died: what that one asked within the period
        of a rate is not known, so that a whole period is waited for.
    """

    index: int
    of: int
    concurrency: int
    patience_s: float
    is_successor: bool = False

    @property
    def places(self) -> int:
        """Requests in flight, >= 1."""
        return int(self.part(self.concurrency))

    def part(self, whole: int) -> float:
        """Return the part of a whole: a whole number, a fraction where there is less than one."""
        if whole < self.of:
            return whole / self.of
        return whole // self.of + (self.index < whole % self.of)

    def of_rate(self, rate: Any) -> Any:
        """Return the part of a ``rate_limit:`` section; None without one."""
        if rate is None:
            return None
        requests = getattr(rate, "requests_per_period", None)
        tokens = getattr(rate, "tokens_per_period", None)
        return SimpleNamespace(
            period_in_seconds=getattr(rate, "period_in_seconds", None),
            requests_per_period=self.part(requests) if requests else None,
            tokens_per_period=self.part(tokens) if tokens else None,
        )


class Receipts:
    """How many finished calls were told, and how many of them the store has by now."""

    def __init__(self) -> None:
        self.told = 0
        self._kept = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    @property
    def are_complete(self) -> bool:
        """Whether everything that was told is kept."""
        return self._kept >= self.told

    async def complete(self) -> None:
        """Wait until everything that was told so far is kept."""
        if self.are_complete:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((self.told, future))
        await future

    def keep(self, up_to: int) -> None:
        """Note that so many are kept."""
        self._kept = max(self._kept, up_to)
        left: list[tuple[int, asyncio.Future[None]]] = []
        for told, future in self._waiting:
            if told > self._kept:
                left.append((told, future))
            elif not future.done():
                future.set_result(None)
        self._waiting = left


class SharedLimit(CallLimit):
    """The limit of one worker.

    A request is sent when the store has every call that was finished before: whatever dies, no
    more calls are repeated than were in flight.

    Parameters
    ----------
    share : Share
    receipts : Receipts
    """

    def __init__(self, share: Share, receipts: Receipts) -> None:
        super().__init__(share.places, share.patience_s, after_others=share.is_successor)
        self._share = share
        self._receipts = receipts

    def lane(self, key: Hashable, name: str, rate: Any = None) -> Lane:
        """Return the lane of a model, under this worker's part of its rate."""
        return super().lane(key, name, self._share.of_rate(rate))

    async def acquire(self, lane: Lane, request: Hashable, tokens: int) -> Place:
        """Wait for a place, and until the store has what was finished."""
        place = await super().acquire(lane, request, tokens)
        try:
            await self._receipts.complete()
        except BaseException:
            self.release(place)
            raise
        return place
