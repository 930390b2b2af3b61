from .cases import (
    Thresholds,
    create_entity_extraction_test_cases,
    create_query_response_test_cases,
    find_suite_files,
    parse_suite,
    read_suite,
    read_test_cases,
)
from .evaluation import (
    BaseEvaluator,
    EvaluationMetric,
    EvaluationReport,
    EvaluationResult,
    TestCase,
)
from .evaluators import (
    EntityExtractionEvaluator,
    GraphConnectivityEvaluator,
    ProcessingTimeEvaluator,
    ResponseCompletenessEvaluator,
    ResponseRelevanceEvaluator,
    UserSatisfactionEvaluator,
)
from .framework import EvaluationFramework, MetricRegression
from .running import run_suites
from .summary import status_of
from .tools import project_components

__all__ = [
    "BaseEvaluator",
    "EntityExtractionEvaluator",
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
    "run_suites",
    "status_of",
]
