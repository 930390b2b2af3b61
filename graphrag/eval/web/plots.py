"""The page's plots, as Vega-Lite specifications; colours are the style sheet's own."""

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

from graphrag.eval.results.analysis import Analysis
from graphrag.eval.results.evaluation_results import EvaluationResults
from graphrag.eval.web.curve_plots import plot_curves, title_curves

Spec: TypeAlias = dict[str, Any]
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
N_STYLES = len(_SHAPES)


def make_plots(results: EvaluationResults, analysis: Analysis) -> dict[str, Spec]:
    """Return the element's id -> specification of each plot that there is something to draw for.

    Of a run at several context budgets that is a curve a method: there are not colours enough to
    tell every method at every budget.
    """
    methods = list(analysis.outcomes)
    plots: dict[str, Spec | None] = {}
    if results.curves is not None:
        plots |= plot_curves(results.curves, _base, _colour)
    else:
        plots |= _plots_of_methods(results, analysis, methods)
    return {name: _on_one_line(spec) for name, spec in plots.items() if spec is not None}


def _plots_of_methods(
    results: EvaluationResults, analysis: Analysis, methods: Sequence[str]
) -> dict[str, Spec | None]:
    return {
        "plot-means": _means(analysis, methods, results.metrics),
        "plot-pairs": _pairs(analysis),
        "plot-cost": _tradeoff(results, analysis, methods, "cost"),
        "plot-latency": _tradeoff(results, analysis, methods, "latency"),
    }


def _on_one_line(value: Any) -> Any:
    """Return a specification whose names break no line: Vega makes expressions of them."""
    if isinstance(value, dict):
        return {k: _on_one_line(v) for k, v in cast("Spec", value).items()}
    if isinstance(value, list):
        return [_on_one_line(each) for each in cast("list[Any]", value)]
    return " ".join(value.splitlines()) if isinstance(value, str) else value


def title_plots(results: EvaluationResults, analysis: Analysis) -> dict[str, str]:
    """Return the element's id -> what stands above each plot."""
    if results.curves is not None:
        return title_curves(results.curves)
    primary = analysis.primary
    ring = "a ring: not outdone in score, tokens and seconds together"
    return {
        "plot-means": "Mean scores, each with its own 95 % interval",
        "plot-pairs": f"Differences on {primary}, question by question; right of 0 the first is "
        "better",
        "plot-cost": f"{primary} against cost; {ring}",
        "plot-latency": f"{primary} against latency; {ring}",
    }


def _colour(methods: Sequence[str]) -> Spec:
    n = len(methods)
    return {
        "color": {
            "field": "method",
            "type": "nominal",
            "scale": {
                "domain": list(methods),
                "range": [f"var(--m{i % N_STYLES})" for i in range(n)],
            },
            "legend": {"orient": "top", "title": None, "columns": 4},
        },
        "shape": {
            "field": "method",
            "type": "nominal",
            "scale": {"domain": list(methods), "range": [_SHAPES[i % N_STYLES] for i in range(n)]},
            "legend": {"orient": "top", "title": None, "columns": 4},
        },
    }


def _base(values: list[Spec], about: str) -> Spec:
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "description": about,
        "width": "container",
        "data": {"values": values},
        "config": {
            "background": None,
            "font": "system-ui, sans-serif",
            "view": {"stroke": None},
            "axis": {
                "labelColor": "currentColor",
                "titleColor": "currentColor",
                "gridColor": "var(--line)",
                "domainColor": "var(--line)",
                "tickColor": "var(--line)",
                "labelFontSize": 12,
                "titleFontSize": 12,
                "titleFontWeight": "normal",
                "labelLimit": 130,
            },
            "legend": {
                "labelColor": "currentColor",
                "titleColor": "currentColor",
                "labelFontSize": 12,
                "symbolStrokeWidth": 0,
            },
        },
    }


def _means(analysis: Analysis, methods: Sequence[str], metrics: Sequence[str]) -> Spec | None:
    values: list[Spec] = []
    for metric in metrics:
        for method in methods:
            found = analysis.outcomes[method][metric]
            each = found.mean
            if each.mean is not None:
                limits = [None if v is None else 100 * v for v in (each.low, each.high)]
                values.append(
                    {
                        "metric": metric,
                        "method": method,
                        "mean": 100 * each.mean,
                        "low": limits[0],
                        "high": limits[1],
                    }
                )
    if not values:
        return None
    rows = {
        "y": {"field": "metric", "type": "nominal", "sort": list(metrics), "title": None},
        "yOffset": {"field": "method", "type": "nominal", "sort": list(methods)},
    }
    colour = _colour(methods)
    axis = {"title": "mean score in %"}
    return {
        **_base(values, "Mean score of each method on each metric, with 95 % intervals"),
        "height": len({each["metric"] for each in values}) * max(46, 16 * len(methods)),
        "encoding": rows,
        "layer": [
            {
                "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {
                    "x": {
                        "field": "low",
                        "type": "quantitative",
                        "scale": {"domain": [0, 100]},
                        "axis": axis,
                    },
                    "x2": {"field": "high"},
                    "color": colour["color"],
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                "encoding": {
                    "x": {"field": "mean", "type": "quantitative", "axis": axis},
                    **colour,
                },
            },
        ],
    }


def _pairs(analysis: Analysis) -> Spec | None:
    values: list[Spec] = []
    for each in analysis.comparisons:
        family, result = each.family, each.result
        if not each.in_family or each.is_corrected or family is None or result.difference is None:
            continue
        if family.low_simultaneous is None or family.high_simultaneous is None:
            continue
        values.append(
            {
                "pair": f"{each.a} - {each.b}",
                "difference": 100 * result.difference,
                "low": 100 * family.low_simultaneous,
                "high": 100 * family.high_simultaneous,
            }
        )
    if not values:
        return None
    x = {
        "type": "quantitative",
        "axis": {"title": "percentage points"},
        "scale": {"zero": True, "nice": True},
    }
    row = {"field": "pair", "type": "nominal", "sort": None, "title": None}
    return {
        **_base(values, "Paired differences between methods; all intervals hold together at 95 %"),
        "height": 34 * len(values),
        "layer": [
            {
                "data": {"values": [{"zero": 0}]},
                "mark": {"type": "rule", "color": "currentColor", "strokeDash": [4, 3]},
                "encoding": {"x": {"field": "zero", **x}},
            },
            {
                "mark": {"type": "rule", "strokeWidth": 2.5, "color": "var(--m0)"},
                "encoding": {"y": row, "x": {"field": "low", **x}, "x2": {"field": "high"}},
            },
            {
                "mark": {
                    "type": "point",
                    "filled": True,
                    "size": 80,
                    "opacity": 1,
                    "color": "var(--m0)",
                },
                "encoding": {"y": row, "x": {"field": "difference", **x}},
            },
        ],
    }


def _tradeoff(
    results: EvaluationResults, analysis: Analysis, methods: Sequence[str], what: str
) -> Spec | None:
    """Return correctness against what a question costs, or how long it takes."""
    amounts, title = _amounts(results, analysis, what)
    values: list[Spec] = []
    for method in methods:
        found = analysis.outcomes[method][analysis.primary]
        mean = found.mean.mean
        amount = amounts.get(method)
        if mean is None or amount is None:
            continue
        pareto = analysis.efficiency[method].is_pareto
        values.append(
            {
                "method": method,
                "score": 100 * mean,
                "amount": amount,
                "pareto": "in the Pareto set" if pareto else "outside" if pareto is False else "?",
            }
        )
    if len(values) < 2:
        return None
    x = {
        "field": "amount",
        "type": "quantitative",
        "scale": {"zero": True, "nice": True},
        "axis": {"title": title, "tickCount": 5},
    }
    y = {
        "field": "score",
        "type": "quantitative",
        "scale": {"zero": False, "padding": 12},
        "axis": {"title": f"{analysis.primary} in %", "tickCount": 5},
    }
    return {
        **_base(
            values,
            f"{analysis.primary} against {title}; rings: not outdone over all",
        ),
        "height": 220,
        "encoding": {"x": x, "y": y},
        "layer": [
            {
                "mark": {
                    "type": "point",
                    "size": 330,
                    "filled": False,
                    "strokeWidth": 1.5,
                    "opacity": 1,
                },
                "transform": [{"filter": "datum.pareto == 'in the Pareto set'"}],
                "encoding": {"color": {"value": "currentColor"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
                "encoding": _colour(methods),
            },
        ],
    }


def _amounts(
    results: EvaluationResults, analysis: Analysis, what: str
) -> tuple[dict[str, float | None], str]:
    if what == "latency":
        return (
            {m: found.latency_median.value for m, found in analysis.efficiency.items()},
            "median seconds a search",
        )
    efficiency = results.efficiency
    dollars = {m: found["cost_usd"] for m, found in efficiency.items()}
    counts = {m: results.counts[m]["n"] for m in efficiency}
    if None not in dollars.values() and any(dollars.values()) and all(counts.values()):
        return {m: dollars[m] / counts[m] for m in efficiency}, "US dollars a question"
    tokens: dict[str, float | None] = {}
    for method, found in efficiency.items():
        parts = (found["avg_prompt_tokens"], found["avg_output_tokens"])
        tokens[method] = None if None in parts else sum(parts)
    return tokens, "tokens a question"
