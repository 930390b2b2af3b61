"""A line drawing as numbers and paths, which the page's template puts into SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

WIDTH, HEIGHT = 520.0, 230.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 12.0, 12.0, 30.0
N_STYLES = 6
"""Colours and dashes that the template has; further lines begin again."""


@dataclass(frozen=True, slots=True)
class Point:
    """A value at a place; ``y`` is None where it is missing, which breaks the line.

    ``title`` is shown when it is pointed at, ``is_hollow`` marks what the embedded models made.
    """

    x: float
    y: float | None
    title: str
    is_hollow: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A named line, its points in the order of ``x``."""

    name: str
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Mark:
    """A point in the units of the drawing."""

    x: float
    y: float
    title: str
    is_hollow: bool


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """A line in the units of the drawing; ``path`` is "" where only single points are."""

    name: str
    style: int
    path: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing: lines, and ticks as (place, text)."""

    lines: tuple[DrawnLine, ...]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    left: float = _LEFT
    right: float = WIDTH - _RIGHT
    bottom: float = HEIGHT - _BOTTOM
    width: float = WIDTH
    height: float = HEIGHT


def draw(
    lines: Sequence[Line],
    x_labels: Sequence[tuple[float, str]],
    limits: tuple[float, float] | None = None,
) -> Drawing:
    """Lay lines out.

    Parameters
    ----------
    lines : sequence of Line
        With at least one value.
    x_labels : sequence of (x, text)
        In order; only the first and the last are written where more would not fit.
    limits : tuple of float, optional
        What the y axis spans; None: the values, from round number to round number.
    """
    xs = [point.x for line in lines for point in line.points]
    values = [point.y for line in lines for point in line.points if point.y is not None]
    steps = round_steps(*(limits or (min(values), max(values))))
    low, high = steps[0], steps[-1] if steps[-1] > steps[0] else steps[0] + 1
    x_low, x_high = min(xs), max(xs)

    def across(x: float) -> float:
        share = 0.5 if x_high == x_low else (x - x_low) / (x_high - x_low)
        return round(_LEFT + 8 + share * (WIDTH - _LEFT - _RIGHT - 16), 1)

    def down(y: float) -> float:
        return round(_TOP + (high - y) / (high - low) * (HEIGHT - _TOP - _BOTTOM), 1)

    drawn = tuple(
        DrawnLine(
            line.name,
            number % N_STYLES,
            _path([(across(p.x), None if p.y is None else down(p.y)) for p in line.points]),
            tuple(
                Mark(across(p.x), down(p.y), p.title, p.is_hollow)
                for p in line.points
                if p.y is not None
            ),
        )
        for number, line in enumerate(lines)
    )
    ends = [x_labels[0], x_labels[-1]] if len(x_labels) > 1 else list(x_labels)
    return Drawing(
        drawn,
        tuple((across(x), text) for x, text in ends),
        tuple((down(step), f"{step:.6g}") for step in steps),
    )


def round_steps(low: float, high: float, wanted: int = 4) -> list[float]:
    """Return round numbers from at most ``low`` to at least ``high``, evenly apart."""
    if high <= low:
        half = abs(low) / 2 or 0.5
        low, high = low - half, high + half
    rough = (high - low) / wanted
    unit = 10.0 ** floor(log10(rough))
    step = next(unit * by for by in (1, 2, 2.5, 5, 10) if unit * by >= rough * 0.999)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def _path(places: Sequence[tuple[float, float | None]]) -> str:
    """Return an SVG path that lifts the pen where a value is missing."""
    parts: list[str] = []
    is_down = False
    for x, y in places:
        if y is not None:
            parts.append(f"{'L' if is_down else 'M'}{x} {y}")
        is_down = y is not None
    return " ".join(parts) if any(part[0] == "L" for part in parts) else ""
