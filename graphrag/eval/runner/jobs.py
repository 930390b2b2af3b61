"""The work of a run, and who does it: this process, or Ray's workers."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from graphrag.eval.records import JudgeResult
from graphrag.eval.store.records import Judgement, StoredResponse, Unit
from graphrag.query.usage import CallLog


class Executor(Protocol):
    """Answers and judges the units of a run."""

    async def search_unit(self, unit: Unit, log: CallLog) -> StoredResponse:
        """Answer one question, recording a failure with its cause."""
        ...

    async def judge_unit(
        self, unit: Unit, response: StoredResponse, metrics: Sequence[str], log: CallLog
    ) -> dict[str, JudgeResult]:
        """Have a response judged on some metrics."""
        ...


@dataclass(frozen=True, slots=True)
class FurtherTask:
    """One thing to judge beyond the verdicts; ``subject`` and ``kind`` as of Judgement."""

    subject: str
    kind: str
    judge: Callable[[CallLog], Awaitable[Judgement]]
