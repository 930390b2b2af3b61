"""Who does the searches and verdicts of a run: this process unless another is given."""

from collections.abc import Sequence
from typing import Protocol

from graphrag.eval.records import JudgeResult
from graphrag.eval.store.records import StoredResponse, Unit
from graphrag.query.usage import CallLog


class Executor(Protocol):
    """Does what the runner would do itself, elsewhere.

    What a call of it costs goes into the log and its journal as it happens; nothing else is kept
    there. Errors are those of the runner.
    """

    async def search_unit(self, unit: Unit, log: CallLog) -> StoredResponse:
        """Answer one question, recording a failure with its cause."""
        ...

    async def judge_unit(
        self, unit: Unit, found: StoredResponse, metrics: Sequence[str], log: CallLog
    ) -> dict[str, JudgeResult]:
        """Have a response judged on some metrics."""
        ...
