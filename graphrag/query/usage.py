"""What every model call cost: attempts, tokens, retries, cache hits and money, per scope.

A scope is opened with :func:`measure_calls`; each attempt that the models of
:mod:`graphrag.query.models` send while it is open, in this task or in one started from it, is
appended to its log. Scopes live in a context variable, so concurrent searches never mix.
"""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from graphrag.query.attempts import CUT_OFF as CUT_OFF
from graphrag.query.attempts import CallAttempt as CallAttempt
from graphrag.query.attempts import CountedBy as CountedBy
from graphrag.query.attempts import Usage as Usage
from graphrag.query.attempts import attempt_cost_usd as attempt_cost_usd
from graphrag.query.attempts import sum_usages as sum_usages
from graphrag.query.attempts import summarize_attempts as summarize_attempts
from graphrag.query.own_time import OwnTime

if TYPE_CHECKING:
    import asyncio

    from graphrag.query.limits import CallLimit, CallTime
    from graphrag.query.spending import NotAskedError


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A finished call as a journal keeps it: the reply and every attempt it took.

    ``reply`` is JSON-ready: the text of a completion or the vectors of an embedding.
    """

    reply: Any
    attempts: tuple[CallAttempt, ...]


class CallJournal(Protocol):
    """Keeps finished calls, so that an interrupted search need not pay for them again."""

    def replay(self, key: str) -> RecordedCall | None:
        """Return the finished call of this key, or None."""
        ...

    def start(self, key: str) -> None:
        """Note that the call is about to be sent."""
        ...

    def finish(self, key: str, call: RecordedCall) -> None:
        """Keep a call that was answered."""
        ...

    def abandon(self, key: str) -> None:
        """Note that the call has failed for good and is no longer in flight."""
        ...


@dataclass(frozen=True, slots=True)
class OutputBound:
    """The most tokens that a reply may have, >= 1, and the setting that says so."""

    tokens: int
    setting: str


class CallLog:
    """The attempts of one scope, in the order in which they ended.

    Attributes
    ----------
    limit : CallLimit, asyncio.Semaphore or None
        Gives a place to each request in flight; shared between the scopes of a run.
    journal : CallJournal or None
        Where finished calls are kept and looked up.
    live : bool
        Whether streamed replies must reach the caller piece by piece. When False a streamed
        request is sent as an ordinary one, whose usage figures and retries are exact.
    bound : OutputBound or None
        Of every completion that sets none itself; None: as the provider has it.
    time : CallTime or None
        Of each request; None: ten minutes.
    own_time : OwnTime
        Stands still while all calls of this scope wait for their turn.
    replayed : int
        Calls that were answered from the journal; their attempts count as they did first.
    counted : set of str
        The journal's keys of the finished calls whose attempts are among ``attempts``.
    attempts : list of CallAttempt
    failures : list of str
        Causes of the calls that failed for good.
    not_asked : NotAskedError or None
        Why one of them was not made, where that says nothing of what was asked.
    was_held_up : bool
        Whether a call waited for a service that was down: the seconds are not known then.
    """

    def __init__(
        self,
        limit: "CallLimit | asyncio.Semaphore | None" = None,
        journal: CallJournal | None = None,
        live: bool = False,
        bound: OutputBound | None = None,
        own_time: OwnTime | None = None,
        time: "CallTime | None" = None,
    ) -> None:
        self.limit = limit
        self.journal = journal
        self.live = live
        self.bound = bound
        self.own_time, self.time = own_time or OwnTime(), time
        self.not_asked: NotAskedError | None = None
        self.was_held_up, self.replayed, self.counted = False, 0, set[str]()
        self.attempts, self.failures = list[CallAttempt](), list[str]()
        self._asked: Counter[str] = Counter()

    @property
    def waited_s(self) -> float:
        """Seconds in which all calls of this scope waited for their turn."""
        return self.own_time.waited_s

    @property
    def abstained(self) -> bool:
        """Whether the last completion, which gives the response, is a refusal."""
        replies = (a for a in reversed(self.attempts) if a.kind == "completion" and not a.error)
        last = next(replies, None)
        return last is not None and last.abstained

    def ordinal(self, fingerprint: str) -> int:
        """Return how often an equal request was made before in this scope."""
        self._asked[fingerprint] += 1
        return self._asked[fingerprint] - 1

    def usage(self) -> Usage:
        """Sum up what has been recorded so far."""
        return summarize_attempts(self.attempts)


_scope: ContextVar[CallLog | None] = ContextVar("gtog_call_scope", default=None)
_phase: ContextVar[str] = ContextVar("gtog_call_phase", default="response")


@contextmanager
def measure_calls(log: CallLog | None = None) -> Generator[CallLog]:
    """Record the model calls made inside the ``with`` block; an inner scope hides the outer."""
    log = log or CallLog()
    token = _scope.set(log)
    try:
        yield log
    finally:
        _scope.reset(token)


@contextmanager
def phase(name: str) -> Generator[None]:
    """Name the phase under which the calls made inside the ``with`` block are counted."""
    token = _phase.set(name)
    try:
        yield
    finally:
        _phase.reset(token)


def current_scope() -> CallLog | None:
    """Return the log of the innermost open scope, None outside any."""
    return _scope.get()


def current_phase() -> str:
    """Return the phase that calls are counted under."""
    return _phase.get()
