"""Which GraphRAG search method answers best, at what cost: judge, runner, results.

The names are loaded when they are first used, so that ``graphrag --help`` stays fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import graphrag_overlay

if TYPE_CHECKING:
    from graphrag.eval.config import EvaluationConfig
    from graphrag.eval.metrics.judge import LLMJudge
    from graphrag.eval.prompts import (
        COMPLETENESS_PROMPT,
        CORRECTNESS_PROMPT,
        FAITHFULNESS_PROMPT,
        RELEVANCE_PROMPT,
    )
    from graphrag.eval.records import EfficiencyMetrics, JudgeResult, MetricScores, QueryResult
    from graphrag.eval.results import EvaluationResults, MethodSummary, aggregate_results
    from graphrag.eval.runner import EvaluationRunner
    from graphrag.eval.validation import PipelineValidationReport, validate_index

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

_HOME = {
    "COMPLETENESS_PROMPT": "prompts",
    "CORRECTNESS_PROMPT": "prompts",
    "FAITHFULNESS_PROMPT": "prompts",
    "RELEVANCE_PROMPT": "prompts",
    "EfficiencyMetrics": "records",
    "EvaluationConfig": "config",
    "EvaluationResults": "results",
    "EvaluationRunner": "runner",
    "JudgeResult": "records",
    "LLMJudge": "metrics.judge",
    "MethodSummary": "results",
    "MetricScores": "records",
    "PipelineValidationReport": "validation",
    "QueryResult": "records",
    "aggregate_results": "results",
    "validate_index": "validation",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


# Without .pth processing (pip install --target, python -S) nobody has done so by now.
graphrag_overlay.activate()
