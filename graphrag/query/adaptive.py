"""How much may be asked of one model at once, per minute, and whether its service is there.

Plain arithmetic: time is given in seconds of one clock, nothing waits here.
"""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from math import inf

BACK_OFF = 0.7
"""The factor of a decrease; that of CUBIC (RFC 9438, section 4.6)."""
_SIGNS_OF_AN_OUTAGE = 3
_FIRST_PROBE_S, _LONGEST_PROBE_S = 0.1, 15.0


class AdaptiveLimit:
    """Requests in flight to one model: one more a round trip, fewer when it is too much.

    Additive increase, multiplicative decrease (Chiu and Jain 1989,
    https://doi.org/10.1016/0169-7552(89)90019-6).

    Parameters
    ----------
    most : float
        The places that there are, >= 1; ``inf`` for no limit of one's own.
    """

    def __init__(self, most: float) -> None:
        self._most = most
        self._size = most
        self._changed_at = -inf

    @property
    def places(self) -> float:
        """Requests that may be in flight: a whole number from 1 to the most, or ``inf``."""
        return self._size if self._size == inf else int(self._size)

    def answered(self) -> None:
        """Note an answer: as many of them as there are places make one more place."""
        self._size = min(self._most, self._size + 1 / self._size)

    def throttled(self, sent_at: float, now: float, in_flight: int) -> None:
        """Note that a request was turned away because there are too many.

        Those that were in flight together say so together: only a request that was sent after
        the last decrease makes another.

        Parameters
        ----------
        sent_at, now : float
            Seconds.
        in_flight : int
            Requests in flight, this one included, >= 1: places that nobody used are no measure.
        """
        if sent_at < self._changed_at:
            return
        self._size = max(1.0, min(self._size, in_flight) * BACK_OFF)
        self._changed_at = now


@dataclass(slots=True)
class Taken:
    """What a request took of a rate: when, and how much."""

    at: float
    amount: float


class RateWindow:
    """No more than so much within any stretch of one period.

    Parameters
    ----------
    most : float
        Requests or tokens, > 0.
    period_s : float
        Seconds, > 0.

    Notes
    -----
    What is more than the whole rate waits until nothing else is left, and is then held for as
    many periods as it takes: it is never refused, and the rate holds on the average.
    """

    def __init__(self, most: float, period_s: float) -> None:
        self._most = most
        self._period_s = period_s
        self._taken: deque[Taken] = deque()

    def ready_at(self, amount: float, now: float) -> float:
        """Return the moment from which ``amount`` may be taken; ``now`` when it is free."""
        ends = sorted((end, t.amount) for t in self._taken if (end := self._end(t)) > now)
        self._taken = deque(t for t in self._taken if self._end(t) > now)
        room = self._most - sum(each for _, each in ends)
        wanted = min(amount, self._most)
        at = now
        for end, freed in ends:
            if wanted <= room + 1e-9:
                break
            room += freed
            at = end
        return at

    def take(self, amount: float, now: float) -> Taken:
        """Take ``amount``; how much it really was may be put right in what is returned."""
        taken = Taken(now, amount)
        self._taken.append(taken)
        return taken

    def fill(self, now: float) -> None:
        """Take all that there is for one period."""
        self.take(self._most, now)

    def _end(self, taken: Taken) -> float:
        return taken.at + self._period_s * max(1.0, taken.amount / self._most)


@dataclass(slots=True)
class Outage:
    """Whether a model's service is there, and how long it is waited for.

    It is down when three signs in a row say so: a failure that is the service's own, or one of as
    many different requests (one request alone may be what breaks it). One answer ends it.

    Attributes
    ----------
    patience_s : float
        Seconds that a service which is down is waited for, >= 0.
    has_answered : bool
        Whether it ever answered. One that never did is not waited for: it may not be there.
    down_since : float or None
        Seconds; None while it is up.
    probe_at : float
        From when one request may ask whether it is back.
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
        """Whether the service is down and has been there before."""
        return self.is_down and self.has_answered

    @property
    def ends_at(self) -> float:
        """The moment at which patience ends; ``inf`` while the service is not waited for."""
        since = self.down_since if self.has_answered else None
        return inf if since is None else since + self.patience_s

    def answered(self) -> None:
        """Note an answer."""
        self.has_answered, self.down_since, self.probe_at = True, None, -inf
        self._signs.clear()
        self._probe_s = _FIRST_PROBE_S

    def failed(self, request: Hashable, is_of_service: bool, now: float) -> None:
        """Note a failure that may pass.

        Parameters
        ----------
        request : hashable
            The same for every attempt of one request.
        is_of_service : bool
            Whether the failure can't be this one request's.
        now : float
            Seconds.
        """
        self._n_signs += 1
        self._signs.add(("sign", self._n_signs) if is_of_service else ("request", request))
        if self.is_waited_for:
            longest_s = min(_LONGEST_PROBE_S, max(_FIRST_PROBE_S, self.patience_s / 10))
            self._probe_s = min(2 * self._probe_s, longest_s)
        elif not self.is_down and len(self._signs) >= _SIGNS_OF_AN_OUTAGE:
            self.down_since = now
        self.probe_at = now + self._probe_s if self.is_waited_for else -inf
