"""The plots of a run at several context budgets: a curve a method, scores against tokens."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from graphrag.eval.report.curves import name_figure
from graphrag.eval.results.curves import BudgetCurves

Spec: TypeAlias = dict[str, Any]
_TOKENS = "prompt tokens a question, measured (log2 scale)"


def title_curves(curves: BudgetCurves) -> dict[str, str]:
    """Return the element's id -> what stands above each plot."""
    return {
        _name(n): f"{name_figure(figure)} against prompt tokens, each with its own 95 % interval"
        for n, figure in enumerate(curves.figures)
    }


def plot_curves(
    curves: BudgetCurves,
    base: Callable[[list[Spec], str], Spec],
    colour: Callable[[Sequence[str]], Spec],
) -> dict[str, Spec]:
    """Return the element's id -> specification of each figure that has two points or more.

    ``base`` and ``colour`` give what all plots of a page share.
    """
    plots: dict[str, Spec] = {}
    for n, figure in enumerate(curves.figures):
        values = _points(curves, figure)
        if len(values) > 1:
            plots[_name(n)] = _plot(curves, figure, values, base, colour)
    return plots


def _name(n: int) -> str:
    return f"plot-curve-{n}"


def _points(curves: BudgetCurves, figure: str) -> list[Spec]:
    values: list[Spec] = []
    for curve in curves.curves:
        for point in curve.points:
            score, tokens = point.scores[figure], point.prompt_tokens.mean
            if score.mean is None or not tokens:
                continue
            values.append(
                {
                    "method": curve.method,
                    "budget": "once" if point.budget is None else f"{point.budget:,}",
                    "place": point.budget or 0,
                    "tokens": tokens,
                    "score": 100 * score.mean,
                    "low": None if score.low is None else 100 * score.low,
                    "high": None if score.high is None else 100 * score.high,
                }
            )
    return values


def _plot(
    curves: BudgetCurves,
    figure: str,
    values: list[Spec],
    base: Callable[[list[Spec], str], Spec],
    colour: Callable[[Sequence[str]], Spec],
) -> Spec:
    methods = [c.method for c in curves.curves if any(v["method"] == c.method for v in values)]
    style = colour(methods)
    x = {
        "field": "tokens",
        "type": "quantitative",
        "scale": {"type": "log", "base": 2, "padding": 16},
        "axis": {"title": _TOKENS, "tickCount": 6, "format": ",.0f"},
    }
    y = {
        "field": "score",
        "type": "quantitative",
        "scale": {"domain": [0, 100]},
        "axis": {"title": f"{name_figure(figure)} in %", "tickCount": 5},
    }
    about = f"{name_figure(figure)} against prompt tokens: a curve a method, a point a budget"
    return {
        **base(values, about),
        "height": 240,
        "encoding": {"x": x},
        "layer": [
            {
                "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
                "mark": {"type": "rule", "strokeWidth": 1},
                "encoding": {
                    "y": {**y, "field": "low"},
                    "y2": {"field": "high"},
                    "color": style["color"],
                },
            },
            {
                "mark": {"type": "line", "strokeWidth": 2},
                "encoding": {
                    "y": y,
                    "color": style["color"],
                    # By budget: a smaller one may take more tokens, in more calls.
                    "order": {"field": "place", "type": "quantitative"},
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
                "encoding": {"y": y, **style},
            },
            {
                "mark": {
                    "type": "text",
                    "dy": 14,
                    "fontSize": 10,
                    "color": "currentColor",
                },
                "encoding": {"y": y, "text": {"field": "budget", "type": "nominal"}},
            },
        ],
    }
