"""Keeps paid work so that a run can be resumed: in the store, or in a file of calls."""

import json
import os
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from pydantic import TypeAdapter

from graphrag.eval.errors import StoreError
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.exchanges import EXCHANGE_TABLES
from graphrag.eval.store.locking import lock_file
from graphrag.eval.store.records import CallScope, Judgement, RunSetup, StoredResponse, list_details
from graphrag.eval.store.serialization import Shown
from graphrag.eval.store.sqlite import IN_MEMORY
from graphrag.eval.types.query_results import KeptCalls
from graphrag.eval.types.verdicts import JudgeResult
from graphrag.query.client.usage import (
    CallAttempt,
    CallJournal,
    CallLog,
    Exchanges,
    RecordedCall,
    Usage,
    summarize_attempts,
)
from graphrag.text.redaction import redact_data

_T = TypeVar("_T")
_READ_AT_ONCE = 64
_NOTHING: frozenset[str] = frozenset()


class UnitState(NamedTuple):
    """How far a unit with a response is: whether its search failed, and what was judged.

    ``n_unscored``: the number of verdicts on ``metrics`` that the judge failed to give.
    """

    failed: bool
    metrics: frozenset[str] = _NOTHING
    n_unscored: int = 0


@dataclass(frozen=True, slots=True)
class StoreJournal:
    """The journal of finished calls of one search or judging, in the store; see ``CallJournal``.

    ``kept``: call -> reply, as the session read them when it was opened, so that a run that was
    never interrupted looks nothing up.
    """

    store: EvaluationStore
    run_id: str
    scope: CallScope
    kept: dict[str, RecordedCall]

    def replay(self, key: str) -> RecordedCall | None:
        """Return the finished call of this key, or None."""
        return self.kept.get(key)

    def start(self, key: str) -> None:
        """Note that a call is about to be sent."""
        self.store.write_call(self.run_id, self.scope, key, None)

    def finish(self, key: str, call: RecordedCall) -> None:
        """Keep the reply to a call."""
        self.store.write_call(self.run_id, self.scope, key, call)
        self.kept[key] = call

    def abandon(self, key: str) -> None:
        """Note that a call has failed for good and is no longer in flight."""
        self.store.drop_call(self.run_id, self.scope, key)


class StoredSession:
    """Keeps a run's work in the store, each piece before the next is begun.

    A result replaces its calls. ``counted``: the keys, in the journal, of those calls that are part
    of the result's usage; what the other calls cost is kept separately. In memory are only how far
    each unit is, and the judgments of further judges. The rest is read when it is needed, so that
    a long run takes no more memory than a short one.

    - ``retry_errors``: whether failed searches and unscored verdicts count as missing. What a
      forgotten response cost still counts as spent.
    - ``prepaid``: whether another run paid for the responses. They then cost nothing here, and even
      failed ones are kept.
    - ``keeps_calls``: whether prompts and replies are kept.
    - ``spent_usd``, ``spent_tokens``: what the run had taken when the session was opened; see
      ``Usage.spent_usd``.
    """

    def __init__(
        self,
        store: EvaluationStore,
        run_id: str,
        retry_errors: bool = False,
        prepaid: bool = False,
        keeps_calls: bool = False,
    ) -> None:
        self.store, self.run_id = store, run_id
        self._keeps_calls = keeps_calls
        self._exchanges: dict[CallScope, Exchanges] = {}
        if keeps_calls:
            store.prepare(*EXCHANGE_TABLES)
        self._met: dict[UnitState, UnitState] = {}
        """Each state once, however many units have it."""
        searches, verdicts = store.outlines(run_id).values(), store.verdicts(run_id)
        if retry_errors:
            verdicts = {
                unit: {metric: v for metric, v in judged.items() if v.failure is None}
                for unit, judged in verdicts.items()
            }
        self._states = {
            search.unit: self._next_state(
                UnitState(search.failure is not None), verdicts.get(search.unit, {})
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
            for unit in [unit for unit, state in self._states.items() if state.failed]:
                del self._states[unit]
                store.discard_response(run_id, unit)

    def _next_state(self, before: UnitState, verdicts: Mapping[str, JudgeResult]) -> UnitState:
        state = UnitState(
            before.failed,
            before.metrics.union(verdicts),
            before.n_unscored + sum(v.failure is not None for v in verdicts.values()),
        )
        return self._met.setdefault(state, state)

    def state(self, unit: str) -> UnitState | None:
        """Return how far a unit is, without reading its texts; None if it has no response."""
        return self._states.get(unit)

    def response(self, unit: str) -> StoredResponse | None:
        """Return the response of a unit; None if it has none."""
        if unit not in self._states:
            return None
        return self.store.responses(self.run_id, [unit])[unit]

    def read_again(self, units: Iterable[str]) -> Iterator[Shown]:
        """Yield each unit's context and what it retrieved, in this order, read 64 at a time.

        Raises StoreError if one is gone.
        """
        for context in self._in_blocks(units, self.store.contexts):
            if context is None:
                raise StoreError(f"Run {self.run_id} changed while it was read; ask for it again.")
            yield context

    def read_calls(self, units: Iterable[str]) -> Iterator[Sequence[KeptCalls]]:
        """Yield each unit's requests and replies, in this order, read 64 at a time."""
        return (kept or () for kept in self._in_blocks(units, self.store.exchanges))

    def _in_blocks(
        self, units: Iterable[str], read: Callable[[str, list[str]], Mapping[str, _T]]
    ) -> Iterator[_T | None]:
        left = iter(units)
        while block := list(islice(left, _READ_AT_ONCE)):
            kept = read(self.run_id, block)
            yield from map(kept.get, block)

    def keep_response(self, response: StoredResponse, counted: AbstractSet[str] = _NOTHING) -> None:
        """Keep a response, instead of its calls; see the class for ``counted``."""
        left = self._take_calls(CallScope.of_search(response.unit), counted)
        self.store.append_response(self.run_id, response, left)
        state = UnitState(response.failure is not None)
        self._states[response.unit] = self._next_state(state, {})

    def keep_verdicts(
        self,
        unit: str,
        verdicts: dict[str, JudgeResult],
        usage: Usage,
        counted: AbstractSet[str] = _NOTHING,
    ) -> None:
        """Keep the verdicts on a unit and what they cost, instead of their calls."""
        left = self._take_calls(CallScope.of_verdicts(unit), counted)
        self.store.append_verdicts(self.run_id, unit, verdicts, usage, left)
        self._states[unit] = self._next_state(self._states[unit], verdicts)
        self._judgements |= {(unit, detail.kind): detail for detail in list_details(unit, verdicts)}

    def judgement(self, subject: str, kind: str) -> Judgement | None:
        """Return a further judge's judgment of a unit; None if none is kept."""
        return self._judgements.get((subject, kind))

    def keep_judgement(self, judgement: Judgement, counted: AbstractSet[str] = _NOTHING) -> None:
        """Keep a further judge's judgment, instead of its calls."""
        left = self._take_calls(CallScope(judgement.kind, judgement.subject), counted)
        kept = self.store.append_judgement(self.run_id, judgement, left)
        self._judgements[kept.subject, kept.kind] = kept

    def journal(self, scope: CallScope) -> CallJournal | None:
        """Return the journal of a search or a judging; None if the store is in memory only."""
        if not self.store.is_kept:
            return None
        return StoreJournal(
            store=self.store,
            run_id=self.run_id,
            scope=scope,
            kept=self._calls.setdefault(scope.stored, {}),
        )

    def exchanges(self, scope: CallScope) -> Exchanges | None:
        """Return the collector of a scope's prompts and replies; None if they are not kept."""
        return self._exchanges.setdefault(scope, Exchanges()) if self._keeps_calls else None

    def keep_cut_off(self, scope: CallScope, log: CallLog) -> None:
        """Keep the cost of a scope's failed calls and of those in flight, which no journal has."""
        self._exchanges.pop(scope, None)
        calls = self._calls.get(scope.stored, {})
        lost = Counter(log.attempts)
        lost.subtract(attempt for key in log.counted for attempt in calls[key].attempts)
        usage = summarize_attempts(lost.elements())
        if usage.llm_calls or usage.embedding_calls:
            self.store.append_forgotten(self.run_id, scope.unit, usage)

    def _take_calls(self, scope: CallScope, counted: AbstractSet[str]) -> Usage | None:
        """Remove a scope's calls; return the cost of finished ones that are part of nothing kept.

        There are such calls if a search that is begun again fails before it comes to them, or takes
        another way. None if there are none.
        """
        if (exchanges := self._exchanges.pop(scope, None)) is not None:
            self.store.keep_exchanges(self.run_id, scope, exchanges)
        calls = self._calls.pop(scope.stored, {})
        left = [call for key, call in calls.items() if key not in counted]
        return summarize_attempts(a for call in left for a in call.attempts) if left else None


@contextmanager
def unkept_session() -> Generator[StoredSession]:
    """Yield a session in memory, whose work is gone at the end of the block."""
    with EvaluationStore(IN_MEMORY) as store:
        yield StoredSession(store, store.add_run(RunSetup({})).run_id)


_ATTEMPTS = TypeAdapter(tuple[CallAttempt, ...])


class CallFile:
    """A journal of calls (see ``CallJournal``) in a file of its own, as drafts have it.

    A line that was cut off is ignored. ``attempts``: all that the file had when it was opened,
    whatever they were for. Raises StoreError if the file can't be read or written, or another
    process, which would pay for the same calls, holds it.
    """

    def __init__(self, path: Path) -> None:
        self.attempts: list[CallAttempt] = []
        self._calls: dict[str, RecordedCall] = {}
        self._lock = lock_file(path, f"writes {path}")
        try:
            lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
            self._file = path.open("ab")
            if lines and not lines[-1].endswith(b"\n"):
                self._file.write(b"\n")
        except OSError as error:
            self._lock.release()
            msg = f"{path} can't be written: {error.strerror}; choose another --output."
            raise StoreError(msg) from error
        for line in lines:
            try:
                kept = json.loads(line)
                if "dropped" in kept:
                    self._calls.pop(kept["dropped"], None)
                    continue
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
        """Do nothing: a call that was cut off is sent again."""

    def abandon(self, key: str) -> None:
        """Do nothing: a call that failed is sent again."""

    def finish(self, key: str, call: RecordedCall) -> None:
        """Keep the reply to a call, before it is used."""
        self._calls[key] = call
        attempts = _ATTEMPTS.dump_python(call.attempts, mode="json")
        self._write({"key": key, "reply": call.reply, "attempts": attempts})

    def drop_last(self, drafts: Sequence[AbstractSet[str]]) -> None:
        """Have the last call of each draft sent again; what it cost stays counted.

        ``drafts``: the keys of each draft's calls.
        """
        for key in {k for keys in drafts for k in [k for k in self._calls if k in keys][-1:]}:
            del self._calls[key]
            self._write({"dropped": key})

    def _write(self, row: Mapping[str, object]) -> None:
        try:
            self._file.write(f"{redact_data(json.dumps(row))}\n".encode())
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            msg = f"{self._file.name} can't be written: {error.strerror}; make room, and go on."
            raise StoreError(msg) from error
