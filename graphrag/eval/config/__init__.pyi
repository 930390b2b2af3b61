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
from .store_url import check_store_url, name_store, without_password

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
    "check_store_url",
    "name_store",
    "parse_config",
    "without_password",
]
