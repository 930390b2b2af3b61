from .custom_methods import MethodAnswer
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
    "MethodAnswer",
    "QueryResult",
    "run_evaluation",
]
