from .evaluation import DEFAULT_METHODS, EvaluationConfig, parse_config
from .places import check_below
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
    "DEFAULT_CRITERIA",
    "DEFAULT_METHODS",
    "EqualTerms",
    "EvaluationConfig",
    "JudgeSettings",
    "MeasuresSettings",
    "Met",
    "OutputSettings",
    "SuccessCriterion",
    "check_below",
    "parse_config",
]
