"""Scores against tokens: one curve a method over context budgets, and the area under each."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, pairwise
from math import log2
from statistics import fmean
from typing import Any, TypeAlias

from graphrag.eval.records import QueryResult
from graphrag.eval.results.analysis import Best, find_best
from graphrag.eval.results.rows import QuestionKey, item_scores, rows_of
from graphrag.eval.scorers.measures import MeasuredAnswer
from graphrag.eval.stats.intervals import Estimate, Score, mean_binary, mean_real
from graphrag.eval.stats.paired import MIN_COVERAGE, ScaleDifference, holm, paired_scale
from graphrag.eval.stats.power import ALPHA

EVIDENCE: Mapping[str, str] = {
    "shown_hit_rate": "evidence shown, any",
    "shown_recall": "evidence shown, share",
}
"""Measure -> what a table calls it."""
_BINARY = "shown_hit_rate"
Groups: TypeAlias = Mapping[str, Mapping[int, str]]
"""Method -> budget in tokens -> its name at that budget."""
_Scores: TypeAlias = dict[QuestionKey, Score]


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A method, by its name at one budget of tokens (None of a method that is asked once).

    ``prompt_tokens`` a question, over all calls of the search, without a mean where one was not
    counted. ``scores``: figure -> mean in [0, 1] over the questions that have it.
    """

    budget: int | None
    name: str
    prompt_tokens: Estimate
    scores: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class Curve:
    """A method over the budgets, ascending; one point of a method that is asked once.

    ``areas``: figure -> area in [0, 1], the mean of the questions' own, see ``area_under``, over
    those that have a score at every budget; empty of a method that was not asked at every budget.
    ``n_left_out``: figure -> questions that have a score at some budget and not at every one.
    """

    method: str
    points: tuple[CurvePoint, ...]
    areas: Mapping[str, Estimate]
    n_left_out: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class AreaDifference:
    """The areas of two methods, question by question.

    ``p_holm`` is corrected over the method pairs on the primary figure; None on the others, which
    are exploratory.
    """

    a: str
    b: str
    figure: str
    result: ScaleDifference
    p_holm: float | None = None

    @property
    def larger(self) -> str | None:
        """The method that is shown to have the larger area; None when neither is.

        Nor is one where less than 95 % of the questions have both areas.
        """
        if self.p_holm is None or self.p_holm > ALPHA or not self.result.difference:
            return None
        n, dropped = self.result.n_pairs, self.result.n_dropped_pairs
        if n < MIN_COVERAGE * (n + dropped):
            return None
        return self.a if self.result.difference > 0 else self.b


@dataclass(frozen=True, slots=True)
class BudgetCurves:
    """Every curve of a run at several context budgets in tokens, ascending.

    ``figures``: what is drawn, the primary one first: the first judged metric, then how much of the
    evidence was shown. ``curves``: methods in the order of the run. ``differences``: every pair of
    methods with areas, on every figure.
    """

    budgets: tuple[int, ...]
    figures: tuple[str, ...]
    curves: tuple[Curve, ...]
    differences: tuple[AreaDifference, ...]

    @property
    def primary(self) -> str | None:
        """The figure on whose areas something may be claimed; None when nothing was measured."""
        return self.figures[0] if self.figures else None

    @property
    def best(self) -> Best:
        """What the areas on the primary figure leave over of the methods with one."""
        areas = {c.method: c.areas[self.figures[0]].mean for c in self.curves if c.areas}
        return find_best(
            areas,
            [
                (each.larger, each.b if each.larger == each.a else each.a)
                for each in self.differences
                if each.larger is not None
            ],
        )

    @property
    def winner(self) -> str | None:
        """The method whose area is shown to be larger than that of every other with one."""
        return self.best.winner

    def sections(self) -> dict[str, Any]:
        """Return the sections of the summary file that the curves decide, JSON-ready."""
        return {"best": self.best.to_dict(), "budget_curves": self.to_dict()}

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values; undefined is None."""
        return {
            "budgets": list(self.budgets),
            "figures": list(self.figures),
            "winner": self.winner,
            "curves": [asdict(curve) for curve in self.curves],
            "differences": [asdict(each) for each in self.differences],
        }


def area_weights(budgets: Sequence[float]) -> tuple[float, ...]:
    """Return the weight, > 0, of each budget's score in the area under the curve; their sum is 1.

    The trapezoidal rule over log2 of the budget, by the width of the whole: half the distance
    between a budget's neighbours (at an end: to its one neighbour). So each doubling counts alike,
    and scores in [0, 1] give an area in [0, 1]. ValueError if there are fewer than two budgets, or
    they do not ascend from above 0.
    """
    if len(budgets) < 2 or budgets[0] <= 0:
        msg = f"an area needs two budgets or more above 0, not {list(budgets)}"
        raise ValueError(msg)
    places = [log2(budget) for budget in budgets]
    if any(after <= before for before, after in pairwise(places)):
        msg = f"budgets must ascend, unlike {list(budgets)}"
        raise ValueError(msg)
    last = len(places) - 1
    width = 2 * (places[-1] - places[0])
    return tuple(
        (places[min(i + 1, last)] - places[max(i - 1, 0)]) / width for i in range(len(places))
    )


def area_under(scores: Mapping[int, Score], budgets: Sequence[int]) -> float | None:
    """Return the area under one question's curve; None unless every budget has a score.

    As the area is a weighted mean of scores, the mean of the questions' areas is the area under
    the curve of the means, and has the intervals and tests of any other score of a question.
    """
    at_each = [scores.get(budget) for budget in budgets]
    known = [float(score) for score in at_each if score is not None]
    if len(known) < len(at_each):
        return None
    return sum(w * s for w, s in zip(area_weights(budgets), known, strict=True))


def draw_curves(
    groups: Groups,
    results: Sequence[QueryResult],
    metrics: Sequence[str],
    measured: Sequence[MeasuredAnswer] = (),
) -> BudgetCurves | None:
    """Compute the curves of a run; None of one that is at no budgets (no ``groups``).

    Of what responses were to be judged on the first metric is drawn. Where questions were searched
    more than once, of the means of each; evidence of the first, and none without ``measured``.
    """
    if not groups or not results:
        return None
    scores = _scores(results, metrics[:1], measured)
    figures = tuple(name for name, by_name in scores.items() if any(by_name.values()))
    budgets = tuple(sorted({budget for of_method in groups.values() for budget in of_method}))
    names = list(dict.fromkeys(result.method for result in results))
    method_at = {name: method for method, at in groups.items() for name in at.values()}
    curves: list[Curve] = []
    areas: dict[str, dict[str, _Scores]] = {}
    for method in dict.fromkeys(method_at.get(name, name) for name in names):
        asked = {b: n for b, n in sorted(groups.get(method, {}).items()) if n in names}
        points: dict[int | None, str] = {**asked} if asked else {None: method}
        areas[method] = {}
        if asked and len(asked) == len(budgets):
            areas[method] = {f: _areas(scores[f], asked, budgets) for f in figures}
        curves.append(
            Curve(
                method,
                tuple(
                    CurvePoint(
                        budget,
                        n,
                        _tokens([r for r in results if r.method == n]),
                        {f: _mean(f, scores[f].get(n, {})) for f in figures},
                    )
                    for budget, n in points.items()
                ),
                {f: _area(each) for f, each in areas[method].items()},
                {f: sum(v is None for v in each.values()) for f, each in areas[method].items()},
            )
        )
    return BudgetCurves(budgets, figures, tuple(curves), _compare(areas, figures))


def _scores(
    results: Sequence[QueryResult], metrics: Sequence[str], measured: Sequence[MeasuredAnswer]
) -> dict[str, dict[str, _Scores]]:
    """Return figure -> method's name -> question -> score; what has none is left out."""
    scores: dict[str, dict[str, _Scores]] = {name: {} for name in (*metrics, *EVIDENCE)}
    rows = rows_of(results)
    for method in dict.fromkeys(row.method for row in rows):
        for metric in metrics:
            items = item_scores([row for row in rows if row.method == method], metric)
            scores[metric][method] = {k: score for k, score in items.items() if score is not None}
    for each in measured:
        for name in EVIDENCE:
            value = each.values.get(name)
            if value is not None:
                key = (each.imdb_key, each.sample_id)
                scores[name].setdefault(each.method, {})[key] = value
    return scores


def _areas(
    by_name: Mapping[str, _Scores], asked: Mapping[int, str], budgets: Sequence[int]
) -> _Scores:
    """Return question -> area, None where a budget has no score, of questions with any score."""
    scores = {budget: by_name.get(name, {}) for budget, name in asked.items()}
    keys = dict.fromkeys(key for of_budget in scores.values() for key in of_budget)
    return {
        key: area_under({b: of_budget.get(key) for b, of_budget in scores.items()}, budgets)
        for key in keys
    }


def _area(areas: _Scores) -> Estimate:
    return mean_real(list(areas.values()), [document for document, _ in areas], (0.0, 1.0))


def _mean(figure: str, scores: _Scores) -> Estimate:
    values, documents = list(scores.values()), [document for document, _ in scores]
    graded = figure in EVIDENCE and figure != _BINARY
    if graded or any(value not in (0, 1) for value in values):
        return mean_real(values, documents, (0.0, 1.0))
    return mean_binary(values, documents)


def _tokens(results: Sequence[QueryResult]) -> Estimate:
    counts: dict[QuestionKey, list[int]] = {}
    for result in results:
        if result.efficiency.prompt_tokens is None:
            return mean_real([], [])
        key = result.imdb_key, result.sample_id or result.question
        counts.setdefault(key, []).append(result.efficiency.prompt_tokens)
    means = [fmean(each) for each in counts.values()]
    return mean_real(means, [document for document, _ in counts], (0.0, float("inf")))


def _compare(
    areas: Mapping[str, Mapping[str, _Scores]], figures: Sequence[str]
) -> tuple[AreaDifference, ...]:
    differences: list[AreaDifference] = []
    for figure in figures:
        of_figure = {method: each[figure] for method, each in areas.items() if figure in each}
        compared = [
            AreaDifference(a, b, figure, _difference(of_figure[a], of_figure[b]))
            for a, b in combinations(of_figure, 2)
        ]
        if figure == figures[0]:
            corrected = holm([each.result.p for each in compared])
            compared = [
                replace(each, p_holm=p) for each, p in zip(compared, corrected, strict=True)
            ]
        differences += compared
    return tuple(differences)


def _difference(a: _Scores, b: _Scores) -> ScaleDifference:
    asked = dict.fromkeys([*a, *b])  # by one alone: a pair dropped
    return paired_scale(
        [(a.get(key), b.get(key)) for key in asked],
        limits=(-1.0, 1.0),
        documents=[document for document, _ in asked],
    )
