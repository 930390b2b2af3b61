"""Where a run keeps what it has paid for: in the store, or only in memory."""

from typing import Protocol

from graphrag.eval.records import JudgeResult
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.journal import StoreJournal
from graphrag.eval.store.records import CallScope, Judgement, StoredResponse
from graphrag.query.usage import CallJournal, Usage, summarize_attempts


class Session(Protocol):
    """The responses, verdicts and judgements of one run, as far as they are there."""

    def response(self, unit: str) -> StoredResponse | None:
        """Return the response of a unit."""
        ...

    def verdicts(self, unit: str) -> dict[str, JudgeResult]:
        """Return metric -> verdict of a unit, empty before it was judged."""
        ...

    def judge_usage(self, unit: str) -> list[Usage]:
        """Return what the unit's verdicts cost, one entry each time it was judged."""
        ...

    def keep_response(self, found: StoredResponse) -> None:
        """Keep a response."""
        ...

    def keep_verdicts(self, unit: str, verdicts: dict[str, JudgeResult], usage: Usage) -> None:
        """Keep verdicts and what they cost."""
        ...

    def judgement(self, subject: str, kind: str) -> Judgement | None:
        """Return what a further judge said."""
        ...

    def keep_judgement(self, judged: Judgement) -> None:
        """Keep what a further judge said."""
        ...

    def journal(self, scope: CallScope) -> CallJournal | None:
        """Return where the finished calls of a search or a judging are kept."""
        ...

    def spent_usd(self) -> float:
        """Return what the run has cost so far in US dollars, unknown prices left out."""
        ...


class MemorySession:
    """Keeps a run's work until the process ends."""

    def __init__(self) -> None:
        self._responses: dict[str, StoredResponse] = {}
        self._verdicts: dict[str, dict[str, JudgeResult]] = {}
        self._judge_usage: dict[str, list[Usage]] = {}
        self._judgements: dict[tuple[str, str], Judgement] = {}
        self._spent_usd = 0.0

    def response(self, unit: str) -> StoredResponse | None:
        """Return the response of a unit."""
        return self._responses.get(unit)

    def verdicts(self, unit: str) -> dict[str, JudgeResult]:
        """Return metric -> verdict of a unit."""
        return self._verdicts.get(unit, {})

    def judge_usage(self, unit: str) -> list[Usage]:
        """Return what the unit's verdicts cost."""
        return self._judge_usage.get(unit, [])

    def keep_response(self, found: StoredResponse) -> None:
        """Keep a response."""
        self._responses[found.unit] = found
        self._spent_usd += found.usage.cost_usd or 0.0

    def keep_verdicts(self, unit: str, verdicts: dict[str, JudgeResult], usage: Usage) -> None:
        """Keep verdicts and what they cost."""
        self._verdicts.setdefault(unit, {}).update(verdicts)
        self._judge_usage.setdefault(unit, []).append(usage)
        self._spent_usd += usage.cost_usd or 0.0

    def judgement(self, subject: str, kind: str) -> Judgement | None:
        """Return what a further judge said."""
        return self._judgements.get((subject, kind))

    def keep_judgement(self, judged: Judgement) -> None:
        """Keep what a further judge said."""
        self._judgements[judged.subject, judged.kind] = judged
        self._spent_usd += judged.usage.cost_usd or 0.0

    def journal(self, scope: CallScope) -> CallJournal | None:
        """Return None: calls are not kept."""
        return None

    def spent_usd(self) -> float:
        """Return what the run has cost so far in US dollars, unknown prices left out."""
        return self._spent_usd


class StoredSession(MemorySession):
    """Keeps a run's work in the store as well, each piece before the next is begun.

    Parameters
    ----------
    store : EvaluationStore
    run_id : str
    retry_errors : bool
        Whether failed searches and unscored verdicts are taken as not there. What a forgotten
        response cost still counts as spent.
    prepaid : bool
        Whether another run paid for the responses, so that they cost nothing here and are kept
        as they are.
    """

    def __init__(
        self,
        store: EvaluationStore,
        run_id: str,
        retry_errors: bool = False,
        prepaid: bool = False,
    ) -> None:
        super().__init__()
        self.store = store
        self.run_id = run_id
        self._responses = store.responses(run_id)
        self._verdicts = store.verdicts(run_id)
        self._judge_usage = store.judge_usage(run_id)
        judgements = store.judgements(run_id)
        self._judgements = {
            (judged.subject, judged.kind): judged
            for judged in judgements
            if not (retry_errors and judged.failed)
        }
        self._calls = store.finished_calls(run_id)
        self._unclaimed_usd = {
            scope: summarize_attempts(a for c in calls.values() for a in c.attempts).cost_usd or 0.0
            for scope, calls in self._calls.items()
        }
        usages = [] if prepaid else [found.usage for found in self._responses.values()]
        usages += [usage for each in self._judge_usage.values() for usage in each]
        usages += store.forgotten_usage(run_id)
        usages += [judged.usage for judged in judgements]
        self._spent_usd = sum(self._unclaimed_usd.values())
        self._spent_usd += sum(usage.cost_usd or 0.0 for usage in usages)
        if retry_errors and not prepaid:
            self._forget_failed_searches()
        if retry_errors:
            self._forget_failed_verdicts()

    def _forget_failed_searches(self) -> None:
        for unit, found in list(self._responses.items()):
            if found.failure is not None:
                del self._responses[unit]
                self.store.discard_response(self.run_id, unit)

    def _forget_failed_verdicts(self) -> None:
        for unit, verdicts in self._verdicts.items():
            self._verdicts[unit] = {m: v for m, v in verdicts.items() if v.failure is None}

    def keep_response(self, found: StoredResponse) -> None:
        """Keep a response."""
        self.store.append_response(self.run_id, found)
        self._claim(CallScope.of_search(found.unit))
        super().keep_response(found)

    def keep_verdicts(self, unit: str, verdicts: dict[str, JudgeResult], usage: Usage) -> None:
        """Keep verdicts and what they cost."""
        self.store.append_verdicts(self.run_id, unit, verdicts, usage)
        self._claim(CallScope.of_verdicts(unit))
        super().keep_verdicts(unit, verdicts, usage)

    def keep_judgement(self, judged: Judgement) -> None:
        """Keep what a further judge said."""
        self.store.append_judgement(self.run_id, judged)
        self._claim(CallScope(judged.kind, judged.subject))
        super().keep_judgement(judged)

    def journal(self, scope: CallScope) -> StoreJournal:
        """Return the journal of a search or a judging."""
        kept = self._calls.setdefault(scope.stored, {})
        return StoreJournal(self.store, self.run_id, scope, kept)

    def _claim(self, scope: CallScope) -> None:
        """Take back what replayed calls cost, as they are part of what is being kept."""
        self._spent_usd -= self._unclaimed_usd.pop(scope.stored, 0.0)
        self._calls.pop(scope.stored, None)
