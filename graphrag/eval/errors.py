"""Defines the errors that stop an evaluation; a failed search or verdict is only recorded.

EvalError
├── UsageError             wrong flags, configuration, dataset or index: exit code 2
│   ├── ConfigError
│   ├── DatasetError
│   │   └── NoRowsError
│   ├── IndexUnavailableError
│   ├── ResumeError        nothing to resume, or what would be resumed differs
│   └── ChangedElsewhere   somebody else changed the value to be saved
├── IndexBuildError        a workflow of indexing failed: exit code 1
├── BuildInterruptedError  Ctrl-C or SIGTERM while an index was built: exit code 130
├── StoreError             the store can't be opened or written: exit code 1
└── RunStoppedError        every further model call would fail: exit code 1
    ├── InterruptStop      Ctrl-C or SIGTERM: exit code 130
    ├── ServiceDownStop    the service is down for longer than the run waits: exit code 3
    └── AllowanceStop      the rest of the allowed cost is not enough: exit code 3
"""

from collections.abc import Sequence
from typing import Any


class EvalError(Exception):
    """Stops the run; the message is one sentence: what is wrong, where, and what to do next."""


class UsageError(EvalError):
    """The flags, configuration, dataset or index asked for can't be used."""


class ConfigError(UsageError):
    """The evaluation's configuration, a flag, or a project's settings can't be used."""


class DatasetError(UsageError):
    """The dataset can't be read; the message names the row and the field."""


class NoRowsError(DatasetError):
    """The dataset is empty, like the one that ``graphrag eval init`` writes."""


class IndexUnavailableError(UsageError):
    """An index is missing, not built, or does not fit its settings."""


def name_index(key: str, problem: object) -> str:
    """Return a sentence about an index's problem, with its name, which is not repeated."""
    return f"Index {'' if str(problem).startswith(f'{key} ') else f'{key}: '}{problem}"


class ResumeError(UsageError):
    """There is no unfinished run to resume, or it was set up differently."""


class ChangedElsewhere(UsageError):
    """Somebody else changed the value to be saved; ``current`` is the value stored now."""

    def __init__(self, current: object) -> None:
        super().__init__("This has been changed elsewhere meanwhile.")
        self.current = current


class IndexBuildError(EvalError):
    """Building an index failed; the message names the workflow and the cause."""


class BuildInterruptedError(EvalError):
    """Building an index was interrupted; the message says how to begin again."""


class StoreError(EvalError):
    """The store can't be opened or written, or another process holds it."""


class RunStoppedError(EvalError):
    """The run can't go on, because the model's service refuses every request.

    What was paid for is in the store, if there is one. ``results`` are the QueryResults so far, if
    :meth:`EvaluationRunner.run_evaluation` raises it.
    """

    def __init__(self, message: str, results: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.results = results


class InterruptStop(RunStoppedError):
    """Ctrl-C or SIGTERM ended the run; nothing is lost."""

    def __init__(self, message: str = "interrupted") -> None:
        super().__init__(message)


class ServiceDownStop(RunStoppedError):
    """A service is down, or asks to wait, for longer than the run waits; nothing is lost."""


class AllowanceStop(RunStoppedError):
    """The rest of the allowed cost is not enough for the next call; nothing is lost."""
