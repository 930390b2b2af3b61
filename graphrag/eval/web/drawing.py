"""Drawings as SVG that needs nothing else: points with intervals, on lines, in rows, over time.

Colors and shapes go by a series' style; they are classes of ``drawing.css``, which the page or the
drawing itself brings. Shapes differ, so that a drawing can be read in gray.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, floor, log2, log10

from markupsafe import Markup

from graphrag.eval.report.cells import plain_amount
from graphrag.text.phrases import shorten

N_STYLES = 6
"""Colors and shapes that there are: each shape in each color, before any two series are alike."""
_WIDTH, _RIGHT, _TOP, _LINE = 360.0, 8.0, 8.0, 16.0
"""As wide as a phone, where 12 px are still 12 px."""
_LETTER = 7.4  # of 12 px, in a wide font
_MOST_LETTERS = 28
_short = partial(shorten, n_chars=_MOST_LETTERS, mark="…")
_MOST_TOLD = 40


@dataclass(frozen=True, slots=True)
class Point:
    """A value at a place.

    ``title`` is shown when it is pointed at, ``label`` below it, or at the end of its row; ``low``
    and ``high`` are limits of its interval, along x in rows, else along y.
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
    """Points of one name; a line goes through them, in their order, where they are joined."""

    name: str
    style: int
    points: Sequence[Point]
    is_joined: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """What an axis spans; without limits the values do, without ticks it has round numbers."""

    title: str = ""
    limits: tuple[float, float] | None = None
    ticks: Sequence[tuple[float, str]] = ()
    is_log2: bool = False


@dataclass(frozen=True, slots=True)
class Drawing:
    """What is drawn.

    ``title`` stands above it, and ``note`` below that; ``about`` is what those hear who do not see
    it, and after it every point's title; ``series`` have at
    least one point; ``height`` is of the part between the axes, in px at a width of 360;
    ``in_rows``: y numbers rows, from the top, and each has its name, a tick of y, above it; a
    dashed line stands where x is ``marked``, from which in rows a bar leads to each point.
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
        """Return it as SVG; ``style`` stands in it where no page has the style sheet."""
        points = self._points
        ends = [v for p in points for v in (p.low, p.high) if v is not None]
        xs = [p.x for p in points] + (ends if self.in_rows else [])
        x_at, x_ticks = _scale(self.x, xs if self.marked is None else [*xs, self.marked])
        ys = [p.y for p in points] + ([] if self.in_rows else ends)
        y_at, y_ticks = _scale(self.y, ys)
        widest = max(len(_short(text)) for _, text in y_ticks)
        left = 4.0 if self.in_rows else 14 + _LETTER * widest
        legend = _legend(self.series)
        top = _TOP + _LINE * (1 + max((line for _, line, _ in legend), default=-1)) + 6
        bottom = top + self.height

        def across(x: float) -> float:
            return round(left + 8 + x_at(x) * (_WIDTH - left - _RIGHT - 16), 1)

        def down(y: float) -> float:
            share = y_at(y) if self.in_rows else 1 - y_at(y)
            return round(top + share * self.height + 7 * self.in_rows, 1)

        rules: list[Markup] = []
        parts: list[Markup] = []
        for y, text in y_ticks:
            if self.in_rows:
                parts.append(_text(left, down(y) - 11, _short(text), "start"))
                continue
            rules.append(_rule("grid", left, _WIDTH - _RIGHT, down(y), down(y)))
            parts.append(_text(left - 6, down(y) + 4, _short(text), "end"))
        for x, text in x_ticks:
            half = _LETTER * len(text) / 2
            parts.append(_text(min(across(x), _WIDTH - half), bottom + 18, text))
            if len(self.x.ticks) == 0:
                rules.append(_rule("grid", across(x), across(x), top, bottom + 4))
        parts.append(_text((left + _WIDTH) / 2, bottom + 34, self.x.title))
        if self.marked is not None:
            rules.append(_rule("marked", across(self.marked), across(self.marked), top, bottom + 4))
        for series, (x, line, kind) in zip(self.series, legend, strict=False):
            parts.append(_shape(series.style, x, _TOP + line * _LINE, f"mark {kind}"))
            parts.append(_text(x + 9, _TOP + line * _LINE + 4, _short(series.name), "start"))
        for series in self.series:
            kind, places = _kind(series), [(across(p.x), down(p.y)) for p in series.points]
            if series.is_joined and len(places) > 1:
                parts.append(_line(kind, places))
            for point, (x, y) in zip(series.points, places, strict=True):
                parts += self._mark(series, point, (x, y), (across, down))
                if point.label and self.in_rows:
                    parts.append(_text(_WIDTH - 4, y - 11, point.label, "end"))
                elif point.label:
                    parts.append(_text(x, y + 17, point.label))
        told = [point.title for point in points[:_MOST_TOLD] if point.title]
        return _tag(
            '<svg class="drawing" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {:g} {:g}" '
            'role="img" aria-label="{}"><desc>{}</desc>{}{}</svg>',
            _WIDTH,
            bottom + (40 if self.x.title else 24),
            self.about,
            "; ".join(told),
            _tag("<style>{}</style>", Markup(style)) if style else "",
            Markup("").join([*rules, *parts]),
        )

    def _mark(
        self,
        series: Series,
        point: Point,
        place: tuple[float, float],
        scales: tuple[Callable[[float], float], Callable[[float], float]],
    ) -> Iterator[Markup]:
        """Yield what stands for a point: a bar, limits, a ring, a mark."""
        (x, y), (across, down), kind = place, scales, _kind(series)
        if self.in_rows and self.marked is not None:
            start, end = sorted((across(self.marked), x))
            form = '<rect class="bar {}" x="{}" y="{}" width="{:.1f}" height="10"/>'
            yield _tag(form, kind, start, y - 5, end - start)
        if point.low is not None and point.high is not None:
            low, high = point.low, point.high
            limits = (
                (across(low), across(high), y, y) if self.in_rows else (x, x, down(low), down(high))
            )
            yield _rule(f"limits {kind}", *limits)
        if point.is_ringed:
            yield _tag('<circle class="ring" cx="{}" cy="{}" r="9"/>', x, y)
        hollow = " hollow" if point.is_hollow else ""
        small = 1.6 if len(series.points) > 60 else 4.2
        yield _shape(series.style, x, y, f"mark{hollow} {kind}", small, point.title)

    def line(self) -> Markup:
        """Return its series as lines of a word's height, without axes, for eyes alone."""
        points = self._points
        x_at, _ = _scale(self.x, [p.x for p in points])
        y_at, _ = _scale(Axis(), [p.y for p in points])
        parts: list[Markup] = []
        for series in self.series:
            places = [
                (round(4 + 112 * x_at(p.x), 1), round(24 - 20 * y_at(p.y), 1))
                for p in series.points
            ]
            parts.append(_line(_kind(series), places))
            parts.append(_shape(series.style, *places[-1], f"mark {_kind(series)}", 2.5))
        return _tag(
            '<svg class="spark" viewBox="0 0 120 28" aria-hidden="true">{}</svg>',
            Markup("").join(parts),
        )


_Scale = Callable[[float], float]


def _scale(axis: Axis, values: Sequence[float]) -> tuple[_Scale, Sequence[tuple[float, str]]]:
    """Return what gives a value its share of an axis, and the ticks."""
    low, high = axis.limits or (min(values), max(values))
    ticks = list(axis.ticks)
    if axis.is_log2:
        low, high = log2(low), log2(high)
        steps = [2.0**n for n in range(ceil(low - 0.01), floor(high + 0.01) + 1)]
        ticks = [(step, f"{step:,.0f}") for step in steps] or [(2**low, f"{2**low:,.0f}")]
    elif not ticks:
        steps = round_steps(low, high)
        low, high = steps[0], steps[-1]
        ticks = [(step, plain_amount(step)) for step in steps]
    width = high - low

    def place(value: float) -> float:
        return ((log2(value) if axis.is_log2 else value) - low) / width if width else 0.5

    return place, ticks


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


def _legend(series: Sequence[Series]) -> list[tuple[float, int, str]]:
    """Return where each name stands: x, line, class; nothing where there is one without a name."""
    places: list[tuple[float, int, str]] = []
    x, line = 8.0, 0
    for each in series if any(each.name for each in series) else ():
        width = 26 + _LETTER * len(_short(each.name))
        if x + width > _WIDTH and x > 8:
            x, line = 8.0, line + 1
        places.append((x, line, _kind(each)))
        x += width
    return places


def _kind(series: Series) -> str:
    return f"s{(series.style + series.style // N_STYLES) % N_STYLES}"


def _shape(style: int, x: float, y: float, kind: str, size: float = 4.2, title: str = "") -> Markup:
    """Return a mark: circle, square, triangle, diamond, cross or a triangle upside down."""
    r = size
    path = (
        f"M{x - r} {y} a{r} {r} 0 1 0 {2 * r} 0 a{r} {r} 0 1 0 {-2 * r} 0",
        f"M{x - r} {y - r} h{2 * r} v{2 * r} h{-2 * r} z",
        f"M{x} {y - r - 1} l{r + 1} {2 * r + 1} h{-2 * r - 2} z",
        f"M{x} {y - r - 1} l{r + 1} {r + 1} l{-r - 1} {r + 1} l{-r - 1} {-r - 1} z",
        f"M{x - r} {y - r} L{x + r} {y + r} M{x + r} {y - r} L{x - r} {y + r}",
        f"M{x} {y + r + 1} l{r + 1} {-2 * r - 1} h{-2 * r - 2} z",
    )[style % N_STYLES]
    named = _tag("<title>{}</title>", title) if title else ""
    return _tag('<path class="{}" d="{}">{}</path>', kind, path, named)


def _line(kind: str, places: Sequence[tuple[float, float]]) -> Markup:
    path = " L".join(f"{x} {y}" for x, y in places)
    return _tag('<path class="line {}" d="M{}"/>', kind, path)


def _rule(kind: str, x1: float, x2: float, y1: float, y2: float) -> Markup:
    return _tag('<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>', kind, x1, x2, y1, y2)


def _text(x: float, y: float, text: str, anchor: str = "middle") -> Markup:
    return _tag('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>', x, y, anchor, text)


def _tag(form: str, *values: object) -> Markup:
    return Markup(form).format(*values)
