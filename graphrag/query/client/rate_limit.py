"""Limits the calls of a run: requests in flight, rates, cost, and waits for a service.

Each model has a queue of requests; a slot lets one of them be in flight. Of the queues that may
send, the one with the fewest requests in flight comes first.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf

from graphrag.query.client.call_errors import Symptom
from graphrag.query.client.model_prices import model_price
from graphrag.query.client.refused_parameters import RefusedParameters
from graphrag.query.client.usage import CallAttempt, CallKind, NotAskedError

_FIRST_REPLY_TOKENS = 200.0
"""Assumed tokens of a model's first reply; later the mean of its latest replies is used."""


class AllowanceSpentError(NotAskedError):
    """Raised when what is left of the allowed cost is not enough for a call.

    ``allow_usd`` is a limit in US dollars with which the run could go on.
    """

    def __init__(self, message: str, allow_usd: float = 0.0) -> None:
        super().__init__(message)
        self.allow_usd = allow_usd


class Spending:
    """Counts the US dollars and tokens of a run, call by call.

    A call waits while too little is left for it and the calls in flight, and is refused if none
    is in flight. So spending exceeds ``most_usd`` by no more than the calls in flight cost beyond
    their estimates.

    - ``most_usd``: the limit; None for no limit.
    - ``spent_usd``: cost of the replies that arrived, without unknown prices, and what was spent
      before; ``spent_tokens``: their tokens.
    - ``unanswered_usd``: estimated cost of the calls that ran out of time or were canceled: they
      may be billed all the same.
    - ``wanted_usd``: estimated cost of the call that was refused last, 0 if none was.
    """

    def __init__(
        self, most_usd: float | None = None, spent_usd: float = 0.0, spent_tokens: int = 0
    ) -> None:
        self.most_usd = most_usd
        self.spent_usd, self.spent_tokens = spent_usd, spent_tokens
        self.unanswered_usd = self.wanted_usd = 0.0
        self._in_flight_usd, self._n_in_flight = 0.0, 0
        self._waiting: list[asyncio.Future[None]] = []
        self._reply_tokens: dict[str, float] = {}

    @property
    def left_usd(self) -> float | None:
        """What is left after the calls in flight, below 0 if overspent; None without a limit."""
        if self.most_usd is None:
            return None
        return self.most_usd - self.spent_usd - self.unanswered_usd - self._in_flight_usd

    @property
    def allow_usd(self) -> float:
        """A higher limit with which a stopped run could go on."""
        least = max(self.most_usd or 0.0, self.spent_usd + self.wanted_usd)
        return float(f"{2 * least:.2g}") or 1.0

    def estimate_usd(
        self, kind: CallKind, model: str, prompt_tokens: int, tier: str | None = None
    ) -> float:
        """Return the estimated cost of a call; 0 without a limit or a known price."""
        price = None if self.most_usd is None else model_price(model, prompt_tokens, tier)
        if price is None:
            return 0.0
        replied = self._reply_tokens.get(model, _FIRST_REPLY_TOKENS)
        output = replied if kind == "completion" else 0.0
        return prompt_tokens * price.prompt_usd + output * price.output_usd

    async def wait_for(self, usd: float) -> None:
        """Set an estimate aside as soon as there is room.

        Raises AllowanceSpentError if there will be none.
        """
        while (left := self.left_usd) is not None and usd > left:
            if not self._n_in_flight:
                raise self.refuse(usd)
            freed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(freed)
            await freed
        self._in_flight_usd += usd
        self._n_in_flight += 1

    def refuse(self, usd: float) -> AllowanceSpentError:
        """Return the error of a call that is not sent because of its estimated cost."""
        self.wanted_usd = usd
        price = f"about ${usd:.4f}" if usd >= 0.0001 else "less than $0.0001"
        return AllowanceSpentError(f"the next call takes {price}", self.allow_usd)

    def give_back(self, usd: float) -> None:
        """Release the amount set aside for a call that has ended."""
        self._n_in_flight -= 1
        self._in_flight_usd = self._in_flight_usd - usd if self._n_in_flight else 0.0
        waiting, self._waiting = self._waiting, []
        for freed in waiting:
            if not freed.done():
                freed.set_result(None)

    def count(self, attempt: CallAttempt) -> None:
        """Count an attempt that has ended."""
        self.spent_usd += attempt.most_usd or 0.0
        self.spent_tokens += attempt.prompt_tokens + attempt.output_tokens
        if attempt.kind == "completion" and attempt.error is None:
            before = self._reply_tokens.get(attempt.model, float(attempt.output_tokens))
            self._reply_tokens[attempt.model] = before + 0.2 * (attempt.output_tokens - before)


_log = logging.getLogger(__name__)
DEFAULT_PATIENCE_S = 300.0
BACK_OFF = 0.7
"""Factor by which the slots are decreased, as in CUBIC (RFC 9438, section 4.6)."""
_KEPT_FREE_FROM, _RECENT_S = 16, 10.0
_SIGNS_OF_AN_OUTAGE = 3
_FIRST_PROBE_S, _LONGEST_PROBE_S = 0.1, 15.0


class AdaptiveLimit:
    """Adapts the number of requests in flight to one model: up slowly, down at once.

    It grows by one for each round trip and is cut when the service turns a request away (additive
    increase, multiplicative decrease; Chiu and Jain 1989,
    https://doi.org/10.1016/0169-7552(89)90019-6). ``most`` is the largest number of slots, >= 1 or
    ``inf``.
    """

    def __init__(self, most: float) -> None:
        self._most = self._size = most
        self._changed_at = -inf

    @property
    def slots(self) -> float:
        """Requests that may be in flight: a whole number from 1 to the most, or ``inf``."""
        return self._size if self._size == inf else int(self._size)

    def answered(self) -> None:
        """Note an answer: as many answers as there are slots add one slot."""
        self._size = min(self._most, self._size + 1 / self._size)

    def throttled(self, sent_at: float, now: float, in_flight: int) -> None:
        """Cut the slots because a request was turned away: the service gets too many.

        Requests in flight together are turned away together, so only a request that was sent after
        the last cut leads to another. The cut starts from ``in_flight``, the requests in flight
        with this one, if that is less than the slots.
        """
        if sent_at >= self._changed_at:
            self._size = max(1.0, min(self._size, in_flight) * BACK_OFF)
            self._changed_at = now


@dataclass(slots=True)
class Taken:
    """Records when a request took from a rate, and how much."""

    at: float
    amount: float


class RateWindow:
    """Allows at most ``most`` requests or tokens, > 0, within any ``period_s`` seconds.

    A request that takes more than the whole rate waits until nothing else counts, and then counts
    for as many periods as it needs: it is never refused, and the rate is kept on average.
    """

    def __init__(self, most: float, period_s: float) -> None:
        self._most = most
        self._period_s = period_s
        self._taken: deque[Taken] = deque()

    def ready_at(self, amount: float, now: float) -> float:
        """Return the time from which ``amount`` may be taken; ``now`` if it is free."""
        ends = sorted((end, t.amount) for t in self._taken if (end := self._end(t)) > now)
        self._taken = deque(t for t in self._taken if self._end(t) > now)
        room = self._most - sum(taken for _, taken in ends)
        need = min(amount, self._most)
        at = now
        for end, freed in ends:
            if need <= room + 1e-9:
                break
            room += freed
            at = end
        return at

    def take(self, amount: float, now: float) -> Taken:
        """Take ``amount``; the caller may correct it later in the record that is returned."""
        self._taken.append(Taken(now, amount))
        return self._taken[-1]

    def fill(self, now: float) -> None:
        """Take the whole rate for one period."""
        self.take(self._most, now)

    def _end(self, taken: Taken) -> float:
        return taken.at + self._period_s * max(1.0, taken.amount / self._most)


@dataclass(slots=True)
class Outage:
    """Tracks whether a model's service is down, and how long to wait for it.

    Three signs without an answer in between mean that it is down. A sign is a failure that is the
    service's own, or the first failure of a request (one request alone may be what breaks it). One
    answer ends the outage. A service that never answered is not waited for, because it may not
    exist. From ``probe_at`` on, one request may test whether the service is back.
    """

    patience_s: float
    has_answered: bool = False
    down_since: float | None = None
    probe_at: float = -inf
    _signs: set[Hashable] = field(default_factory=set[Hashable])
    _n_signs: int = 0
    _probe_s: float = _FIRST_PROBE_S

    @property
    def is_down(self) -> bool:
        """Whether the service is down."""
        return self.down_since is not None

    @property
    def is_waited_for(self) -> bool:
        """Whether the service is down and has answered before; never True outside of a run."""
        return self.is_down and self.has_answered and self.patience_s < inf

    @property
    def ends_at(self) -> float:
        """The time at which the wait for the service ends; ``inf`` if it is not waited for."""
        since = self.down_since if self.has_answered else None
        return inf if since is None else since + self.patience_s

    def answered(self) -> None:
        """Note an answer, which ends an outage."""
        self.has_answered, self.down_since, self.probe_at = True, None, -inf
        self._signs.clear()
        self._probe_s = _FIRST_PROBE_S

    def failed(self, request: Hashable, is_of_service: bool, now: float) -> None:
        """Note a failure that may pass; ``request`` is the same for all attempts of one call."""
        self._n_signs += 1
        self._signs.add(("sign", self._n_signs) if is_of_service else ("request", request))
        if self.is_waited_for:
            longest_s = min(_LONGEST_PROBE_S, max(_FIRST_PROBE_S, self.patience_s / 10))
            self._probe_s = min(2 * self._probe_s, longest_s)
        elif not self.is_down and len(self._signs) >= _SIGNS_OF_AN_OUTAGE:
            self.down_since = now
        self.probe_at = now + self._probe_s if self.is_waited_for else -inf


class ServiceDownError(NotAskedError):
    """Raised when a service is down for longer than it is waited for.

    The message is one sentence. It is unrelated to the question: the run stops and can be
    resumed.
    """


@dataclass(slots=True, eq=False)
class Slot:
    """Tracks one request of a queue from the moment it waits; ``usd`` is its estimated cost."""

    queue: "ModelQueue"
    request: Hashable
    prompt_tokens: int
    waits_since: float
    grant: "asyncio.Future[None]"
    sent_at: float = inf
    taken: Taken | None = None
    usd: float = 0.0


@dataclass(slots=True)
class ModelQueue:
    """Queues the requests to one model, and knows the state of its service.

    The result of a request is noted, answered or failed, before its slot is given back.
    """

    name: str
    adaptive: AdaptiveLimit
    outage: Outage
    requests_rate: RateWindow | None
    tokens_rate: RateWindow | None
    in_flight: int = 0
    asked_at: float = -inf
    paused_until: float = -inf
    gone: ServiceDownError | None = None
    latest: str = ""
    waiting: deque[Slot] = field(default_factory=deque[Slot])
    refused: RefusedParameters = field(init=False)
    begins_in_thoughts: bool | None = None
    """Whether the model's template begins its thoughts; None until a reply shows it."""
    _output: float = 0.0

    def __post_init__(self) -> None:
        self.refused = RefusedParameters(self.name)

    def ready_at(self, now: float) -> float:
        """Return when the first waiting request may be sent; ``inf``: after another has ended."""
        if self.in_flight >= (1 if self.outage.is_waited_for else self.adaptive.slots):
            return inf
        ready = max(now, self.paused_until, self.outage.probe_at)
        if self.requests_rate is not None:
            ready = max(ready, self.requests_rate.ready_at(1, now))
        if self.tokens_rate is not None:
            ready = max(ready, self.tokens_rate.ready_at(self._expected(self.waiting[0]), now))
        return ready

    def send(self, now: float) -> None:
        """Give the first waiting request its slot."""
        first = self.waiting.popleft()
        first.sent_at = now
        if self.requests_rate is not None:
            self.requests_rate.take(1, now)
        if self.tokens_rate is not None:
            first.taken = self.tokens_rate.take(self._expected(first), now)
        self.in_flight += 1
        first.grant.set_result(None)

    def _expected(self, slot: Slot) -> float:
        """Return a request's expected tokens: its own, and those of the average reply so far."""
        return slot.prompt_tokens + self._output

    def answered(self, slot: Slot, tokens: int) -> None:
        """Note an answer and the tokens that it took."""
        if slot.taken is not None and tokens:
            reply_tokens = max(0, tokens - slot.prompt_tokens)
            self._output += 0.2 * (reply_tokens - self._output)
            slot.taken.amount = float(tokens)
        before = self.adaptive.slots
        if self.outage.is_waited_for:
            _log.warning("%s answers again", self.name)
        self.outage.answered()
        self.adaptive.answered()
        self._log_change(before, "it answers")

    def failed(self, slot: Slot, symptom: Symptom) -> None:
        """Note a failure that may pass, and its symptom."""
        now, was_down, before = time.monotonic(), self.outage.is_waited_for, self.adaptive.slots
        wait_s = symptom.wait_s
        if symptom.is_throttled:
            self.adaptive.throttled(slot.sent_at, now, self.in_flight)
        if wait_s > 0 and now + wait_s > self.paused_until:
            self.paused_until = now + wait_s
            _log.info("%s: nothing is sent for %.1f s, as the service asks", self.name, wait_s)
        self.outage.failed(slot.request, symptom.is_of_service, now)
        if self.outage.is_waited_for and not was_down:
            _log.warning("%s is down: one request at a time asks whether it is back", self.name)
        self._log_change(before, "the service turns requests away")

    def _log_change(self, before: float, why: str) -> None:
        if self.adaptive.slots != before:
            _log.info("%s: %g requests at once, as %s", self.name, self.adaptive.slots, why)


class CallLimit:
    """Limits how many requests are in flight, of all models together and of each.

    From 16 slots on, the last slot is not given to a model that already has one while another
    model, asked within the last ten seconds, has none: a model that no longer answers can't take
    all slots.

    - ``most``: requests in flight at the same time, >= 1; None for any number.
    - ``patience_s``: seconds to wait for a service that is down, and the longest wait that a
      service may ask for. None, as outside of a run: a call fails when its retries are used up.
    - ``after_others``: whether other processes may have used up the rates: each model's first
      request then waits for one period of its rate.
    - ``spending``: what the requests may cost together; None for no limit.
    """

    def __init__(
        self,
        most: int | None = None,
        patience_s: float | None = None,
        after_others: bool = False,
        spending: Spending | None = None,
    ) -> None:
        self.patience_s = patience_s
        self.spending = spending or Spending()
        self._after_others = after_others
        self._most: float = inf if most is None else most
        self.in_flight = 0
        self._queues: dict[Hashable, ModelQueue] = {}
        self._timer: asyncio.TimerHandle | None = None

    def queue(self, key: Hashable, name: str, rate: object = None) -> ModelQueue:
        """Return the queue of a model; the first call makes it.

        ``rate`` is the model's ``rate_limit:`` section, None without one.
        """
        if key not in self._queues:
            period_s = float(getattr(rate, "period_in_seconds", None) or 60)
            amounts = (f"{unit}_per_period" for unit in ("requests", "tokens"))
            windows = [
                RateWindow(most, period_s) if (most := getattr(rate, amount, None)) else None
                for amount in amounts
            ]
            for window in windows:
                if window is not None and self._after_others:
                    window.fill(time.monotonic())
            outage = Outage(inf if self.patience_s is None else self.patience_s)
            adaptive = AdaptiveLimit(self._most)
            self._queues[key] = ModelQueue(
                name=name,
                adaptive=adaptive,
                outage=outage,
                requests_rate=windows[0],
                tokens_rate=windows[1],
            )
        return self._queues[key]

    async def acquire(self, queue: ModelQueue, request: Hashable, tokens: int) -> Slot:
        """Wait for a slot in a queue and return it.

        Raises ServiceDownError if the queue's service is down for longer than it is waited for.
        """
        if queue.gone is not None:
            raise queue.gone
        queue.asked_at = now = time.monotonic()
        grant: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        slot = Slot(
            queue=queue, request=request, prompt_tokens=tokens, waits_since=now, grant=grant
        )
        queue.waiting.append(slot)
        self._give_slots()
        try:
            await grant
        except asyncio.CancelledError:
            if grant.done() and not grant.cancelled() and grant.exception() is None:
                self.release(slot)
            with suppress(ValueError):
                queue.waiting.remove(slot)
            raise
        return slot

    def release(self, slot: Slot) -> None:
        """Give a slot back, so that another request may have it."""
        slot.queue.in_flight -= 1
        self.in_flight -= 1
        self._give_slots()

    def give_up(self, queue: ModelQueue, why: str) -> ServiceDownError:
        """Ask nothing more of a queue's service, and let all requests that wait for it fail."""
        queue.gone = queue.gone or ServiceDownError(why)
        while queue.waiting:
            grant = queue.waiting.popleft().grant
            if not grant.done():
                grant.set_exception(queue.gone)
        return queue.gone

    def _give_slots(self) -> None:
        """Give free slots to requests that may be sent; set a timer for the next one."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while True:
            now, soonest = time.monotonic(), inf
            ready: list[ModelQueue] = []
            for queue in self._queues.values():
                while queue.waiting and queue.waiting[0].grant.done():  # canceled meanwhile
                    queue.waiting.popleft()
                if not queue.waiting:
                    continue
                if self.patience_s is not None and now >= queue.outage.ends_at:
                    if not queue.in_flight:
                        waited = f"no answer for {queue.outage.patience_s:g} s"
                        self.give_up(queue, f"{queue.latest} ({waited}, which is patience_s)")
                    continue
                ready_at = queue.ready_at(now)
                if ready_at <= now:
                    ready.append(queue)
                else:
                    soonest = min(soonest, ready_at, queue.outage.ends_at)
            chosen = self._choose(ready, now)
            if chosen is None:
                break
            self.in_flight += 1
            chosen.send(now)
        if soonest < inf:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, soonest - now) + 1e-3, self._give_slots)

    def _choose(self, ready: list[ModelQueue], now: float) -> ModelQueue | None:
        if not ready or self.in_flight >= self._most:
            return None
        best = min(ready, key=lambda queue: (queue.in_flight, queue.waiting[0].waits_since))
        is_last = self._most >= _KEPT_FREE_FROM and self.in_flight == self._most - 1
        if is_last and best.in_flight:
            others = (queue for queue in self._queues.values() if queue is not best)
            if any(not o.in_flight and now - o.asked_at < _RECENT_S for o in others):
                return None
        return best
