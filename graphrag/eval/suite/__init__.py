"""Suites of test cases: read, run, scored by an evaluator of one's choice, and reported."""

from graphrag.eval.suite.cases import Suite, SuiteCase, Thresholds, find_suite_files, read_suite
from graphrag.eval.suite.evaluators import EntityExtraction, Evaluated, Evaluator, QueryResponse
from graphrag.eval.suite.report import CaseResult, SuiteReport
from graphrag.eval.suite.running import SuiteOutcome, run_suite, run_suites
from graphrag.eval.suite.tools import CaseFailedError, CaseTools

__all__ = [
    "CaseFailedError",
    "CaseResult",
    "CaseTools",
    "EntityExtraction",
    "Evaluated",
    "Evaluator",
    "QueryResponse",
    "Suite",
    "SuiteCase",
    "SuiteOutcome",
    "SuiteReport",
    "Thresholds",
    "find_suite_files",
    "read_suite",
    "run_suite",
    "run_suites",
]
