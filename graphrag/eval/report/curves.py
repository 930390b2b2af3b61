"""Scores against tokens, budget by budget: the points of the curves, and the areas under them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphrag.eval.report.cells import MISSING, mean_with_n, p_value
from graphrag.eval.report.table import METHOD, Table, Value
from graphrag.eval.results.curves import EVIDENCE
from graphrag.text.phrases import counted

if TYPE_CHECKING:
    from graphrag.eval.results.curves import BudgetCurves

HOW_CURVES = (
    "Prompt tokens: measured, the mean of a question over all calls of a search; the budget bounds "
    "only the context. Area: under the curve over log2 of the budget, divided by its width, so "
    "that each doubling counts the same. Methods are compared by their areas, not budget by "
    "budget. Each interval is for its own figure."
)


def name_figure(figure: str) -> str:
    """Return what stands above a column: a metric by its name, evidence in words."""
    return EVIDENCE.get(figure, figure)


def curves_table(curves: "BudgetCurves") -> Table:
    """Return methods x budgets: prompt tokens and scores, and the area under each curve."""
    rows: list[list[Value]] = []
    for curve in curves.curves:
        for point in curve.points:
            budget = MISSING if point.budget is None else f"{point.budget:,}"
            scores = (mean_with_n(point.scores[figure]) for figure in curves.figures)
            rows.append([curve.method, budget, point.prompt_tokens.mean, *scores])
        if curve.areas:
            areas = (mean_with_n(curve.areas[figure]) for figure in curves.figures)
            rows.append([curve.method, "area", "", *areas])
    return Table(
        "Scores against tokens, budget by budget, in % (95 % interval each)",
        [
            *(METHOD, ("budget", "tokens"), ("prompt tokens", "tokens")),
            *((name_figure(figure), "percent") for figure in curves.figures),
        ],
        rows,
        HOW_CURVES,
    )


def areas_table(curves: "BudgetCurves") -> Table:
    """Return every pair of methods on every figure's area."""
    return Table(
        "Paired differences of areas in percentage points",
        [
            *(("pair", "text"), ("area under", "text"), ("difference", "interval")),
            *(("interval", "interval"), ("p", "count"), ("larger", "text")),
        ],
        [
            [
                f"{pair.a} - {pair.b}",
                name_figure(pair.figure),
                pair.result.difference,
                (pair.result.low, pair.result.high),
                p_value(pair.result.p if pair.p_holm is None else pair.p_holm),
                "exploratory" if pair.p_holm is None else (pair.ordered or ("no difference",))[0],
            ]
            for pair in curves.differences
        ],
        "p is corrected by Holm over the pairs on the first figure; on the others each stands "
        "alone, and nothing is claimed. 95 % intervals, each for its own difference.",
    )


def describe_lost_areas(curves: "BudgetCurves") -> Iterator[str]:
    """Yield how many questions no area counts, a line each method that lacks some."""
    for curve in curves.curves:
        lacking = {f: n for f in curves.figures if (n := curve.n_left_out.get(f, 0))}
        if lacking:
            left = (f"{counted(n, 'question')} on {name_figure(f)}" for f, n in lacking.items())
            yield f"{curve.method}: the area leaves out {', '.join(left)}"
