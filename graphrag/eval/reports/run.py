"""Every table of a run, and the lines on what failed and what was paid."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from graphrag.eval.reports.answer import describe_answer
from graphrag.eval.reports.cells import (
    EACH_ALONE,
    MISSING,
    UNSCORED,
    mean_cell,
    money,
    number,
    percent,
    seconds,
    share,
    unfinished,
)
from graphrag.eval.reports.curves import show_curves
from graphrag.eval.reports.judge_error import describe_judge_error
from graphrag.eval.reports.lines import plain_table, say, show_table, tell
from graphrag.eval.reports.pair_lines import (
    describe_comparisons,
    describe_documents,
    describe_race,
    describe_repeats,
)
from graphrag.eval.reports.run_lines import (
    describe_abstentions,
    describe_asked,
    describe_costs,
    describe_failures,
    describe_oddities,
    describe_room,
    is_paid,
    label_results,
)
from graphrag.eval.statistics import describe_tests
from graphrag.text.phrases import counted

if TYPE_CHECKING:
    from graphrag.eval.analysis import Analysis, RepeatAnalysis
    from graphrag.eval.results import EvaluationResults
    from graphrag.eval.statistics import (
        Estimate,
        Outcomes,
        VarianceComponents,
    )

_HOLM = "Intervals of 95 %, not corrected; p corrected by Holm over these pairs."
_TOGETHER = (
    "All intervals hold together at 95 % confidence, and p is corrected by Holm over these pairs."
)
_MOST_INDEXES = 20  # beyond it a table of them leaves nothing else on the terminal
_MOST_METRICS = 4  # columns of "100 (98-100)" beside the methods' names
_MEAN_WIDTH = 12
_PERMUTED = "Differences between the means of questions, by a permutation test."


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
    show_opening(console, results, "Mean scores by method in % (95 % interval)", full=True)
    if results.metrics:
        tell(console, EACH_ALONE, "italic")
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
        title = "Mean scores by index and method in %"
        for table in outcomes_tables(title, results.metrics, rows):
            show_table(console, table)
    for line in (*describe_room(results), *describe_asked(results)):
        tell(console, line)
    if analysis.comparisons:
        title = f"Comparisons on {analysis.primary} in percentage points"
        console.print(title, style="italic")
        tell(console, _TOGETHER, "italic")
    in_family = [compared.result for compared in analysis.comparisons if compared.in_family]
    lines = [
        *describe_race(results),
        *describe_comparisons(analysis),
        *describe_tests(in_family),
        *describe_documents(analysis),
    ]
    for line in lines:
        tell(console, line)
    for line in describe_judge_error(analysis, results.metadata.get("run_id")):
        say(console, line)  # it ends in a command
    if results.repeats is not None:
        show_table(console, _repeats_table(results.repeats))
        if lines := describe_repeats(results.repeats, analysis.primary):
            tell(console, f"{_PERMUTED} {_HOLM}", "italic")
        for line in lines:
            tell(console, line)
    show_table(console, _efficiency_table(results, analysis))
    told = (*describe_failures(results), *describe_abstentions(results))
    for line in (*describe_costs(results), *told, *describe_oddities(results)):
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


def show_opening(console: Console, results: "EvaluationResults", title: str, *, full: bool) -> None:
    """Print the answer and the scores, each with the label of what embedded models produced.

    ``title`` is that of the scores; ``full`` is for the table of scores at several budgets.

    Raises
    ------
    ValueError
        If the results hold no analysis.
    """
    analysis, label = analysis_of(results), label_results(results)
    note = f" ({label})" if label else ""
    for line in describe_answer(results, note):
        tell(console, line, "bold")
    if results.curves is not None:
        show_curves(console, results.curves, label, full=full)
    rows = list(analysis.outcomes.items())
    for table in (
        outcomes_tables(f"{title}{note}", results.metrics, rows) if results.metrics else ()
    ):
        show_table(console, table)


def outcomes_tables(
    title: str, metrics: Sequence[str], rows: Sequence[tuple[str, Mapping[str, "Outcomes"]]]
) -> list[Table]:
    """Return the means of methods as tables that 80 columns hold, the title on the first.

    A metric that is 100 % in every row, with no search unjudged, is no column but a sentence below.
    """
    full = [m for m in metrics if len(rows) > 1 and all(_is_full(found[m]) for _, found in rows)]
    shown = [metric for metric in metrics if metric not in full]
    tables: list[Table] = []
    for start in range(0, len(shown), _MOST_METRICS) if shown else (0,):
        table = plain_table("method", title if start == 0 else "")
        part = shown[start : start + _MOST_METRICS]
        for metric in part:
            table.add_column(metric, justify="right", min_width=_MEAN_WIDTH)
        for name, outcomes in rows:
            table.add_row(name, *(mean_cell(outcomes[metric]) for metric in part))
        tables.append(table)
    if full:
        told = ", ".join(f"{m}{_lowest(found[m] for _, found in rows)}" for m in full)
        tables[-1].caption = f"100 % in every row: {told}."
    return tables


def _is_full(outcomes: "Outcomes") -> bool:
    return _estimate(outcomes).mean == 1


def _estimate(outcomes: "Outcomes") -> "Estimate":
    return outcomes.end_to_end or outcomes.given_answer


def _lowest(outcomes: Iterable["Outcomes"]) -> str:
    """Return the widest interval of means that are all 1, in per cent."""
    estimates = [_estimate(each) for each in outcomes]
    widest = min(estimates, key=lambda each: 1 if each.low is None else each.low)
    return percent(widest).removeprefix("100")


def _repeats_table(repeats: "RepeatAnalysis") -> Table:
    table = plain_table(
        "method",
        f"Means of questions in % over {counted(repeats.n_trials, 'search', 'searches')} and "
        f"{counted(repeats.n_verdicts, 'verdict')} each"
        + (", all searches" if repeats.n_trials > 1 else ""),
    )
    table.caption = (
        "Flips: chance that a repeat changes a score. Variance: shares of question, search and "
        "judge in the variance of one score; + joins what these repeats can't tell apart, "
        "clipped is an estimate below 0, taken as 0. Better repeat: what lowers the variance "
        "of the mean more for what it costs, where that is sure at a level of 5 %. "
        f"{EACH_ALONE}"
    )
    table.add_column("metric")
    for name in ("mean", "search flips", "judge flips", "variance q/s/j", "better repeat"):
        table.add_column(name, justify="right")
    for figures in repeats.figures:
        table.add_row(
            figures.method,
            figures.metric,
            percent(figures.mean, UNSCORED),
            share(figures.search_flip_rate, "%"),
            share(figures.judge_flip_rate, "%"),
            _variance_cell(figures.variance),
            figures.variance.best_repeat or MISSING,
        )
    return table


def _variance_cell(variance: "VarianceComponents") -> str:
    """Return the share of each source, by the letters of what it joins where there are several."""
    known = {name: part for name, part in variance.shares.items() if part is not None}
    if not known:
        return MISSING
    cells = [
        "clipped" if name in variance.clipped else format(part, ".0%")
        for name, part in known.items()
    ]
    if "search" in known:
        return "/".join(cells)
    letters = ["+".join(factor[0] for factor in name.split(" + ")) for name in known]
    # As the sources lie in each other: what joins the search comes first or last.
    named = sorted(zip(letters, cells, strict=True), key=lambda pair: "qsj".index(pair[0][0]))
    return ", ".join(f"{letter} {cell}" for letter, cell in named)


def _efficiency_table(results: "EvaluationResults", analysis: "Analysis") -> Table:
    paid = is_paid(results)
    table = plain_table("method", "Efficiency of the searches")
    table.caption = (
        f"LLM calls and tokens are means a question{', cost is the sum' if paid else ''}. Pareto: "
        "no other method is as good in the point estimates of score, tokens and median, and better "
        f"in one; chance is not weighed.{_unfinished_note(analysis)}"
    )
    dollars = ("cost $", "$ a correct") if paid else ()
    for name in ("median s", "p95 s", "LLM calls", "tokens", *dollars, "Pareto"):
        table.add_column(name, justify="right")
    for method, figures in results.efficiency.items():
        further = analysis.efficiency[method]
        prices = (money(figures["cost_usd"]), money(further.cost_per_correct.value))
        table.add_row(
            method,
            seconds(further.latency_median) + unfinished(further.latency_median),
            seconds(further.latency_p95) + unfinished(further.latency_p95),
            number(figures["avg_llm_calls"]),
            number(total_of(figures["avg_prompt_tokens"], figures["avg_output_tokens"]), ",.0f"),
            *(prices if paid else ()),
            MISSING if further.is_pareto is None else "yes" if further.is_pareto else "no",
        )
    return table


def _unfinished_note(analysis: "Analysis") -> str:
    if not any(found.latency_median.censored_share for found in analysis.efficiency.values()):
        return ""
    return " Unfinished: searches that failed; they count as slower than all others."


def total_of(*parts: float | None) -> float | None:
    """Return a sum; None where a part of it is not known."""
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None
