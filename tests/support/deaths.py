"""Where a process can be made to kill itself, as ``kill -9`` does, before it ends."""

import os
import signal
from pathlib import Path
from typing import Any

from graphrag.eval.store.database import EvaluationStore


def kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed_when_it_is_finished() -> None:
    finish = EvaluationStore.finish_run

    def finish_and_die(self: EvaluationStore, run_id: str) -> None:
        finish(self, run_id)
        kill_self()

    EvaluationStore.finish_run = finish_and_die


def killed_before_it_is_finished() -> None:
    EvaluationStore.finish_run = lambda *_: kill_self()


def killed_at_a_file(number: int) -> None:
    replace, before = Path.replace, [0]

    def replace_or_die(self: Path, target: Any) -> Path:
        before[0] += 1
        if before[0] == number:
            kill_self()
        return replace(self, target)

    Path.replace = replace_or_die
