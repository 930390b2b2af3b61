from .checks import measure_coverage
from .report import (
    CheckResult,
    PhaseValidation,
    PipelineValidationReport,
    Status,
    Thresholds,
    format_metric,
)
from .validators import (
    DocumentProcessingValidator,
    EntityExtractionValidator,
    GraphConstructionValidator,
    RelationshipExtractionValidator,
    validate_index,
)

__all__ = [
    "CheckResult",
    "DocumentProcessingValidator",
    "EntityExtractionValidator",
    "GraphConstructionValidator",
    "PhaseValidation",
    "PipelineValidationReport",
    "RelationshipExtractionValidator",
    "Status",
    "Thresholds",
    "format_metric",
    "measure_coverage",
    "validate_index",
]
