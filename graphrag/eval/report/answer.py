"""The answer of a run before its tables: which method to take, how sure that is, at what price."""

from dataclasses import dataclass
from itertools import combinations
from math import ceil, floor
from typing import TYPE_CHECKING

from graphrag.eval.report.cells import share
from graphrag.eval.report.run_lines import answer_areas
from graphrag.eval.report.run_tables import total_of
from graphrag.eval.stats.paired import MIN_COVERAGE, has_verdicts
from graphrag.text.phrases import counted

if TYPE_CHECKING:
    from graphrag.eval.results.analysis import Analysis, Best, Comparison
    from graphrag.eval.results.evaluation_results import EvaluationResults
    from graphrag.eval.stats.intervals import Estimate

GET_MISSING = "Get them with:"
_JOINT = "at 95 % confidence for all comparisons together"
_MOST_PAIRS = 3
_SPEAKS_OF = {
    "stratified by document": "new questions on these {n} documents",
    "clustered by document": "new questions on documents like these {n}",
}


def describe_answer(results: "EvaluationResults", note: str = "") -> list[str]:
    """Return what to do, how sure that is and what it costs; what that speaks of; what is missing.

    The first line is the answer. The last one is the command that gets missing verdicts, where they
    keep the answer open. There is no line where no metric was to be judged.

    ``note`` says what the answer must be labelled with.

    A method is recommended when it is shown to be better than every other, or when it is the
    cheapest of those not shown to be worse and is shown to lose less than the equivalence margin
    to each of them, however the missing verdicts fell. Else the answer is "Undecided". Of a run at
    several context budgets it is by the areas under the curves, without a metric too.
    """
    analysis = results.analysis
    if results.curves is not None and results.curves.primary is not None:
        return [f"Answer{note}: {answer_areas(results.curves)}", *_speaks_of(results)]
    if analysis is None or not results.metrics or not analysis.outcomes:
        return []
    answer = _Answer(results, analysis, analysis.best)
    missing = answer.missing()
    n_failed = sum(counts["n_search_failed"] for counts in results.counts.values())
    means = [of[analysis.primary].mean.mean for of in analysis.outcomes.values()]
    if n_failed == len(results.results):
        line = f"none, as every search failed ({n_failed:,} of {n_failed:,})."
    elif not answer.best.contenders:
        line = f"none, as no response has a verdict on {analysis.primary}."
    elif len(means) > 1 and not any(means):
        line = f"none, as {analysis.primary} is 0.0 % for every method."
    elif len(means) == 1:
        line = answer.single()
    else:
        line = answer.winner() if answer.best.winner is not None else answer.undecided()
    line = " ".join([line, *missing, *answer.other_questions()])
    command = results.command if missing else ""
    flag = "" if "--retry-errors" in command.split() else " --retry-errors"
    return [
        f"Answer{note}: {line}",
        *_speaks_of(results),
        *([f"{GET_MISSING} {command}{flag}"] if command else []),
    ]


def _speaks_of(results: "EvaluationResults") -> list[str]:
    """Return that p and intervals speak of these documents alone, where they do."""
    analysis, n = results.analysis, len(results.by_movie)
    if analysis is None or any(
        of[analysis.primary].mean.method.endswith("clustered by document")
        for of in analysis.outcomes.values()
    ):
        return []
    this = "this document" if n == 1 else f"these {n:,} documents"
    return [
        f"Every p and interval speaks of {this} alone. Other documents may rank the methods "
        "otherwise: of methods that are equal in general, a few documents show a difference in up "
        "to 61 % of runs."
    ]


@dataclass(frozen=True, slots=True)
class _Answer:
    results: "EvaluationResults"
    analysis: "Analysis"
    best: "Best"

    def single(self) -> str:
        (method,) = self.best.contenders
        found = self._estimate(method)
        sure = ""
        if found.low is not None and found.high is not None:
            low, high = floor(1000 * found.low) / 10, ceil(1000 * found.high) / 10
            sure = f" ({low:.1f} to {high:.1f} at 95 % confidence)"
        return (
            f"{method} has {self._score(method)} {self.analysis.primary}{sure}, over "
            f"{counted(found.n, 'question')}."
        )

    def winner(self) -> str:
        method = self.best.contenders[0]
        behind = [
            f"{other} is {_points(self._behind(method, other))} points behind"
            for other in self.analysis.outcomes
            if other != method
        ]
        return (
            f"use {method}, the best on {self.analysis.primary} ({self._score(method)}); "
            f"{', '.join(behind)}, {_JOINT}{self._scope()}{self._price(method)}."
        )

    def undecided(self) -> str:
        contenders = self.best.contenders
        cheapest = self._cheapest()
        worse = [f"{method} (than {by})" for method, by in self.best.beaten.items()]
        beaten = f" Shown to be worse: {', '.join(worse)}." if worse else ""
        scores = ", ".join(f"{method} {self._score(method)}" for method in contenders)
        rivals = [method for method in self._unbeaten() if method != cheapest]
        if cheapest is not None and all(self._is_near(cheapest, rival) for rival in rivals):
            shown = "no other method is left that is not shown to be worse"
            if rivals:
                shown = (
                    f"it is shown to lose less than {self._margin():g} points to "
                    f"{', '.join(rivals)}, and none is shown to be better"
                )
            line = f"use {cheapest}: on {self.analysis.primary} {shown} ({scores})"
            return f"{line}, {_JOINT}{self._scope()}{self._price(cheapest)}.{beaten}"
        if any(not has_verdicts(each.result) for each in self._family()):
            return (
                f"undecided. Less than {100 * MIN_COVERAGE:g} % of the planned pairs have verdicts "
                f"on {self.analysis.primary} ({scores}).{beaten}"
            )
        n = max(self._estimate(method).n for method in contenders)
        line = (
            f"undecided. With {counted(n, 'question')} no method is shown to be the best on "
            f"{self.analysis.primary} ({scores}), {_JOINT}{self._scope()}."
        )
        if cheapest is not None:
            rival = max(rivals, key=lambda method: self._may_lose(cheapest, method))
            told = f"{cheapest}, the cheapest of these, {self._compared(cheapest, rival)}"
            line += f" {told}{self._price(cheapest)}."
        return f"{line}{beaten}"

    def missing(self) -> list[str]:
        """Return which verdicts are missing, where there are too many for an answer."""
        missing = [
            f"{n:,} of {of.n_planned:,} {what} of {method}"
            for method, by_metric in self.analysis.outcomes.items()
            for of in [by_metric[self.analysis.primary]]
            for n, what in (
                (of.n_judge_failed + of.n_judge_unparseable, "verdicts are missing"),
                (of.n_not_run, "searches are not made"),
            )
            if n > (1 - MIN_COVERAGE) * of.n_planned
        ]
        return [f"Missing: {', '.join(missing)}."] if missing else []

    def other_questions(self) -> list[str]:
        """Return how many questions each pair shares, where methods were asked different ones."""
        asked: dict[str, set[tuple[str, str]]] = {m: set() for m in self.analysis.outcomes}
        for each in self.results.results:
            asked[each.method].add((each.imdb_key, each.sample_id or each.question))
        pairs = [
            f"{a} and {b} share {len(asked[a] & asked[b]):,} of {len(asked[a] | asked[b]):,}"
            for a, b in combinations(asked, 2)
            if asked[a] != asked[b]
        ]
        if not pairs:
            return []
        more = f", and {len(pairs) - _MOST_PAIRS} more pairs" if len(pairs) > _MOST_PAIRS else ""
        return [
            "The methods were not asked the same questions, and are compared on those that both "
            f"were: {', '.join(pairs[:_MOST_PAIRS])}{more}."
        ]

    def _is_near(self, method: str, rival: str) -> bool:
        """Say whether a method is shown to lose less than the margin to another."""
        each = self._find(rival, method)
        known = each is not None and has_verdicts(each.result)
        return known and self._may_lose(method, rival) < self._margin()

    def _unbeaten(self) -> list[str]:
        """Return the contenders, and the methods that have no score to be beaten on."""
        unknown = [m for m in self.analysis.outcomes if self._estimate(m).mean is None]
        return [*self.best.contenders, *unknown]

    def _compared(self, method: str, rival: str) -> str:
        """Return how much a method may lose to another; each may hold what the other was asked."""
        compared = self._find(rival, method)
        if compared is None or compared.result.difference is None:
            return f"is not compared with {rival}, as no question has a verdict on both"
        (low, high), missing = self._behind(rival, method), compared.result.n_dropped_pairs
        better = f" or {-low:.1f} better" if low < 0 else ""
        left = f", {counted(missing, 'question')} without both verdicts left out" if missing else ""
        return f"may be up to {high:.1f} points worse than {rival}{better}{left}"

    def _scope(self) -> str:
        """Return what the intervals speak of, where there are several documents."""
        if any(each.is_corrected for each in self._family()):
            return ", corrected by people's labels"
        names = {each.result.interval.rpartition(", ")[2] for each in self._family()}
        scopes = [scope for name, scope in _SPEAKS_OF.items() if name in names]
        n = len(self.analysis.outcomes_by_document)
        return f", for {scopes[0].format(n=n)}" if scopes else ""

    def _score(self, method: str) -> str:
        return share(self._estimate(method).mean, " %")

    def _estimate(self, method: str) -> "Estimate":
        return self.analysis.outcomes[method][self.analysis.primary].mean

    def _find(self, a: str, b: str) -> "Comparison | None":
        return next((each for each in self._family() if {each.a, each.b} == {a, b}), None)

    def _behind(self, ahead: str, other: str) -> tuple[float, float]:
        """Return the simultaneous limits of how many points a method is behind another."""
        each = self._find(ahead, other)
        family = None if each is None else each.decided[1]
        if each is None or family is None:
            return -100.0, 100.0
        low, high = family.low_simultaneous, family.high_simultaneous
        if low is None or high is None:
            return -100.0, 100.0
        limits = (low, high) if each.a == ahead else (-high, -low)
        return floor(1000 * limits[0] + 1e-9) / 10, ceil(1000 * limits[1] - 1e-9) / 10

    def _may_lose(self, method: str, rival: str) -> float:
        """Return how many points a method may be behind another, however missing verdicts fell."""
        each, high = self._find(rival, method), self._behind(rival, method)[1]
        if each is None or each.result.difference is None or each.result.difference_bounds is None:
            return high
        (low, up), seen = each.result.difference_bounds, each.result.difference
        return high + 100 * max(0.0, up - seen if each.a == rival else seen - low)

    def _margin(self) -> float:
        margins = [each.family.equivalence_margin for each in self._family() if each.family]
        return 100 * min(margins, default=0.0)

    def _family(self) -> "list[Comparison]":
        return [each for each in self.analysis.comparisons if each.in_family]

    def _cheapest(self) -> str | None:
        """Return the contender that costs least; None when not all prices are known."""
        prices = {method: self._amount(method) for method in self.best.contenders}
        known = {method: amount[0] for method, amount in prices.items() if amount is not None}
        return min(known, key=known.__getitem__) if len(known) == len(prices) else None

    def _amount(self, method: str) -> tuple[float, str] | None:
        """Return what a question costs and in which words: dollars where any are paid."""
        dollars = {m: of["cost_usd"] for m, of in self.results.efficiency.items()}
        n, of = self.results.counts[method]["n"], self.results.efficiency[method]
        if n and None not in dollars.values() and any(dollars.values()):
            return dollars[method] / n, f"${dollars[method] / n:.4f}"
        tokens = total_of(of["avg_prompt_tokens"], of["avg_output_tokens"])
        return None if tokens is None else (tokens, f"{tokens:,.0f} tokens")

    def _price(self, method: str) -> str:
        """Return what a method costs beside the others as a clause; blank where none is known."""
        own = self._amount(method)
        others = [(m, self._amount(m)) for m in self.analysis.outcomes if m != method]
        beside = [f"{_times(own[0], each[0])}{m} ({each[1]})" for m, each in others if own and each]
        return f"; it takes {own[1]} a question, {', '.join(beside)}" if own and beside else ""


def _times(amount: float, other: float) -> str:
    """Return how many times another an amount is; blank where that is no number."""
    if not other or not amount:
        return ""
    times = amount / other
    shown = f"{times:.0f}" if times >= 10 else f"{times:.2g}"
    return "as much as " if shown == "1" else f"{shown} times "


def _points(limits: tuple[float, float]) -> str:
    return f"{max(0.0, limits[0]):.1f} to {limits[1]:.1f}"
