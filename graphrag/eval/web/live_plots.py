"""The plot of a metric over runs of one kind, as a Vega-Lite specification."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """A method's mean in a run; ``gate`` is "" where the gate was not asked."""

    run: str
    method: str
    mean: float
    is_baseline: bool
    gate: str


def plot_history(
    name: str, points: Sequence[HistoryPoint], methods: Sequence[str], is_share: bool
) -> dict[str, Any]:
    """Return a line for each method, a step a run; the baseline's step is marked.

    ``is_share``: the mean is in [0, 1], and the axis shows all of it.
    """
    order = list(dict.fromkeys(point.run for point in points))
    styles = [n % len(_SHAPES) for n in range(len(methods))]
    x = {
        "field": "run",
        "type": "ordinal",
        "sort": order,
        "axis": {"title": "run, the newest at the right", "labels": False, "ticks": False},
    }
    y = {
        "field": "mean",
        "type": "quantitative",
        "scale": {"domain": [0, 1]} if is_share else {"zero": False},
        "axis": {"title": f"mean {name}", "tickCount": 5},
    }
    legend = {"orient": "top", "title": None, "columns": 3}
    colour = {
        "field": "method",
        "type": "nominal",
        "scale": {"domain": list(methods), "range": [f"var(--m{n})" for n in styles]},
        "legend": legend,
    }
    shape = {
        "field": "method",
        "type": "nominal",
        "scale": {"domain": list(methods), "range": [_SHAPES[n] for n in styles]},
        "legend": legend,
    }
    text = {"labelColor": "currentColor", "titleColor": "currentColor"}
    lines = {"gridColor": "var(--line)", "domainColor": "var(--line)", "tickColor": "var(--line)"}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "description": f"Mean {name} of each method, run by run",
        "width": "container",
        "height": 190,
        "data": {"values": [asdict(point) for point in points]},
        "config": {
            "background": None,
            "font": "system-ui, sans-serif",
            "view": {"stroke": None},
            "axis": {**text, **lines, "labelFontSize": 12, "titleFontWeight": "normal"},
            "legend": {**text, "labelFontSize": 12, "symbolStrokeWidth": 0},
        },
        "layer": [
            {
                "transform": [{"filter": "datum.is_baseline"}],
                "mark": {"type": "rule", "color": "currentColor", "strokeDash": [4, 3]},
                "encoding": {"x": x},
            },
            {
                "mark": {"type": "line", "strokeWidth": 1.5},
                "encoding": {"x": x, "y": y, "color": colour},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                "encoding": {"x": x, "y": y, "color": colour, "shape": shape},
            },
            {
                "transform": [{"filter": "datum.gate == 'FAIL'"}],
                "mark": {"type": "point", "size": 260, "filled": False, "opacity": 1},
                "encoding": {"x": x, "y": y, "color": {"value": "var(--bad)"}},
            },
        ],
    }
