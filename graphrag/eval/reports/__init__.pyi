from .answer import describe_answer
from .audit import show_audit
from .brief import show_brief, verdict_line
from .cells import (
    has_two_means,
    mean_and_n,
    money,
    number,
    p_value,
    percent,
    points,
    share,
    span,
)
from .comparison import (
    answer_line,
    list_annotations,
    list_figure_changes,
    show_comparison,
    show_runs,
)
from .curves import (
    AREA,
    HOW,
    answer_areas,
    curve_rows,
    describe_budgets,
    list_differences,
    list_left_out,
    name_figure,
    show_curves,
)
from .gate_cells import label_of
from .gate_lines import list_flips, list_notes, list_reasons, list_unjoined, render_json, word_of
from .heartbeat import beating
from .inspect_log import check_inspect_path, inspect_pieces, place_log, render_inspect
from .judge_error import describe_uncorrected
from .junit import render_junit
from .kept import record, replay
from .lines import plain_table, say, show_table, tell
from .markdown import render_markdown
from .pair_lines import describe_comparisons, describe_documents
from .progress import BarProgress, LineProgress
from .questions import ShownQuestion, cited_rows, edges_of, is_wrong, show_question
from .ratings import render_ratings
from .row_table import check_table_file, render_table, tabulate_rows
from .run import show_results
from .run_files import (
    ShownRun,
    read_shown_run,
    remove_others,
    render_files,
    run_folder,
    set_aside,
    write_run,
)
from .run_lines import (
    describe_abstentions,
    describe_costs,
    describe_failures,
    describe_firsts,
    describe_oddities,
    describe_price,
    label_results,
)
from .sections import show_figures
from .suite import show_suite_answers, show_suites
from .tables import Table, efficiency_table, metrics_table, score_table, spent_table
from .validation import list_faults, show_faults, show_validation, show_validity

__all__ = [
    "AREA",
    "HOW",
    "BarProgress",
    "LineProgress",
    "ShownQuestion",
    "ShownRun",
    "Table",
    "answer_areas",
    "answer_line",
    "beating",
    "check_inspect_path",
    "check_table_file",
    "cited_rows",
    "curve_rows",
    "describe_abstentions",
    "describe_answer",
    "describe_budgets",
    "describe_comparisons",
    "describe_costs",
    "describe_documents",
    "describe_failures",
    "describe_firsts",
    "describe_oddities",
    "describe_price",
    "describe_uncorrected",
    "edges_of",
    "efficiency_table",
    "has_two_means",
    "inspect_pieces",
    "is_wrong",
    "label_of",
    "label_results",
    "list_annotations",
    "list_differences",
    "list_faults",
    "list_figure_changes",
    "list_flips",
    "list_left_out",
    "list_notes",
    "list_reasons",
    "list_unjoined",
    "mean_and_n",
    "metrics_table",
    "money",
    "name_figure",
    "number",
    "p_value",
    "percent",
    "place_log",
    "plain_table",
    "points",
    "read_shown_run",
    "record",
    "remove_others",
    "render_files",
    "render_inspect",
    "render_json",
    "render_junit",
    "render_markdown",
    "render_ratings",
    "render_table",
    "replay",
    "run_folder",
    "say",
    "score_table",
    "set_aside",
    "share",
    "show_audit",
    "show_brief",
    "show_comparison",
    "show_curves",
    "show_faults",
    "show_figures",
    "show_question",
    "show_results",
    "show_runs",
    "show_suite_answers",
    "show_suites",
    "show_table",
    "show_validation",
    "show_validity",
    "span",
    "spent_table",
    "tabulate_rows",
    "tell",
    "verdict_line",
    "word_of",
    "write_run",
]
