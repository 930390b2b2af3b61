from .cases import (
    Suite,
    SuiteCase,
    Thresholds,
    find_suite_files,
    parse_suite,
    read_suite,
    read_test_cases,
)
from .components import project_components
from .evaluation import (
    BaseEvaluator,
    EvaluationMetric,
    EvaluationReport,
    EvaluationResult,
    TestCase,
)
from .evaluation_file import EVALUATION_FILE, EvaluationFile, read_evaluation_file
from .evaluators import EntityExtraction, Evaluated, Evaluator, QueryResponse
from .example_cases import create_entity_extraction_test_cases, create_query_response_test_cases
from .framework import EvaluationFramework
from .kept_results import KeptResult, read_kept_results
from .metric_evaluators import (
    EntityExtractionEvaluator,
    GraphConnectivityEvaluator,
    ProcessingTimeEvaluator,
    ResponseCompletenessEvaluator,
    ResponseRelevanceEvaluator,
    UserSatisfactionEvaluator,
)
from .metric_suites import (
    GraphConnectivity,
    ProcessingTime,
    ResponseCompleteness,
    ResponseRelevance,
)
from .recommendations import recommend
from .regressions import MetricRegression, PartRegression, compare_parts, find_regressions
from .report_faces import describe_reports
from .running import SuiteOutcome, hold_against, run_suite, run_suites
from .suite_schema import suite_schema
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
    "EVALUATION_FILE",
    "BaseEvaluator",
    "CaseFailedError",
    "CaseResult",
    "CaseTools",
    "EntityExtraction",
    "EntityExtractionEvaluator",
    "Evaluated",
    "EvaluationFile",
    "EvaluationFramework",
    "EvaluationMetric",
    "EvaluationReport",
    "EvaluationResult",
    "Evaluator",
    "GraphConnectivity",
    "GraphConnectivityEvaluator",
    "KeptResult",
    "MethodReport",
    "MetricRegression",
    "PartRegression",
    "Performance",
    "ProcessingTime",
    "ProcessingTimeEvaluator",
    "QueryResponse",
    "ResponseCompleteness",
    "ResponseCompletenessEvaluator",
    "ResponseRelevance",
    "ResponseRelevanceEvaluator",
    "Suite",
    "SuiteCase",
    "SuiteOutcome",
    "SuiteReport",
    "SuiteStatus",
    "TestCase",
    "Thresholds",
    "UserSatisfactionEvaluator",
    "compare_parts",
    "create_entity_extraction_test_cases",
    "create_query_response_test_cases",
    "describe_reports",
    "find_regressions",
    "find_suite_files",
    "hold_against",
    "parse_suite",
    "project_components",
    "read_evaluation_file",
    "read_kept_results",
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
