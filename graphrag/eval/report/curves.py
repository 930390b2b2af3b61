"""Scores against tokens over several context budgets: the answer, the table, the areas."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from graphrag.eval.report.cells import MISSING, UNKNOWN, p_value, percent, points, span
from graphrag.eval.report.lines import plain_table, show_table, tell
from graphrag.eval.report.markdown import escape
from graphrag.eval.report.run_lines import label_results
from graphrag.eval.results.curves import EVIDENCE
from graphrag.text.phrases import counted

if TYPE_CHECKING:
    from graphrag.eval.results.curves import AreaDifference, BudgetCurves, Curve
    from graphrag.eval.results.evaluation_results import EvaluationResults
    from graphrag.eval.stats.intervals import Estimate

HOW = (
    "Prompt tokens are the mean a question over all calls of a search, measured; the budget bounds "
    "the context alone. Area: under the curve over log2 of the budget, by its width, so that each "
    "doubling counts alike; the mean of the questions' own areas. Methods are compared by their "
    "areas, not budget by budget. Each interval is for its own figure."
)
AREA = "area"
CURVES_HEADING = "### Scores against tokens: run "


def name_figure(figure: str) -> str:
    """Return what stands above a column: a metric by its name, evidence in words."""
    return EVIDENCE.get(figure, figure)


def answer_areas(curves: "BudgetCurves") -> str:
    """Return which method's area is shown to be the largest on the primary figure, as a clause."""
    figure = curves.primary
    known = [curve for curve in curves.curves if figure is not None and figure in curve.areas]
    if figure is None or not any(curve.areas[figure].n for curve in known):
        return "none, as no method has a score at every budget."
    cells = {curve.method: f"{curve.method} {percent(curve.areas[figure])} %" for curve in known}
    over = f"over {describe_budgets(curves)} of context"
    if len(known) == 1:
        return f"{over} the area under {name_figure(figure)} is {cells[known[0].method]}."
    if curves.winner is not None:
        rest = ", ".join(cell for method, cell in cells.items() if method != curves.winner)
        return (
            f"use {curves.winner}: {over} its area under {name_figure(figure)} is shown to be "
            f"the largest ({cells[curves.winner]}; {rest})."
        )
    return (
        f"undecided. {over[0].upper()}{over[1:]} no method's area under {name_figure(figure)} is "
        f"shown to be the largest ({', '.join(cells.values())})."
    )


def describe_budgets(curves: "BudgetCurves") -> str:
    """Return the budgets in words."""
    return f"budgets of {curves.budgets[0]:,} to {curves.budgets[-1]:,} tokens"


def curve_rows(curves: "BudgetCurves") -> list[tuple[str, ...]]:
    """Return method, budget, prompt tokens and figures; after each method's points its areas."""
    rows: list[tuple[str, ...]] = []
    for curve in curves.curves:
        rows += [
            (
                curve.method,
                MISSING if point.budget is None else f"{point.budget:,}",
                _amount(point.prompt_tokens),
                *(_mean(point.scores[figure]) for figure in curves.figures),
            )
            for point in curve.points
        ]
        if curve.areas:
            rows.append((curve.method, AREA, "", *(_mean(curve.areas[f]) for f in curves.figures)))
    return rows


def list_differences(curves: "BudgetCurves") -> list[str]:
    """Return the differences of areas, a line each pair and figure, the primary figure first."""
    return [_difference(each) for each in curves.differences]


def list_left_out(curves: "BudgetCurves") -> list[str]:
    """Return how many questions no area counts, a line each method that lacks some."""
    return [line for curve in curves.curves for line in _left_out(curve, curves.figures)]


def show_curves(console: Console, curves: "BudgetCurves", label: str | None, full: bool) -> None:
    """Print the curves as a table and the differences of their areas.

    ``full``: the differences on every figure, not on the primary one alone. ``label`` says what
    the figures must be labelled with.
    """
    note = f" ({label})" if label else ""
    title = f"Scores against tokens, budget by budget, in % (95 % interval each){note}"
    table = plain_table("method", title)
    table.caption = HOW
    for name in ("budget", "prompt tokens", *map(name_figure, curves.figures)):
        table.add_column(name, justify="right")
    before = None
    for method, *cells in curve_rows(curves):
        table.add_row("" if method == before else method, *cells)
        before = method
    show_table(console, table)
    told = [each for each in curves.differences if full or each.figure == curves.primary]
    if told:
        tell(
            console,
            "Differences of areas in percentage points; p corrected by Holm over the pairs on "
            f"{name_figure(told[0].figure)} decides, intervals are each alone",
            "italic",
        )
    for line in (*map(_difference, told), *list_left_out(curves)):
        tell(console, line)


def render_curves(results: "EvaluationResults", curves: "BudgetCurves") -> str:
    """Return the curves as Markdown, for a pull request or notes: answer, table, differences."""
    label = label_results(results)
    columns = ("method", "budget", "prompt tokens", *map(name_figure, curves.figures))
    lines = [
        f"{CURVES_HEADING}{escape(str(results.metadata.get('run_id', '')))}",
        "",
        f"Answer{f' ({escape(label)})' if label else ''}: {escape(answer_areas(curves))}",
        "",
        _row([escape(name) for name in columns]),
        _row(["---"] * len(columns)),
        *(_row([escape(cell) for cell in row]) for row in curve_rows(curves)),
        "",
        HOW,
        "",
        *(
            f"- {escape(line)}"
            for line in (
                *list_differences(curves),
                *list_left_out(curves),
                *(f"Warning: {line}" for line in results.metadata.get("warnings", ())),
            )
        ),
    ]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _difference(each: "AreaDifference") -> str:
    result = each.result
    p = f"{p_value(each.p_holm)}" if each.p_holm is not None else f"{p_value(result.p)} alone"
    left = (
        f" ({counted(result.n_dropped_pairs, 'question')} without both areas left out)"
        if result.n_dropped_pairs
        else ""
    )
    verdict = "no difference is shown" if each.larger is None else f"{each.larger} has more"
    said = f": {verdict}" if each.p_holm is not None else ""
    return (
        f"{name_figure(each.figure)}, {each.a} - {each.b}: {points(result.difference, UNKNOWN)} "
        f"({span(result.low, result.high, missing=UNKNOWN)}), {p}{said}{left}"
    )


def _left_out(curve: "Curve", figures: Sequence[str]) -> list[str]:
    lacking = {f: curve.n_left_out.get(f, 0) for f in figures}
    told = [f"{counted(n, 'question')} on {name_figure(f)}" for f, n in lacking.items() if n]
    return [f"{curve.method}: the area leaves out {', '.join(told)}"] if told else []


def _mean(estimate: "Estimate") -> str:
    return f"{percent(estimate)} n {estimate.n:,}" if estimate.n else percent(estimate)


def _amount(estimate: "Estimate") -> str:
    return MISSING if estimate.mean is None else f"{estimate.mean:,.0f}"
