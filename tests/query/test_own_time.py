"""Waiting for a turn is not a search's own time, however many of its calls wait at once."""

import asyncio
import gc
import time
import weakref
from contextvars import ContextVar, copy_context

import pytest

from graphrag.query.own_time import OwnTime
from graphrag.query.usage import CallLog


async def call(own: OwnTime, wait_s: float, work_s: float) -> None:
    with own.call():
        with own.waiting():
            await asyncio.sleep(wait_s)
        await asyncio.sleep(work_s)


async def test_calls_that_wait_side_by_side_wait_once() -> None:
    own = OwnTime()
    began = time.perf_counter()
    await asyncio.gather(*(call(own, 0.2, 0) for _ in range(10)))
    gone = time.perf_counter() - began
    assert 0.19 <= own.waited_s <= gone


async def test_waiting_beside_a_call_in_flight_is_own_time() -> None:
    own = OwnTime()
    await asyncio.gather(call(own, 0, 0.3), call(own, 0.15, 0))
    assert own.waited_s < 0.1


async def test_a_deadline_stands_still_while_everything_waits() -> None:
    own = OwnTime()
    async with own.deadline(0.2):
        await call(own, 0.5, 0.05)
    with pytest.raises(TimeoutError):
        async with own.deadline(0.2):
            await call(own, 0.3, 0.5)
    assert 0.75 < own.waited_s < 1


async def test_a_deadline_inside_another_is_held_too() -> None:
    own = OwnTime()
    async with own.deadline(5):
        with pytest.raises(TimeoutError):
            async with own.deadline(0.1):
                await call(own, 0.2, 1)
        await call(own, 0.1, 0)


async def test_a_deadline_begun_while_everything_waits_starts_with_the_work() -> None:
    own = OwnTime()
    waiting = asyncio.create_task(call(own, 0.3, 0))
    await asyncio.sleep(0.05)
    began = time.perf_counter()
    with pytest.raises(TimeoutError):
        async with own.deadline(0.1):
            await asyncio.sleep(2)
    assert 0.3 < time.perf_counter() - began < 2
    await waiting


def test_the_time_waited_can_be_read_in_between() -> None:
    log = CallLog()
    with log.own_time.call(), log.own_time.waiting():
        time.sleep(0.05)
        assert log.waited_s >= 0.05


async def test_a_deadline_that_was_kept_holds_nothing_of_the_search() -> None:
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
