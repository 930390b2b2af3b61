"""Slots, rates, outages, and the time that a search takes itself beside waiting for its turn."""

import asyncio
import gc
import time
import weakref
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar, copy_context
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag.query.client.active_time import OwnTime
from graphrag.query.client.rate_limit import (
    AdaptiveLimit,
    CallLimit,
    ModelQueue,
    Outage,
    RateWindow,
)

Event = tuple[bool, float, int]


@asynccontextmanager
async def slot(
    limit: CallLimit, queue: ModelQueue, request: object, tokens: int
) -> AsyncGenerator[None]:
    held = await limit.acquire(queue, request, tokens)
    try:
        yield
    finally:
        limit.release(held)


EVENTS = st.lists(
    st.tuples(st.booleans(), st.floats(0, 2), st.integers(1, 64)), min_size=1, max_size=80
)


@given(st.integers(1, 64), EVENTS)
def test_places_stay_between_one_and_the_most(most, events):
    limit, now = AdaptiveLimit(most), 0.0
    for is_answer, step, in_flight in events:
        now += step
        before = limit.slots
        if is_answer:
            limit.answered()
            assert before <= limit.slots <= before + 1
        else:
            limit.throttled(now, now, in_flight)
            assert limit.slots <= max(1, before)
        assert 1 <= limit.slots <= most
        assert limit.slots == int(limit.slots)


@given(st.integers(2, 128), st.integers(2, 128))
def test_those_in_flight_together_make_one_decrease(most, n_refused):
    limit = AdaptiveLimit(most)
    for n in range(n_refused):
        limit.throttled(sent_at=1.0, now=2.0 + n / 1000, in_flight=most)
    assert limit.slots == max(1, int(most * 0.7))
    limit.throttled(sent_at=4.0, now=5.0, in_flight=int(limit.slots))
    assert limit.slots <= max(1, int(most * 0.7 * 0.7) + 1)
    without_end = AdaptiveLimit(inf)
    assert without_end.slots == inf
    without_end.throttled(1.0, 2.0, 10)
    assert without_end.slots == 7


@given(st.integers(2, 64))
def test_places_come_back_one_a_round_trip(most):
    limit = AdaptiveLimit(most)
    limit.throttled(1.0, 2.0, 1)
    assert limit.slots == 1
    round_trips = 0
    while limit.slots < most:
        round_trips += 1
        for _ in range(int(limit.slots)):
            limit.answered()
    assert most - 1 <= round_trips <= 2 * most


@given(
    st.integers(1, 50),
    st.lists(st.tuples(st.floats(0, 20), st.integers(1, 50)), min_size=1, max_size=40),
)
def test_a_rate_holds_in_every_window(most, asked):
    rate, now = RateWindow(most, 10.0), 0.0
    sent: list[tuple[float, int]] = []
    for step, amount in asked:
        amount = min(amount, most)
        now = rate.ready_at(amount, now + step)
        rate.take(amount, now)
        sent.append((now, amount))
    for start, _ in sent:
        within = sum(amount for at, amount in sent if start <= at < start + 10 - 1e-6)
        assert within <= most


def test_what_a_request_really_took_counts_and_more_than_the_whole_rate_is_sent_alone():
    rate = RateWindow(100, 60)
    taken = rate.take(20, 0.0)
    assert rate.ready_at(80, 1.0) == 1.0
    taken.amount = 90
    assert rate.ready_at(80, 1.0) == 60.0
    rate = RateWindow(100, 60)
    rate.take(10, 0.0)
    assert rate.ready_at(250, 1.0) == 60.0
    rate.take(250, 60.0)
    assert rate.ready_at(1, 61.0) == 60 + 150


def test_an_outage_is_told_by_three_requests_or_three_signs_of_the_service():
    outage = Outage(60.0, has_answered=True)
    for now in range(5):
        outage.failed("one", False, float(now))
    assert not outage.is_down
    outage.failed("two", False, 5.0)
    outage.failed("three", False, 6.0)
    assert outage.is_waited_for
    assert outage.ends_at == 66.0
    outage.answered()
    assert outage.ends_at == inf
    for now in range(3):
        outage.failed("one", True, float(now))
    assert outage.is_down


@given(st.integers(3, 60))
def test_probes_come_later_and_later_but_never_stop(n_failed):
    outage, waits = Outage(1e6, has_answered=True), list[float]()
    for _ in range(n_failed):
        outage.failed("one", True, 0.0)
        waits.append(outage.probe_at)
    assert waits[2:] == sorted(waits[2:])
    assert 0.1 <= waits[-1] <= 15


@given(st.integers(1, 6), st.lists(st.integers(0, 2), min_size=1, max_size=40))
def test_no_more_than_the_slots_are_taken_and_everyone_gets_one(most, queues):
    async def run() -> int:
        limit = CallLimit(most, 60)
        highest = 0

        async def ask(name: int) -> None:
            nonlocal highest
            async with slot(limit, limit.queue(name, str(name)), object(), 1):
                highest = max(highest, limit.in_flight)
                await asyncio.sleep(0)

        await asyncio.gather(*(ask(name) for name in queues))
        assert limit.in_flight == 0
        return highest

    assert asyncio.run(run()) <= most


async def test_who_leaves_the_queue_leaves_no_place_taken():
    limit = CallLimit(1, 60)
    queue = limit.queue("a", "a")
    held = await limit.acquire(queue, object(), 0)
    leaving = asyncio.create_task(limit.acquire(queue, object(), 0))
    staying = asyncio.create_task(limit.acquire(queue, object(), 0))
    await asyncio.sleep(0)
    limit.release(held)  # gives the slot to the first, which is cancelled before it runs
    leaving.cancel()
    limit.release(await asyncio.wait_for(staying, 1))
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert limit.in_flight == 0


async def call(own: OwnTime, wait_s: float, work_s: float) -> None:
    with own.call():
        with own.waiting():
            await asyncio.sleep(wait_s)
        await asyncio.sleep(work_s)


async def test_calls_that_wait_side_by_side_wait_once_and_beside_one_in_flight_not():
    own, began = OwnTime(), time.perf_counter()
    await asyncio.gather(*(call(own, 0.2, 0) for _ in range(10)))
    assert 0.19 <= own.waited_s <= time.perf_counter() - began
    own = OwnTime()
    await asyncio.gather(call(own, 0, 0.3), call(own, 0.15, 0))
    assert own.waited_s < 0.1


async def test_a_deadline_stands_still_while_everything_waits():
    own = OwnTime()
    async with own.deadline(5):
        async with own.deadline(0.2):
            await call(own, 0.5, 0.05)
        with pytest.raises(TimeoutError):
            async with own.deadline(0.2):
                await call(own, 0.3, 0.5)
        assert 0.75 < own.waited_s < 1
        await call(own, 0.1, 0)


async def test_a_deadline_begun_while_everything_waits_starts_with_the_work():
    own = OwnTime()
    waiting = asyncio.create_task(call(own, 0.3, 0))
    await asyncio.sleep(0.05)
    began = time.perf_counter()
    with pytest.raises(TimeoutError):
        async with own.deadline(0.1):
            await asyncio.sleep(2)
    assert 0.3 < time.perf_counter() - began < 2
    await waiting


async def test_a_deadline_that_was_kept_holds_nothing_of_the_search():
    class Log:
        pass

    held: ContextVar[Log] = ContextVar("held")

    async def search() -> "weakref.ref[Log]":
        log = Log()
        held.set(log)
        async with OwnTime().deadline(600):
            await asyncio.sleep(0)
        return weakref.ref(log)

    found = await asyncio.create_task(search(), context=copy_context())
    await asyncio.sleep(0)
    gc.collect()
    assert found() is None
