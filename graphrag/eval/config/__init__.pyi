from .evaluation import DEFAULT_METHODS, EvaluationConfig, parse_config
from .sections import (
    CONTROLS,
    EqualTerms,
    JudgeSettings,
    MeasuresSettings,
    Met,
    OutputSettings,
    SuccessCriterion,
)

__all__ = [
    "CONTROLS",
    "DEFAULT_METHODS",
    "EqualTerms",
    "EvaluationConfig",
    "JudgeSettings",
    "MeasuresSettings",
    "Met",
    "OutputSettings",
    "SuccessCriterion",
    "parse_config",
]
