"""The pool by itself: how many at once, what is begun after a stop, what an error does."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.errors import InterruptStop, RunStoppedError
from graphrag.eval.runner.custom_methods import MethodAnswer
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.runner.scheduler import Work, run_bounded
from graphrag.eval.store.records import Unit
from graphrag.eval.store.session import unkept_session
from graphrag.eval.testing import ScriptedJudge


class Log:
    """Jobs that note when they begin and end, and how many of them were at it together."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.ended: list[int] = []
        self.most = 0

    def job(
        self, number: int, act: Callable[[], Awaitable[object]]
    ) -> Callable[[], Awaitable[None]]:
        async def run() -> None:
            self.begun.append(number)
            self.most = max(self.most, len(self.begun) - len(self.ended))
            try:
                await act()
            finally:
                self.ended.append(number)

        return run


def others() -> set["asyncio.Task[object]"]:
    """Return the tasks that are alive beside the test's own."""
    return asyncio.all_tasks() - {asyncio.current_task()}


async def wait_a_turn() -> None:
    await asyncio.sleep(0)


async def hang() -> None:
    await asyncio.Event().wait()


async def fail() -> None:
    raise ValueError("broken")


@given(
    turns=st.lists(st.integers(0, 4), max_size=12) | st.lists(st.integers(6, 9), max_size=12),
    concurrency=st.integers(1, 5),
)
def test_every_job_is_done_once_in_order_and_never_too_many_at_once(turns, concurrency):
    log = Log()

    def waiting(n_turns: int) -> Callable[[], Awaitable[None]]:
        async def act() -> None:
            for _ in range(n_turns):
                await asyncio.sleep(0)

        return act

    asyncio.run(run_bounded([log.job(i, waiting(n)) for i, n in enumerate(turns)], concurrency))
    assert log.begun == list(range(len(turns)))
    assert sorted(log.ended) == log.begun
    assert log.most <= concurrency
    if all(n > concurrency for n in turns):  # none ends before all places are taken
        assert log.most == min(concurrency, len(turns))


@given(n_jobs=st.integers(0, 8), concurrency=st.integers(1, 4), allowed=st.integers(0, 8))
def test_a_no_is_final_and_what_had_begun_is_finished(n_jobs, concurrency, allowed):
    log = Log()
    answers = [True] * allowed + [False]  # and yes again to whoever should ask once more
    jobs = [log.job(i, wait_a_turn) for i in range(n_jobs)]
    asyncio.run(
        run_bounded(jobs, concurrency, may_begin=lambda: answers.pop(0) if answers else True)
    )
    assert log.begun == list(range(min(allowed, n_jobs)))
    assert sorted(log.ended) == log.begun


async def test_after_a_stop_what_is_in_flight_finishes_and_what_hangs_is_cut_off():
    log, stop, finished = Log(), asyncio.Event(), list[bool]()

    async def finish() -> None:
        await asyncio.sleep(0.02)
        finished.append(stop.is_set())

    jobs = [log.job(0, finish), *(log.job(i, hang) for i in (1, 2))]
    asyncio.get_running_loop().call_later(0.01, stop.set)
    async with asyncio.timeout(5):
        await run_bounded(jobs, 2, stop, finish_s=0.1)
    assert (log.begun, sorted(log.ended)) == ([0, 1], [0, 1])
    assert finished == [True]
    assert not others()


async def test_an_error_stops_the_others_and_is_raised_once_they_had_their_time():
    log, stop, gate = Log(), asyncio.Event(), asyncio.Event()

    async def finish_late() -> None:
        await stop.wait()  # a job sees that another one failed
        gate.set()
        await asyncio.sleep(0.01)

    jobs = [log.job(0, finish_late), log.job(1, fail), log.job(2, hang)]
    with pytest.raises(ValueError, match="broken"):
        await run_bounded(jobs, 2, stop)
    assert gate.is_set()
    assert log.begun == [0, 1]
    assert sorted(log.ended) == [0, 1]
    assert not others()


@pytest.mark.parametrize("stopped", [False, True])
async def test_cancelling_leaves_nothing_behind(stopped):
    log, stop = Log(), asyncio.Event()
    running = asyncio.create_task(run_bounded([log.job(i, hang) for i in range(4)], 3, stop))
    await asyncio.sleep(0.01)
    if stopped:  # as by a second Ctrl-C
        stop.set()
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert sorted(log.ended) == [0, 1, 2]
    assert not others()


@pytest.mark.parametrize(
    ("why", "is_interrupt"),
    [(InterruptStop(), True), (RunStoppedError("interrupted"), False)],
)
async def test_what_stops_a_run_is_told_by_its_kind_not_by_its_words(why, is_interrupt):
    async def mine(question: str) -> MethodAnswer:
        runner.stop(why)
        runner.stop(InterruptStop("too late"))
        return MethodAnswer("x", ())

    config = EvaluationConfig(concurrency=1, metrics=[])
    runner = EvaluationRunner(config, ScriptedJudge(), {}, {"mine": mine})
    units = [Unit(key, Sample(key, "a", f"Q {key}?", "x"), "mine") for key in ("s1", "s2")]
    with unkept_session() as session:
        outcome = await runner.run(Work(config, units, session))
    assert (outcome.stopped, len(outcome.results)) == ("interrupted", 1)
    assert outcome.was_interrupted is is_interrupt
