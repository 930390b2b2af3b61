from .config import EvaluationConfig
from .metrics import (
    COMPLETENESS_PROMPT,
    CORRECTNESS_PROMPT,
    FAITHFULNESS_PROMPT,
    RELEVANCE_PROMPT,
    LLMJudge,
)
from .records import EfficiencyMetrics, JudgeResult, MetricScores, QueryResult
from .results import EvaluationResults, MethodSummary, aggregate_results
from .runner import EvaluationRunner
from .validation import PipelineValidationReport, validate_index

__all__ = [
    "COMPLETENESS_PROMPT",
    "CORRECTNESS_PROMPT",
    "FAITHFULNESS_PROMPT",
    "RELEVANCE_PROMPT",
    "EfficiencyMetrics",
    "EvaluationConfig",
    "EvaluationResults",
    "EvaluationRunner",
    "JudgeResult",
    "LLMJudge",
    "MethodSummary",
    "MetricScores",
    "PipelineValidationReport",
    "QueryResult",
    "aggregate_results",
    "validate_index",
]
