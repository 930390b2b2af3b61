"""A wall clock that is set while a run goes on changes no rate, no wait and no latency."""

import asyncio
import itertools
import time
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

import pytest
from graphrag_llm.config import ModelConfig, RateLimitConfig
from support.openai_server import Fault, LocalServer, running_server

from graphrag.query.calls import RetryPolicy
from graphrag.query.limits import CallLimit
from graphrag.query.models import open_completion
from graphrag.query.usage import CallLog, measure_calls

DAY_S = 86_400.0
PERIOD_S, PER_PERIOD, WAIT_S = 1, 4, 0.6
N = 3 * PER_PERIOD


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with running_server(lambda request: "Ann") as running:
        yield running


@pytest.fixture
def jumping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the wall clock be a day ahead and a day behind in turn, each time it is looked at."""
    true, days = time.time, itertools.cycle([1, -1, 400, -400])
    monkeypatch.setattr(time, "time", lambda: true() + next(days) * DAY_S)


class Asking:
    """A model under a rate, and a run's limit."""

    def __init__(self, server: LocalServer, rate: RateLimitConfig | None = None) -> None:
        given: Any = {"model_provider": "openai", "model": "gpt-4o", "api_key": "none"}
        config = ModelConfig(**given, api_base=server.base_url, rate_limit=rate)
        self._model = open_completion(config, RetryPolicy(5, 0.005, 0.02))
        self._limit = CallLimit(N, 30)

    def log(self) -> CallLog:
        return CallLog(self._limit)

    async def ask(self, log: CallLog) -> CallLog:
        with measure_calls(log):
            await self._model.completion_async(messages="hi")
        return log


async def held_back(log: CallLog) -> None:
    """Return when a call waits for its turn, as the service asked for that."""
    async with asyncio.timeout(30):
        while log.waited_s < 0.05:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@pytest.mark.usefixtures("jumping")
async def test_a_rate_and_a_wait_that_a_service_asks_for_hold_while_the_clock_jumps(
    server: LocalServer,
):
    fault = Fault(status=429, retry_after_s=WAIT_S)
    server.behaviour = type(server.behaviour)(
        lambda request: "Ann", lambda n, _: fault if n == 1 else None
    )
    rate = RateLimitConfig(
        type="sliding_window", period_in_seconds=PERIOD_S, requests_per_period=PER_PERIOD
    )
    began, asking = time.monotonic(), Asking(server, rate)
    first = asking.log()
    refused_call = asyncio.create_task(asking.ask(first))
    await held_back(first)
    async with asyncio.timeout(30):
        others = (asking.ask(asking.log()) for _ in range(N - 1))
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
        assert 0 <= log.waited_s <= took_s


async def test_a_date_to_wait_for_is_read_once_and_no_later_jump_changes_it(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
):
    true = time.time
    soon = formatdate(true() + 2, usegmt=True)  # whole seconds: 1 to 2 s from now
    server.behaviour = type(server.behaviour)(
        lambda request: "Ann",
        lambda n, _: Fault(status=429, retry_after=soon) if n == 1 else None,
    )
    asking = Asking(server)
    log = asking.log()
    asked = asyncio.create_task(asking.ask(log))
    await held_back(log)
    monkeypatch.setattr(time, "time", lambda: true() - DAY_S)
    async with asyncio.timeout(30):
        await asked
    first, second = server.records
    assert first.finished_s is not None
    assert second.arrived_s - first.finished_s > 0.5
