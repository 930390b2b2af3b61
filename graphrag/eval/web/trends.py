"""Draws figures over time: of runs, one step per run, and of values that a program recorded."""

import json
from collections.abc import Sequence
from statistics import fmean
from typing import Literal, NamedTuple, TypeAlias

from graphrag.eval.metrics.scorer_registry import SCORERS
from graphrag.eval.monitoring.collector import MetricPoint, MetricsCollector
from graphrag.eval.report.formatting import figure, is_share, plain_amount
from graphrag.eval.report.table import Table
from graphrag.eval.results.runs import Means, StoredRun
from graphrag.eval.web.svg_chart import Axis, Drawing, Point, Series

_ByRun: TypeAlias = Sequence[tuple[StoredRun, Means]]
_MOST_DRAWN = 400
_MOST_LISTED = 50
TOOK = {
    "median_latency_s": ("seconds", "median of a question"),
    "tokens": ("tokens", "mean of a question"),
    "cost_usd": ("$", "mean of a question"),
}
"""Figure -> its name on a run's page, and the kind of its mean."""
NOT_SHOWN = "latency_s"  # it is a mean, and every other page has the median


class Panel(NamedTuple):
    """A figure over time: a drawing if there are two runs, a table, and the ``latest`` values."""

    drawing: Drawing | None
    table: Table
    latest: str


def draw_runs(runs: Sequence[StoredRun], part: Literal["means", "measured"]) -> dict[str, Panel]:
    """Draw each figure that any run has, one step per run; ``runs`` begin with the newest."""
    by_run: _ByRun = [(run, getattr(run, part)) for run in reversed(runs)]
    values = (pair for _, means in by_run for method in means.values() for pair in method.items())
    names = dict.fromkeys(name for name, value in values if value is not None)
    return {name: _run_panel(name, by_run, part == "means") for name in names if name != NOT_SHOWN}


def _run_panel(name: str, by_run: _ByRun, is_judged: bool) -> Panel:
    having = [
        (step, run, {m: row[name] for m, row in means.items() if row.get(name) is not None})
        for step, (run, means) in enumerate(by_run)
    ]
    rows = [(run, values) for _, run, values in having if values]
    methods = [*dict.fromkeys(method for _, values in rows for method in values)]
    labels = [*dict.fromkeys(run.embedded_models for run, _ in by_run)]
    heading, kind = TOOK.get(name, (name, ""))
    # Runs with and without embedded models can't be compared, so that no line joins them.
    lines: dict[tuple[str, str | None], list[Point]] = {(m, e): [] for e in labels for m in methods}
    for step, run, values in having:
        for method, value in values.items():
            if value is not None and run.status == "finished":
                label = f" ({run.embedded_models})" if run.embedded_models else ""
                title = (
                    f"{method}: {figure(name, value)}, {minute(run.started_at)}, run {run.run_id}"
                )
                at = 100 * value if is_share(name) else value
                lines[method, run.embedded_models].append(
                    Point(x=step, y=at, title=title + label, is_hollow=bool(label))
                )
    series = [
        Series(name=method, style=methods.index(method), points=points, is_joined=True)
        for (method, _), points in lines.items()
        if points
    ]
    scorer = SCORERS.find(name.partition(".")[0])
    limits = (0.0, 100.0) if is_share(name) else None if scorer is None else scorer.limits
    ends = {0: by_run[0][0], len(by_run) - 1: by_run[-1][0]}
    pinned = [step for step, (run, _) in enumerate(by_run) if run.is_pinned]
    x = Axis("", (0, len(by_run) - 1), [(n, run.started_at[:10]) for n, run in ends.items()])

    def cell(run: StoredRun, method: str, value: float | None) -> str:
        return mean_of(run, method, name) if is_judged else figure(name, value)

    unit = "in %" if is_share(name) else kind
    drawing = None
    if series and len(by_run) > 1:
        drawing = _draw(heading, series, x, Axis("", limits), pinned[0] if pinned else None)
    return Panel(
        drawing,
        Table(
            title=heading,
            columns=[("run, from its start", "text"), *((method, "percent") for method in methods)],
            rows=[
                [
                    f"{run.label or run.run_id}{' (embedded)' if run.embedded_models else ''}",
                    *(cell(run, method, values.get(method)) for method in methods),
                ]
                for run, values in reversed(rows)
            ],
            note=unit,
        ),
        ", ".join(f"{m} {cell(rows[-1][0], m, v)}" for m, v in rows[-1][1].items()),
    )


def _draw(
    name: str, series: Sequence[Series], x: Axis, y: Axis, marked: float | None = None
) -> Drawing:
    about = f"{name} over time; its values are in the table"
    return Drawing(title=name, about=about, series=series, x=x, y=y, marked=marked)


def draw_series(collector: MetricsCollector, name: str) -> Panel:
    """Draw the values that a program recorded under a name, one line for each set of labels."""
    points, summary = collector.history(name), collector.summary(name)
    by_labels: dict[str, list[MetricPoint]] = {}
    for point in points:
        by_labels.setdefault(_join_labels(point), []).append(point)
    interval = ""
    if summary["low"] is not None:
        interval = f" (95 %: {plain_amount(summary['low'])} to {plain_amount(summary['high'])})"
    notes = [f"n = {summary['n']}, mean {plain_amount(summary['mean'])}{interval}"]
    if any(len(group) > _MOST_DRAWN for group in by_labels.values()):
        notes.append("each point of the drawing is a mean of several values")
    if len(points) > _MOST_LISTED:
        notes.append(f"the table has the latest {_MOST_LISTED}")
    ends = [(p.at.timestamp(), f"{p.at:%Y-%m-%d %H:%M}") for p in (points[0], points[-1])]
    series = [
        Series(name=labels or name, style=style, points=_thin(group), is_joined=True)
        for style, (labels, group) in enumerate(by_labels.items())
    ]
    return Panel(
        _draw(name, series, Axis("", ticks=ends[: len(points)]), Axis()),
        Table(
            title=name,
            columns=[("at (UTC)", "text"), ("value", "percent"), ("labels", "text")],
            rows=[
                [f"{p.at:%Y-%m-%d %H:%M:%S}", plain_amount(p.value), _join_labels(p)]
                for p in reversed(points[-_MOST_LISTED:])
            ],
            note="; ".join(notes),
        ),
        notes[0],
    )


def _thin(points: Sequence[MetricPoint]) -> list[Point]:
    """Return points to draw; if there are too many, means of equally many neighbors."""
    size = -(-len(points) // _MOST_DRAWN)
    groups = [points[n : n + size] for n in range(0, len(points), size)]
    means = [fmean(p.value for p in group) for group in groups]
    return [
        Point(
            x=fmean(p.at.timestamp() for p in group),
            y=mean,
            title=f"{plain_amount(mean)}, {group[0].at:%Y-%m-%d %H:%M:%S} UTC",
        )
        for group, mean in zip(groups, means, strict=True)
    ]


def _join_labels(point: MetricPoint) -> str:
    return ", ".join(
        f"{key}={json.dumps(value, ensure_ascii=False).strip(chr(34))}"
        for key, value in sorted(point.labels.items())
    )


def mean_of(run: StoredRun, method: str, name: str) -> str:
    """Return a mean of a run as text, with its n if it is not over all questions."""
    n = run.n.get(method, {}).get(name)
    behind = f" (n {n:,})" if n and n != run.n_questions else ""
    return figure(name, run.means.get(method, {}).get(name)) + behind


def minute(at: str) -> str:
    """Return a time (ISO 8601) to the minute."""
    return at[:16].replace("T", " ")
