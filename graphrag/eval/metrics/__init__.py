"""The metrics: what is measured on a response, one family a module."""

from graphrag.eval.metrics.judge import JUDGED_METRICS, JudgedMetric, LLMJudge
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
    "JudgeResult",
    "JudgedMetric",
    "LLMJudge",
    "MetricScores",
]
