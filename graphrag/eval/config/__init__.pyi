from .budgets import check_pairs, read_budgets, split_name, without_budgets
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
    Variant,
)

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
    "Variant",
    "check_below",
    "check_pairs",
    "config_schema",
    "parse_config",
    "read_budgets",
    "schema_of",
    "split_name",
    "without_budgets",
]
