"""What a judge gives: verdicts, grades and preferences."""

from graphrag.eval.records import JudgeResult, MetricScores
from graphrag.eval.scorers.evaluable import (
    EvaluableQueryResult,
    EvaluableQueryResultBuilder,
    ResultMetadata,
)
from graphrag.eval.scorers.evaluable_items import EvaluableEntity, EvaluableRelationship
from graphrag.eval.scorers.judge import LLMJudge
from graphrag.eval.scorers.llm_evaluation import DimensionScore, LLMEvaluation
from graphrag.eval.scorers.prompts import (
    COMPLETENESS_PROMPT,
    CORRECTNESS_PROMPT,
    FAITHFULNESS_PROMPT,
    RELEVANCE_PROMPT,
)
from graphrag.eval.scorers.quality import QualityEvaluation, QualityJudge
from graphrag.eval.scorers.rubric import RubricJudge
from graphrag.eval.scorers.rubric_prompt import LLMEvaluationPrompt

__all__ = [
    "COMPLETENESS_PROMPT",
    "CORRECTNESS_PROMPT",
    "FAITHFULNESS_PROMPT",
    "RELEVANCE_PROMPT",
    "DimensionScore",
    "EvaluableEntity",
    "EvaluableQueryResult",
    "EvaluableQueryResultBuilder",
    "EvaluableRelationship",
    "JudgeResult",
    "LLMEvaluation",
    "LLMEvaluationPrompt",
    "LLMJudge",
    "MetricScores",
    "QualityEvaluation",
    "QualityJudge",
    "ResultMetadata",
    "RubricJudge",
]
