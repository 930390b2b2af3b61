"""Where a run keeps what it has paid for: only in memory, in the store, or in a file of calls."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar

from pydantic import TypeAdapter

from graphrag.eval.errors import StoreError
from graphrag.eval.records.answers import KeptCalls, Retrieved
from graphrag.eval.records.verdicts import JudgeResult
from graphrag.eval.store.connection import REPLIES_TABLE
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.exchanges import EXCHANGE_TABLES
from graphrag.eval.store.records import CallScope, Judgement, StoredResponse, list_details
from graphrag.query.usage import (
    CallAttempt,
    CallJournal,
    CallLog,
    Exchanges,
    RecordedCall,
    ReplyReuse,
    Usage,
    summarize_attempts,
)
from graphrag.text.redaction import redact_data

_T = TypeVar("_T")
Shown: TypeAlias = tuple[str | None, Retrieved | None]
"""The context of a response, and what was retrieved for it."""
_READ_AT_ONCE = 64
_NOTHING: frozenset[str] = frozenset()


class Standing(NamedTuple):
    """How far a unit is that has a response: whether its search failed, and what was judged."""

    failed: bool
    metrics: frozenset[str]


class Finished(NamedTuple):
    """What is there of a unit; ``judge_usage`` has an entry for each time it was judged."""

    response: StoredResponse
    verdicts: dict[str, JudgeResult]
    judge_usage: list[Usage]


class MemorySession:
    """The responses, verdicts and judgments of one run, kept until the process ends.

    What is kept takes the place of its calls. ``counted`` names those that are part of its usage,
    by their keys in the journal; what others of them cost is kept beside it.
    """

    reads_again = False
    """Whether responses are kept elsewhere than in memory, so that none need be held."""
    spent_usd, spent_tokens = 0.0, 0
    """What the run had taken when the session was opened; see ``Usage.spent_usd``."""

    def __init__(self) -> None:
        self._responses: dict[str, StoredResponse] = {}
        self._verdicts: dict[str, dict[str, JudgeResult]] = {}
        self._judge_usage: dict[str, list[Usage]] = {}
        self._judgements: dict[tuple[str, str], Judgement] = {}

    def standing(self, unit: str) -> Standing | None:
        """Return how far a unit is, without reading what it holds; None without a response."""
        response = self._responses.get(unit)
        if response is None:
            return None
        return Standing(response.failure is not None, frozenset(self._verdicts.get(unit, {})))

    def finished(self, units: Sequence[str]) -> Iterator[Finished]:
        """Read units that have a response, one after the other, in this order."""
        for unit in units:
            verdicts, usage = self._verdicts.get(unit, {}), self._judge_usage.get(unit, [])
            yield Finished(self._responses[unit], verdicts, usage)

    def response(self, unit: str) -> StoredResponse | None:
        """Return the response of a unit."""
        return self._responses.get(unit)

    def read_again(self, units: Iterable[str]) -> Iterator[Shown]:
        """Yield the contexts of units, and what they retrieved, in this order."""
        responses = (self._responses[unit] for unit in units)
        return ((response.context_text, response.retrieved) for response in responses)

    def release(self, unit: str) -> None:
        """Be told that nobody works on a unit any more."""

    def keep_response(self, response: StoredResponse, counted: AbstractSet[str] = _NOTHING) -> None:
        """Keep a response."""
        self._responses[response.unit] = response

    def keep_verdicts(
        self,
        unit: str,
        verdicts: dict[str, JudgeResult],
        usage: Usage,
        counted: AbstractSet[str] = _NOTHING,
    ) -> None:
        """Keep verdicts and what they cost."""
        self._verdicts.setdefault(unit, {}).update(verdicts)
        self._judgements |= {(unit, detail.kind): detail for detail in list_details(unit, verdicts)}
        self._judge_usage.setdefault(unit, []).append(usage)

    @property
    def has_judgements(self) -> bool:
        """Whether there are any beyond the verdicts."""
        return bool(self._judgements)

    def judgement(self, subject: str, kind: str) -> Judgement | None:
        """Return what a further judge said."""
        return self._judgements.get((subject, kind))

    def keep_judgement(self, judgement: Judgement, counted: AbstractSet[str] = _NOTHING) -> None:
        """Keep what a further judge said."""
        self._judgements[judgement.subject, judgement.kind] = judgement

    def journal(self, scope: CallScope) -> CallJournal | None:
        """Return where the finished calls of a search or a judging are kept."""
        return None

    def exchanges(self, scope: CallScope) -> Exchanges | None:
        """Return what takes what models are told and say; None where that is not kept."""
        return None

    def read_calls(self, units: Iterable[str]) -> Iterator[Sequence[KeptCalls]]:
        """Yield what the models of units were told and said, in this order."""
        return (() for _ in units)

    def earlier_replies(self, scope: CallScope) -> ReplyReuse | None:
        """Return the replies of earlier runs that a judging may take."""
        return None

    def keep_cut_off(self, scope: CallScope, log: CallLog) -> None:
        """Keep what a search or a judging that was cut off has cost by then."""

    def finish(self) -> None:
        """Note that nothing is left to do."""

    def grouped(self) -> AbstractContextManager[None]:
        """Let replies be put off until the next call is sent, as long as the block lasts."""
        return nullcontext()


@dataclass(frozen=True, slots=True)
class StoreJournal:
    """Keeps the finished calls of one search or one judging; see ``usage.CallJournal``.

    ``kept`` holds those that are in the store, call -> reply, as the session read them when it
    was opened: in a run that was never interrupted nothing is looked up.
    """

    store: EvaluationStore
    run_id: str
    scope: CallScope
    kept: dict[str, RecordedCall]

    def replay(self, key: str) -> RecordedCall | None:
        """Return the finished call of this key, or None."""
        return self.kept.get(key)

    def start(self, key: str) -> None:
        """Note that the call is about to be sent."""
        self.store.write_call(self.run_id, self.scope, key, None)

    def finish(self, key: str, call: RecordedCall) -> None:
        """Keep a call that was answered."""
        self.store.write_call(self.run_id, self.scope, key, call)
        self.kept[key] = call

    def abandon(self, key: str) -> None:
        """Note that the call has failed for good and is no longer in flight."""
        self.store.drop_call(self.run_id, self.scope, key)


class _SessionInStore(MemorySession):
    """One whose responses lie in the store, of which contexts and calls are read again."""

    reads_again = True

    def __init__(self, store: EvaluationStore, run_id: str) -> None:
        super().__init__()
        self.store, self.run_id = store, run_id

    def read_again(self, units: Iterable[str]) -> Iterator[Shown]:
        """Yield contexts while the store is open, 64 at a time; StoreError if one is gone."""
        for shown in self._in_blocks(units, self.store.shown):
            if shown is None:
                raise StoreError(f"Run {self.run_id} changed while it was read; ask for it again.")
            yield shown

    def read_calls(self, units: Iterable[str]) -> Iterator[Sequence[KeptCalls]]:
        """Yield what the models of units were told and said, 64 units at a time."""
        return (kept or () for kept in self._in_blocks(units, self.store.exchanges))

    def _in_blocks(
        self, units: Iterable[str], read: Callable[[str, list[str]], Mapping[str, _T]]
    ) -> Iterator[_T | None]:
        left = iter(units)
        while block := list(islice(left, _READ_AT_ONCE)):
            kept = read(self.run_id, block)
            yield from map(kept.get, block)


class ReadSession(_SessionInStore):
    """What a run in the store came to, read at once but for what searches showed to their models.

    Nothing more is kept of it.
    """

    def __init__(self, store: EvaluationStore, run_id: str) -> None:
        super().__init__(store, run_id)
        self._responses = store.outlines(run_id, with_texts=True)
        self._verdicts, self._judge_usage = store.verdicts(run_id), store.judge_usage(run_id)
        self._judgements = {(j.subject, j.kind): j for j in store.judgements(run_id)}


class StoredSession(_SessionInStore):
    """Keeps a run's work in the store, each piece before the next is begun.

    In memory stays how far each unit is, and what was kept here of those that are worked on: the
    rest is read when it is asked for, so that a long run takes no more memory than a short one.
    ``retry_errors``: whether failed searches and unscored verdicts are taken as not there. What a
    forgotten response cost still counts as spent. ``prepaid``: whether another run paid for the
    responses, so that they cost nothing here and are kept as they are. ``reuses``: whether replies
    of a judge are kept for later runs and taken from earlier ones. ``keeps_calls``: whether what
    models are told and say is kept.
    """

    def __init__(
        self,
        store: EvaluationStore,
        run_id: str,
        retry_errors: bool = False,
        prepaid: bool = False,
        reuses: bool = False,
        keeps_calls: bool = False,
    ) -> None:
        super().__init__(store, run_id)
        self._reuses, self._keeps_calls = reuses, keeps_calls
        self._exchanges: dict[CallScope, Exchanges] = {}
        if reuses:
            store.prepare(REPLIES_TABLE)
        if keeps_calls:
            store.prepare(*EXCHANGE_TABLES)
        self._met: dict[Standing, Standing] = {}
        """Each standing once, however many units have it."""
        searches = store.outlines(run_id).values()
        judged = {
            unit: frozenset(m for m, v in verdicts.items() if not (retry_errors and v.failure))
            for unit, verdicts in store.verdicts(run_id).items()
        }
        self._standings = {
            search.unit: self._shared(
                Standing(search.failure is not None, judged.get(search.unit, _NOTHING))
            )
            for search in searches
        }
        judgements = store.judgements(run_id)
        self._judgements = {
            (judgement.subject, judgement.kind): judgement
            for judgement in judgements
            if not (retry_errors and judgement.failed)
        }
        self._calls = store.finished_calls(run_id)
        calls = (call for kept in self._calls.values() for call in kept.values())
        usages = [usage for group in store.judge_usage(run_id).values() for usage in group]
        usages += store.forgotten_usage(run_id)
        usages += [judgement.usage for judgement in judgements]
        usages += [] if prepaid else [search.usage for search in searches]
        usages.append(summarize_attempts(a for call in calls for a in call.attempts))
        self.spent_usd = sum(usage.spent_usd for usage in usages)
        self.spent_tokens = sum(usage.tokens for usage in usages)
        if retry_errors and not prepaid:
            for unit in [unit for unit, standing in self._standings.items() if standing.failed]:
                del self._standings[unit]
                store.discard_response(run_id, unit)

    def _shared(self, standing: Standing) -> Standing:
        return self._met.setdefault(standing, standing)

    def finish(self) -> None:
        """Mark the run as finished."""
        self.store.finish_run(self.run_id)

    def standing(self, unit: str) -> Standing | None:
        """Return how far a unit is; None without a response."""
        return self._standings.get(unit)

    def finished(self, units: Sequence[str]) -> Iterator[Finished]:
        """Read units that have a response from the store, 64 at a time."""
        for start in range(0, len(units), _READ_AT_ONCE):
            block = units[start : start + _READ_AT_ONCE]
            absent = self._read([unit for unit in block if unit not in self._responses])
            for unit in block:
                yield absent[unit] if unit in absent else next(super().finished([unit]))

    def _read(self, units: Sequence[str]) -> dict[str, Finished]:
        if not units:
            return {}
        responses = self.store.responses(self.run_id, units)
        verdicts = self.store.verdicts(self.run_id, units)
        usages = self.store.judge_usage(self.run_id, units)
        read: dict[str, Finished] = {}
        for unit in units:
            taken = self._standings[unit].metrics  # without what is to be judged again
            valid = {m: v for m, v in verdicts.get(unit, {}).items() if m in taken}
            read[unit] = Finished(responses[unit], valid, usages.get(unit, []))
        return read

    def response(self, unit: str) -> StoredResponse | None:
        """Return the response of a unit."""
        if unit in self._responses or unit not in self._standings:
            return super().response(unit)
        return self.store.responses(self.run_id, [unit])[unit]

    def exchanges(self, scope: CallScope) -> Exchanges | None:
        """Return what takes what models are told and say, until the scope's result is kept."""
        return self._exchanges.setdefault(scope, Exchanges()) if self._keeps_calls else None

    def release(self, unit: str) -> None:
        """Leave a unit to the store."""
        self._responses.pop(unit, None)
        self._verdicts.pop(unit, None)
        self._judge_usage.pop(unit, None)

    def keep_response(self, response: StoredResponse, counted: AbstractSet[str] = _NOTHING) -> None:
        """Keep a response."""
        left = self._take_calls(CallScope.of_search(response.unit), counted)
        self.store.append_response(self.run_id, response, left)
        standing = Standing(response.failure is not None, _NOTHING)
        self._standings[response.unit] = self._shared(standing)
        super().keep_response(response)

    def keep_verdicts(
        self,
        unit: str,
        verdicts: dict[str, JudgeResult],
        usage: Usage,
        counted: AbstractSet[str] = _NOTHING,
    ) -> None:
        """Keep verdicts and what they cost."""
        left = self._take_calls(CallScope.of_verdicts(unit), counted)
        self.store.append_verdicts(self.run_id, unit, verdicts, usage, left)
        failed, metrics = self._standings[unit]
        self._standings[unit] = self._shared(Standing(failed, metrics.union(verdicts)))
        super().keep_verdicts(unit, verdicts, usage)
        if unit not in self._responses:  # what is known here is not all: the store has more
            self.release(unit)

    def keep_judgement(self, judgement: Judgement, counted: AbstractSet[str] = _NOTHING) -> None:
        """Keep what a further judge said."""
        left = self._take_calls(CallScope(judgement.kind, judgement.subject), counted)
        kept = self.store.append_judgement(self.run_id, judgement, left)
        super().keep_judgement(kept)

    def journal(self, scope: CallScope) -> StoreJournal:
        """Return the journal of a search or a judging."""
        kept = self._calls.setdefault(scope.stored, {})
        return StoreJournal(self.store, self.run_id, scope, kept)

    def earlier_replies(self, scope: CallScope) -> ReplyReuse | None:
        """Return the replies of earlier runs; none to a search: its cost and time are measured."""
        if not self._reuses or scope == CallScope.of_search(scope.unit):
            return None
        return self.store.earlier_replies(self.run_id, scope)

    def grouped(self) -> AbstractContextManager[None]:
        """See ``EvaluationStore.grouped``."""
        return self.store.grouped()

    def keep_cut_off(self, scope: CallScope, log: CallLog) -> None:
        """Keep what its failed calls cost, and those in flight: no journal has them."""
        self._exchanges.pop(scope, None)
        calls = self._calls.get(scope.stored, {})
        lost = Counter(log.attempts)
        lost.subtract(attempt for key in log.counted for attempt in calls[key].attempts)
        usage = summarize_attempts(lost.elements())
        if usage.llm_calls or usage.embedding_calls:
            self.store.append_forgotten(self.run_id, scope.unit, usage)

    def _take_calls(self, scope: CallScope, counted: AbstractSet[str]) -> Usage | None:
        """Give up a scope's calls; return what those finished cost that are part of nothing kept.

        A search that is begun again may fail before it comes to them, or take another way. None
        where there are none.
        """
        if (exchanges := self._exchanges.pop(scope, None)) is not None:
            self.store.keep_exchanges(self.run_id, scope, exchanges)
        calls = self._calls.pop(scope.stored, {})
        left = [call for key, call in calls.items() if key not in counted]
        return summarize_attempts(a for call in left for a in call.attempts) if left else None


_ATTEMPTS = TypeAdapter(tuple[CallAttempt, ...])


class CallFile:
    """A journal of calls (see ``CallJournal``) in one file; a line that was cut off is passed over.

    ``attempts``: all that it held when it was opened, whatever they were for. StoreError if the
    file can't be read or written, or another process holds it, which would pay for the same calls.
    """

    def __init__(self, path: Path) -> None:
        from filelock import FileLock, Timeout  # every command loads this module

        self.attempts: list[CallAttempt] = []
        self._calls: dict[str, RecordedCall] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(f"{path}.lock", timeout=0)
            self._lock.acquire()
            lines = path.read_bytes().splitlines() if path.exists() else []
            self._file = path.open("ab")
            if lines and not path.read_bytes().endswith(b"\n"):
                self._file.write(b"\n")
        except Timeout as error:
            msg = f"Another process writes {path}; wait for it, or choose another --output."
            raise StoreError(msg) from error
        except OSError as error:
            msg = f"{path} can't be written: {error.strerror}; choose another --output."
            raise StoreError(msg) from error
        for line in lines:
            try:
                kept = json.loads(line)
                attempts = _ATTEMPTS.validate_python(kept["attempts"])
                self._calls[kept["key"]] = RecordedCall(kept["reply"], attempts)
            except (ValueError, KeyError, TypeError):
                continue
            self.attempts += attempts

    def __enter__(self) -> "CallFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._lock.release()

    def replay(self, key: str) -> RecordedCall | None:
        """Return the finished call of this key, or None."""
        return self._calls.get(key)

    def start(self, key: str) -> None:
        """Note nothing: a call that was cut off is sent again."""

    def abandon(self, key: str) -> None:
        """Note nothing: a call that failed is sent again."""

    def finish(self, key: str, call: RecordedCall) -> None:
        """Keep a call before anything is made of it."""
        self._calls[key] = call
        attempts = _ATTEMPTS.dump_python(call.attempts, mode="json")
        line = redact_data(json.dumps({"key": key, "reply": call.reply, "attempts": attempts}))
        try:
            self._file.write(f"{line}\n".encode())
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            msg = f"{self._file.name} can't be written: {error.strerror}; make room, and go on."
            raise StoreError(msg) from error
