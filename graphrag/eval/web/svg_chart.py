"""Draws charts as standalone SVG: points with intervals, lines, rows, and small lines for text.

A series' style sets its color and shape, which are classes of ``svg_chart.css``; the page, or the
drawing itself, brings this style sheet. Shapes differ, so that a drawing can be read in gray.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, floor, log10

from markupsafe import Markup

from graphrag.eval.report.formatting import plain_amount
from graphrag.eval.web.page import template
from graphrag.text.message_phrases import shorten

N_STYLES = 6
"""Number of colors and of shapes; every shape comes in every color before two series are alike."""
_WIDTH, _RIGHT, _TOP, _LINE = 360.0, 8.0, 8.0, 16.0
"""The width is that of a phone, where 12 px are still 12 px."""
_LETTER = 7.4  # of 12 px, in a wide font
_MOST_LETTERS = 28
_short = partial(shorten, n_chars=_MOST_LETTERS, mark="…")
_MOST_TITLES = 40


@dataclass(frozen=True, slots=True)
class Point:
    """One value of a series at its position.

    ``title`` is shown when somebody points at it, ``label`` below it or at the end of its row.
    ``low`` and ``high`` are the limits of its interval, along x if the drawing is in rows, else
    along y.
    """

    x: float
    y: float
    title: str = ""
    low: float | None = None
    high: float | None = None
    label: str = ""
    is_hollow: bool = False
    is_ringed: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """Points under one name; if they are joined, a line goes through them in order."""

    name: str
    style: int
    points: Sequence[Point]
    is_joined: bool = False

    @property
    def kind(self) -> str:
        """The series' class in the style sheet."""
        return f"s{(self.style + self.style // N_STYLES) % N_STYLES}"

    def positions(self, across: "_Scale", down: "_Scale") -> list[tuple[float, float]]:
        """Return the positions of the points."""
        return [(across(point.x), down(point.y)) for point in self.points]


@dataclass(frozen=True, slots=True)
class Axis:
    """The range of an axis; without limits that of the values, without ticks at round numbers."""

    title: str = ""
    limits: tuple[float, float] | None = None
    ticks: Sequence[tuple[float, str]] = ()


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart, to be rendered as SVG.

    - ``title`` is above it, ``note`` below the title.
    - ``about``: text for people who can't see it; the titles of the points follow.
    - ``series``: each has at least one point.
    - ``height``: of the part between the axes, in px at a width of 360.
    - ``in_rows``: y is the number of a row, from the top; a row's name, a tick of y, is above it.
    - ``marked``: x of a dashed line; in rows, bars lead from it to the points.
    """

    title: str
    about: str
    series: Sequence[Series]
    x: Axis
    y: Axis
    height: float = 190
    in_rows: bool = False
    marked: float | None = None
    note: str = ""

    @property
    def _points(self) -> list[Point]:
        return [point for series in self.series for point in series.points]

    def svg(self, style: str = "") -> Markup:
        """Return the chart as SVG; ``style`` is put into it if no page brings the style sheet."""
        points = self._points
        ends = [v for p in points for v in (p.low, p.high) if v is not None]
        xs = [p.x for p in points] + (ends if self.in_rows else [])
        x_at, x_ticks = _scale(self.x, xs if self.marked is None else [*xs, self.marked])
        ys = [p.y for p in points] + ([] if self.in_rows else ends)
        y_at, y_ticks = _scale(self.y, ys)
        widest = max(len(_short(text)) for _, text in y_ticks)
        left = 4.0 if self.in_rows else 14 + _LETTER * widest
        legend, n_lines = _legend(self.series)
        top = _TOP + _LINE * n_lines + 6

        def across(x: float) -> float:
            return round(left + 8 + x_at(x) * (_WIDTH - left - _RIGHT - 16), 1)

        def down(y: float) -> float:
            share = y_at(y) if self.in_rows else 1 - y_at(y)
            return round(top + share * self.height + 7 * self.in_rows, 1)

        return self._render(
            across,
            down,
            about=self.about,
            titles=[point.title for point in points[:_MOST_TITLES] if point.title],
            style=style,
            x_axis=self.x,
            x_ticks=x_ticks,
            y_ticks=y_ticks,
            legend=legend,
            short=_short,
            letter=_LETTER,
            width=_WIDTH,
            left=left,
            right=_WIDTH - _RIGHT,
            top=top,
            bottom=top + self.height,
        )

    def line(self) -> Markup:
        """Return the series as lines of a word's height, without axes, for the eye only."""
        x_at, _ = _scale(self.x, [p.x for p in self._points])
        y_at, _ = _scale(Axis(), [p.y for p in self._points])

        def across(x: float) -> float:
            return round(4 + 112 * x_at(x), 1)

        def down(y: float) -> float:
            return round(24 - 20 * y_at(y), 1)

        return self._render(across, down, is_line=True)

    def _render(
        self, across: "_Scale", down: "_Scale", is_line: bool = False, **values: object
    ) -> Markup:
        about = {"in_rows": self.in_rows, "marked": self.marked, "is_line": is_line}
        drawn = {"drawn": self.series, "across": across, "down": down}
        return Markup(template("svg_chart.svg.j2").render(**about, **drawn, **values))


_Scale = Callable[[float], float]


def _scale(axis: Axis, values: Sequence[float]) -> tuple[_Scale, Sequence[tuple[float, str]]]:
    """Return a function from a value to its share of the axis, and the ticks."""
    low, high = axis.limits or (min(values), max(values))
    ticks = list(axis.ticks)
    if not ticks:
        steps = round_steps(low, high)
        low, high = steps[0], steps[-1]
        ticks = [(step, plain_amount(step)) for step in steps]
    width = high - low

    def to_share(value: float) -> float:
        return (value - low) / width if width else 0.5

    return to_share, ticks


def round_steps(low: float, high: float) -> list[float]:
    """Return round numbers at equal distances, from at most ``low`` to at least ``high``."""
    if high <= low:
        half = abs(low) / 2 or 0.5
        low, high = low - half, high + half
    rough = (high - low) / 4
    unit = 10.0 ** floor(log10(rough))
    step = next(unit * by for by in (1, 2, 2.5, 5, 10) if unit * by >= rough * 0.999)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def _legend(series: Sequence[Series]) -> tuple[list[tuple[Series, float, float]], int]:
    """Return x and y of each name, and the number of lines; nothing if no series has a name."""
    positions: list[tuple[Series, float, float]] = []
    x, line = 8.0, 0
    for entry in series if any(entry.name for entry in series) else ():
        width = 26 + _LETTER * len(_short(entry.name))
        if x + width > _WIDTH and x > 8:
            x, line = 8.0, line + 1
        positions.append((entry, x, _TOP + line * _LINE))
        x += width
    return positions, line + bool(positions)
