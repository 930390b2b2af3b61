"""Every table of a run, and the lines on what failed and what was paid."""

from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table as RichTable

from graphrag.eval.report.answer import GET_MISSING, describe_answer
from graphrag.eval.report.cells import share
from graphrag.eval.report.curves import show_curves
from graphrag.eval.report.judge_error import describe_uncorrected
from graphrag.eval.report.lines import plain_table, say, show_table, tell
from graphrag.eval.report.pair_lines import describe_comparisons, describe_documents
from graphrag.eval.report.run_lines import (
    describe_abstentions,
    describe_costs,
    describe_failures,
    describe_firsts,
    describe_oddities,
    describe_room,
    label_results,
)
from graphrag.eval.report.tables import (
    Table,
    efficiency_table,
    metrics_table,
    score_table,
    spent_table,
    split_columns,
)
from graphrag.eval.stats.family import describe_tests
from graphrag.text.phrases import counted

if TYPE_CHECKING:
    from graphrag.eval.results.analysis import Analysis, RepeatAnalysis
    from graphrag.eval.results.evaluation_results import EvaluationResults

_TOGETHER = (
    "All intervals hold together at 95 % confidence, and p is corrected by Holm over these pairs."
)
_MOST_INDEXES = 20  # beyond it a table of them leaves nothing else on the terminal


def show_results(console: Console, results: "EvaluationResults") -> None:
    """Print every table of a run: by method, by index, comparisons, efficiency, failures.

    The label of what embedded models produced stands at the answer, at the scores, and once for
    all that follows.

    Raises
    ------
    ValueError
        If the results hold no analysis, see :class:`EvaluationResults`.
    """
    analysis = analysis_of(results)
    show_opening(console, results, full=True)
    label = label_results(results)
    if label:
        tell(console, f"All that follows: {label}.", "bold")
    if len(results.by_movie) > _MOST_INDEXES:
        n = len(results.by_movie)
        console.print(f"The summary file has the means on each of the {n:,} indexes.")
    elif results.metrics and len(results.by_movie) > 1:
        rows = [
            (f"{movie}  {method}", outcomes)
            for movie, by_method in analysis.outcomes_by_document.items()
            for method, outcomes in by_method.items()
        ]
        title = "Mean scores by index and method in % (95 % interval each), n questions"
        for table in split_columns(metrics_table(title, results.metrics, rows)):
            show_plain(console, table)
    for line in describe_room(results):
        tell(console, line)
    if analysis.comparisons:
        title = f"Comparisons on {analysis.primary} in percentage points"
        console.print(title, style="italic")
        tell(console, _TOGETHER, "italic")
    in_family = [compared.result for compared in analysis.comparisons if compared.in_family]
    lines = [
        *describe_comparisons(analysis),
        *describe_tests(in_family),
        *describe_documents(analysis),
    ]
    for line in lines:
        tell(console, line)
    for line in describe_uncorrected(analysis):
        say(console, line)  # it ends in a command
    if results.repeats is not None:
        show_table(console, _repeats_table(results.repeats))
    show_plain(console, efficiency_table(results, analysis))
    told = (*describe_failures(results), *describe_abstentions(results))
    told = (*told, *describe_oddities(results), *describe_firsts(results))
    for line in (*describe_costs(results), *told):
        tell(console, line)


def analysis_of(results: "EvaluationResults") -> "Analysis":
    """Return the analysis of results.

    Raises
    ------
    ValueError
        If they hold none.
    """
    if results.analysis is None:
        msg = "these results hold no analysis; make them with aggregate_results"
        raise ValueError(msg)
    return results.analysis


def show_opening(console: Console, results: "EvaluationResults", *, full: bool) -> None:
    """Print the answer, the scores and what the run took, with the label of embedded models.

    ``full`` is for the table of scores at several budgets.

    Raises
    ------
    ValueError
        If the results hold no analysis.
    """
    analysis, label = analysis_of(results), label_results(results)
    note = f" ({label})" if label else ""
    for line in describe_answer(results, note):
        if line.startswith(GET_MISSING):
            say(console, line, "bold")
        else:
            tell(console, line, "bold")
    if results.curves is not None:
        show_curves(console, results.curves, label, full=full)
    main = score_table(results, analysis)
    show_plain(console, replace(main, title=f"{main.title}{note}"))
    others = metrics_table(
        "Other metrics in % (95 % interval each), n questions",
        results.metrics,
        list(analysis.outcomes.items()),
        skipped=analysis.primary,
    )
    for table in split_columns(others):
        show_plain(console, table)
    show_plain(console, spent_table(results))


def show_plain(console: Console, table: Table) -> None:
    """Print a table of texts; one without columns beside the names is nothing to show."""
    if len(table.columns) < 2:
        return
    shown = plain_table(table.columns[0], table.title)
    shown.caption = table.note
    for name in table.columns[1:]:
        shown.add_column(name, justify="right")
    for row in table.rows:
        shown.add_row(*row)
    show_table(console, shown)


def _repeats_table(repeats: "RepeatAnalysis") -> RichTable:
    table = plain_table(
        "method",
        f"What repeats change, over {counted(repeats.n_trials, 'search', 'searches')} and "
        f"{counted(repeats.n_verdicts, 'verdict')} each",
    )
    table.caption = "Flips: chance that a repeat changes a score."
    table.add_column("metric")
    for name in ("search flips", "judge flips"):
        table.add_column(name, justify="right")
    for figures in repeats.figures:
        table.add_row(
            figures.method,
            figures.metric,
            share(figures.search_flip_rate, "%"),
            share(figures.judge_flip_rate, "%"),
        )
    return table
