"""Calls plain functions in threads that neither a time-out nor the end of the process waits for."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


async def ask_in_thread(work: Callable[[], T]) -> T:
    """Call a function in a thread; neither a time-out nor the end of the process waits for it."""
    outcome, context = Future[T](), copy_context()

    def run() -> None:
        try:
            result = context.run(work)
        except BaseException as error:
            # A future can't raise StopIteration.
            passes = isinstance(error, (Exception, SystemExit)) and type(error) is not StopIteration
            with contextlib.suppress(InvalidStateError):
                outcome.set_exception(error if passes else RuntimeError(repr(error)))
        else:
            with contextlib.suppress(InvalidStateError):  # nobody is waiting any more
                outcome.set_result(result)

    threading.Thread(target=run, name="method", daemon=True).start()
    return await asyncio.wrap_future(outcome)
