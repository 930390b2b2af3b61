"""One run in progress: what is still to be done, what it may spend, when it stops."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import tee
from typing import Any, Protocol

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import AllowanceStop, RunStoppedError, ServiceDownStop
from graphrag.eval.records import (
    METRICS,
    EfficiencyMetrics,
    JudgeResult,
    MetricScores,
    QueryResult,
    ReadWhole,
    failed_search_scores,
)
from graphrag.eval.runner.searching import (
    judge_bound,
    judge_time,
    open_limit,
    search_bound,
    search_time,
)
from graphrag.eval.scorers.judge import judgeable
from graphrag.eval.store.records import CallScope, Judgement, StoredResponse, Unit
from graphrag.eval.store.session import Finished, MemorySession, Session, StoredContexts
from graphrag.query.limits import CallTime
from graphrag.query.spending import Spending
from graphrag.query.usage import CallLog, OutputBound, sum_usages

ProgressCallback = Callable[[int, int, str, str], None]
"""Called with (current, total, imdb_key, method) after each unit."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How far a run is.

    Attributes
    ----------
    done, total : int
        Units of work: a question asked by a method and judged.
    failed : int
        Searches that failed.
    unscored : int
        Verdicts that the judge failed to give.
    tokens : int
        Prompt and output tokens so far, searches and judge, embeddings included.
    cost_usd : float
        US dollars so far; calls of unknown price are left out.
    """

    done: int
    total: int
    failed: int = 0
    unscored: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


class Progress(Protocol):
    """Watches a run."""

    def advance(self, tally: Tally, latest: QueryResult | None) -> None:
        """Be told that a unit is done; ``latest`` is None when what was there is counted."""
        ...


class Unwatched:
    """Shows nothing."""

    def advance(self, tally: Tally, latest: QueryResult | None) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class CallbackProgress:
    """Calls a function with (current, total, imdb_key, method) after each unit."""

    callback: ProgressCallback

    def advance(self, tally: Tally, latest: QueryResult | None) -> None:
        """Pass the latest unit on."""
        if latest is not None:
            self.callback(tally.done, tally.total, latest.imdb_key, latest.method)


class NotebookProgress:
    """One line in a notebook's output that tells how far the run is."""

    def __init__(self) -> None:
        import IPython.display

        display: Any = IPython.display.display  # pyright: ignore[reportUnknownVariableType]
        self._line: Any = display({"text/plain": "Evaluating"}, raw=True, display_id=True)

    def advance(self, tally: Tally, latest: QueryResult | None) -> None:
        """Write the line anew."""
        text = f"Evaluating {tally.done}/{tally.total}"
        self._line.update({"text/plain": text}, raw=True)


def watching(callback: ProgressCallback | None) -> Progress:
    """Return what watches a run that is begun from Python."""
    if callback is not None:
        return CallbackProgress(callback)
    from rich import get_console

    return NotebookProgress() if get_console().is_jupyter else Unwatched()


Job = Callable[[], Awaitable[object]]


async def run_bounded(
    jobs: Iterable[Job],
    concurrency: int,
    stop: asyncio.Event | None = None,
    may_begin: Callable[[], bool] = lambda: True,
    finish_s: float = 10.0,
) -> None:
    """Do jobs in their order, a few at the same time.

    Parameters
    ----------
    jobs : iterable of callables
        Each makes the awaitable that is the job.
    concurrency : int
        Jobs at once, >= 1.
    stop : asyncio.Event, optional
        When set, no job is begun any more. It is set here when a job raises, so that those in
        flight can see it too.
    may_begin : callable
        Asked before each job; the first no is final, and what is in flight is waited for.
    finish_s : float
        Seconds that what is in flight has after a stop or an error, before it is cancelled.

    Raises
    ------
    Exception
        The first that a job raised, after what was in flight had its time; later ones are
        dropped. A job that is worth going on without catches its errors itself.

    Notes
    -----
    However it ends, cancelled from outside included, no task of it is left.
    """
    waiting, errors = deque(jobs), list[BaseException]()
    asked = stop or asyncio.Event()

    async def work() -> None:
        try:
            while waiting:
                if asked.is_set() or not may_begin():
                    waiting.clear()
                    return
                await waiting.popleft()()
        except (Exception, asyncio.CancelledError) as error:
            errors.append(error)
            asked.set()

    workers = set[asyncio.Task[None]]()
    stopping = asyncio.create_task(asked.wait())
    try:
        for _ in range(min(concurrency, len(waiting))):
            workers.add(asyncio.create_task(work()))
            await asyncio.sleep(0)  # the first request of each is sent before the next begins
        running = set(workers)
        while running and not stopping.done():
            done, _ = await asyncio.wait({*running, stopping}, return_when=asyncio.FIRST_COMPLETED)
            running -= done
        if running:
            await asyncio.wait(running, timeout=finish_s)
        first = errors[:1]  # what the cancelling below makes is no error
    finally:
        for task in (*workers, stopping):
            task.cancel()
        await asyncio.wait({*workers, stopping})
    for error in first:
        raise error


@dataclass(frozen=True, slots=True)
class WholeResults:
    """Reads the contexts of a run's results; a ``ReadWhole``, as long as the store is open."""

    contexts: StoredContexts
    units: Sequence[Unit]

    def __call__(self, results: Iterable[QueryResult]) -> Iterator[QueryResult]:
        """Yield results with what they were shown and retrieved, a few of them at a time."""
        keys = {(u.sample.imdb_key, u.sample.id, u.method, u.trial): u.key for u in self.units}
        outlines, asked = tee(results)
        units = (keys[r.imdb_key, r.sample_id, r.method, r.trial] for r in asked)
        for outline, found in zip(outlines, self.contexts.read(units), strict=True):
            yield replace(outline, context_text=found.context_text, retrieved=found.retrieved)


SearchUnit = Callable[[Unit, CallLog], Awaitable[StoredResponse]]
JudgeUnit = Callable[
    [Unit, StoredResponse, Sequence[str], CallLog], Awaitable[dict[str, JudgeResult]]
]
_HOPELESS_AFTER = 10


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to run and where to keep it.

    Attributes
    ----------
    units : sequence of Unit
    session : Session
        Holds what is already there.
    skip_judge : bool
        Whether responses are collected without verdicts.
    max_cost_usd : float or None
        No call is sent that this may not be enough for; see ``Spending``.
    progress : Progress
    holds_contexts : bool
        Whether the results of the outcome hold what searches showed to their models; if not, and
        the session keeps it elsewhere, they are in outline, and its ``read_whole`` reads it.
    """

    units: Sequence[Unit]
    session: Session = field(default_factory=MemorySession)
    skip_judge: bool = False
    max_cost_usd: float | None = None
    progress: Progress = field(default_factory=Unwatched)
    holds_contexts: bool = True


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What a run gave: results in the order of its units, and why it stopped before the end.

    ``stopped`` is None when every unit is done. ``refused`` says that it was the service that
    stopped the run, as it would refuse every further request. ``judged`` holds what further
    judges said, with the unit that each of them is about. ``allow_usd`` is given when the
    allowed cost stopped the run: a limit that lets it go on. ``read_whole`` gives results
    with their contexts, where these are not held.
    """

    results: list[QueryResult]
    n_planned: int
    stopped: str | None = None
    refused: bool = False
    judged: tuple[tuple[Unit, Judgement], ...] = ()
    allow_usd: float | None = None
    read_whole: ReadWhole = field(default=iter, repr=False, compare=False)

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to do."""
        return self.stopped is None


class Stop:
    """Asks a run to begin no new work; the first reason given is kept."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self.requested = asyncio.Event()

    def request(self, reason: str) -> None:
        """Ask."""
        if self.reason is None:
            self.reason = reason
        self.requested.set()


class Work:
    """Runs the units of a request, ``concurrency`` at once, under one limit for all calls.

    ``after_others`` says that other processes search and judge, each under its part of the
    limits: what this one asks itself comes after them.
    """

    def __init__(
        self,
        request: RunRequest,
        config: EvaluationConfig,
        search: SearchUnit,
        judge: JudgeUnit,
        stop: Stop,
        after_others: bool = False,
    ) -> None:
        self._request = request
        self._session = request.session
        self._config = config
        self._search_unit = search
        self._judge_unit = judge
        self._stop = stop
        self.spending = Spending(request.max_cost_usd, request.session.spent_usd())
        self.limit = open_limit(config, after_others, self.spending)
        self._tally = Tally(0, len(request.units))
        self._failed_in_a_row = 0
        self.was_refused = False
        self._not_afforded: str | None = None

    @property
    def stop_reason(self) -> str | None:
        """Why nothing more is begun, None while more is; what was spent is said as of now."""
        if self._stop.reason is not None or self._not_afforded is None:
            return self._stop.reason
        spending = self.spending
        spent = f"${spending.spent_usd:.4f} of the allowed ${spending.most_usd:g} is spent"
        if spending.unanswered_usd:
            spent += f", calls without a reply may have cost ${spending.unanswered_usd:.4f} besides"
        return f"{spent}{self._not_afforded}; raise --max-cost"

    @property
    def allow_usd(self) -> float | None:
        """Where the allowed cost stopped the run, one that lets it go on."""
        spending = self.spending
        if self._stop.reason is not None or self._not_afforded is None:
            return None
        least = max(spending.most_usd or 0.0, spending.spent_usd + spending.wanted_usd)
        return float(f"{2 * least:.2g}") or 1.0

    def outcome(self) -> RunOutcome:
        """Return what is done so far."""
        units = self._request.units
        contexts = None if self._request.holds_contexts else self._session.contexts()
        found = self._read([unit for unit in units if self._is_done(unit)])
        results = [result if contexts is None else result.in_outline() for result in found]
        is_stopped = len(results) < len(units)
        return RunOutcome(
            results,
            len(units),
            self.stop_reason if is_stopped else None,
            self.was_refused,
            allow_usd=self.allow_usd if is_stopped else None,
            read_whole=iter if contexts is None else WholeResults(contexts, units),
        )

    async def run(self) -> None:
        """Work until nothing is left or the stop is asked for, then finish what is in flight.

        Raises
        ------
        StoreError
            If a result can't be kept.
        """
        request = self._request
        units = request.units
        jobs: list[Job] = [partial(self._run_unit, u) for u in units if not self._is_done(u)]
        for result in self._read([unit for unit in units if self._is_done(unit)]):
            self._count(result)
        self._request.progress.advance(self._tally, None)
        await self.run_jobs(jobs)

    async def run_jobs(self, jobs: Sequence[Job]) -> None:
        """Do further work under the concurrency, the allowed cost and the stop of the run.

        Raises
        ------
        Exception
            See :func:`run_bounded`.
        """
        with self._session.grouped():
            await run_bounded(jobs, self._config.concurrency, self._stop.requested, self.may_begin)

    def may_begin(self) -> bool:
        """Whether more work may begin: nobody asked to stop, and there is money left."""
        left = self.spending.left_usd
        if left is not None and left < 0 and self._not_afforded is None:
            self._not_afforded = ""
        return self._not_afforded is None and not self._stop.requested.is_set()

    @contextmanager
    def stopping(self) -> Generator[None]:
        """Begin nothing more after an error of the block that stops the run.

        What is in flight has its time then; what is paid for is waited for.
        """
        try:
            yield
        except AllowanceStop as error:
            self._not_afforded = f", and {error}"
        except RunStoppedError as error:
            self.was_refused = not isinstance(error, ServiceDownStop)
            self._stop.request(str(error))

    def _is_done(self, unit: Unit) -> bool:
        standing = self._session.standing(unit.key)
        if standing is None or standing.failed or self._request.skip_judge:
            return standing is not None
        return not self._unjudged(unit)

    def _unjudged(self, unit: Unit) -> list[str]:
        standing = self._session.standing(unit.key)
        judged = () if standing is None else standing.metrics
        wanted = judgeable(unit.sample, self._config.metrics)
        return [metric for metric in wanted if metric not in judged]

    async def _run_unit(self, unit: Unit) -> None:
        try:
            with self.stopping():
                if await self._search_and_judge(unit):
                    for result in self._read([unit]):
                        self._count(result)
        finally:
            self._session.release(unit.key)

    async def _search_and_judge(self, unit: Unit) -> bool:
        found = self._session.response(unit.key) or await self._search(unit)
        if self._is_done(unit):
            return True
        if not self.may_begin():
            return False
        with self.judging(CallScope.of_verdicts(unit.key)) as log:
            verdicts = await self._judge_unit(unit, found, self._unjudged(unit), log)
        self._session.keep_verdicts(unit.key, verdicts, log.usage(), log.counted)
        return True

    async def _search(self, unit: Unit) -> StoredResponse:
        with self._calling(
            CallScope.of_search(unit.key), search_bound(self._config), search_time(self._config)
        ) as log:
            found = await self._search_unit(unit, log)
        if not log.attempts:  # a method of the user's own that counts by itself
            self.spending.spent_usd += found.usage.spent_usd
        self._session.keep_response(found, log.counted)
        self._failed_in_a_row = self._failed_in_a_row + 1 if found.failure else 0
        if found.failure is not None and self._failed_in_a_row >= _HOPELESS_AFTER:
            self._stop.request(
                f"the last {self._failed_in_a_row} searches all failed, the latest because: "
                f"{found.failure.message}"
            )
        return found

    @contextmanager
    def judging(self, scope: CallScope) -> Generator[CallLog]:
        """Give the log of what a judge is asked; what it cost is kept also when it is cut off."""
        with self._calling(scope, judge_bound(self._config), judge_time(self._config)) as log:
            yield log

    @contextmanager
    def _calling(self, scope: CallScope, bound: OutputBound, time: CallTime) -> Generator[CallLog]:
        log = CallLog(self.limit, self._session.journal(scope), bound=bound, time=time)
        try:
            yield log
        except (RunStoppedError, asyncio.CancelledError):
            self._session.keep_cut_off(scope, log)
            raise

    def _count(self, result: QueryResult) -> None:
        spent = [usage for usage in (result.usage, result.judge_usage) if usage is not None]
        verdicts = (result.scores.get(metric) for metric in self._config.metrics)
        self._tally = Tally(
            done=self._tally.done + 1,
            total=self._tally.total,
            failed=self._tally.failed + (result.failure is not None),
            unscored=self._tally.unscored + sum(v.failure is not None for v in verdicts),
            tokens=self._tally.tokens
            + sum(u.prompt_tokens + u.output_tokens + u.embedding_tokens for u in spent),
            cost_usd=self.spending.spent_usd,
        )
        self._request.progress.advance(self._tally, result)

    def _read(self, units: Sequence[Unit]) -> Iterator[QueryResult]:
        """Read the results of units that are done, one after the other."""
        kept = self._session.finished([unit.key for unit in units])
        for unit, finished in zip(units, kept, strict=True):
            yield _result_of(unit, finished)


def _result_of(unit: Unit, finished: Finished) -> QueryResult:
    found, verdicts, judged = finished
    return QueryResult(
        imdb_key=unit.sample.imdb_key,
        question=unit.sample.question,
        method=unit.method,
        response=found.response,
        scores=failed_search_scores(judgeable(unit.sample, METRICS))
        if found.failure
        else MetricScores.of(verdicts),
        efficiency=EfficiencyMetrics.of(found.latency_s, found.usage),
        ground_truth=unit.sample.ground_truth,
        context_text=found.context_text,
        sample_id=unit.sample.id,
        failure=found.failure,
        usage=found.usage,
        judge_usage=judged[0] if len(judged) == 1 else sum_usages(judged) if judged else None,
        trial=unit.trial,
        retrieved=found.retrieved,
        abstained=found.abstained,
    )
