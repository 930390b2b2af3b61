from .evaluation import DEFAULT_METHODS, EvaluationConfig, parse_config
from .file_schema import DRAFT, config_schema, schema_of
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
    "DRAFT",
    "EqualTerms",
    "EvaluationConfig",
    "JudgeSettings",
    "MeasuresSettings",
    "Met",
    "OutputSettings",
    "SuccessCriterion",
    "check_below",
    "check_store_url",
    "config_schema",
    "name_store",
    "parse_config",
    "schema_of",
    "without_password",
]
