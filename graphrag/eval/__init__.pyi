from .annotation.ratings import Rating
from .config.evaluation import EvaluationConfig
from .monitoring import MetricPoint, MetricsCollector
from .records import EfficiencyMetrics, JudgeResult, MetricScores, QueryResult
from .results import StoredRun, list_runs
from .results.evaluation_results import EvaluationResults, MethodSummary, aggregate_results
from .runner.evaluation_runner import EvaluationRunner, run_evaluation
from .scorers.evaluable import (
    EvaluableEntity,
    EvaluableQueryResult,
    EvaluableQueryResultBuilder,
    EvaluableRelationship,
    ResultMetadata,
)
from .scorers.judge import LLMJudge
from .scorers.prompts import (
    COMPLETENESS_PROMPT,
    CORRECTNESS_PROMPT,
    FAITHFULNESS_PROMPT,
    RELEVANCE_PROMPT,
)
from .scorers.rubric import DimensionScore, LLMEvaluation, LLMEvaluationPrompt, RubricJudge
from .suite import (
    BaseEvaluator,
    EntityExtractionEvaluator,
    EvaluationFramework,
    EvaluationMetric,
    EvaluationReport,
    EvaluationResult,
    GraphConnectivityEvaluator,
    MetricRegression,
    ProcessingTimeEvaluator,
    ResponseCompletenessEvaluator,
    ResponseRelevanceEvaluator,
    TestCase,
    UserSatisfactionEvaluator,
    create_entity_extraction_test_cases,
    create_query_response_test_cases,
    project_components,
    read_test_cases,
)
from .validation import (
    DocumentProcessingValidator,
    EntityExtractionValidator,
    GraphConstructionValidator,
    PhaseValidation,
    PipelineValidationReport,
    RelationshipExtractionValidator,
    validate_index,
)
from .web.runs import write_dashboard

__all__ = [
    "COMPLETENESS_PROMPT",
    "CORRECTNESS_PROMPT",
    "FAITHFULNESS_PROMPT",
    "RELEVANCE_PROMPT",
    "BaseEvaluator",
    "DimensionScore",
    "DocumentProcessingValidator",
    "EfficiencyMetrics",
    "EntityExtractionEvaluator",
    "EntityExtractionValidator",
    "EvaluableEntity",
    "EvaluableQueryResult",
    "EvaluableQueryResultBuilder",
    "EvaluableRelationship",
    "EvaluationConfig",
    "EvaluationFramework",
    "EvaluationMetric",
    "EvaluationReport",
    "EvaluationResult",
    "EvaluationResults",
    "EvaluationRunner",
    "GraphConnectivityEvaluator",
    "GraphConstructionValidator",
    "JudgeResult",
    "LLMEvaluation",
    "LLMEvaluationPrompt",
    "LLMJudge",
    "MethodSummary",
    "MetricPoint",
    "MetricRegression",
    "MetricScores",
    "MetricsCollector",
    "PhaseValidation",
    "PipelineValidationReport",
    "ProcessingTimeEvaluator",
    "QueryResult",
    "Rating",
    "RelationshipExtractionValidator",
    "ResponseCompletenessEvaluator",
    "ResponseRelevanceEvaluator",
    "ResultMetadata",
    "RubricJudge",
    "StoredRun",
    "TestCase",
    "UserSatisfactionEvaluator",
    "aggregate_results",
    "create_entity_extraction_test_cases",
    "create_query_response_test_cases",
    "list_runs",
    "project_components",
    "read_test_cases",
    "run_evaluation",
    "validate_index",
    "write_dashboard",
]
