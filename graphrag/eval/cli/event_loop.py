"""Opens the event loop of a command, with the C tasks and futures of CPython (``open_loop``).

Importing ``graphrag_llm`` makes asyncio reentrant in the whole process (nest-asyncio2), and
replaces tasks and futures by slower ones in Python. A command nests no loops, so its loop keeps
those of CPython. A loop that other code begins inside it has nest-asyncio2's.
"""

import asyncio
import sys

if sys.platform == "win32":
    open_loop = asyncio.new_event_loop
    """Returns a new loop."""
else:
    from _asyncio import Future, Task  # asyncio's own names are replaced

    class _Loop(asyncio.SelectorEventLoop):
        """A loop of asyncio's class, with the methods that nest-asyncio2 has replaced there."""

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
        """Return a new event loop without nest-asyncio2's changes."""
        loop = _Loop()
        loop.set_task_factory(lambda loop, work, **how: Task(work, loop=loop, **how))  # pyright: ignore
        return loop
