"""A store that is only looked at: as it is at one moment, and read once."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from graphrag.eval.dataset.samples import Sample
from graphrag.eval.records import JudgeResult
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import Judgement, StoredResponse
from graphrag.query.usage import Usage

_R = TypeVar("_R")


class StoreSnapshot(EvaluationStore):
    """Reads an eval.db beside the process that holds it, and keeps what it read of the last run."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, reads_only=True)
        self._run_id = ""
        self._kept: dict[str, Any] = {}

    def samples(self, run_id: str) -> list[Sample]:
        """Return the questions of a run."""
        read = super().samples
        return self._once("samples", run_id, lambda: read(run_id))

    def responses(
        self, run_id: str, units: Sequence[str] | None = None, with_texts: bool = True
    ) -> dict[str, StoredResponse]:
        """Return unit -> response of a run."""
        if with_texts or units is not None:  # too much to keep, or too little
            return super().responses(run_id, units, with_texts)
        read = super().responses
        return self._once("responses", run_id, lambda: read(run_id, with_texts=False))

    def verdicts(
        self, run_id: str, units: Sequence[str] | None = None
    ) -> dict[str, dict[str, JudgeResult]]:
        """Return unit -> metric -> verdict of a run."""
        read = super().verdicts
        if units is not None:
            return read(run_id, units)
        return self._once("verdicts", run_id, lambda: read(run_id))

    def judge_usage(
        self, run_id: str, units: Sequence[str] | None = None
    ) -> dict[str, list[Usage]]:
        """Return unit -> what its verdicts cost."""
        read = super().judge_usage
        if units is not None:
            return read(run_id, units)
        return self._once("judge_usage", run_id, lambda: read(run_id))

    def judgements(self, run_id: str) -> list[Judgement]:
        """Return the judgements of a run."""
        read = super().judgements
        return self._once("judgements", run_id, lambda: read(run_id))

    def _once(self, name: str, run_id: str, read: Callable[[], _R]) -> _R:
        if run_id != self._run_id:
            self._run_id, self._kept = run_id, {}
        if name not in self._kept:
            self._kept[name] = read()
        return cast("_R", self._kept[name])
