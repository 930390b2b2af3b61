"""What the store keeps of each case, whole: to continue a run, and to compare with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from graphrag.eval.store import EvaluationStore, Judgement
from graphrag.eval.suite.summary import CaseResult
from graphrag.query.usage import Usage

_KIND = "suite_case"
_RESULT = TypeAdapter(CaseResult)


@dataclass(frozen=True, slots=True)
class KeptResult:
    """A case's result, and the suite and unit that it belongs to."""

    suite: str
    unit: str
    result: CaseResult


def keep_result(store: EvaluationStore, run_id: str, kept: KeptResult) -> None:
    """Keep a case's result, its parts and failure included.

    What it cost is kept with its response and verdict, so not here again.
    """
    value: dict[str, object] = {
        "suite": kept.suite,
        "result": _RESULT.dump_python(kept.result, mode="json"),
    }
    failed = kept.result.failure is not None
    store.append_judgement(run_id, Judgement(kept.unit, _KIND, value, failed, Usage()))


def read_kept_results(store: EvaluationStore, run_id: str) -> list[KeptResult]:
    """Return the results that a run keeps.

    A run of an earlier release has them only in its report, without units; an unfinished one
    of those has none.
    """
    found = [
        KeptResult(str(each.value["suite"]), each.subject, _RESULT.validate_python(result))
        for each in store.judgements(run_id)
        if each.kind == _KIND and (result := each.value["result"])
    ]
    return found or [
        KeptResult(suite["name"], "", _RESULT.validate_python(result))
        for run in store.runs()
        if run.run_id == run_id and run.details is not None and run.details.report is not None
        for suite in _suites_of(run.details.report)
        for result in suite["results"]
    ]


def _suites_of(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    return report.get("reports", [])
