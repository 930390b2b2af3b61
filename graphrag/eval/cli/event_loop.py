"""The event loop of a command: the interpreter's own, as fast as it was made.

``graphrag_llm`` makes asyncio reentrant for the whole process when it is imported (nest-asyncio2):
tasks and futures are then written in Python instead of C. A command nests no loops, so its loop
keeps what CPython has; a loop that others begin within it runs as before.
"""

import asyncio
import sys

if sys.platform == "win32":
    open_loop = asyncio.new_event_loop
    """Returns a new loop."""
else:
    from _asyncio import Future, Task  # asyncio's own names are what is replaced

    class _Loop(asyncio.SelectorEventLoop):
        """A loop of asyncio's class, with the steps that this had before it was changed."""

        run_forever = asyncio.BaseEventLoop.run_forever
        run_until_complete = asyncio.BaseEventLoop.run_until_complete
        _run_once = asyncio.BaseEventLoop._run_once  # pyright: ignore
        _check_running = asyncio.BaseEventLoop._check_running  # pyright: ignore

        # What nest-asyncio2 changes is the class that a loop names.
        @property
        def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
            return asyncio.SelectorEventLoop

        def create_future(self) -> "asyncio.Future[object]":
            return Future(loop=self)

    def open_loop() -> asyncio.AbstractEventLoop:
        """Return a new loop."""
        loop = _Loop()
        loop.set_task_factory(lambda loop, work, **how: Task(work, loop=loop, **how))  # pyright: ignore
        return loop
