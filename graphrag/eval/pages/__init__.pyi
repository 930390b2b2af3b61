from .baseline import Baseline
from .cell import render_cell
from .library import drawing_library, is_library_ready, page_style
from .report import ReportInput, render_report, report_pieces

__all__ = [
    "Baseline",
    "ReportInput",
    "drawing_library",
    "is_library_ready",
    "page_style",
    "render_cell",
    "render_report",
    "report_pieces",
]
