"""Plots a run: scores, differences, and the score against cost or time."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from graphrag.eval.report.cost_comparison import N_PRICED, Prices
from graphrag.eval.report.formatting import percent, plain_amount, span
from graphrag.eval.report.formatting import points as points_cell
from graphrag.eval.report.run_tables import by_score
from graphrag.eval.results.analysis import Analysis, usable_methods
from graphrag.eval.results.evaluation_results import EvaluationResults
from graphrag.eval.results.method_conditions import Conditions
from graphrag.eval.stats.intervals import Estimate
from graphrag.eval.stats.latency import pareto_set
from graphrag.eval.web.svg_chart import Axis, Drawing, Point, Series
from graphrag.text.message_phrases import join_names, shorten

_ROW = 34  # px
_MOST_PAIRS = 10
_MOST_LETTERS = 12
_NEAR = 0.1  # of the axis: points nearer than this share a label
_short = partial(shorten, n_chars=_MOST_LETTERS, mark="…")


def plot_run(results: EvaluationResults, analysis: Analysis) -> dict[str, Drawing]:
    """Return name -> plot, for each plot that has something to draw."""
    medians = {m: figures.latency_median.value for m, figures in analysis.efficiency.items()}
    prices, note = Prices(results, analysis), "Better is up and to the left."
    if prices.budgets:
        note = f"{prices.budgets} What methods take is not comparable."
    costs = {method: prices.amount(method) for method in results.efficiency}
    unit = "US dollars a question" if prices.unit == "cost_usd" else "tokens a question"
    is_equal = not prices.budgets
    plots = {
        "cost": _plot_tradeoff(analysis, costs, unit, note, is_equal),
        "index": _plot_indexes(prices, results.conditions, analysis),
        "scores": _plot_scores(analysis),
        "pairs": _plot_pairs(analysis),
        "latency": _plot_tradeoff(
            analysis, medians, "median seconds of a question", note, is_equal
        ),
    }
    return {name: plot for name, plot in plots.items() if plot is not None}


def _plot_scores(analysis: Analysis) -> Drawing | None:
    """Return a plot of each method's mean on the primary metric, the best on top."""
    means = analysis.scores
    order = [method for method in by_score(analysis) if means[method].n]
    if not order:
        return None
    points: list[Point] = []
    for row, method in enumerate(order):
        at = _point(means[method], method, row, percent(means[method]))
        points.append(replace(at, x=at.y, y=row))
    title = f"{analysis.primary} in %, with its 95 % interval"
    about = f"Mean {analysis.primary} of each method with its 95 % interval, the best on top"
    return _draw_rows(title, about, points, order, Axis("", (0, 100)))


def _draw_rows(
    title: str, about: str, points: Sequence[Point], names: Sequence[str], x: Axis
) -> Drawing:
    y = Axis("", (-0.5, len(names) - 0.5), list(enumerate(names)))
    height = _ROW * len(names)
    return Drawing(
        title=title,
        about=about,
        series=[Series(name="", style=0, points=points)],
        x=x,
        y=y,
        height=height,
        in_rows=True,
    )


def _point(
    score: Estimate, title: str, x: float, label: str = "", is_ringed: bool = False
) -> Point:
    low, high = (None if limit is None else 100 * limit for limit in (score.low, score.high))
    text = f"{title}: {percent(score)} %"
    return Point(
        x=x,
        y=100 * (score.mean or 0),
        title=text,
        low=low,
        high=high,
        label=label,
        is_ringed=is_ringed,
    )


def _plot_pairs(analysis: Analysis) -> Drawing | None:
    """Return a plot of the paired differences; if there are many, only the best method's."""
    pairs = [
        pair for pair in analysis.comparisons if pair.in_family and pair.decided[1] is not None
    ]
    first = next(iter(by_score(analysis)), "")
    note = "Right of 0 the first is better; all intervals hold together at 95 %."
    if len(pairs) > _MOST_PAIRS:
        pairs = [pair for pair in pairs if first in (pair.a, pair.b)]
        note += f" Pairs with {first}; the table of pairs has all."
    points: list[Point] = []
    names: list[str] = []
    for pair in pairs:
        (result, family), name = pair.decided, " - ".join(map(_short, (pair.a, pair.b)))
        if family is None or result.difference is None:
            continue
        low, high = family.low_simultaneous, family.high_simultaneous
        if low is not None and high is not None:
            label = f"{points_cell(result.difference)} ({span(low, high)})"
            at = 100 * result.difference
            points.append(
                Point(
                    x=at,
                    y=len(names),
                    title=f"{name}: {label}",
                    low=100 * low,
                    high=100 * high,
                    label=label,
                )
            )
            names.append(name)
    if not points:
        return None
    title = f"Differences on {analysis.primary} in points"
    about = "Paired differences between methods; all intervals hold together at 95 %"
    drawing = _draw_rows(title, about, points, names, Axis("percentage points"))
    return replace(drawing, marked=0, note=note)


def _plot_tradeoff(
    analysis: Analysis,
    amounts: Mapping[str, float | None],
    unit: str,
    note: str,
    is_comparable: bool,
) -> Drawing | None:
    """Return a plot of the score against the cost or the time of a question.

    If the amounts are comparable, methods that no other one beats in both are ringed.
    """
    drawn = {m: (analysis.scores[m].mean, amounts.get(m)) for m in by_score(analysis)}
    ringed: Sequence[str] = ()
    if is_comparable:
        usable = usable_methods(m for m, at in drawn.items() if None not in at)
        ringed = pareto_set({m: (*drawn[m], drawn[m][1]) for m in usable})
        note += " A ring marks a method that no other beats in this plot."
        if "oracle" in drawn and usable != ["oracle"]:
            note += " The control oracle gets none."
    series: list[Series] = []
    for style, (method, (score, amount)) in enumerate(drawn.items()):
        if score is not None and amount is not None:
            title, is_ringed = f"{method}, {plain_amount(amount)} {unit}", method in ringed
            point = _point(analysis.scores[method], title, amount, is_ringed=is_ringed)
            series.append(Series(name=method, style=style, points=[point]))
    if len(series) < 2:
        return None
    return Drawing(
        title=f"{analysis.primary} in % against {unit}",
        about=f"{analysis.primary} against {unit}, with its 95 % interval",
        series=series,
        x=Axis(unit, (0, 1.05 * max(entry.points[0].x for entry in series) or 1)),
        y=Axis(),
        note=f"Bars are 95 % intervals. {note}",
    )


def _plot_indexes(prices: Prices, conditions: Conditions, analysis: Analysis) -> Drawing | None:
    """Return a plot of the score against the price of 1,000 questions with the index.

    There is a curve for each search. None unless methods ask different indexes and at least two
    prices are known.
    """
    means = {method: score for method, score in analysis.scores.items() if score.n}
    amounts = prices.in_all(list(means)) if means else {}
    scale, unit = (1, "US dollars") if prices.unit == "cost_usd" else (1_000_000, "million tokens")
    priced = {method: price / scale for method, price in amounts.items() if price is not None}
    if len(priced) < 2:
        return None
    name = f"{unit} of {N_PRICED:,} questions with the index"
    widest = max(priced.values())
    curves: dict[str, list[str]] = {}
    points: dict[str, Point] = {}
    for method in sorted(priced, key=priced.__getitem__):
        search, price = conditions.search_methods.get(method, method), priced[method]
        # A search of one index under other settings is no point of the same curve.
        is_there = any(not conditions.differ_in_index(method, m) for m in curves.get(search, ()))
        curves.setdefault(method if is_there else search, []).append(method)
        is_alone = all(price - other.x > _NEAR * widest for other in points.values())
        title = f"{method}, {plain_amount(price)} {name}"
        points[method] = _point(means[method], title, price, method if is_alone else "")
    unknown = [method for method in means if method not in priced]
    note = "Bars are 95 % intervals. "
    note += prices.budgets or "Better is up and to the left."
    if unknown:
        note += f" Of {join_names(unknown)} the price is not known."
    return Drawing(
        title=f"{analysis.primary} in % against {name}",
        about=f"{analysis.primary} against {name}: a curve a search, a point an index",
        series=[
            Series(
                name=name,
                style=style,
                points=[points[method] for method in methods],
                is_joined=True,
            )
            for style, (name, methods) in enumerate(curves.items())
        ],
        x=Axis(name, (0, 1.05 * widest or 1)),
        y=Axis(),
        height=230,
        note=note,
    )
