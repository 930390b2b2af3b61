from .cases import (
    Thresholds,
    create_entity_extraction_test_cases,
    create_query_response_test_cases,
    find_suite_files,
    parse_suite,
    read_suite,
    read_test_cases,
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
from .project_adapters import project_components
from .run_suites import run_suites
from .summary import status_of
from .types import (
    BaseEvaluator,
    EvaluationMetric,
    EvaluationReport,
    EvaluationResult,
    TestCase,
)

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
