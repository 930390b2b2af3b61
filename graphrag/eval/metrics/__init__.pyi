from .asking import NO_REASON, whole_number
from .evaluable import (
    EvaluableQueryResult,
    EvaluableQueryResultBuilder,
    ResultMetadata,
    read_entity_types,
)
from .evaluable_items import EvaluableEntity, EvaluableRelationship
from .evaluation import DimensionScore, LLMEvaluation, RubricReply
from .judge import (
    JUDGED_METRICS,
    Judge,
    JudgeReply,
    JudgeResult,
    LLMJudge,
    MetricScores,
)
from .pairwise import (
    OrderVerdict,
    PairwiseJudge,
    PairwiseReply,
    PairwiseResult,
    PreferenceSummary,
    summarize_preferences,
)
from .prompts import COMPLETENESS_PROMPT, CORRECTNESS_PROMPT, FAITHFULNESS_PROMPT, RELEVANCE_PROMPT
from .prompts.pairwise import PAIRWISE_PROMPT, PAIRWISE_VERSION
from .prompts.quality import QUALITY_MEASURES, QUALITY_PROMPT, QUALITY_VERSION
from .prompts.rubric import DIMENSIONS, RUBRIC_PROMPT, RUBRIC_VERSION
from .quality import QualityEvaluation, QualityJudge, QualityReply
from .rubric import DimensionSummary, RubricJudge, summarize_rubric
from .rubric_prompt import LLMEvaluationPrompt, preview

__all__ = [
    "COMPLETENESS_PROMPT",
    "CORRECTNESS_PROMPT",
    "DIMENSIONS",
    "FAITHFULNESS_PROMPT",
    "JUDGED_METRICS",
    "NO_REASON",
    "PAIRWISE_PROMPT",
    "PAIRWISE_VERSION",
    "QUALITY_MEASURES",
    "QUALITY_PROMPT",
    "QUALITY_VERSION",
    "RELEVANCE_PROMPT",
    "RUBRIC_PROMPT",
    "RUBRIC_VERSION",
    "DimensionScore",
    "DimensionSummary",
    "EvaluableEntity",
    "EvaluableQueryResult",
    "EvaluableQueryResultBuilder",
    "EvaluableRelationship",
    "Judge",
    "JudgeReply",
    "JudgeResult",
    "LLMEvaluation",
    "LLMEvaluationPrompt",
    "LLMJudge",
    "MetricScores",
    "OrderVerdict",
    "PairwiseJudge",
    "PairwiseReply",
    "PairwiseResult",
    "PreferenceSummary",
    "QualityEvaluation",
    "QualityJudge",
    "QualityReply",
    "ResultMetadata",
    "RubricJudge",
    "RubricReply",
    "preview",
    "read_entity_types",
    "summarize_preferences",
    "summarize_rubric",
    "whole_number",
]
