from .evaluation import EvaluationConfig, parse_config
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
    "EqualTerms",
    "EvaluationConfig",
    "JudgeSettings",
    "MeasuresSettings",
    "Met",
    "OutputSettings",
    "SuccessCriterion",
    "parse_config",
]
