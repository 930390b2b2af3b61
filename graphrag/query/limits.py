"""The limits that the calls of a run keep together: places, rates, and a service that is down.

Every model has a lane of its own. A request waits in its model's lane until it has a place; of
the lanes that may send, the one with the fewest requests in flight comes first, so that a slow
model does not take the places of a fast one.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from typing import Any

from graphrag.query.adaptive import AdaptiveLimit, Outage, RateWindow, Taken
from graphrag.query.retrying import Symptom
from graphrag.query.spending import NotAskedError, Spending

_log = logging.getLogger(__name__)
DEFAULT_PATIENCE_S = 300.0
_KEPT_FREE_FROM = 16
_RECENT_S = 10.0


@dataclass(frozen=True, slots=True)
class CallTime:
    """The seconds that one request may be in flight, > 0, and the setting that says so."""

    seconds: float
    setting: str | None = None

    def exceeded(self) -> str:
        """Return the sentence of a request that took longer."""
        raised = "" if self.setting is None else f"; raise {self.setting}"
        return f"no reply within {self.seconds:g} s{raised}"


class ServiceDownError(NotAskedError):
    """A service is down for longer than it is waited for; the message is one sentence.

    Nothing is known of what was asked: a run stops and goes on later.
    """


@dataclass(slots=True)
class Place:
    """A request's place: what came of it is said before it is given back.

    Attributes
    ----------
    sent_at : float
        Seconds.
    request : hashable
        The same for every attempt of one request.
    usd : float
        About what it costs.
    """

    lane: "Lane"
    sent_at: float
    request: Hashable
    prompt_tokens: int = 0
    taken: Taken | None = None
    usd: float = 0.0

    def answered(self, tokens: int) -> None:
        """Note an answer and the tokens that it really took."""
        self.lane.answered(self, tokens)

    def failed(self, symptom: Symptom) -> None:
        """Note a failure that may pass, and what it says of the service."""
        self.lane.failed(self, symptom)


@dataclass(slots=True)
class _Waiting:
    given: "asyncio.Future[Place]"
    request: Hashable
    tokens: int
    since: float


@dataclass(slots=True)
class Lane:
    """The requests to one model.

    Attributes
    ----------
    name : str
        As in log lines.
    """

    name: str
    adaptive: AdaptiveLimit
    outage: Outage
    requests_rate: RateWindow | None
    tokens_rate: RateWindow | None
    clock: Callable[[], float]
    in_flight: int = 0
    asked_at: float = -inf
    paused_until: float = -inf
    gone: ServiceDownError | None = None
    latest: str = ""
    waiting: deque[_Waiting] = field(default_factory=deque[_Waiting])
    _output: float = 0.0

    def ready_at(self, now: float) -> float:
        """Return from when the first that waits may be sent; ``inf``: after another ended."""
        if self.in_flight >= (1 if self.outage.is_waited_for else self.adaptive.places):
            return inf
        ready = max(now, self.paused_until, self.outage.probe_at)
        if self.requests_rate is not None:
            ready = max(ready, self.requests_rate.ready_at(1, now))
        if self.tokens_rate is not None:
            ready = max(ready, self.tokens_rate.ready_at(self._expected(self.waiting[0]), now))
        return ready

    def send(self, now: float) -> None:
        """Give the first that waits its place."""
        first = self.waiting.popleft()
        taken = None
        if self.requests_rate is not None:
            self.requests_rate.take(1, now)
        if self.tokens_rate is not None:
            taken = self.tokens_rate.take(self._expected(first), now)
        self.in_flight += 1
        first.given.set_result(Place(self, now, first.request, first.tokens, taken))

    def _expected(self, waiting: _Waiting) -> float:
        """Return a request's tokens: its own, and as many for the reply as replies had so far."""
        return waiting.tokens + self._output

    def answered(self, place: Place, tokens: int) -> None:
        """See :meth:`Place.answered`."""
        if place.taken is not None and tokens:
            of_reply = max(0, tokens - place.prompt_tokens)
            self._output += 0.2 * (of_reply - self._output)
            place.taken.amount = float(tokens)
        before = self.adaptive.places
        if self.outage.is_waited_for:
            _log.warning("%s answers again", self.name)
        self.outage.answered()
        self.adaptive.answered()
        self._tell(before, "it answers")

    def failed(self, place: Place, symptom: Symptom) -> None:
        """See :meth:`Place.failed`."""
        now, was_down, before = self.clock(), self.outage.is_waited_for, self.adaptive.places
        wait_s = symptom.wait_s
        if symptom.is_throttled:
            self.adaptive.throttled(place.sent_at, now, self.in_flight)
        if wait_s > 0 and now + wait_s > self.paused_until:
            self.paused_until = now + wait_s
            _log.info("%s: nothing is sent for %.1f s, as the service asks", self.name, wait_s)
        self.outage.failed(place.request, symptom.is_of_service, now)
        if self.outage.is_waited_for and not was_down:
            _log.warning("%s is down: one request at a time asks whether it is back", self.name)
        self._tell(before, "the service turns requests away")

    def _tell(self, before: float, why: str) -> None:
        if self.adaptive.places != before:
            _log.info("%s: %g requests at once, as %s", self.name, self.adaptive.places, why)


class CallLimit:
    """How many requests are in flight, of all models together and of each.

    Parameters
    ----------
    most : int or None
        Requests in flight at the same time, >= 1; None for any number.
    patience_s : float or None
        Seconds that a service which is down is waited for, and the longest wait that a service
        may ask for. None: a call fails when its retries are used up, as outside of a run.
    clock : callable
        Seconds, of a clock that can't be set.
    after_others : bool
        Whether others asked before: what they did within the period of a rate is not known here,
        so that each model's first request waits for a whole period of its rate.
    spending : Spending or None
        What the requests may cost together; None: as much as it takes.

    Notes
    -----
    Of 16 places and more, the last is not given to a model that has one while another that was
    asked within ten seconds has none: a model that no longer answers can't take them all.
    """

    def __init__(
        self,
        most: int | None = None,
        patience_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        after_others: bool = False,
        spending: Spending | None = None,
    ) -> None:
        self.patience_s = patience_s
        self.spending = spending or Spending()
        self._after_others = after_others
        self._most: float = inf if most is None else most
        self._clock = clock
        self.in_flight = 0
        self._lanes: dict[Hashable, Lane] = {}
        self._timer: asyncio.TimerHandle | None = None

    def lane(self, key: Hashable, name: str, rate: Any = None) -> Lane:
        """Return the lane of a model; ``rate`` is its ``rate_limit:`` section, None without one."""
        if key not in self._lanes:
            period_s = float(getattr(rate, "period_in_seconds", None) or 60)
            requests = getattr(rate, "requests_per_period", None)
            tokens = getattr(rate, "tokens_per_period", None)
            self._lanes[key] = Lane(
                name=name,
                adaptive=AdaptiveLimit(self._most),
                outage=Outage(inf if self.patience_s is None else self.patience_s),
                requests_rate=RateWindow(requests, period_s) if requests else None,
                tokens_rate=RateWindow(tokens, period_s) if tokens else None,
                clock=self._clock,
            )
            for window in (self._lanes[key].requests_rate, self._lanes[key].tokens_rate):
                if window is not None and self._after_others:
                    window.fill(self._clock())
        return self._lanes[key]

    async def acquire(self, lane: Lane, request: Hashable, tokens: int) -> Place:
        """Wait for a place in a lane.

        Raises
        ------
        ServiceDownError
            If the lane's service is down for longer than it is waited for.
        """
        if lane.gone is not None:
            raise lane.gone
        now = self._clock()
        given: asyncio.Future[Place] = asyncio.get_running_loop().create_future()
        waiting = _Waiting(given, request, tokens, now)
        lane.asked_at = now
        lane.waiting.append(waiting)
        self._give()
        try:
            return await given
        except asyncio.CancelledError:
            if given.done() and not given.cancelled() and given.exception() is None:
                self.release(given.result())
            with suppress(ValueError):
                lane.waiting.remove(waiting)
            raise

    def release(self, place: Place) -> None:
        """Give a place back."""
        place.lane.in_flight -= 1
        self.in_flight -= 1
        self._give()

    def give_up(self, lane: Lane, why: str) -> ServiceDownError:
        """Ask nothing more of a lane's service, and tell all that wait for it."""
        lane.gone = lane.gone or ServiceDownError(why)
        while lane.waiting:
            given = lane.waiting.popleft().given
            if not given.done():
                given.set_exception(lane.gone)
        return lane.gone

    def _give(self) -> None:
        """Give free places to those that may be sent, and come back when the next one may."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while True:
            now, soonest = self._clock(), inf
            ready: list[Lane] = []
            for lane in self._lanes.values():
                while lane.waiting and lane.waiting[0].given.done():  # cancelled meanwhile
                    lane.waiting.popleft()
                if not lane.waiting:
                    continue
                if self.patience_s is not None and now >= lane.outage.ends_at:
                    if not lane.in_flight:
                        waited = f"no answer for {lane.outage.patience_s:g} s"
                        self.give_up(lane, f"{lane.latest} ({waited}, which is patience_s)")
                    continue
                ready_at = lane.ready_at(now)
                if ready_at <= now:
                    ready.append(lane)
                else:
                    soonest = min(soonest, ready_at, lane.outage.ends_at)
            chosen = self._choose(ready, now)
            if chosen is None:
                break
            self.in_flight += 1
            chosen.send(now)
        if soonest < inf:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, soonest - now) + 1e-3, self._give)

    def _choose(self, ready: list[Lane], now: float) -> Lane | None:
        if not ready or self.in_flight >= self._most:
            return None
        best = min(ready, key=lambda lane: (lane.in_flight, lane.waiting[0].since))
        is_last = self._most >= _KEPT_FREE_FROM and self.in_flight == self._most - 1
        if is_last and best.in_flight:
            others = (lane for lane in self._lanes.values() if lane is not best)
            if any(not o.in_flight and now - o.asked_at < _RECENT_S for o in others):
                return None
        return best

    @asynccontextmanager
    async def place(self, lane: Lane, request: Hashable, tokens: int) -> AsyncGenerator[Place]:
        """Hold a place in a lane; see :meth:`acquire`."""
        place = await self.acquire(lane, request, tokens)
        try:
            yield place
        finally:
            self.release(place)
