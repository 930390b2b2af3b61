from .evaluation import DEFAULT_METHODS, EvaluationConfig, parse_config
from .sections import (
    CONTROLS,
    DEFAULT_CRITERIA,
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
    "DEFAULT_CRITERIA",
    "EqualTerms",
    "EvaluationConfig",
    "JudgeSettings",
    "MeasuresSettings",
    "Met",
    "OutputSettings",
    "SuccessCriterion",
    "parse_config",
]
