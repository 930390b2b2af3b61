from .analysis import StoredRun, list_runs
from .config import EvaluationConfig
from .dashboard import write_dashboard
from .metrics import (
    COMPLETENESS_PROMPT,
    CORRECTNESS_PROMPT,
    FAITHFULNESS_PROMPT,
    RELEVANCE_PROMPT,
    DimensionScore,
    EvaluableEntity,
    EvaluableQueryResult,
    EvaluableQueryResultBuilder,
    EvaluableRelationship,
    LLMEvaluation,
    LLMEvaluationPrompt,
    LLMJudge,
    ResultMetadata,
    RubricJudge,
)
from .monitoring import MetricPoint, MetricsCollector
from .records import EfficiencyMetrics, JudgeResult, MetricScores, QueryResult
from .results import EvaluationResults, MethodSummary, aggregate_results
from .runner import EvaluationRunner, run_evaluation
from .validation import (
    DocumentProcessingValidator,
    EntityExtractionValidator,
    GraphConstructionValidator,
    PhaseValidation,
    PipelineValidationReport,
    RelationshipExtractionValidator,
    validate_index,
)

__all__ = [
    "COMPLETENESS_PROMPT",
    "CORRECTNESS_PROMPT",
    "FAITHFULNESS_PROMPT",
    "RELEVANCE_PROMPT",
    "DimensionScore",
    "DocumentProcessingValidator",
    "EfficiencyMetrics",
    "EntityExtractionValidator",
    "EvaluableEntity",
    "EvaluableQueryResult",
    "EvaluableQueryResultBuilder",
    "EvaluableRelationship",
    "EvaluationConfig",
    "EvaluationResults",
    "EvaluationRunner",
    "GraphConstructionValidator",
    "JudgeResult",
    "LLMEvaluation",
    "LLMEvaluationPrompt",
    "LLMJudge",
    "MethodSummary",
    "MetricPoint",
    "MetricScores",
    "MetricsCollector",
    "PhaseValidation",
    "PipelineValidationReport",
    "QueryResult",
    "RelationshipExtractionValidator",
    "ResultMetadata",
    "RubricJudge",
    "StoredRun",
    "aggregate_results",
    "list_runs",
    "run_evaluation",
    "validate_index",
    "write_dashboard",
]
