"""The workers of a run as its process sees them: who does what, and what when one dies."""

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast

from graphrag.eval import errors
from graphrag.eval.errors import ConfigError, EvalError, RunStoppedError
from graphrag.eval.records import JudgeResult
from graphrag.eval.runner.shares import Share
from graphrag.eval.runner.tasks import Cancel, Ended, Event, Item, Kept, Noted, Order, Ready, Said
from graphrag.eval.store.records import StoredResponse, Unit
from graphrag.query.limits import CallLimit
from graphrag.query.spending import Spending
from graphrag.query.usage import CallAttempt, CallLog, RecordedCall

_log = logging.getLogger(__name__)
MOST_DEATHS = 3
_FORGIVEN_AFTER = 100


class Link(Protocol):
    """The line to one worker; the worker is begun when it is made."""

    def send(self, order: Order) -> None:
        """Send an order without waiting; a worker that is dead is noticed elsewhere."""
        ...

    def receive(self) -> list[Event]:
        """Wait for events, in a thread of its own; EOFError, saying why, when it has died."""
        ...

    def close(self) -> None:
        """End the worker."""
        ...


Hire = Callable[[Share], Link]


@dataclass(slots=True)
class _Pending:
    """An item that somebody waits for, and its calls that are finished."""

    item: Item
    log: CallLog
    future: "asyncio.Future[Ended]"
    finished: dict[str, RecordedCall]


@dataclass(slots=True, eq=False)
class _Member:
    """A worker: its line, its items, and the orders that it gets when it is ready."""

    share: Share
    link: Link
    items: set[int] = field(default_factory=set[int])
    outbox: list[Order] | None = field(default_factory=list[Order])
    n_finished: int = 0
    thread: threading.Thread | None = None

    def send(self, order: Order) -> None:
        if self.outbox is None:
            self.link.send(order)
        else:
            self.outbox.append(order)


class Crew:
    """Gives items to workers, keeps what they finish, and replaces those that die.

    Workers are hired when there is something to do. What is paid for goes into the journal of
    its item when it is told, so that an item of a worker that died goes on from there.

    Parameters
    ----------
    n_workers : int
        At most ``concurrency``.
    concurrency : int
        Requests in flight of all workers together.
    patience_s : float
        See ``CallLimit``.
    hire : callable
        Begins a worker.
    """

    def __init__(self, n_workers: int, concurrency: int, patience_s: float, hire: Hire) -> None:
        self._n_workers = n_workers
        self._concurrency = concurrency
        self._patience_s = patience_s
        self._hire = hire
        self._members: list[_Member] = []
        self._pending: dict[int, _Pending] = {}
        self._n_items = 0
        self._spending = Spending()
        self._deaths = 0
        self._ended_since = 0
        self._fatal: EvalError | None = None
        self._closed = False

    async def __aenter__(self) -> "Crew":
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """End all workers."""
        self._closed = True
        for member in self._members:
            member.link.close()
        for member in self._members:
            if member.thread is not None:
                member.thread.join(5.0)
        self._members = []

    async def search_unit(self, unit: Unit, log: CallLog) -> StoredResponse:
        """Answer a question; see ``EvaluationRunner.search_unit``."""
        result = await self._do(unit, None, (), log)
        assert isinstance(result, StoredResponse)
        return result

    async def judge_unit(
        self, unit: Unit, found: StoredResponse, metrics: Sequence[str], log: CallLog
    ) -> dict[str, JudgeResult]:
        """Have a response judged; see ``EvaluationRunner.judge_unit``."""
        result = await self._do(unit, found, tuple(metrics), log)
        return cast("dict[str, JudgeResult]", result)

    async def _do(
        self, unit: Unit, found: StoredResponse | None, metrics: tuple[str, ...], log: CallLog
    ) -> object:
        if self._fatal is not None:
            raise self._fatal
        self._n_items += 1
        if isinstance(log.limit, CallLimit):
            self._spending = log.limit.spending
        finished = _finished_calls(log)
        item = Item(self._n_items, unit, found, metrics, finished, log.bound, log.time)
        future: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._pending[item.number] = _Pending(item, log, future, finished)
        try:
            self._assign(item.number)
            ended = await future
        except asyncio.CancelledError:
            for member in self._members:
                if item.number in member.items:
                    member.send(Cancel(item.number))
            raise
        finally:
            del self._pending[item.number]
            for member in self._members:
                member.items.discard(item.number)
        log.attempts.extend(ended.attempts)
        kept = Counter(attempt for call in finished.values() for attempt in call.attempts)
        self._count((Counter(ended.attempts) - kept).elements())  # those that came to nothing
        log.failures.extend(ended.failures)
        log.replayed += ended.replayed
        log.counted |= ended.counted
        if ended.error is not None:
            raise _make_error(*ended.error)
        return ended.result

    def _count(self, attempts: Iterable[CallAttempt]) -> None:
        for attempt in attempts:
            self._spending.count(attempt)

    def _assign(self, number: int) -> None:
        """Give an item to the worker with the least to do, to a new one before it gets two."""
        member = min(self._members, key=lambda m: len(m.items), default=None)
        if member is None or (member.items and len(self._members) < self._n_workers):
            member = self._hire_member()
        member.items.add(number)
        pending = self._pending[number]
        item = pending.item
        member.send(
            Item(
                item.number,
                item.unit,
                item.found,
                item.metrics,
                dict(pending.finished),
                item.bound,
                item.time,
                self._spending.left_usd,
            )
        )

    def _hire_member(self, is_successor: bool = False) -> _Member:
        taken = {member.share.index for member in self._members}
        index = next(i for i in range(self._n_workers) if i not in taken)
        share = Share(index, self._n_workers, self._concurrency, self._patience_s, is_successor)
        member = _Member(share, self._hire(share))
        self._members.append(member)
        loop = asyncio.get_running_loop()
        member.thread = threading.Thread(
            target=self._listen, args=(member, loop), name=f"gtog-worker-{index}", daemon=True
        )
        member.thread.start()
        return member

    def _listen(self, member: _Member, loop: asyncio.AbstractEventLoop) -> None:
        try:
            while True:
                events = member.link.receive()
                loop.call_soon_threadsafe(self._take, member, events)
        except EOFError as error:
            if not self._closed:
                loop.call_soon_threadsafe(self._bury, member, str(error))
        except RuntimeError:  # the loop is closed
            if not self._closed:
                raise

    def _take(self, member: _Member, events: Sequence[Event]) -> None:
        """Take events in their order, and tell the worker what of them is kept."""
        before = member.n_finished
        try:
            for event in events:
                if isinstance(event, Noted):
                    self._note(event)
                    member.n_finished += event.what == "finish"
                elif isinstance(event, Ended):
                    self._end(event)
                elif isinstance(event, Said):
                    logging.getLogger(event.logger).log(event.level, "%s", event.text)
                else:
                    self._begin(member, event)
        except EvalError as error:
            self._fail(error)
            return
        if member.n_finished > before:
            member.send(Kept(member.n_finished, self._spending.left_usd))

    def _note(self, event: Noted) -> None:
        pending = self._pending.get(event.item)
        if pending is None:  # nobody waits for it any more
            return
        journal = pending.log.journal
        if event.what == "start":
            if journal is not None:
                journal.start(event.key)
        elif event.what == "abandon":
            if journal is not None:
                journal.abandon(event.key)
        else:
            assert event.call is not None
            if journal is not None:
                journal.finish(event.key, event.call)
            pending.finished[event.key] = event.call
            self._count(event.call.attempts)

    def _end(self, event: Ended) -> None:
        pending = self._pending.get(event.item)
        if pending is not None and not pending.future.done():
            pending.future.set_result(event)
        self._ended_since += 1
        if self._ended_since >= _FORGIVEN_AFTER:
            self._deaths = 0

    def _begin(self, member: _Member, event: Ready) -> None:
        if event.problem is not None:
            raise ConfigError(event.problem)
        waiting, member.outbox = member.outbox or [], None
        for order in waiting:
            member.send(order)

    def _bury(self, member: _Member, why: str) -> None:
        """Give the items of a worker that died to others; too many deaths end the run."""
        if self._closed or member not in self._members:
            return
        self._members.remove(member)
        # One that only can't be reached any more would work, and pay, beside its successor.
        threading.Thread(target=member.link.close, daemon=True).start()
        self._deaths, self._ended_since = self._deaths + 1, 0
        if self._fatal is not None:
            return
        if self._deaths > MOST_DEATHS:
            self._fail(
                RunStoppedError(
                    f"{self._deaths} workers died in a row, the last one {why}; what was "
                    "finished is kept, see whether memory was short"
                )
            )
            return
        _log.warning("worker %d died, %s: another takes its place", member.share.index + 1, why)
        try:
            self._hire_member(is_successor=True)
            for number in sorted(member.items & self._pending.keys()):
                self._assign(number)
        except EvalError as error:
            self._fail(error)

    def _fail(self, error: EvalError) -> None:
        """End everything that is waited for with an error."""
        self._fatal = self._fatal or error
        for pending in self._pending.values():
            if not pending.future.done():
                pending.future.set_exception(error)


def _make_error(kind: str, message: str) -> Exception:
    found = getattr(errors, kind, None) if kind else None
    return found(message) if found is not None else RuntimeError(message)


def _finished_calls(log: CallLog) -> dict[str, RecordedCall]:
    """Return the calls that a journal holds already; a worker can't look one up when it asks."""
    if log.journal is None:
        return {}
    return cast("_Listing", log.journal).finished()


class _Listing(Protocol):
    """A journal that can tell all of its finished calls at once."""

    def finished(self) -> dict[str, RecordedCall]: ...
