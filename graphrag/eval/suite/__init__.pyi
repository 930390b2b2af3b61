from .cases import Suite, SuiteCase, Thresholds, find_suite_files, parse_suite, read_suite
from .evaluators import EntityExtraction, Evaluated, Evaluator, QueryResponse
from .recommendations import recommend
from .running import SuiteOutcome, run_suite, run_suites
from .summary import (
    CaseResult,
    MethodReport,
    Performance,
    SuiteReport,
    SuiteStatus,
    status_of,
    summarize_suite,
    worst_status,
)
from .tools import CaseFailedError, CaseTools

__all__ = [
    "CaseFailedError",
    "CaseResult",
    "CaseTools",
    "EntityExtraction",
    "Evaluated",
    "Evaluator",
    "MethodReport",
    "Performance",
    "QueryResponse",
    "Suite",
    "SuiteCase",
    "SuiteOutcome",
    "SuiteReport",
    "SuiteStatus",
    "Thresholds",
    "find_suite_files",
    "parse_suite",
    "read_suite",
    "recommend",
    "run_suite",
    "run_suites",
    "status_of",
    "summarize_suite",
    "worst_status",
]
