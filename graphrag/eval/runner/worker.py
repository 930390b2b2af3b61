"""What a worker does: several items at once, each call told to the owner of the store.

It opens indexes and models at their first use and keeps them. It writes nothing.
"""

import asyncio
import contextlib
import logging
import pickle
import platform
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from graphrag.config.settings_files import is_project
from graphrag.eval.errors import EvalError
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.runner.event_loop import open_loop
from graphrag.eval.runner.headers import read_model_settings
from graphrag.eval.runner.judging import open_judge
from graphrag.eval.runner.shares import Receipts, Share, SharedLimit
from graphrag.eval.runner.tasks import (
    Cancel,
    Ended,
    Event,
    Item,
    Noted,
    Order,
    Ready,
    Said,
    WorkerSetup,
)
from graphrag.log_lines import LIBRARIES, lines_to
from graphrag.query.calls import describe_error
from graphrag.query.usage import CallLog, RecordedCall
from graphrag.redaction import know_settings, redact

RELEASES = ("gtog", "graphrag")


class Worker:
    """Runs items in an event loop of its own; orders may come from another thread.

    Parameters
    ----------
    payload : bytes
        A pickled WorkerSetup.
    share : Share
    tell : callable
        Takes every event, in order; called from any thread.
    """

    def __init__(self, payload: bytes, share: Share, tell: Callable[[Event], None]) -> None:
        self._payload = payload
        self._share = share
        self._tell = tell
        self._receipts = Receipts()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._loop = open_loop()

    def deliver(self, order: Order) -> None:
        """Take an order; may be called from any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits for it
            self._loop.call_soon_threadsafe(self._take, order)

    def run(self) -> None:
        """Work until the process ends."""
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        try:
            know_settings({})
            setup: WorkerSetup = pickle.loads(self._payload)
        except Exception as error:  # whatever the user's own classes raise
            self._tell(Ready(f"a worker can't make what it is given: {describe_error(error)}"))
            return
        problem = find_problem(setup)
        if problem is None:
            try:
                self._runner = EvaluationRunner(
                    setup.config,
                    setup.judge,
                    setup.index_roots,
                    setup.methods,
                )
            except EvalError as error:
                problem = str(error)
        if problem is not None:
            self._tell(Ready(redact(problem)))
            return
        self._setup = setup
        self._limit = SharedLimit(self._share, self._receipts)
        with lines_to(_Passing(self._tell), setup.log_level, ("graphrag", *LIBRARIES)):
            self._tell(Ready())
            await asyncio.Event().wait()

    def _take(self, order: Order) -> None:
        if not isinstance(order, Cancel):
            spending = self._limit.spending
            left_usd = order.left_usd
            spending.most_usd = None if left_usd is None else spending.spent_usd + left_usd
        if isinstance(order, Item):
            task = self._loop.create_task(self._run(order))
            self._tasks[order.number] = task
            task.add_done_callback(lambda _: self._tasks.pop(order.number, None))
        elif isinstance(order, Cancel):
            task = self._tasks.get(order.number)
            if task is not None:
                task.cancel()
        else:
            self._receipts.keep(order.up_to)

    async def _run(self, item: Item) -> None:
        journal = _Journal(item.number, dict(item.finished), self._tell, self._receipts)
        log = CallLog(self._limit, journal, bound=item.bound, time=item.time)
        error: tuple[str, str] | None = None
        result = None
        try:
            if item.found is None:
                result = await self._runner.search_unit(item.unit, log)
            else:
                self._open_judge()
                result = await self._runner.judge_unit(item.unit, item.found, item.metrics, log)
        except EvalError as raised:
            error = (type(raised).__name__, redact(str(raised)))
        except Exception as raised:
            error = ("", redact(describe_error(raised)))
        ended = Ended(
            item.number,
            result,
            tuple(log.attempts),
            tuple(log.failures),
            log.replayed,
            frozenset(log.counted),
            error,
        )
        try:
            self._tell(ended)
        except Exception as raised:  # a judge of the user's own may give what can't be sent
            told = ("", redact(describe_error(raised)))
            self._tell(replace(ended, result=None, error=told))

    def _open_judge(self) -> None:
        """Make the judge of the settings; they are enough, also where an index is gone."""
        if self._runner.judge is None:
            roots = {key: Path(root) for key, root in self._setup.index_roots.items()}
            self._runner.judge = open_judge(self._setup.config, read_model_settings(roots))


class _Journal:
    """The calls of one item: what was finished before, and what happens now is told."""

    def __init__(
        self,
        item: int,
        finished: Mapping[str, RecordedCall],
        tell: Callable[[Event], None],
        receipts: Receipts,
    ) -> None:
        self._item = item
        self._finished = finished
        self._tell = tell
        self._receipts = receipts

    def replay(self, key: str) -> RecordedCall | None:
        return self._finished.get(key)

    def start(self, key: str) -> None:
        self._tell(Noted(self._item, "start", key))

    def finish(self, key: str, call: RecordedCall) -> None:
        self._receipts.told += 1
        self._tell(Noted(self._item, "finish", key, call))

    def abandon(self, key: str) -> None:
        self._tell(Noted(self._item, "abandon", key))


class _Passing(logging.Handler):
    """Passes log lines on; keys are out of them by then, see ``graphrag.redaction``."""

    def __init__(self, tell: Callable[[Event], None]) -> None:
        super().__init__()
        self._tell = tell
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self._tell(Said(record.name, record.levelno, redact(self.format(record))))


def find_problem(setup: WorkerSetup) -> str | None:
    """Say in one sentence why this process can't work on a run; None when it can."""
    machine = platform.node() or "the worker's machine"
    for name, wanted in setup.releases.items():
        if version(name) != wanted:
            return (
                f"{machine} has {name} {version(name)}, and the run {wanted}; install the same "
                "release on every machine."
            )
    for key, root in setup.index_roots.items():
        if not is_project(root):
            return (
                f"Index {key}: {machine}, where a worker runs, has no project at {root}; put "
                "the projects where every machine finds them under one path."
            )
    return None
