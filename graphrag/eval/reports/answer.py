"""The answer of a run before its tables: which method to take, how sure that is, at what price."""

from dataclasses import dataclass
from math import ceil, floor
from typing import TYPE_CHECKING, Any

from graphrag.eval.reports.cells import share
from graphrag.text.phrases import counted

if TYPE_CHECKING:
    from graphrag.eval.analysis import Analysis, Best
    from graphrag.eval.results import EvaluationResults
    from graphrag.eval.statistics import Estimate

_JOINT = "at 95 % confidence for all comparisons together"
_SPEAKS_OF = {
    "stratified by document": "new questions on these {n} documents",
    "clustered by document": "new questions on documents like these {n}",
}


def describe_answer(results: "EvaluationResults", note: str = "") -> list[str]:
    """Return what to do and what it costs, a line each; empty where no metric was to be judged.

    ``note`` says what the answer must be labelled with.

    A method is recommended when it is shown to be better than every other, or when it is the
    cheapest of those not shown to be worse and is shown to lose less than the equivalence margin
    to the best of them. Else the answer is "Undecided".
    """
    analysis = results.analysis
    if analysis is None or not results.metrics or not analysis.outcomes:
        return []
    said = _Said(results, analysis, analysis.best)
    if not said.best.contenders:
        lines = [f"none, as no response has a verdict on {analysis.primary}."]
    elif len(analysis.outcomes) == 1:
        lines = [said.single()]
    else:
        lines = said.winner() if said.best.winner is not None else said.undecided()
    return [f"Answer{note}: {lines[0]}", *lines[1:]]


@dataclass(frozen=True, slots=True)
class _Said:
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

    def winner(self) -> list[str]:
        method = self.best.contenders[0]
        behind = [
            f"{other} is {_points(self._behind(method, other))} points behind"
            for other in self.analysis.outcomes
            if other != method
        ]
        line = (
            f"use {method}, the best on {self.analysis.primary} ({self._score(method)}); "
            f"{', '.join(behind)}, {_JOINT}{self._scope()}."
        )
        return [line, *self._price(method)]

    def undecided(self) -> list[str]:
        contenders = self.best.contenders
        cheapest = self._cheapest()
        worse = [f"{method} (than {by})" for method, by in self.best.beaten.items()]
        lines = [f"Shown to be worse: {', '.join(worse)}."] if worse else []
        scores = ", ".join(f"{method} {self._score(method)}" for method in contenders)
        if cheapest is not None and self._loses_little(cheapest):
            top = contenders[0]
            if cheapest == top:
                why = "no method is shown to be better"
            else:
                why = (
                    f"it is shown to lose less than {self._margin():g} points to {top}, and none "
                    "is shown to be better"
                )
            line = f"use {cheapest}: on {self.analysis.primary} {why} ({scores})"
            return [f"{line}, {_JOINT}{self._scope()}.", *self._price(cheapest), *lines]
        n = max(self._estimate(method).n for method in contenders)
        line = (
            f"undecided. With {counted(n, 'question')} no method is shown to be the best on "
            f"{self.analysis.primary} ({scores}), {_JOINT}{self._scope()}."
        )
        if cheapest is not None and cheapest != contenders[0]:
            low, high = self._behind(contenders[0], cheapest)
            line += (
                f" {cheapest}, the cheapest of these, may be up to {high:.1f} points worse than "
                f"{contenders[0]}" + (f" or {-low:.1f} better." if low < 0 else ".")
            )
        return [line, *lines, *(self._price(cheapest) if cheapest is not None else [])]

    def _scope(self) -> str:
        """Return what the intervals speak of, where there are several documents."""
        names = {each.result.interval.rpartition(", ")[2] for each in self._family()}
        if any(each.is_corrected for each in self._family()):
            return ", corrected by people's labels"
        told = [_SPEAKS_OF[name] for name in _SPEAKS_OF if name in names]
        n = len(self.analysis.outcomes_by_document)
        return f", for {told[0].format(n=n)}" if told else ""

    def _score(self, method: str) -> str:
        return share(self._estimate(method).mean, " %")

    def _estimate(self, method: str) -> "Estimate":
        found = self.analysis.outcomes[method][self.analysis.primary]
        return found.end_to_end or found.given_answer

    def _behind(self, ahead: str, other: str) -> tuple[float, float]:
        """Return the simultaneous limits of how many points a method is behind another."""
        for each in self.analysis.comparisons:
            if not each.in_family or {each.a, each.b} != {ahead, other} or each.family is None:
                continue
            found = each.corrected if each.corrected and each.is_corrected else each.family
            low, high = found.low_simultaneous, found.high_simultaneous
            if low is None or high is None:
                break
            limits = (low, high) if each.a == ahead else (-high, -low)
            return floor(1000 * limits[0] + 1e-9) / 10, ceil(1000 * limits[1] - 1e-9) / 10
        return -100.0, 100.0

    def _margin(self) -> float:
        margins = [each.family.equivalence_margin for each in self._family() if each.family]
        return 100 * min(margins, default=0.0)

    def _family(self) -> list[Any]:
        return [each for each in self.analysis.comparisons if each.in_family]

    def _loses_little(self, method: str) -> bool:
        top = self.best.contenders[0]
        return method == top or self._behind(top, method)[1] < self._margin()

    def _cheapest(self) -> str | None:
        """Return the contender that costs least; None when not all prices are known."""
        prices = {method: self._amount(method) for method in self.best.contenders}
        known = {method: amount[0] for method, amount in prices.items() if amount is not None}
        return min(known, key=known.__getitem__) if len(known) == len(prices) else None

    def _amount(self, method: str) -> tuple[float, str] | None:
        """Return what a question costs and in which words: dollars where any are paid."""
        dollars = {m: found["cost_usd"] for m, found in self.results.efficiency.items()}
        n = self.results.counts[method]["n"]
        if n and None not in dollars.values() and any(dollars.values()):
            each = dollars[method] / n
            return each, f"${each:.4f}"
        found = self.results.efficiency[method]
        tokens = (found["avg_prompt_tokens"], found["avg_output_tokens"])
        if None in tokens:
            return None
        return sum(tokens), f"{sum(tokens):,.0f} tokens"

    def _price(self, method: str) -> list[str]:
        """Return what a method costs beside the others, a line; empty where it is not counted."""
        own = self._amount(method)
        others = [(m, self._amount(m)) for m in self.analysis.outcomes if m != method]
        told = [f"{other} {amount[1]}" for other, amount in others if amount is not None]
        if own is None or not told:
            return []
        return [f"{method} takes {own[1]} a question; {', '.join(told)}."]


def _points(limits: tuple[float, float]) -> str:
    return f"{max(0.0, limits[0]):.1f} to {limits[1]:.1f}"
