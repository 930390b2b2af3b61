"""Searches and verdicts made by workers; these are threads, so that nothing is imported twice."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from itertools import count
from types import SimpleNamespace

import pytest
from executors.stored_rows import METHODS, rows_of
from hypothesis import given
from hypothesis import strategies as st
from support.clock_evaluation import MakeEvaluation
from support.openai_server import Behaviour, Fault, LocalServer, offline_reply
from typer.testing import CliRunner

from graphrag.cli.main import app
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.errors import ConfigError
from graphrag.eval.runner import opening
from graphrag.eval.runner.crew import MOST_DEATHS
from graphrag.eval.runner.opening import Workers, open_executor
from graphrag.eval.runner.shares import Receipts, Share, SharedLimit
from graphrag.eval.runner.tasks import Ended, Event, Noted, WorkerSetup
from graphrag.eval.runner.worker import Worker, find_problem
from graphrag.eval.testing import ScriptedJudge


class ThreadLink:
    """A worker in a thread; it dies when ``fatal`` says so of an event, which is not told."""

    fatal: Callable[[Event], bool] = staticmethod(lambda event: False)
    begun = 0

    def __init__(self, payload, share):
        type(self).begun += 1
        self.share = share
        self.events = queue.SimpleQueue()
        self.is_dead = False
        self.worker = Worker(payload, share, self.tell)
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self):
        loop = self.worker._loop
        with contextlib.suppress(asyncio.CancelledError):
            self.worker.run()
        loop.run_until_complete(asyncio.gather(*asyncio.all_tasks(loop), return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()

    def tell(self, event):
        if self.is_dead:
            return
        if type(self).fatal(event):
            self.is_dead = True
            event = None
            self.worker._loop.call_soon_threadsafe(self.stop)
        self.events.put(event)

    def stop(self):
        for task in asyncio.all_tasks(self.worker._loop):
            task.cancel()

    def send(self, order):
        if not self.is_dead:
            self.worker.deliver(order)

    def receive(self):
        event = self.events.get()
        if event is None:
            raise EOFError("by signal 9")
        return [event]

    def close(self):
        if not self.is_dead:  # else it has been stopped
            self.is_dead = True
            self.worker._loop.call_soon_threadsafe(self.stop)
        self.events.put(None)
        self.thread.join(10)


@pytest.fixture
def links(monkeypatch):
    """Let workers be threads."""

    class Own(ThreadLink):
        begun = 0

    monkeypatch.setattr(opening, "ProcessLink", Own)
    return Own


def test_two_workers_give_what_one_process_gives(make_evaluation: MakeEvaluation, links):
    alone = make_evaluation(name="alone", methods=METHODS)
    assert alone.run("--quiet").exit_code == 0
    shared = make_evaluation(name="shared", methods=METHODS)
    result = shared.run("--quiet", "--workers", "2")
    assert result.exit_code == 0, result.output
    assert links.begun == 2
    assert rows_of(shared) == rows_of(alone)
    assert shared.read_results() == alone.read_results()


def test_a_worker_that_dies_costs_the_call_in_flight(
    make_evaluation: MakeEvaluation, links, server: LocalServer
):
    config = {"methods": ["tog", "basic"], "concurrency": 2}
    alone = make_evaluation(server.base_url, "alone", **config)
    before = len(server.records)
    assert alone.run("--quiet").exit_code == 0
    asked_once = len(server.records) - before

    finished, ended = count(1), count(1)
    links.fatal = staticmethod(
        lambda event: (
            (isinstance(event, Noted) and event.what == "finish" and next(finished) == 9)
            or (isinstance(event, Ended) and next(ended) == 12)
        )
    )
    shared = make_evaluation(server.base_url, "shared", **config)
    before = len(server.records)
    result = shared.run("--quiet", "--workers", "2")
    assert result.exit_code == 0, result.output
    assert links.begun == 4
    assert len(server.records) - before == asked_once + 1  # a reply on its way to the owner
    assert rows_of(shared) == rows_of(alone)


def test_workers_that_keep_dying_end_the_run(make_evaluation: MakeEvaluation, links):
    links.fatal = staticmethod(lambda event: isinstance(event, Noted | Ended))
    result = make_evaluation(methods=["basic"]).run("--workers", "2")
    assert result.exit_code == 1
    assert f"{MOST_DEATHS + 1} workers died in a row, the last one by signal 9" in result.output
    assert "--resume" in result.output or "--retry-errors" in result.output


@pytest.mark.parametrize(
    ("status", "exit_code", "said"),
    [(401, 1, "refuses the requests"), (503, 3, "The server is overloaded")],
)
def test_a_service_that_refuses_or_is_down_stops_the_run(
    make_evaluation: MakeEvaluation, links, server: LocalServer, status, exit_code, said
):
    evaluation = make_evaluation(server.base_url, methods=["basic"], concurrency=4)
    server.behaviour = Behaviour(offline_reply(), faults=lambda n, request: Fault(status=status))
    result = evaluation.run("--quiet", "--workers", "2")
    assert result.exit_code == exit_code, result.output
    assert said in result.output
    server.behaviour = Behaviour(offline_reply())
    result = evaluation.run("--quiet", "--resume")
    assert result.exit_code == 0, result.output


def test_ten_failures_in_a_row_stop_the_run_and_are_asked_again(
    make_evaluation: MakeEvaluation, links, server: LocalServer
):
    evaluation = make_evaluation(server.base_url, methods=["basic", "local"], concurrency=2)
    server.behaviour = Behaviour(offline_reply(), faults=lambda n, request: Fault(status=400))
    result = evaluation.run("--quiet", "--workers", "2")
    assert "the last 10 searches all failed" in result.output
    server.behaviour = Behaviour(offline_reply())
    result = evaluation.run("--quiet", "--retry-errors", "--workers", "2")
    assert result.exit_code == 0, result.output
    assert [row[6] for row in rows_of(evaluation)["responses"]] == [None] * 12


def test_given_answers_are_judged_by_workers(make_evaluation: MakeEvaluation, links):
    evaluation = make_evaluation(methods=["basic"])
    assert evaluation.run("--quiet", "--skip-judge").exit_code == 0
    result = CliRunner().invoke(
        app, ["eval", "--root", str(evaluation.root), "judge", "latest", "--workers", "2"]
    )
    assert result.exit_code == 0, result.output
    assert links.begun == 2
    scores = [row[2] for row in rows_of(evaluation)["verdicts"]]
    assert len(scores) == 6 * 4
    assert None not in scores


async def test_what_cannot_be_handed_over_is_refused_in_one_sentence(tmp_path):
    config = EvaluationConfig(root=tmp_path, workers=2)
    judge = ScriptedJudge(lambda *_: None)
    with pytest.raises(ConfigError, match=r"The judge can't be handed to workers .*\.$"):
        async with open_executor(config, Workers(judge=judge)):
            pass
    with pytest.raises(ConfigError, match="--address names a Ray cluster"):
        async with open_executor(config, Workers(address="ray://host:1")):
            pass


def test_an_index_that_a_worker_does_not_find_is_named(tmp_path):
    setup = WorkerSetup(EvaluationConfig(root=tmp_path), {"clock": str(tmp_path / "gone")})
    assert "Index clock: " in (find_problem(setup) or "")
    other = WorkerSetup(EvaluationConfig(root=tmp_path), {}, releases={"gtog": "0.0"})
    assert "and the run 0.0; install the same release" in (find_problem(other) or "")


def test_more_workers_than_calls_at_once_are_refused(make_evaluation: MakeEvaluation):
    result = make_evaluation(concurrency=2).run("--workers", "3")
    assert result.exit_code == 2
    assert "3 workers share a concurrency of 2" in result.output
    result = make_evaluation(name="named").run("--executor", "rays")
    assert result.exit_code == 2
    assert "executor: unknown name 'rays'; did you mean 'ray'?" in " ".join(result.output.split())


@given(whole=st.integers(1, 10**7), of=st.integers(1, 200))
def test_the_shares_add_up_to_what_is_configured(whole, of):
    parts = [Share(i, of, max(whole, of), 1.0).part(whole) for i in range(of)]
    assert sum(parts) == pytest.approx(whole, rel=1e-12)
    assert max(parts) - min(parts) <= 1
    if whole >= of:
        assert sum(parts) == whole
        assert all(part == int(part) for part in parts)


async def test_a_call_is_sent_when_the_store_has_what_was_finished_before():
    receipts = Receipts()
    limit = SharedLimit(Share(0, 1, 2, 60.0), receipts)
    lane = limit.lane("model", "model")
    receipts.told = 2
    asked = asyncio.ensure_future(limit.acquire(lane, "request", 0))
    await asyncio.sleep(0.01)
    assert not asked.done()
    receipts.keep(1)
    await asyncio.sleep(0)
    assert not asked.done()
    receipts.keep(2)
    limit.release(await asked)
    assert limit.in_flight == 0


def test_a_successor_waits_a_period_of_a_rate():
    rate = SimpleNamespace(period_in_seconds=60, requests_per_period=6, tokens_per_period=None)
    fresh = SharedLimit(Share(0, 2, 4, 60.0), Receipts()).lane("model", "model", rate)
    later = SharedLimit(Share(0, 2, 4, 60.0, True), Receipts()).lane("model", "model", rate)
    now = fresh.clock()
    assert fresh.requests_rate.ready_at(1, now) == now
    assert later.requests_rate.ready_at(1, now) > now + 50
