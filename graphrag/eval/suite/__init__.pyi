from .cases import Thresholds, find_suite_files, parse_suite, read_suite, read_test_cases
from .evaluation import (
    BaseEvaluator,
    Evaluated,
    EvaluationMetric,
    EvaluationReport,
    EvaluationResult,
    TestCase,
    create_entity_extraction_test_cases,
    create_query_response_test_cases,
)
from .framework import (
    EntityExtractionEvaluator,
    EvaluationFramework,
    GraphConnectivityEvaluator,
    MetricRegression,
    ProcessingTimeEvaluator,
    ResponseCompletenessEvaluator,
    ResponseRelevanceEvaluator,
    UserSatisfactionEvaluator,
)
from .running import run_suite, run_suites
from .summary import status_of
from .tools import CaseFailedError, CaseTools, project_components

__all__ = [
    "BaseEvaluator",
    "CaseFailedError",
    "CaseTools",
    "EntityExtractionEvaluator",
    "Evaluated",
    "EvaluationFramework",
    "EvaluationMetric",
    "EvaluationReport",
    "EvaluationResult",
    "GraphConnectivityEvaluator",
    "MetricRegression",
    "ProcessingTimeEvaluator",
    "ResponseCompletenessEvaluator",
    "ResponseRelevanceEvaluator",
    "TestCase",
    "Thresholds",
    "UserSatisfactionEvaluator",
    "create_entity_extraction_test_cases",
    "create_query_response_test_cases",
    "find_suite_files",
    "parse_suite",
    "project_components",
    "read_suite",
    "read_test_cases",
    "run_suite",
    "run_suites",
    "status_of",
]
