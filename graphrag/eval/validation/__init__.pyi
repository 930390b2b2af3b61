from .coverage import measure_coverage
from .pipeline import validate_index
from .records import CheckResult, PhaseReport, Status, Thresholds
from .report import PipelineValidationReport, format_metric

__all__ = [
    "CheckResult",
    "PhaseReport",
    "PipelineValidationReport",
    "Status",
    "Thresholds",
    "format_metric",
    "measure_coverage",
    "validate_index",
]
