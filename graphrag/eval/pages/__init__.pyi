from .baseline import Baseline
from .library import drawing_library, is_library_ready
from .report import ReportInput, render_report

__all__ = [
    "Baseline",
    "ReportInput",
    "drawing_library",
    "is_library_ready",
    "render_report",
]
