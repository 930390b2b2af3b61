"""The errors that stop an evaluation; what fails inside it becomes a recorded failure.

EvalError
├── UsageError             wrong flags, configuration, dataset or index: exit code 2
│   ├── ConfigError
│   ├── DatasetError
│   │   └── NoRowsError
│   ├── IndexUnavailableError
│   ├── ResumeError        nothing to resume, or what would be resumed differs
│   └── ChangedElsewhere   what is to be kept is not as it was seen any more
├── IndexBuildError        a workflow of the indexing failed: exit code 1
├── BuildInterruptedError  Ctrl-C or SIGTERM while an index was built: exit code 130
├── StoreError             the results can't be kept: exit code 1
└── RunStoppedError        every further model call would fail: exit code 1
    ├── InterruptStop      Ctrl-C or SIGTERM: exit code 130
    ├── ServiceDownStop    the service is down for longer than it is waited for: exit code 3
    └── AllowanceStop      what is left of the allowed cost is not enough: exit code 3
"""

from collections.abc import Sequence
from typing import Any


class EvalError(Exception):
    """Stops the run; the message is one sentence of what, where and what to do next."""


class UsageError(EvalError):
    """What was asked for can't be run as it is."""


class ConfigError(UsageError):
    """eval_config.yaml, a flag, or a project's settings can't be used."""


class DatasetError(UsageError):
    """The dataset can't be read; the message names the row and the field."""


class NoRowsError(DatasetError):
    """The dataset is empty, such as the one that ``graphrag eval init`` wrote."""


class IndexUnavailableError(UsageError):
    """An index is missing, not built, or does not fit its settings."""


def name_index(key: str, problem: object) -> str:
    """Return what is wrong with an index; its name stands once where its folder has the same."""
    return f"Index {'' if str(problem).startswith(f'{key} ') else f'{key}: '}{problem}"


class ResumeError(UsageError):
    """There is no unfinished run, or the unfinished run was set up differently."""


class ChangedElsewhere(UsageError):
    """Somebody else has changed what is to be kept meanwhile; ``current`` is what stands there."""

    def __init__(self, current: object) -> None:
        super().__init__("This has been changed elsewhere meanwhile.")
        self.current = current


class IndexBuildError(EvalError):
    """Building an index failed; the message names the workflow and the cause."""


class BuildInterruptedError(EvalError):
    """An index was not built, as it was asked to stop; the message says how to begin again."""


class StoreError(EvalError):
    """The store can't be opened or written, or another process holds it."""


class RunStoppedError(EvalError):
    """The run can't go on, as the model's service refuses every request.

    What was paid for is kept in the store, if there is one. ``results`` holds the QueryResults
    that were there, where :meth:`EvaluationRunner.run_evaluation` raises it.
    """

    def __init__(self, message: str, results: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.results = results


class InterruptStop(RunStoppedError):
    """Ctrl-C or SIGTERM ended the run; nothing is lost by it."""

    def __init__(self, message: str = "interrupted") -> None:
        super().__init__(message)


class ServiceDownStop(RunStoppedError):
    """A service is down, or asks to wait, for longer than the run waits; nothing is lost by it."""


class AllowanceStop(RunStoppedError):
    """What is left of the allowed cost is not enough for the next call; nothing is lost by it."""
