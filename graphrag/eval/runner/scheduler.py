"""Carries out the work of one run: which units are left, what they may cost, when to stop."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import tee
from typing import Protocol, TypeAlias

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import AllowanceStop, InterruptStop, RunStoppedError, ServiceDownStop
from graphrag.eval.metrics.judge import judgeable
from graphrag.eval.store.records import CallScope, Judgement, StoredResponse, Unit
from graphrag.eval.store.session import StoredSession
from graphrag.eval.types.metric_definitions import METRICS
from graphrag.eval.types.query_results import EfficiencyMetrics, QueryResult, ReadCalls, ReadWhole
from graphrag.eval.types.verdicts import JudgeResult, MetricScores, failed_search_scores
from graphrag.query.client.rate_limit import AllowanceSpentError, CallLimit, Spending
from graphrag.query.client.usage import CallLog, CallTime, OutputBound, Usage, sum_usages
from graphrag.text.cli_hints import config_name

_LEAST_S = 60.0


def search_limits(config: EvaluationConfig) -> tuple[OutputBound, CallTime]:
    """Return the bound of a method's replies, and the time that one request of it may take."""
    bound = OutputBound(config.max_output_tokens, f"max_output_tokens in {config_name()}")
    return bound, _call_time(config)


def judge_limits(config: EvaluationConfig) -> tuple[OutputBound, CallTime]:
    """Return the bound of the judge's replies, and the time that one request may take."""
    setting = f"judge.max_output_tokens in {config_name()}"
    bound = OutputBound(config.judge.max_output_tokens, setting, of_setup=False)
    return bound, _call_time(config)


def _call_time(config: EvaluationConfig) -> CallTime:
    """Return the time of one request: half of a search's time-out, at least a minute."""
    return CallTime(max(_LEAST_S, config.timeout_s / 2), f"timeout_s in {config_name()}")


def check_asked(log: CallLog) -> None:
    """Stop the run if a request was not sent because its service is down or money is short.

    Raises ServiceDownStop or AllowanceStop; nothing is then recorded of the search or judging.
    """
    if log.not_asked is not None:
        is_spent = isinstance(log.not_asked, AllowanceSpentError)
        stop = AllowanceStop if is_spent else ServiceDownStop
        raise stop(str(log.not_asked)) from log.not_asked


def describe_timeout(seconds: float, log: CallLog) -> str:
    """Return a sentence: no response within a search's time-out, and what was slow."""
    text = f"no response within {seconds:g} s"
    if log.own_time.waited_s >= 0.1:
        text += f", {log.own_time.waited_s:.1f} s of waiting for its turn not counted"
    calls = log.attempts
    if not calls and log.latest:  # an HTTP service
        return f"{text}; the latest request failed: {log.latest}"
    if not calls:
        return f"{text}, and no model was asked"
    slowest = max(calls, key=lambda attempt: attempt.latency_s)
    # Calls of one search may overlap, so their sum means nothing.
    number = "1 call was made and"
    if len(calls) > 1:
        number = f"{len(calls)} calls were made, the slowest"
    return (
        f"{text}: {number} took {slowest.latency_s:.1f} s ({slowest.phase}); "
        "raise timeout_s or lower concurrency"
    )


Job = Callable[[], Awaitable[object]]
ProgressCallback = Callable[[int, int, str, str], None]
"""Called with (current, total, imdb_key, method) after each unit; imdb_key: the index key."""
_HOPELESS_AFTER = 10
FINISH_S = 8.0
"""Seconds that work in flight has after a stop, so that a command ends within ten."""


class Executor(Protocol):
    """Answers and judges the units of a run: this process, workers, or a wrapper of either."""

    async def search_unit(self, unit: Unit, log: CallLog) -> StoredResponse:
        """Answer one question; a failure is recorded with its cause."""
        ...

    async def judge_unit(
        self, unit: Unit, response: StoredResponse, metrics: Sequence[str], log: CallLog
    ) -> dict[str, JudgeResult]:
        """Have a response judged on some metrics."""
        ...


@dataclass(frozen=True, slots=True)
class FurtherTask:
    """One further judging, beyond the verdicts; ``subject`` and ``kind`` as in Judgement."""

    subject: str
    kind: str
    judge: Callable[[CallLog], Awaitable[Judgement]]


@dataclass(frozen=True, slots=True)
class Tally:
    """The progress of a run.

    - ``done``, ``total``: units: a question asked by a method and judged.
    - ``failed``: searches that failed.
    - ``unscored``: verdicts that the judge failed to give.
    - ``tokens``: tokens of the run so far, also for what failed and was asked again.
    - ``cost_usd``: US dollars so far; calls of unknown price are left out.
    """

    done: int
    total: int
    failed: int = 0
    unscored: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


Watch: TypeAlias = Callable[[Tally, Unit | None], None]
"""Receives the progress; the latest unit is None when earlier results are counted."""


async def run_bounded(
    jobs: Iterable[Job],
    concurrency: int,
    stop: asyncio.Event | None = None,
    may_begin: Callable[[], bool] = lambda: True,
    finish_s: float = FINISH_S,
) -> None:
    """Do jobs in order, a limited number at the same time.

    - ``jobs``: functions that each return the awaitable of a job.
    - ``concurrency``: most jobs at once, >= 1.
    - ``stop``: no job begins once it is set. An error of a job sets it, so that jobs in flight see
      it.
    - ``may_begin``: asked before each job; after the first no, only jobs in flight are waited for.
    - ``finish_s``: seconds that jobs in flight have after a stop or an error, before they are
      canceled.

    Raises the first error of a job, after jobs in flight had their time; later errors are dropped.
    A job whose error should not stop the others must catch it. No task is left behind, even if
    canceled.
    """
    waiting, errors = deque(jobs), list[BaseException]()
    stop_event = stop or asyncio.Event()

    async def work() -> None:
        try:
            while waiting:
                if stop_event.is_set() or not may_begin():
                    waiting.clear()
                    return
                await waiting.popleft()()
        except (Exception, asyncio.CancelledError) as error:
            errors.append(error)
            stop_event.set()

    stopping = asyncio.create_task(stop_event.wait())
    tasks: list[asyncio.Task[object]] = [stopping]
    try:
        for _ in range(min(concurrency, len(waiting))):
            tasks.append(asyncio.create_task(work()))
            await asyncio.sleep(0)  # each sends its first request before the next begins
        ended = asyncio.gather(*tasks[1:])
        await asyncio.wait({ended, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            await asyncio.wait({ended}, timeout=finish_s)
        first = errors[:1]  # errors from the cancellation below don't count
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for error in first:
        raise error


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The results of a run, in the order of its units, and why it stopped early.

    - ``stopped``: why it stopped; None if every unit is done.
    - ``was_interrupted``: whether Ctrl-C or SIGTERM stopped it.
    - ``refused``: whether the service stopped it because it would refuse every further request.
    - ``judged``: further judgments, each with its unit.
    - ``allow_usd``: if the allowed cost stopped it, a limit that lets it go on.

    Results lack what searches showed to their models: ``read_whole`` adds it, and ``read_calls``
    returns their calls, as long as the store is open.
    """

    results: list[QueryResult]
    n_planned: int
    read_whole: ReadWhole = field(repr=False, compare=False)
    read_calls: ReadCalls = field(repr=False, compare=False)
    stopped: str | None = None
    was_interrupted: bool = False
    refused: bool = False
    judged: tuple[tuple[Unit, Judgement], ...] = ()
    allow_usd: float | None = None

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to do."""
        return self.stopped is None


class Work:
    """The work of a run and where it is stored; ``concurrency`` units at once, under one limit.

    - ``session``: knows what is already stored.
    - ``skip_judge``: whether to collect responses without verdicts.
    - ``max_cost_usd``: no call is sent if this may not be enough for it; see ``Spending``.
    - ``watch``: receives the progress.
    """

    def __init__(
        self,
        config: EvaluationConfig,
        units: Sequence[Unit],
        session: StoredSession,
        skip_judge: bool = False,
        max_cost_usd: float | None = None,
        watch: Watch = lambda tally, latest: None,
    ) -> None:
        self.units, self.session = units, session
        self.skip_judge, self.watch = skip_judge, watch
        self._config = config
        self._stop: RunStoppedError | None = None
        self._stopped = asyncio.Event()
        self._spending = Spending(max_cost_usd, session.spent_usd, session.spent_tokens)
        self._tally = self._tally_of(0, len(units))
        self._failed_in_a_row = 0
        self._refusals: dict[str, list[str]] = {}
        self._was_refused = False
        self._not_afforded: str | None = None

    def _tally_of(self, done: int, total: int) -> Tally:
        tokens, usd = self._spending.spent_tokens, self._spending.spent_usd
        return Tally(done=done, total=total, tokens=tokens, cost_usd=usd)

    def missing_metrics(self, unit: Unit) -> list[str]:
        """Return the metrics that a response is still to be judged on."""
        state = self.session.state(unit.key)
        judged_metrics = () if state is None else state.metrics
        metrics = judgeable(unit.sample, self._config.metrics, self._config.judges_claims)
        return [m for m in metrics if m not in judged_metrics]

    def is_done(self, unit: Unit) -> bool:
        """Return whether nothing is left to do for a unit."""
        state = self.session.state(unit.key)
        if state is None or state.failed or self.skip_judge:
            return state is not None
        return not self.missing_metrics(unit)

    def read_outcome(self) -> RunOutcome:
        """Return the outcome so far, as if nothing had stopped the run."""
        store, run_id = self.session.store, self.session.run_id
        responses = store.outlines(run_id, with_texts=True)
        verdicts, usages = store.verdicts(run_id), store.judge_usage(run_id)
        claims = self._config.judges_claims
        results = [
            _result_of(u, responses[u.key], verdicts.get(u.key, {}), usages.get(u.key, []), claims)
            for u in self.units
            if self.is_done(u)
        ]
        return RunOutcome(
            results=results,
            n_planned=len(self.units),
            read_whole=self._read_whole,
            read_calls=lambda results: self.session.read_calls(self._keys_of(results)),
        )

    def _read_whole(self, results: Iterable[QueryResult]) -> Iterator[QueryResult]:
        """Yield results with their contexts and what they retrieved, a few at a time."""
        outlines, copies = tee(results)
        contexts = self.session.read_again(self._keys_of(copies))
        for outline, (text, retrieved) in zip(outlines, contexts, strict=True):
            yield replace(outline, context_text=text, retrieved=retrieved)

    def _keys_of(self, results: Iterable[QueryResult]) -> Iterator[str]:
        keys = {(u.sample.imdb_key, u.sample.id, u.method, u.trial): u.key for u in self.units}
        return (keys[r.imdb_key, r.sample_id, r.method, r.trial] for r in results)

    def stop(self, reason: RunStoppedError) -> None:
        """Begin no new work; the first reason given is kept."""
        self._stop = self._stop or reason
        self._stopped.set()

    async def run(self, executor: Executor, after_others: bool = False) -> RunOutcome:
        """Work until nothing is left or a stop is requested, then finish what is in flight.

        ``after_others``: whether other processes share the limits; this one's own requests then
        come after theirs. Raises StoreError if a result can't be stored.
        """
        n, patience_s = self._config.concurrency, self._config.patience_s
        self._limit = CallLimit(n, patience_s, after_others=after_others, spending=self._spending)
        done = {unit.key for unit in self.units if self.is_done(unit)}
        for unit in self.units:
            if unit.key in done:
                self._count(unit)
        self.watch(self._tally, None)
        left = [unit for unit in self.units if unit.key not in done]
        await self._run_jobs([partial(self._run_unit, executor, unit) for unit in left])
        outcome = self.read_outcome()
        return self._explain_stop(outcome, len(self.units) - len(outcome.results))

    async def run_further(self, tasks: Sequence[FurtherTask], outcome: RunOutcome) -> RunOutcome:
        """Make further judgings of done units, and store each as it arrives; see :meth:`run`."""
        n_done, units = 0, {unit.key: unit for unit in self.units}

        async def run_task(task: FurtherTask) -> None:
            nonlocal n_done
            with self._stop_on_error():
                scope = CallScope(task.kind, task.subject)
                with self._open_log(scope, *judge_limits(self._config)) as log:
                    judgement = await task.judge(log)
                self.session.keep_judgement(judgement, log.counted)
                self._note_refusals(f"the judge ({task.kind})", log, _was_answered(log))
                n_done += 1
                self.watch(self._tally_of(n_done, len(tasks)), units[task.subject])

        await self._run_jobs([partial(run_task, task) for task in tasks])
        return self._explain_stop(outcome, len(tasks) - n_done)

    def _explain_stop(self, outcome: RunOutcome, n_left: int) -> RunOutcome:
        """Return an outcome that says why the run stopped, if anything is left."""
        if not n_left:
            return replace(outcome, refused=self._was_refused)
        reason, allow_usd, spending = self._stop and str(self._stop), None, self._spending
        if reason is None and self._not_afforded is not None:
            allowed = f"the allowed ${spending.most_usd:g}"
            reason = f"${round(spending.spent_usd, 12):.4f} of {allowed} is spent in all"
            if spending.unanswered_usd:
                unanswered = f"${spending.unanswered_usd:.4f}"
                reason += f", calls without a reply may have cost {unanswered} besides"
            reason += f"{self._not_afforded}; raise --max-cost"
            allow_usd = spending.allow_usd
        return replace(
            outcome,
            stopped=reason,
            was_interrupted=isinstance(self._stop, InterruptStop),
            refused=self._was_refused,
            allow_usd=allow_usd,
        )

    async def _run_jobs(self, jobs: Sequence[Job]) -> None:
        with self.session.store.grouped():
            await run_bounded(jobs, self._config.concurrency, self._stopped, self._may_begin)

    def _may_begin(self) -> bool:
        """Return whether more work may begin: no stop was requested, and there is money left."""
        left = self._spending.left_usd
        if left is not None and left < 0 and self._not_afforded is None:
            self._not_afforded = ""
        return self._not_afforded is None and not self._stopped.is_set()

    @contextmanager
    def _stop_on_error(self) -> Generator[None]:
        """Begin no new work after an error in the block that stops the run.

        Work in flight has its time then; calls that are paid for are waited for.
        """
        try:
            yield
        except AllowanceStop as error:
            self._not_afforded = f", and {error}"
        except RunStoppedError as error:
            self._was_refused = not isinstance(error, ServiceDownStop)
            self.stop(error)

    async def _run_unit(self, executor: Executor, unit: Unit) -> None:
        with self._stop_on_error():
            response = self.session.response(unit.key) or await self._search(executor, unit)
            if not self.is_done(unit):
                if not self._may_begin():
                    return
                metrics, scope = self.missing_metrics(unit), CallScope.of_verdicts(unit.key)
                with self._open_log(scope, *judge_limits(self._config)) as log:
                    verdicts = await executor.judge_unit(unit, response, metrics, log)
                self.session.keep_verdicts(unit.key, verdicts, log.usage(), log.counted)
                self._note_refusals("the judge", log, _was_answered(log))
            self._count(unit)

    async def _search(self, executor: Executor, unit: Unit) -> StoredResponse:
        scope = CallScope.of_search(unit.key)
        with self._open_log(scope, *search_limits(self._config)) as log:
            response = await executor.search_unit(unit, log)
        if not log.attempts:  # the user's own method, which counts by itself
            self._spending.spent_usd += response.usage.spent_usd
            self._spending.spent_tokens += response.usage.tokens
        self.session.keep_response(response, log.counted)
        self._note_refusals(unit.method, log, response.failure is None)
        self._failed_in_a_row = self._failed_in_a_row + 1 if response.failure else 0
        # A run that is not stored can't go on later.
        is_hopeless = self._failed_in_a_row >= _HOPELESS_AFTER and self.session.store.is_kept
        if response.failure is not None and is_hopeless:
            why = f"the last {self._failed_in_a_row} searches all failed, the latest because: "
            self.stop(RunStoppedError(f"{why}{response.failure.message}"))
        return response

    def _note_refusals(self, asker: str, log: CallLog, succeeded: bool) -> None:
        """Count the refusals in a row of one asker (a method or a judge).

        Raises RunStoppedError at the tenth of one kind: every further request would be refused.
        """
        # A run that is not stored can't go on later, so it is not stopped.
        if succeeded or not self.session.store.is_kept:
            self._refusals.pop(asker, None)
            return
        for refusal in (failure.refusal for failure in log.failures if failure.refusal):
            before = self._refusals.get(asker, [])
            self._refusals[asker] = [*(kind for kind in before if kind == refusal), refusal]
        n_in_a_row = len(self._refusals.get(asker, []))
        if n_in_a_row >= _HOPELESS_AFTER and log.failures:
            raise RunStoppedError(
                f"the service refused the last {n_in_a_row} requests of {asker} in the same way "
                f"and answered none: {log.failures[-1].cause}"
            )

    @contextmanager
    def _open_log(self, scope: CallScope, bound: OutputBound, time: CallTime) -> Generator[CallLog]:
        """Open the log of a piece of work; the cost of calls is stored even if it is cut off."""
        session = self.session
        log = CallLog(limit=self._limit, journal=session.journal(scope), bound=bound, time=time)
        log.exchanges = session.exchanges(scope)
        try:
            yield log
        except (RunStoppedError, asyncio.CancelledError):
            self.session.keep_cut_off(scope, log)
            raise

    def _count(self, unit: Unit) -> None:
        state = self.session.state(unit.key)
        assert state is not None
        before = self._tally
        self._tally = replace(
            self._tally_of(before.done + 1, before.total),
            failed=before.failed + state.failed,
            unscored=before.unscored + state.n_unscored,
        )
        self.watch(self._tally, unit)


def _was_answered(log: CallLog) -> bool:
    return any(a.kind == "completion" and a.error is None for a in log.attempts)


def _result_of(
    unit: Unit,
    response: StoredResponse,
    verdicts: Mapping[str, JudgeResult],
    usages: Sequence[Usage],
    by_claim: bool,
) -> QueryResult:
    return QueryResult(
        imdb_key=unit.sample.imdb_key,
        question=unit.sample.question,
        method=unit.method,
        response=response.response,
        scores=failed_search_scores(judgeable(unit.sample, METRICS, by_claim))
        if response.failure
        else MetricScores.of(verdicts),
        efficiency=EfficiencyMetrics.of(response.latency_s, response.usage),
        ground_truth=unit.sample.ground_truth,
        context_text=response.context_text,
        sample_id=unit.sample.id,
        failure=response.failure,
        usage=response.usage,
        judge_usage=usages[0] if len(usages) == 1 else sum_usages(usages) if usages else None,
        trial=unit.trial,
        retrieved=response.retrieved,
        abstained=response.abstained,
    )
