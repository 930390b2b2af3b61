"""Whether a built index is sound, phase by phase, before questions are paid for.

Reads only the index's tables and its vector store; asks no model. Every check's meaning is in
docs/validation.md.
"""

from graphrag.eval.validation.pipeline import validate_index
from graphrag.eval.validation.records import CheckResult, PhaseReport, Status, Thresholds
from graphrag.eval.validation.report import PipelineValidationReport

__all__ = [
    "CheckResult",
    "PhaseReport",
    "PipelineValidationReport",
    "Status",
    "Thresholds",
    "validate_index",
]
