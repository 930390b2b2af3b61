"""Scores against tokens: one curve a method over context budgets, and the area under each."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, pairwise
from math import inf, log2
from statistics import fmean
from typing import TypeAlias

from pydantic_core import to_jsonable_python

from graphrag.eval.metrics.measures import MeasuredAnswer
from graphrag.eval.records.answers import QueryResult
from graphrag.eval.results.analysis import Best, find_best
from graphrag.eval.results.rows import QuestionKey, item_scores, rows_of
from graphrag.eval.stats.intervals import Estimate, Score, grouped, mean_binary, mean_real
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

    ``areas``: figure -> area in [0, 1], see ``area_under``, over the questions that have a score at
    every budget; empty of a method that was not asked at every budget. ``n_left_out``: figure ->
    questions that have a score at some budget and not at every one.
    """

    method: str
    points: tuple[CurvePoint, ...]
    areas: Mapping[str, Estimate]
    n_left_out: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class AreaDifference:
    """The areas of two methods, question by question.

    ``p_holm`` is corrected over the pairs on the primary figure; None on the others: exploratory.
    """

    a: str
    b: str
    figure: str
    result: ScaleDifference
    p_holm: float | None = None

    @property
    def ordered(self) -> tuple[str, str] | None:
        """The method that is shown to have the larger area, and the other; None when neither is.

        Nor is one where less than 95 % of the questions have both areas.
        """
        difference, n = self.result.difference, self.result.n_pairs
        if self.p_holm is None or self.p_holm > ALPHA or not difference:
            return None
        if n < MIN_COVERAGE * (n + self.result.n_dropped_pairs):
            return None
        return (self.a, self.b) if difference > 0 else (self.b, self.a)


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
        return find_best(areas, [pair.ordered for pair in self.differences])

    @property
    def winner(self) -> str | None:
        """The method whose area is shown to be larger than that of every other with one."""
        return self.best.winner

    def sections(self) -> dict[str, object]:
        """Return the sections of the summary file that the curves decide, JSON-ready."""
        values = {name: list(of) for name, of in asdict(self).items()}
        best = to_jsonable_python(self.best)
        return {"best": best, "budget_curves": {"winner": self.winner, **values}}


def area_weights(budgets: Sequence[float]) -> tuple[float, ...]:
    """Return the weight, > 0, of each budget's score in the area under the curve; their sum is 1.

    The trapezoidal rule over log2 of the budget, by the width of the whole, so that each doubling
    counts alike and scores in [0, 1] give an area in [0, 1]. ValueError if there are fewer than two
    budgets, or they do not ascend from above 0.
    """
    if len(budgets) < 2 or budgets[0] <= 0 or any(b <= a for a, b in pairwise(budgets)):
        msg = f"an area needs two budgets or more that ascend from above 0, not {list(budgets)}"
        raise ValueError(msg)
    places = [log2(budget) for budget in budgets]
    last, width = len(places) - 1, 2 * (places[-1] - places[0])
    return tuple(
        (places[min(i + 1, last)] - places[max(i - 1, 0)]) / width for i in range(len(places))
    )


def area_under(scores: Mapping[int, Score], budgets: Sequence[int]) -> float | None:
    """Return the area under one question's curve; None unless every budget has a score.

    As it is a weighted mean of scores, the mean of the questions' areas is the area under the curve
    of the means, and has the intervals and tests of any other score of a question.
    """
    values = [float(score) for b in budgets if (score := scores.get(b)) is not None]
    if len(values) < len(budgets):
        return None
    return sum(w * s for w, s in zip(area_weights(budgets), values, strict=True))


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
    by_name = grouped((result.method, result) for result in results)
    tokens = {name: _tokens(of_name) for name, of_name in by_name.items()}
    method_at = {name: method for method, at in groups.items() for name in at.values()}
    curves: list[Curve] = []
    areas: dict[str, dict[str, _Scores]] = {}
    for method in dict.fromkeys(method_at.get(name, name) for name in by_name):
        names = {b: n for b, n in sorted(groups.get(method, {}).items()) if n in by_name}
        points: dict[int | None, str] = {**names} if names else {None: method}
        is_whole = names and len(names) == len(budgets)
        areas[method] = {f: _areas(scores[f], names, budgets) for f in figures if is_whole}
        curves.append(
            Curve(
                method,
                tuple(
                    CurvePoint(
                        budget,
                        n,
                        tokens.get(n, mean_real([], [])),
                        {f: _mean(f, scores[f].get(n, {})) for f in figures},
                    )
                    for budget, n in points.items()
                ),
                {f: _real(items) for f, items in areas[method].items()},
                {f: sum(v is None for v in items.values()) for f, items in areas[method].items()},
            )
        )
    return BudgetCurves(budgets, figures, tuple(curves), _compare(areas, figures))


def _scores(
    results: Sequence[QueryResult], metrics: Sequence[str], measured: Sequence[MeasuredAnswer]
) -> dict[str, dict[str, _Scores]]:
    """Return figure -> method's name -> question -> score; what has none is left out."""
    scores: dict[str, dict[str, _Scores]] = {name: {} for name in (*metrics, *EVIDENCE)}
    for method, rows in grouped((row.method, row) for row in rows_of(results)).items():
        for metric in metrics:
            items = item_scores(rows, metric)
            scores[metric][method] = {k: score for k, score in items.items() if score is not None}
    for answer in measured:
        for name in EVIDENCE:
            if (value := answer.values.get(name)) is not None:
                by_question = scores[name].setdefault(answer.method, {})
                by_question[answer.imdb_key, answer.sample_id] = value
    return scores


def _areas(
    by_name: Mapping[str, _Scores], names: Mapping[int, str], budgets: Sequence[int]
) -> _Scores:
    """Return question -> area, None where a budget has no score, of questions with any score."""
    scores = {budget: by_name.get(name, {}) for budget, name in names.items()}
    return {
        key: area_under({b: of_budget.get(key) for b, of_budget in scores.items()}, budgets)
        for key in dict.fromkeys(key for of_budget in scores.values() for key in of_budget)
    }


def _real(scores: Mapping[QuestionKey, Score], most: float = 1.0) -> Estimate:
    return mean_real(list(scores.values()), [document for document, _ in scores], (0.0, most))


def _mean(figure: str, scores: _Scores) -> Estimate:
    graded = figure in EVIDENCE and figure != _BINARY
    if graded or any(value not in (0, 1) for value in scores.values()):
        return _real(scores)
    return mean_binary(list(scores.values()), [document for document, _ in scores])


def _tokens(results: Sequence[QueryResult]) -> Estimate:
    tokens = [
        ((r.imdb_key, r.sample_id or r.question), r.efficiency.prompt_tokens)
        for r in results
        if r.efficiency.prompt_tokens is not None
    ]
    if len(tokens) < len(results):
        return mean_real([], [])
    return _real({key: fmean(counts) for key, counts in grouped(tokens).items()}, inf)


def _compare(
    areas: Mapping[str, Mapping[str, _Scores]], figures: Sequence[str]
) -> tuple[AreaDifference, ...]:
    differences: list[AreaDifference] = []
    for figure in figures:
        of_figure = {m: by_figure[figure] for m, by_figure in areas.items() if figure in by_figure}
        compared: list[AreaDifference] = []
        for a, b in combinations(of_figure, 2):
            keys = dict.fromkeys([*of_figure[a], *of_figure[b]])  # by one alone: a pair dropped
            pairs = [(of_figure[a].get(key), of_figure[b].get(key)) for key in keys]
            documents = [document for document, _ in keys]
            result = paired_scale(pairs, limits=(-1.0, 1.0), documents=documents)
            compared.append(AreaDifference(a, b, figure, result))
        if figure == figures[0]:
            corrected = holm([pair.result.p for pair in compared])
            compared = [
                replace(pair, p_holm=p) for pair, p in zip(compared, corrected, strict=True)
            ]
        differences += compared
    return tuple(differences)
