"""The dashboard: one HTML file, drawn here, that loads nothing from anywhere."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from statistics import fmean

from jinja2 import Environment, StrictUndefined

from graphrag.eval.errors import UsageError
from graphrag.eval.monitoring.collector import MetricPoint, MetricsCollector
from graphrag.eval.results.runs import StoredRun, list_runs
from graphrag.eval.store.records import now
from graphrag.eval.store.whole_files import write_file
from graphrag.eval.web.dashboard_drawing import Drawing, Line, Point, draw

_MAX_DRAWN = 400
_MAX_LISTED = 50
_UNITS = {"latency_s": "seconds", "tokens": "tokens a search", "cost_usd": "US dollars a search"}


@dataclass(frozen=True, slots=True)
class Panel:
    """A drawing and the table of what it shows.

    Attributes
    ----------
    title, note : str
    drawing : Drawing or None
        None where there is no value.
    columns : sequence of str
    rows : sequence of sequence of str
        The newest first.
    """

    title: str
    note: str
    drawing: Drawing | None
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def write_dashboard(
    path: Path | str,
    store_path: Path | str | None = None,
    collector: MetricsCollector | None = None,
) -> Path:
    """Write the figures of runs, and what was recorded, as one page.

    Parameters
    ----------
    path : Path or str
        The HTML file; its folder is made when missing.
    store_path : Path or str, optional
        An eval.db: every mean of every run, by method, and latency, tokens, cost and retrieval
        measures. What the embedded models made is marked.
    collector : MetricsCollector, optional
        Every series of it, one line for each set of labels.

    Returns
    -------
    Path
        Of the file.

    Raises
    ------
    UsageError
        If neither is given, or there is no store.
    StoreError
        If another process holds the store, or the file can't be written.
    """
    if store_path is None and collector is None:
        msg = "There is nothing to show: give a store_path, a collector, or both."
        raise UsageError(msg)
    runs = [] if store_path is None else list_runs(Path(store_path))
    template = files("graphrag.eval.web").joinpath("dashboard.html.j2").read_text("utf-8")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    text = environment.from_string(template).render(
        written_at=_minute(now()),
        runs=[_describe(run) for run in runs],
        embedded_models=sorted({r.embedded_models for r in runs if r.embedded_models}),
        judged=list(_run_panels(runs, "means")),
        measured=list(_run_panels(runs, "measured")),
        recorded=[] if collector is None else [_series(collector, n) for n in collector.names()],
    )
    written = Path(path)
    write_file(written, text)
    return written


def _describe(run: StoredRun) -> dict[str, str]:
    cost = "-" if run.cost_usd is None else f"{run.cost_usd:.4f}"
    marks = [mark for mark, is_so in (("pinned", run.is_pinned), (run.status, True)) if is_so]
    return {
        "started": _minute(run.started_at),
        "id": run.run_id,
        "origin": run.origin,
        "status": ", ".join(marks),
        "questions": str(run.n_questions),
        "cost": cost,
        "models": run.embedded_models or "",
    }


def _run_panels(runs: Sequence[StoredRun], of: str) -> Iterator[Panel]:
    """Draw each figure of the runs, one step a run, the oldest first."""
    oldest_first = list(reversed(runs))
    given = [getattr(run, of) for run in oldest_first]
    names = dict.fromkeys(name for means in given for found in means.values() for name in found)
    for name in names:
        methods = list(dict.fromkeys(m for means in given for m in means if name in means[m]))
        lines = [
            Line(
                method,
                [
                    _run_point(step, run, means.get(method, {}).get(name), method)
                    for step, (run, means) in enumerate(zip(oldest_first, given, strict=True))
                ],
            )
            for method in methods
        ]
        shown = [
            run
            for run, means in zip(oldest_first, given, strict=True)
            if any(name in found for found in means.values())
        ]
        labels = [(float(n), _day(run.started_at)) for n, run in enumerate(oldest_first)]
        rows = [
            [
                f"{run.run_id}{' (embedded)' if run.embedded_models else ''}",
                *(_text(getattr(run, of).get(method, {}).get(name)) for method in methods),
            ]
            for run in reversed(shown)
        ]
        has_values = any(point.y is not None for line in lines for point in line.points)
        yield Panel(
            title=name,
            note=_UNITS.get(name, ""),
            drawing=draw(lines, labels, _limits(name, of)) if has_values else None,
            columns=["Run, from its start", *methods],
            rows=rows,
        )


def _run_point(step: int, run: StoredRun, value: float | None, method: str) -> Point:
    title = f"{method}: {_text(value)}, {_minute(run.started_at)}, run {run.run_id}"
    if run.embedded_models:
        title += f" ({run.embedded_models})"
    return Point(float(step), value, title, bool(run.embedded_models))


def _limits(name: str, of: str) -> tuple[float, float] | None:
    """Return the scale of a judged figure, so that its drawings can be held side by side."""
    if of != "means":
        return None
    return (1.0, 5.0) if name.startswith("rubric.") else (0.0, 1.0)


def _series(collector: MetricsCollector, name: str) -> Panel:
    points = collector.history(name)
    summary = collector.summary(name)
    by_labels: dict[str, list[MetricPoint]] = {}
    for point in points:
        by_labels.setdefault(_labels(point), []).append(point)
    lines = [Line(labels or name, _thin(found)) for labels, found in by_labels.items()]
    interval = ""
    if summary["low"] is not None:
        interval = f" (95 %: {_text(summary['low'])} to {_text(summary['high'])})"
    notes = [f"n = {summary['n']}, mean {_text(summary['mean'])}{interval}"]
    if any(len(found) > _MAX_DRAWN for found in by_labels.values()):
        notes.append("each point of the drawing is a mean of several values")
    if len(points) > _MAX_LISTED:
        notes.append(f"the table has the latest {_MAX_LISTED}")
    ends = [(p.at.timestamp(), f"{p.at:%Y-%m-%d %H:%M}") for p in (points[0], points[-1])]
    return Panel(
        title=name,
        note="; ".join(notes),
        drawing=draw(lines, ends),
        columns=["At (UTC)", "Value", "Labels"],
        rows=[
            [f"{p.at:%Y-%m-%d %H:%M:%S}", _text(p.value), _labels(p)]
            for p in reversed(points[-_MAX_LISTED:])
        ],
    )


def _thin(points: Sequence[MetricPoint]) -> list[Point]:
    """Return points to draw; of many, means of as many neighbours each."""
    size = -(-len(points) // _MAX_DRAWN)
    groups = [points[n : n + size] for n in range(0, len(points), size)]
    return [
        Point(
            fmean(p.at.timestamp() for p in group),
            value := fmean(p.value for p in group),
            f"{_text(value)}, {group[0].at:%Y-%m-%d %H:%M:%S} UTC",
        )
        for group in groups
    ]


def _labels(point: MetricPoint) -> str:
    return ", ".join(
        f"{key}={json.dumps(value, ensure_ascii=False).strip(chr(34))}"
        for key, value in sorted(point.labels.items())
    )


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _minute(at: str) -> str:
    return at[:16].replace("T", " ")


def _day(at: str) -> str:
    return at[:10]
