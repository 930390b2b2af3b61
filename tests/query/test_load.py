"""Runs over real HTTP with a service that is slow, silent, full, gone for a while or for good."""

import asyncio
import itertools
import random
import re
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path

import pytest
from graphrag_llm.config import ModelConfig, RateLimitConfig
from support.openai_server import Fault, FaultPlan, Json, LocalServer, running_server

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.metrics.judge import LLMJudge
from graphrag.eval.runner.custom_methods import MethodAnswer
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.runner.scheduler import RunOutcome, Work
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import RunSetup, Unit
from graphrag.eval.store.session import StoredSession
from graphrag.eval.store.sqlite import IN_MEMORY
from graphrag.eval.types.metric_definitions import DEFAULT_METRICS
from graphrag.query.client.call_errors import GarbledReplyError, NoReplyError, RetryPolicy
from graphrag.query.client.models import CountedCompletion, open_completion, open_embedding
from graphrag.query.client.rate_limit import CallLimit, ServiceDownError
from graphrag.query.client.usage import CallLog, CallTime, measure_calls, sum_usages

VERDICT = '{"reason": "as it should be", "score": 1}'
FAST = RetryPolicy(max_retries=5, base_delay_s=0.005, max_delay_s=0.02)
SEARCHER, JUDGE = "gpt-4o", "gpt-4o-mini"


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with running_server(lambda request: VERDICT) as running:
        yield running


def set_faults(server: LocalServer, faults: FaultPlan | None, latency_s: float = 0.0) -> None:
    server.behaviour = type(server.behaviour)(lambda request: VERDICT, faults, latency_s)


def model(
    url: str, name: str = SEARCHER, retry: RetryPolicy = FAST, **given: object
) -> CountedCompletion:
    config = ModelConfig(model_provider="openai", model=name, api_base=url, api_key="test", **given)
    opened = open_embedding if "embedding" in name else open_completion
    return opened(config, retry)


async def ask(asked: CountedCompletion, log: CallLog) -> CallLog:
    with measure_calls(log):
        await asked.completion_async(messages="hi")
    return log


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - what the server's thread does makes no event here
        await asyncio.sleep(0.005)


OPEN_STORES: list[EvaluationStore] = []


@pytest.fixture(autouse=True)
def _close_stores() -> Iterator[None]:
    """Close a test's stores in its own thread, which the collector of garbage would not."""
    yield
    while OPEN_STORES:
        OPEN_STORES.pop().close()


class Trial:
    """A run of questions to a method of one's own and to a judge, each a model of the server."""

    def __init__(
        self, url: str, path: Path, n: int = 20, judge_args: Json | None = None, **settings: object
    ) -> None:
        given = {"concurrency": 8, "patience_s": 5, **settings}
        self.config = EvaluationConfig(root=path, **given)
        self.searching: CountedCompletion = model(url)
        judge = LLMJudge(model(url, JUDGE, call_args=judge_args or {}))
        self.runner = EvaluationRunner(self.config, judge, methods={"mine": self.answer})
        samples = [Sample(f"s{i}", "a", f"What is {i}?", "x") for i in range(n)]
        self.units = [Unit(sample.id, sample, "mine") for sample in samples]
        store = EvaluationStore(IN_MEMORY)
        OPEN_STORES.append(store)
        self.session = StoredSession(store, store.add_run(RunSetup({})).run_id)

    async def answer(self, question: str) -> MethodAnswer:
        reply = await self.searching.completion_async(messages=question)
        return MethodAnswer(reply.content, contexts=())

    async def run(self) -> RunOutcome:
        return await self.runner.run(Work(self.config, self.units, self.session))


def check_complete(outcome: RunOutcome, server: LocalServer) -> None:
    """Every question is answered and judged, and every attempt is where the server has it."""
    assert outcome.is_complete, outcome.stopped
    assert all(result.failure is None for result in outcome.results)
    scores = [v.score for r in outcome.results for v in map(r.scores.get, DEFAULT_METRICS)]
    assert set(scores) == {1}
    both = [u for r in outcome.results for u in (r.usage, r.judge_usage) if u is not None]
    spent = sum_usages(both)
    calls = server.records
    answered = [call for call in calls if call.outcome == "answered"]
    assert spent.llm_calls == len(calls)
    assert spent.failed_calls == len(calls) - len(answered)
    assert spent.output_tokens == sum(call.completion_tokens for call in answered)


async def test_a_silent_judge_is_given_up_and_asked_again(server, tmp_path):
    def faults(n: int, request: Json) -> Fault | None:
        return Fault(hang_s=600) if request["model"] == JUDGE and n % 5 == 0 else None

    set_faults(server, faults)
    trial = Trial(server.base_url, tmp_path, 3, judge_args={"timeout": 0.3})
    started = time.perf_counter()
    outcome = await trial.run()
    assert time.perf_counter() - started < 60
    check_complete(outcome, server)
    assert sum(r.judge_usage.failed_calls for r in outcome.results if r.judge_usage) >= 2


async def read_whole(asked: CountedCompletion, live: bool) -> None:
    reply = await asked.completion_async(messages="hi", stream=live)
    if live:
        async for _ in reply:
            pass


@pytest.mark.parametrize(
    ("fault", "live"),
    [(Fault(hang_s=30), False), (Fault(hang_s=30), True), (Fault(endless_s=20), False)],
)
async def test_what_was_not_answered_in_time_names_the_setting(fault, live, server):
    set_faults(server, lambda *_: fault)
    asked = model(server.base_url, retry=RetryPolicy(1, 0, 0))
    log = CallLog(live=live, time=CallTime(0.1, "timeout_s"))
    with measure_calls(log), pytest.raises(NoReplyError, match=r"0\.1 s; raise timeout_s"):
        await read_whole(asked, live)
    assert log.usage().failed_calls == 2
    assert "no reply within" in str(log.attempts[0].error)


async def test_waiting_for_a_place_is_no_time_of_a_request(server):
    set_faults(server, None, latency_s=0.12)
    asked, limit = model(server.base_url), CallLimit(1)

    logs = (CallLog(limit, time=CallTime(0.3)) for _ in range(5))
    ended = await asyncio.gather(*(ask(asked, log) for log in logs))
    assert [log.usage().failed_calls for log in ended] == [0] * 5


async def test_mixed_faults_and_an_outage_cost_time_only(server, tmp_path):
    draw = random.Random(3)
    began: list[float] = []
    kinds = [
        (0.05, Fault(status=429, retry_after_ms=20)),
        (0.07, Fault(status=500)),
        (0.09, Fault(disconnect="before")),
        (0.11, Fault(raw=b'{"choices": [{"message": {"con')),
    ]

    def faults(n: int, request: Json) -> Fault | None:
        if n > 15 and not began:
            began.append(time.monotonic())
        if began and time.monotonic() - began[0] < 0.6:
            return Fault(status=503)
        at = draw.random()
        return next((fault for share, fault in kinds if at < share), None)

    set_faults(server, faults, latency_s=0.01)
    outcome = await Trial(server.base_url, tmp_path).run()
    check_complete(outcome, server)
    refused = [record.status for record in server.records].count(503)
    assert 0 < refused < 40, "one request at a time asks whether the service is back"


@pytest.mark.parametrize("patience_s", [60, 0.5])
async def test_a_service_that_comes_back_is_waited_for_and_a_run_that_stops_loses_nothing(
    patience_s, tmp_path
):
    with running_server(lambda request: VERDICT, latency_s=0.02) as first:
        trial = Trial(first.base_url, tmp_path, patience_s=patience_s)
        run = asyncio.create_task(trial.run())
        await until(lambda: len(first.records) >= 30)
    if patience_s < 1:
        stopped = await run
        assert not stopped.is_complete
        assert not stopped.refused, "it may be gone on with: exit code 3"
        assert "no connection to" in str(stopped.stopped)
        assert "patience_s" in str(stopped.stopped)
        assert not any(result.failure for result in stopped.results)
        for state in filter(None, (trial.session.state(unit.key) for unit in trial.units)):
            assert not state.failed
            assert not state.n_unscored
    else:
        await asyncio.sleep(0.5)
    with running_server(lambda request: VERDICT, port=first.port) as second:
        outcome = await (trial.run() if run.done() else run)
    assert outcome.is_complete
    assert not any(result.failure for result in outcome.results)
    answered = [r for s in (first, second) for r in s.records if r.outcome == "answered"]
    assert patience_s < 1 or len(answered) == 20 * 5


async def test_a_search_that_an_outage_held_up_has_no_latency(server):
    set_faults(server, lambda n, _: Fault(status=503) if 1 < n < 6 else None)
    asked, limit = model(server.base_url, retry=RetryPolicy(2, 0, 0)), CallLimit(1, 5)

    async def answer(question: str) -> str:
        return str((await asked.completion_async(messages=question)).content)

    runner = EvaluationRunner(EvaluationConfig(), None, {}, {"mine": answer})
    unit = Unit("s", Sample("s", "a", "Who?", "x"), "mine")
    logs = [CallLog(limit), CallLog(limit)]
    stored = [await runner.search_unit(unit, log) for log in logs]
    assert [each.latency_s is None for each in stored] == [False, True]
    assert logs[1].usage().failed_calls == 4
    assert logs[1].own_time.waited_s > 0.1


async def test_a_service_that_never_was_there_is_not_waited_for(tmp_path):
    outcome = await Trial("http://127.0.0.1:9/v1", tmp_path, patience_s=300).run()
    assert "no connection to http://127.0.0.1:9/v1" in str(outcome.stopped)
    assert not outcome.results
    assert not outcome.refused


async def test_one_request_that_breaks_the_service_fails_alone(server, tmp_path):
    fault = Fault(status=500)
    set_faults(server, lambda _, r: fault if r["messages"][-1]["content"] == "What is 3?" else None)
    outcome = await Trial(server.base_url, tmp_path, 4, concurrency=1).run()
    assert outcome.is_complete
    assert [result.failure is not None for result in outcome.results] == [0, 0, 0, 1]


@pytest.mark.parametrize("as_date", [False, True])
async def test_a_service_that_asks_to_wait_too_long_stops_the_run(as_date, server, tmp_path):
    hour = formatdate(time.time() + 3600, usegmt=True) if as_date else "3600"
    fault = Fault(status=503 if as_date else 429, retry_after=hour)
    set_faults(server, lambda n, _: fault if n == 12 else None)
    outcome = await Trial(server.base_url, tmp_path).run()
    said = r"asks to wait 3,(600|59\d) s, longer than "
    assert re.search(said + "the 5 s of patience_s", str(outcome.stopped))
    assert not outcome.refused
    assert not any(result.failure for result in outcome.results)

    set_faults(server, lambda *_: fault)
    with pytest.raises(ServiceDownError, match=said):
        await model(server.base_url).completion_async(messages="hi")


async def test_all_calls_of_a_model_wait_for_the_date_that_the_service_names(server, monkeypatch):
    """It is read once: no later jump of the clock changes it."""
    true = time.time
    soon = formatdate(true() + 2, usegmt=True)  # whole seconds: 1 to 2 s from now
    set_faults(server, lambda n, _: Fault(status=429, retry_after=soon) if n == 1 else None)
    asked, limit = model(server.base_url), CallLimit(4, 30)

    log = CallLog(limit)
    first = asyncio.create_task(ask(asked, log))
    await held_back(log)
    monkeypatch.setattr(time, "time", lambda: true() - DAY_S)
    async with asyncio.timeout(30):
        await asyncio.gather(first, *(ask(asked, CallLog(limit)) for _ in range(3)))
    refused, *others = server.records
    assert refused.finished_s is not None
    assert min(r.arrived_s for r in others) - refused.finished_s > 0.5
    assert log.own_time.waited_s > 0.3


async def test_a_service_with_fewer_places_is_asked_less(server, caplog):
    caplog.set_level("INFO", "graphrag.query.client.rate_limit")

    def faults(n: int, request: Json) -> Fault | None:
        open_ = sum(record.outcome == "open" for record in server.records)
        return Fault(status=529) if open_ > 4 else None

    set_faults(server, faults, latency_s=0.01)
    asked, limit = model(server.base_url, retry=RetryPolicy(50, 0.005, 0.02)), CallLimit(32, 10)

    logs = await asyncio.gather(*(ask(asked, CallLog(limit)) for _ in range(90)))
    assert sum(log.usage().llm_calls for log in logs) == len(server.records)
    late = [record.status for record in server.records[-60:]]
    assert late.count(429) + late.count(529) < 30
    assert limit.in_flight == 0
    told = [r.message for r in caplog.records]
    assert any("requests at once, as the service turns requests away" in each for each in told)
    assert any("requests at once, as it answers" in each for each in told)


async def test_a_model_that_is_stuck_leaves_places_to_another(server):
    set_faults(server, lambda _, r: Fault(hang_s=30) if r["model"] == JUDGE else None)
    stuck, other, limit = model(server.base_url, JUDGE), model(server.base_url), CallLimit(16, 10)

    await ask(other, CallLog(limit))
    waiting = [asyncio.create_task(ask(stuck, CallLog(limit))) for _ in range(40)]
    await asyncio.sleep(0.1)
    asked = (ask(other, CallLog(limit)) for _ in range(20))
    await asyncio.wait_for(asyncio.gather(*asked), 3)
    assert sum(r.model == JUDGE for r in server.records) == 15
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)


@pytest.mark.parametrize(
    ("content", "is_error"),
    [
        ("The lamp w\ufffds lit", True),
        ("<html><body>502", True),
        ('{"choices": [{"mess', True),
        ("The lamp\x00", False),
        ("\x08The lamp", False),
    ],
)
async def test_a_damaged_reply_is_paid_for_and_asked_again(content, is_error, server):
    """Of a control character once: a model that writes it every time would fail every time."""
    set_faults(server, lambda n, _: Fault(content=content) if n == 1 else None)
    with measure_calls() as log:
        reply = await model(server.base_url).completion_async(messages="hi")
    assert reply.content == VERDICT
    first, _ = log.attempts
    assert "garbled" in str(first.error)
    assert first.output_tokens == server.records[0].completion_tokens > 0

    set_faults(server, lambda *_: Fault(content=content))
    asked = model(server.base_url, retry=RetryPolicy(4 - 3 * is_error, 0, 0))
    with measure_calls() as log:
        if is_error:
            with pytest.raises(GarbledReplyError):
                await asked.completion_async(messages="hi")
        else:
            assert (await asked.completion_async(messages="hi")).content == content
    assert len(log.attempts) == 2
    assert log.usage().failed_calls == 1 + is_error
    repeated = await model(server.base_url).completion_async(messages=f"Repeat <html>: {content}")
    assert repeated.content == content


VECTOR = b'{"object": "embedding", "index": 0, "embedding": [0.5, 0.5]}'
TWO_VECTORS = b'{"object": "list", "model": "m", "data": [%s, %s]}' % (VECTOR, VECTOR)


@pytest.mark.parametrize(
    ("name", "body", "says"),
    [
        (SEARCHER, b"", ""),
        (SEARCHER, b'{"ok": true}', ""),
        (SEARCHER, b'{"object": "chat.completion", "choices": [], "model": "gpt-4o"}', ""),
        ("text-embedding-3-small", b'{"ok": true}', ""),
        ("text-embedding-3-small", TWO_VECTORS, "2 embeddings came for 1 texts"),
    ],
)
async def test_a_body_that_is_no_reply_is_asked_for_again(name, body, says, server):
    set_faults(server, lambda n, _: Fault(raw=body) if n == 1 else None)
    asked = model(server.base_url, name)
    with measure_calls() as log:
        if name == SEARCHER:
            assert (await asked.completion_async(messages="hi")).content == VERDICT
        else:
            assert len((await asked.embedding_async(input=["hi"])).embeddings) == 1
    assert [attempt.error is None for attempt in log.attempts] == [False, True]
    assert says in str(log.attempts[0].error)


async def test_a_reply_that_no_model_writes_is_not_taken(server):
    set_faults(server, lambda *_: Fault(content="lamp " * 500_000))
    with measure_calls() as log, pytest.raises(GarbledReplyError, match="2,500,000 characters"):
        await model(server.base_url).completion_async(messages="hi")
    assert log.usage().llm_calls == log.usage().failed_calls == 1
    assert log.usage().output_tokens == server.records[0].completion_tokens


DAY_S = 86_400.0
PERIOD_S, PER_PERIOD, WAIT_S = 1, 4, 0.6
N = 2 * PER_PERIOD


@pytest.fixture
def jumping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the wall clock be a day ahead and a day behind in turn, each time it is looked at."""
    true, days = time.time, itertools.cycle([1, -1, 400, -400])
    monkeypatch.setattr(time, "time", lambda: true() + next(days) * DAY_S)


async def held_back(log: CallLog) -> None:
    """Return when a call waits for its turn, as the service asked for that."""
    async with asyncio.timeout(30):
        while log.own_time.waited_s < 0.05:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@pytest.mark.usefixtures("jumping")
async def test_a_rate_and_a_wait_that_a_service_asks_for_hold_while_the_clock_jumps(server):
    fault = Fault(status=429, retry_after_s=WAIT_S)
    set_faults(server, lambda n, _: fault if n == 1 else None)
    rate = RateLimitConfig(
        type="sliding_window", period_in_seconds=PERIOD_S, requests_per_period=PER_PERIOD
    )
    began, limit = time.monotonic(), CallLimit(N, 30)
    asked = model(server.base_url, rate_limit=rate)
    first = CallLog(limit)
    refused_call = asyncio.create_task(ask(asked, first))
    await held_back(first)
    async with asyncio.timeout(30):
        others = (ask(asked, CallLog(limit)) for _ in range(N - 1))
        logs = [*await asyncio.gather(*others), await refused_call]
    took_s = time.monotonic() - began
    records = server.records
    assert sum(log.usage().llm_calls for log in logs) == len(records) == N + 1
    refused = records[0]
    assert refused.finished_s is not None
    assert min(r.arrived_s for r in records[1:]) >= refused.finished_s + WAIT_S
    assert took_s >= PERIOD_S * (len(records) // PER_PERIOD - 1)
    for log in logs:
        assert all(0 <= attempt.latency_s <= took_s for attempt in log.attempts)
        assert 0 <= log.own_time.waited_s <= took_s
