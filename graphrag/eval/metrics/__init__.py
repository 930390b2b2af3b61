"""The metrics: what is measured on a response, one family a module."""

from graphrag.eval.metrics.evaluable import EvaluableQueryResult, EvaluableQueryResultBuilder
from graphrag.eval.metrics.judge import JUDGED_METRICS, JudgedMetric, LLMJudge
from graphrag.eval.metrics.pairwise import PairwiseJudge
from graphrag.eval.metrics.quality import QualityJudge
from graphrag.eval.metrics.rubric import LLMEvaluation, LLMEvaluationPrompt, RubricJudge
from graphrag.eval.prompts import (
    COMPLETENESS_PROMPT,
    CORRECTNESS_PROMPT,
    FAITHFULNESS_PROMPT,
    RELEVANCE_PROMPT,
)
from graphrag.eval.records import JudgeResult, MetricScores

__all__ = [
    "COMPLETENESS_PROMPT",
    "CORRECTNESS_PROMPT",
    "FAITHFULNESS_PROMPT",
    "JUDGED_METRICS",
    "RELEVANCE_PROMPT",
    "EvaluableQueryResult",
    "EvaluableQueryResultBuilder",
    "JudgeResult",
    "JudgedMetric",
    "LLMEvaluation",
    "LLMEvaluationPrompt",
    "LLMJudge",
    "MetricScores",
    "PairwiseJudge",
    "QualityJudge",
    "RubricJudge",
]
