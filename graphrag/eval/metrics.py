"""What a judge gives: verdicts, grades and preferences."""

from graphrag.eval.records.verdicts import JudgeResult, MetricScores
from graphrag.eval.scorers.evaluable import (
    EvaluableEntity,
    EvaluableQueryResult,
    EvaluableQueryResultBuilder,
    EvaluableRelationship,
    ResultMetadata,
)
from graphrag.eval.scorers.judge import (
    COMPLETENESS_PROMPT,
    CORRECTNESS_PROMPT,
    FAITHFULNESS_PROMPT,
    RELEVANCE_PROMPT,
    LLMJudge,
)
from graphrag.eval.scorers.quality import QualityEvaluation, QualityJudge
from graphrag.eval.scorers.rubric import (
    DimensionScore,
    LLMEvaluation,
    LLMEvaluationPrompt,
    RubricJudge,
)
from graphrag.eval.scorers.scorer import Material, Scorer, graded

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
    "Material",
    "MetricScores",
    "QualityEvaluation",
    "QualityJudge",
    "ResultMetadata",
    "RubricJudge",
    "Scorer",
    "graded",
]
