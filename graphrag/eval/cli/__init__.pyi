from .app import app
from .audit import AuditExportOptions, run_audit_export, run_audit_import
from .location import Place
from .optimise import find_roots, list_vector_warnings, run_optimise
from .ratings import run_ratings
from .suite import SuiteOptions, run_suite_command
from .validate import ValidateOptions, run_validate, validate_indexes

__all__ = [
    "AuditExportOptions",
    "Place",
    "SuiteOptions",
    "ValidateOptions",
    "app",
    "find_roots",
    "list_vector_warnings",
    "run_audit_export",
    "run_audit_import",
    "run_optimise",
    "run_ratings",
    "run_suite_command",
    "run_validate",
    "validate_indexes",
]
