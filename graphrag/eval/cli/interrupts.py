"""Ctrl-C and SIGTERM during a run, also while something holds the event loop."""

import asyncio
import signal
import socket
import sys
import threading
import time
from types import FrameType
from typing import Self

from rich.console import Console

from graphrag.eval.cli.terminal import end_at_once, say_interrupted
from graphrag.eval.errors import InterruptStop
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.runner.held_loop import LET_GO_S, own_frames

_NUMBERS = (signal.SIGINT, signal.SIGTERM)
FINISH_S = 10.0
_LOOK_S = 0.5


class Interrupts:
    """Ends a run in order at the first signal, at once at the second.

    A handler of the loop's would never run while a method holds it, so Python's own are taken, and
    a thread reads of each signal as it comes: what the loop does not notice within the ten seconds
    that it has to finish is made to let go, and then ended with the process.
    """

    def __init__(self, notes: Console, runner: EvaluationRunner) -> None:
        self._notes, self._runner = notes, runner
        self._loop = asyncio.get_running_loop()
        self._n_met = 0
        self._is_noticed = self._is_announced = False

    def __enter__(self) -> Self:
        self._is_on = (
            sys.platform != "win32"  # there Ctrl-C stops at once
            and threading.current_thread() is threading.main_thread()
        )
        if self._is_on:
            self._reader, self._writer = socket.socketpair()
            self._writer.setblocking(False)
            self._reader.settimeout(_LOOK_S)
            self._woken = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
            self._before = [signal.signal(number, self._handle_signal) for number in _NUMBERS]
            self._thread = threading.Thread(target=self._read_signals, name="signals", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_on:
            for number, before in zip(_NUMBERS, self._before, strict=True):
                signal.signal(number, before)
            signal.set_wakeup_fd(self._woken)
            self._writer.close()
            self._thread.join()
            self._reader.close()

    def _handle_signal(self, _: int, frame: FrameType | None) -> None:
        self._n_met += 1
        if self._n_met == 1:
            self._loop.call_soon_threadsafe(self._stop_run)
        elif own_frames(frame):
            raise KeyboardInterrupt
        else:  # between two steps of the loop: nothing is half done there
            self._loop.call_soon_threadsafe(_raise_interrupt)

    def _stop_run(self) -> None:
        self._is_noticed = True
        self._announce_stop()
        self._runner.stop(InterruptStop())

    def _announce_stop(self) -> None:
        if not self._is_announced:
            self._is_announced = True
            self._notes.print("Finishing what is in flight; Ctrl-C again to stop at once.")

    def _read_signals(self) -> None:
        n, met_at = 0, 0.0
        while True:
            try:
                numbers = self._reader.recv(64)
                if not numbers:
                    return
                n, met_at = n + sum(number in _NUMBERS for number in numbers), time.monotonic()
            except TimeoutError:
                pass
            waited_s = time.monotonic() - met_at
            if n > 2 or (n == 2 and waited_s > LET_GO_S):
                end_at_once(self._notes, say_interrupted())
            if n == 1 and not self._is_noticed and waited_s >= _LOOK_S:
                self._announce_stop()
                if waited_s >= FINISH_S + LET_GO_S:
                    end_at_once(self._notes, say_interrupted())
                elif waited_s >= FINISH_S:
                    self._runner.watch.let_go(InterruptStop())


def _raise_interrupt() -> None:
    raise KeyboardInterrupt
