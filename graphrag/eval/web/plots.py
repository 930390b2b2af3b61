"""The plots of a run: scores, differences, and what a score costs in tokens or dollars and time."""

from collections.abc import Mapping

from graphrag.eval.report.run_tables import by_score, name_figure
from graphrag.eval.results.analysis import Analysis
from graphrag.eval.results.curves import BudgetCurves
from graphrag.eval.results.evaluation_results import EvaluationResults
from graphrag.eval.stats.intervals import Estimate
from graphrag.eval.web.drawing import Axis, Drawing, Point, Series
from graphrag.query.usage import sum_known


def plot_run(results: EvaluationResults, analysis: Analysis) -> dict[str, Drawing]:
    """Return name -> each plot that there is something to draw for.

    Of a run at several context budgets that is a curve a method: there are not colors enough to
    tell every method at every budget.
    """
    if results.curves is not None:
        return _plot_curves(results.curves)
    medians = {m: of.latency_median.value for m, of in analysis.efficiency.items()}
    plots = {
        "scores": _plot_scores(analysis),
        "pairs": _plot_pairs(analysis),
        "cost": _plot_tradeoff(analysis, *_costs(results)),
        "latency": _plot_tradeoff(analysis, medians, "median seconds a search", "latency"),
    }
    return {name: plot for name, plot in plots.items() if plot is not None}


def _plot_scores(analysis: Analysis) -> Drawing | None:
    """Return the primary metric's mean of each method, the best on top."""
    means = {m: of[analysis.primary].mean for m, of in analysis.outcomes.items()}
    order = [method for method in by_score(analysis) if means[method].n]
    if not order:
        return None
    return Drawing(
        f"{analysis.primary} in %, with its 95 % interval",
        f"Mean {analysis.primary} of each method with its 95 % interval, the best on top",
        [Series("", 0, [_point(means[m], m, row) for row, m in enumerate(order)])],
        Axis("", (0, 100)),
        Axis("", (-0.5, len(order) - 0.5), list(enumerate(order))),
        height=34 * len(order),
        in_rows=True,
    )


def _point(of: Estimate, title: str, y: float) -> Point:
    low, high = (None if limit is None else 100 * limit for limit in (of.low, of.high))
    mean = 100 * (of.mean or 0)
    return Point(mean, y, f"{title}: {mean:.1f} %", low, high)


def _plot_pairs(analysis: Analysis) -> Drawing | None:
    points: list[Point] = []
    names: list[str] = []
    for each in analysis.comparisons:
        family, difference = each.family, each.result.difference
        if not each.in_family or each.is_corrected or family is None or difference is None:
            continue
        limits = (family.low_simultaneous, family.high_simultaneous)
        if None not in limits:
            names.append(f"{each.a} - {each.b}")
            title = f"{names[-1]}: {100 * difference:+.1f} points"
            low, high = (100 * (limit or 0) for limit in limits)
            points.append(Point(100 * difference, len(points), title, low, high))
    if not points:
        return None
    return Drawing(
        f"Differences on {analysis.primary}, question by question; right of 0 the first is better",
        "Paired differences between methods; all intervals hold together at 95 %",
        [Series("", 0, points)],
        Axis("percentage points"),
        Axis("", (-0.5, len(names) - 0.5), list(enumerate(names))),
        height=30 * len(names),
        in_rows=True,
        marked=0,
    )


def _plot_tradeoff(
    analysis: Analysis, amounts: Mapping[str, float | None], title: str, what: str = "cost"
) -> Drawing | None:
    """Return the score against what a question costs, or how long it takes."""
    series: list[Series] = []
    for style, (method, of) in enumerate(analysis.outcomes.items()):
        mean, amount = of[analysis.primary].mean.mean, amounts.get(method)
        if mean is not None and amount is not None:
            told = f"{method}: {100 * mean:.1f} % at {amount:.4g} {title}"
            ringed = bool(analysis.efficiency[method].is_pareto)
            point = Point(amount, 100 * mean, told, is_ringed=ringed)
            series.append(Series(method, style, [point]))
    if len(series) < 2:
        return None
    return Drawing(
        f"{analysis.primary} in % against {what}; a ring marks a method that no other beats in "
        "score, tokens and seconds at once",
        f"{analysis.primary} against {title}; rings mark methods that no other beats in all",
        series,
        Axis(title, (0, 1.05 * max(each.points[0].x for each in series) or 1)),
        Axis(),
    )


def _costs(results: EvaluationResults) -> tuple[dict[str, float | None], str]:
    efficiency, counts = results.efficiency, results.counts
    dollars = {m: of["cost_usd"] for m, of in efficiency.items()}
    ns = {m: counts[m]["n"] for m in efficiency}
    if None not in dollars.values() and any(dollars.values()) and all(ns.values()):
        return {m: dollars[m] / ns[m] for m in efficiency}, "US dollars a question"
    parts = ("avg_prompt_tokens", "avg_output_tokens")
    tokens = {m: sum_known(of[name] for name in parts) for m, of in efficiency.items()}
    return tokens, "tokens a question"


def _plot_curves(curves: BudgetCurves) -> dict[str, Drawing]:
    """Return a plot of each figure that has two points or more: a curve a method."""
    plots: dict[str, Drawing] = {}
    for n, figure in enumerate(curves.figures):
        series: list[Series] = []
        for style, curve in enumerate(curves.curves):
            # By budget: a smaller one may take more tokens, in more calls.
            ordered = sorted(curve.points, key=lambda each: each.budget or 0)
            points: list[Point] = []
            for each in ordered:
                score, tokens = each.scores[figure], each.prompt_tokens.mean
                if score.mean is not None and tokens:
                    budget = "once" if each.budget is None else f"{each.budget:,}"
                    at = _point(score, f"{curve.method}, {budget}", 0)
                    points.append(Point(tokens, at.x, at.title, at.low, at.high, budget))
            if points:
                series.append(Series(curve.method, style, points, is_joined=True))
        if sum(len(each.points) for each in series) > 1:
            name = name_figure(figure)
            plots[f"curve-{n}"] = Drawing(
                f"{name} in % against prompt tokens, each with its own 95 % interval",
                f"{name} against prompt tokens: a curve a method, a point a budget",
                series,
                Axis("prompt tokens a question, measured (log2 scale)", is_log2=True),
                Axis("", (0, 100), [(tick, str(tick)) for tick in range(0, 101, 25)]),
                height=230,
            )
    return plots
