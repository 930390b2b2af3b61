from .cases import (
    Suite,
    Thresholds,
    find_suite_files,
    parse_suite,
    read_suite,
    read_test_cases,
    suite_schema,
)
from .evaluation import (
    BaseEvaluator,
    Evaluated,
    EvaluationMetric,
    EvaluationReport,
    EvaluationResult,
    TestCase,
)
from .evaluation_file import EVALUATION_FILE, EvaluationFile, read_evaluation_file
from .example_cases import create_entity_extraction_test_cases, create_query_response_test_cases
from .framework import EvaluationFramework
from .metric_evaluators import (
    EntityExtractionEvaluator,
    GraphConnectivityEvaluator,
    ProcessingTimeEvaluator,
    ResponseCompletenessEvaluator,
    ResponseRelevanceEvaluator,
    UserSatisfactionEvaluator,
)
from .recommendations import recommend
from .regressions import MetricRegression, find_regressions
from .running import PartRegression, SuiteOutcome, hold_against, run_suite, run_suites
from .summary import (
    CaseResult,
    MethodReport,
    Performance,
    SuiteReport,
    status_of,
    summarize_suite,
    worst_status,
)
from .tools import CaseFailedError, CaseTools, project_components

__all__ = [
    "EVALUATION_FILE",
    "BaseEvaluator",
    "CaseFailedError",
    "CaseResult",
    "CaseTools",
    "EntityExtractionEvaluator",
    "Evaluated",
    "EvaluationFile",
    "EvaluationFramework",
    "EvaluationMetric",
    "EvaluationReport",
    "EvaluationResult",
    "GraphConnectivityEvaluator",
    "MethodReport",
    "MetricRegression",
    "PartRegression",
    "Performance",
    "ProcessingTimeEvaluator",
    "ResponseCompletenessEvaluator",
    "ResponseRelevanceEvaluator",
    "Suite",
    "SuiteOutcome",
    "SuiteReport",
    "TestCase",
    "Thresholds",
    "UserSatisfactionEvaluator",
    "create_entity_extraction_test_cases",
    "create_query_response_test_cases",
    "find_regressions",
    "find_suite_files",
    "hold_against",
    "parse_suite",
    "project_components",
    "read_evaluation_file",
    "read_suite",
    "read_test_cases",
    "recommend",
    "run_suite",
    "run_suites",
    "status_of",
    "suite_schema",
    "summarize_suite",
    "worst_status",
]
