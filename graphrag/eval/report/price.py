"""What methods cost to ask and to build for, where that may be compared, and what it decides."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from graphrag.eval.report.cells import money, round_up
from graphrag.eval.results.analysis import usable_methods
from graphrag.eval.results.index_costs import UNITS, index_cost
from graphrag.query.methods import NEEDS
from graphrag.query.usage import sum_known
from graphrag.text.phrases import join_names

if TYPE_CHECKING:
    from graphrag.eval.results.analysis import Analysis
    from graphrag.eval.results.evaluation_results import EvaluationResults

_MUCH = 2  # times as fast


class Prices:
    """The costs of a run's methods.

    What methods of different budgets of context take is not compared, as it says more of the
    budgets than of the methods.
    """

    def __init__(self, results: "EvaluationResults", analysis: "Analysis") -> None:
        self._results, self._terms = results, results.terms
        medians = {m: of.latency_median.value for m, of in analysis.efficiency.items()}
        self._seconds = {m: s for m in usable_methods(medians) if (s := medians[m])}

    @property
    def budgets(self) -> str:
        """Which method had what budget, a sentence; "" where budgets do not differ."""
        if not self._terms.differ:
            return ""
        groups: dict[str, list[str]] = {}
        for method, by_index in self._terms.budgets.items():
            groups.setdefault(tell_budget(by_index), []).append(method)
        each = [f"{join_names(methods)} {size}" for size, methods in groups.items()]
        return f"Budgets of context differ: {'; '.join(each)} tokens."

    def least_of_an_index(self, methods: Sequence[str]) -> list[str]:
        """Return the methods that need least of an index; all have one need."""
        least = min(map(self._rank, methods), default=0)
        return [method for method in methods if self._rank(method) == least]

    def cheapest(self, methods: Sequence[str]) -> str | None:
        """Return the method that costs least; None where that is not known or not comparable."""
        if len(methods) < 2:
            return next(iter(methods), None)
        amounts = {method: self._amount(method) for method in methods}
        known = {method: amount[0] for method, amount in amounts.items() if amount is not None}
        if len(known) < len(amounts) or not self._are_equal(methods):
            return None
        return min(known, key=known.__getitem__)

    def reason(self, method: str, rivals: Sequence[str]) -> str:
        """Return why a method is taken that is as good as its rivals, as what "it" does."""
        parts = self._lacks(method, [rival for rival in rivals if self._needs_more(rival, method)])
        alike = [rival for rival in rivals if self._rank(rival) == self._rank(method)]
        own, others = self._amount(method), [self._amount(each) for each in alike]
        known = [amount[0] for amount in others if amount is not None]
        if own is not None and known and len(known) == len(others):
            is_less, is_paid = own[0] < min(known), own[1].startswith("$")
            fewer = "fewer tokens" if is_less else "no more tokens"
            told = f"costs {'less' if is_less else 'no more'}" if is_paid else f"takes {fewer}"
            parts.append(f"{told} than {join_names(alike)}" if parts else told)
        return " and ".join(parts)

    def _lacks(self, method: str, dearer: Sequence[str]) -> list[str]:
        """Return which parts of an index that known rivals need a method does without."""
        needs = {self._terms.need_of(each) for each in dearer}
        parts = [need for need in reversed(NEEDS) if need in needs]
        if not dearer:
            return []
        if self._terms.need_of(method) == "nothing":
            return ["needs no index"]
        if not parts:  # of one's own methods nobody knows
            return [f"needs only {self._terms.need_of(method)}"]
        return [f"needs no {' and no '.join(parts)}"]

    def line(self, method: str, rival: str | None, is_named: bool = False) -> str:
        """Return what a question costs, beside a rival, who is much faster, and what an index took.

        "" where nothing is known.
        """
        own, sentences = self._amount(method), list[str]()
        if own is not None:
            own_line = f"{f'{method} takes ' * is_named}{own[1]} a question"
            sentences = [f"{own_line}{self._beside(method, rival, own[0])}."]
        index = self._index(method, rival, is_named)
        return f"Cost: {' '.join([*sentences, *filter(None, [index])])}" if sentences else ""

    def _beside(self, method: str, rival: str | None, own: float) -> str:
        seconds = {m: s for m, s in self._seconds.items() if self._terms.are_equal(m, method)}
        mine = seconds.pop(method, None)
        other = None
        if rival is not None and rival != method and self._terms.are_equal(method, rival):
            other = self._amount(rival)
        told = f", {_times(own / other[0])} {rival}" if other and other[0] and own else ""
        fastest = min(seconds, key=seconds.__getitem__, default="")
        if mine and fastest and mine / seconds[fastest] >= _MUCH:
            return f"{told}; {fastest} is {mine / seconds[fastest]:.0f} times faster"
        if mine and told and rival in seconds and seconds[rival] / mine >= _MUCH:
            return f"{told}, and is {seconds[rival] / mine:.0f} times faster"
        return told

    def _index(self, method: str, rival: str | None, is_weighed: bool) -> str:
        """Return what the index took that one of two methods needs, and when that pays."""
        others = [] if rival is None else [rival]
        dearer = max([method, *others], key=self._rank)
        cheaper = method if dearer == rival else rival
        if cheaper is not None and not self._needs_more(dearer, cheaper):
            cheaper = None
        need, amount = self._terms.need_of(dearer), self._index_amount(dearer, cheaper)
        if amount is None or (dearer == rival and not is_weighed):
            return ""
        whose = "Its" if dearer == method else f"{dearer}'s"
        told = f"{whose} {need} took {amount} to build"
        pays = [p for p in self._results.payoffs if (p.first, p.second) == (dearer, cheaper)]
        for payoff in pays:
            if payoff.questions is not None and payoff.at_most is not None:
                told += f", and pays after about {round_up(payoff.questions):,} questions"
            elif None not in (payoff.more, payoff.saved) and dearer == rival:
                told += ", and is not shown to pay by cheaper searches"
        return f"{told}."

    def _index_amount(self, method: str, beside: str | None) -> str | None:
        """Return what a method's part of the indexes took, beyond that of another."""
        for unit in UNITS:
            costs = [
                index_cost(self._terms.search_methods.get(m, m), self._terms.index_costs, unit)
                for m in (method, beside)
                if m is not None
            ]
            if costs[0] is None or None in costs:
                continue
            more = costs[0] - sum(cost for cost in costs[1:] if cost)
            if more > 0:
                return money(more, "$") if unit == "cost_usd" else f"{more:,.0f} tokens"
        return None

    def _amount(self, method: str) -> tuple[float, str] | None:
        """Return what a question costs and in which words: dollars where any are paid."""
        dollars = {m: of["cost_usd"] for m, of in self._results.efficiency.items()}
        n, of = self._results.counts[method]["n"], self._results.efficiency[method]
        if n and None not in dollars.values() and any(dollars.values()):
            return dollars[method] / n, f"${dollars[method] / n:.4f}"
        tokens = sum_known([of["avg_prompt_tokens"], of["avg_output_tokens"]])
        return None if tokens is None else (tokens, f"{tokens:,.0f} tokens")

    def _are_equal(self, methods: Sequence[str]) -> bool:
        return all(self._terms.are_equal(a, b) for a in methods for b in methods)

    def _rank(self, method: str) -> int:
        need = self._terms.need_of(method)
        return NEEDS.index("graph" if need is None else need)

    def _needs_more(self, method: str, than: str) -> bool:
        return self._rank(method) > self._rank(than)


def tell_budget(by_index: Mapping[str, int]) -> str:
    """Return a method's budget as text; of indexes with several the smallest and the largest."""
    sizes = {min(by_index.values()): None, max(by_index.values()): None}
    return " to ".join(f"{size:,}" for size in sizes)


def _times(times: float) -> str:
    shown = f"{times:.0f}" if times >= 10 else f"{times:.2g}"
    return "about as" if 0.9 <= times <= 1.1 else f"{shown} times"
