from .evaluation_runner import (
    EfficiencyMetrics,
    EvaluationConfig,
    EvaluationRunner,
    QueryResult,
    run_evaluation,
)
from .methods import MethodAnswer

__all__ = [
    "EfficiencyMetrics",
    "EvaluationConfig",
    "EvaluationRunner",
    "MethodAnswer",
    "QueryResult",
    "run_evaluation",
]
