from .audit import show_audit
from .cells import p_value, share
from .comparison import (
    list_annotations,
    list_figure_changes,
    render_junit,
    render_markdown,
    show_comparison,
    show_runs,
)
from .gate_lines import list_reasons, list_unjoined, render_json
from .lines import say
from .progress import BarProgress, LineProgress
from .ratings import render_ratings
from .row_table import check_table_file, render_table, tabulate_rows
from .run import describe_failures, describe_price, label_results, show_results
from .run_files import (
    ShownRun,
    read_shown_run,
    remove_others,
    render_files,
    run_folder,
    set_aside,
    write_run,
)
from .sections import show_figures
from .suite import show_suite
from .validation import show_faults, show_validation

__all__ = [
    "BarProgress",
    "LineProgress",
    "ShownRun",
    "check_table_file",
    "describe_failures",
    "describe_price",
    "label_results",
    "list_annotations",
    "list_figure_changes",
    "list_reasons",
    "list_unjoined",
    "p_value",
    "read_shown_run",
    "remove_others",
    "render_files",
    "render_json",
    "render_junit",
    "render_markdown",
    "render_ratings",
    "render_table",
    "run_folder",
    "say",
    "set_aside",
    "share",
    "show_audit",
    "show_comparison",
    "show_faults",
    "show_figures",
    "show_results",
    "show_runs",
    "show_suite",
    "show_validation",
    "tabulate_rows",
    "write_run",
]
