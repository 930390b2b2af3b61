from .evaluation_runner import (
    EfficiencyMetrics,
    EvaluationConfig,
    EvaluationRunner,
    QueryResult,
    run_evaluation,
)

__all__ = [
    "EfficiencyMetrics",
    "EvaluationConfig",
    "EvaluationRunner",
    "QueryResult",
    "run_evaluation",
]
