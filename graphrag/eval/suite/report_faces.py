"""A run of suites as evaluation reports, for who reads those."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from statistics import fmean
from typing import Any

from graphrag.eval.suite.evaluation import EvaluationMetric, EvaluationReport
from graphrag.eval.suite.running import SuiteOutcome
from graphrag.eval.suite.summary import CaseResult, SuiteReport

_METRICS: Mapping[str, EvaluationMetric] = {
    "entity_extraction": EvaluationMetric.ENTITY_EXTRACTION_ACCURACY,
}


def describe_reports(outcome: SuiteOutcome) -> dict[str, Any]:
    """Return a run's reports in the form of :meth:`EvaluationReport.to_dict`.

    One suite gives its report, several ``{"suites": [...]}``. Scores and counts are those of the
    suite: a result is one evaluation, its metric the evaluator's; its parts are in the details.
    """
    given = [_describe(report, outcome) for report in outcome.reports]
    return given[0] if len(given) == 1 else {"suites": given}


def _describe(report: SuiteReport, outcome: SuiteOutcome) -> dict[str, Any]:
    ended_at = datetime.fromisoformat(outcome.ended_at)
    face = EvaluationReport(
        test_suite_name=report.name,
        timestamp=ended_at,
        results=[],
        overall_score=report.score.mean or 0.0,
        passed_tests=report.n_passed,
        total_tests=report.n_total,
        performance_metrics=_performance(report.results),
        recommendations=[each.text for each in report.recommendations]
        or ["Nothing in the results asks for a look."],
        failures=_failures(report),
    )
    results = [
        {
            "metric": str(_METRICS.get(report.evaluator, report.evaluator)),
            "score": result.score,
            "max_score": 1.0,
            "details": {
                "method": result.method,
                "status": result.status,
                "reason": result.reason,
                "parts": dict(result.evaluated.parts) if result.evaluated else {},
            },
            "timestamp": ended_at.isoformat(),
            "test_case_id": result.case_id,
        }
        for result in report.results
        if result.score is not None
    ]
    return {
        **face.to_dict(),
        "results": results,
        "run_id": outcome.run_id,
        "embedded_models": outcome.embedded_models,
        "status": report.status,
    }


def _performance(results: Sequence[CaseResult]) -> dict[str, float | None]:
    seconds = [
        result.latency_s
        for result in results
        if result.latency_s is not None and result.failure is None
    ]
    return {
        "avg_processing_time": fmean(seconds) if seconds else None,
        "max_processing_time": max(seconds, default=None),
    }


def _failures(report: SuiteReport) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for result in report.results:
        if result.failure is not None:
            text = f"{result.method}: {result.failure.message}"
            found.setdefault(result.case_id, []).append(text)
    return {case_id: "; ".join(texts) for case_id, texts in found.items()}
