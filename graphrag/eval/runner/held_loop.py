"""Methods of one's own that wait without ``await``: named, and made to let go.

A coroutine that blocks keeps the event loop from everything else: time-outs, other answers, the
end of the run. So a thread looks on as long as one is asked. A function that is no coroutine gets
a thread of its own.
"""

import asyncio
import contextlib
import inspect
import signal
import sys
import sysconfig
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextvars import ContextVar, copy_context
from pathlib import Path
from types import FrameType
from typing import TypeVar

from graphrag.eval.errors import RunStoppedError
from graphrag.eval.records import plug_ins

T = TypeVar("T")
LET_GO_S = 5.0
"""What goes on for so long after it was made to let go is ended with the process."""
_BEAT_S = 0.5
_ASKED: ContextVar[str | None] = ContextVar("asked", default=None)
_LET_GO: signal.Signals | None = getattr(signal, "SIGUSR2", None)
_OURS = str(Path(__file__).parents[2])
_INSTALLED = (_OURS, *{sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib")})


_ADVICE = (
    "Nothing else can go on meanwhile: await what it waits for, or write it as a plain function "
    "(def), which gets a thread."
)


class LoopHeldError(BaseException):
    """Raised in the method that holds the loop; no Exception, so that it is not caught there."""

    def __init__(self, why: RunStoppedError) -> None:
        super().__init__(str(why))
        self.why = why


async def ask_in_thread(work: Callable[[], T]) -> T:
    """Call a function in a thread; neither a time-out nor the end of the process waits for it."""
    outcome, context = Future[T](), copy_context()

    def run() -> None:
        try:
            result = context.run(work)
        except BaseException as error:
            # A future takes no StopIteration.
            passes = isinstance(error, (Exception, SystemExit)) and type(error) is not StopIteration
            with contextlib.suppress(InvalidStateError):
                outcome.set_exception(error if passes else RuntimeError(repr(error)))
        else:
            with contextlib.suppress(InvalidStateError):  # nobody waits for it any more
                outcome.set_result(result)

    threading.Thread(target=run, name="method", daemon=True).start()
    return await asyncio.wrap_future(outcome)


class LoopWatch:
    """Asks coroutines of the user's own while a thread looks on whether they hold the loop.

    One that does is named after ten seconds. After ``limit_s`` an error is raised in it, where the
    loop runs in the main thread, and the run stops.

    - ``tell``: says that one holds the loop.
    - ``end``: ends the process with a sentence, where nothing else helps.
    - ``n_named``: how often one was named.
    """

    def __init__(self, limit_s: float) -> None:
        self.tell: Callable[[str], object] = plug_ins.tell
        self.end: Callable[[str], object] = lambda _: None
        self.n_named = 0
        self._limit_s = limit_s
        self._asked: dict[object, str] = {}
        self._why: RunStoppedError | None = None
        self._holder: str | None = None
        self._beat_at = 0.0
        self._ended = threading.Event()
        self._can_interrupt, self._lock = False, threading.Lock()

    async def ask(self, work: Awaitable[T], what: str) -> T:
        """Return what a method answers; RunStoppedError if it held the loop for too long.

        ``what``: the method and its question, in words.
        """
        if self._why is not None and self._asked:  # those that are asked already are let finish
            if inspect.iscoroutine(work):
                work.close()
            raise self._why
        token, before = object(), _ASKED.set(what)
        if not self._asked:
            self._begin()
        self._asked[token] = what
        try:
            return await work
        except LoopHeldError as held:
            raise held.why from held
        finally:
            _ASKED.reset(before)
            del self._asked[token]
            if not self._asked:
                self._end()

    def begin(self) -> None:
        """Forget what came of an earlier run."""
        self._why = None

    def check(self) -> None:
        """Raise RunStoppedError where a time-out is only due as the loop was held."""
        if self._why is not None:
            raise self._why

    def let_go(self, why: RunStoppedError) -> None:
        """Raise an error in the method that holds the loop; from any thread."""
        self._why = why
        self._send()

    def _send(self) -> None:
        main = threading.main_thread().ident
        with self._lock:  # after the last is answered, the signal would end the process
            if self._can_interrupt and _LET_GO is not None and main is not None:
                signal.pthread_kill(main, _LET_GO)

    def _begin(self) -> None:
        self._ended, self._beat_at = threading.Event(), time.monotonic()
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and _LET_GO is not None and signal.getsignal(_LET_GO) is signal.SIG_DFL:
            signal.signal(_LET_GO, self._interrupt)
            self._can_interrupt = True
        where = asyncio.get_running_loop(), threading.get_ident(), self._ended
        threading.Thread(target=self._look_on, args=where, name="loop", daemon=True).start()

    def _end(self) -> None:
        self._ended.set()
        with self._lock:
            if self._can_interrupt and _LET_GO is not None:
                signal.signal(_LET_GO, signal.SIG_DFL)
            self._can_interrupt = False

    def _interrupt(self, _: int, frame: FrameType | None) -> None:
        self._holder = _ASKED.get()
        # It may have let go meanwhile, or a task of somebody else's may hold the loop.
        if self._why is not None and self._holder is not None and own_frames(frame):
            raise LoopHeldError(self._why)

    def _beat(self) -> None:
        self._beat_at = time.monotonic()

    def _look_on(
        self, loop: asyncio.AbstractEventLoop, thread: int, ended: threading.Event
    ) -> None:
        asked_at = named_at = let_go_at = 0.0  # when it was asked to beat, and what came of it
        has_asked = False
        while not ended.wait(_BEAT_S):
            now = time.monotonic()
            if self._beat_at >= asked_at:
                asked_at, named_at, let_go_at = now, 0.0, 0.0
                self._holder, has_asked = None, False
                with contextlib.suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(self._beat)
                continue
            held_s, frames = now - asked_at, own_frames(sys._current_frames().get(thread))  # pyright: ignore[reportPrivateUsage]
            if not frames:  # it goes on, or something of ours computes
                continue
            if not has_asked and held_s >= min(plug_ins.NAMED_AFTER_S, self._limit_s):
                has_asked = True
                self._send()  # whose task it is, that thread can tell
                continue
            if self._why is None and held_s >= plug_ins.NAMED_AFTER_S and not named_at:
                named_at, self.n_named = now, self.n_named + 1
                self.tell(f"Warning: {self._describe(frames, held_s)}. {_ADVICE}")
            # What waited behind the one that was made to let go may do the same.
            if held_s < (self._limit_s if self._why is None else _BEAT_S):
                continue
            if self._why is None or not let_go_at:
                let_go_at = now
                why = f"{self._describe(frames, held_s)}. {_ADVICE}".rstrip(".")
                self.let_go(self._why or RunStoppedError(why))
            elif now - let_go_at >= LET_GO_S:
                self.end(str(self._why))

    def _describe(self, frames: Sequence[FrameType], held_s: float) -> str:
        frame = next((f for f in frames if not _is_installed(f)), frames[-1])
        holder = self._holder or " or ".join(sorted(self._asked.values()))
        return (
            f"{holder} has held the event loop for {held_s:.0f} s, at "
            f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
        )


_ASKING, _STEP = LoopWatch.ask.__code__, asyncio.Handle._run.__code__


def own_frames(frame: FrameType | None) -> list[FrameType]:
    """Return where in a method of the user's own a thread is, the innermost first.

    Empty where it is in none, or in something of this project's that it calls.
    """
    frames = list[FrameType]()
    while frame is not None and frame.f_code is not _STEP:
        frames.append(frame)
        frame = frame.f_back
    if frame is None:
        return []  # in no step of a task
    asking = next((n for n, f in enumerate(frames) if f.f_code is _ASKING), None)
    # A task that a method began is not below what asked the method.
    own = frames[:asking]
    while asking is None and own and _is_installed(own[-1]):
        own.pop()
    return [] if any(f.f_code.co_filename.startswith(_OURS) for f in own) else own


def _is_installed(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_INSTALLED)
