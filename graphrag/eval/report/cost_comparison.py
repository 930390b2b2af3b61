"""Compares the costs of methods, per question and for their index, and words the difference."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from graphrag.eval.report.formatting import money
from graphrag.eval.results.analysis import usable_methods
from graphrag.eval.results.method_conditions import UNITS, Unit, cost_of, costs_by_method
from graphrag.query.client.usage import sum_known
from graphrag.query.methods import NEEDS
from graphrag.text.message_phrases import join_names

if TYPE_CHECKING:
    from graphrag.eval.results.analysis import Analysis
    from graphrag.eval.results.evaluation_results import EvaluationResults

_MUCH = 2  # times as fast
_MANY_FAILED = 0.05
N_PRICED = 1_000
"""Number of questions in a total price, which is that of the questions and the index."""


class Prices:
    """The costs of a run's methods, compared where that is fair.

    Methods with different context budgets are not compared, because that would compare the
    budgets more than the methods. Others are compared on questions that all of them answered: a
    failed search takes less than an answer, which saves nothing.
    """

    def __init__(self, results: "EvaluationResults", analysis: "Analysis") -> None:
        self._results, self._conditions = results, results.conditions
        medians = {m: figures.latency_median.value for m, figures in analysis.efficiency.items()}
        self._seconds = {m: s for m in usable_methods(medians) if (s := medians[m])}

    @property
    def budgets(self) -> str:
        """A sentence on the context budget of each method; "" if the budgets are equal."""
        if not self._conditions.differ:
            return ""
        groups: dict[str, list[str]] = {}
        for method, by_index in self._conditions.budgets.items():
            groups.setdefault(format_budget(by_index), []).append(method)
        phrases = [f"{join_names(methods)} {size}" for size, methods in groups.items()]
        return f"Budgets of context differ: {'; '.join(phrases)} tokens."

    def in_all(self, methods: Sequence[str]) -> dict[str, float | None]:
        """Return method -> price of 1,000 questions and the index, in :attr:`unit`.

        None if a price is not known. Empty unless these methods ask different indexes.
        """
        return self._total_prices({method: self.amount(method) for method in methods})

    def _total_prices(self, amounts: Mapping[str, float | None]) -> dict[str, float | None]:
        methods = list(amounts)
        if not any(self._conditions.differ_in_index(methods[0], method) for method in methods):
            return {}
        prices: dict[str, float | None] = {}
        for method, own in amounts.items():
            index = cost_of(self._conditions, method, self.unit)
            searches = None if own is None else N_PRICED * own
            is_known = self._conditions.need_of(method) is not None
            prices[method] = sum_known([index, searches]) if is_known else None
        return prices

    @property
    def unit(self) -> Unit:
        """The unit of costs: "cost_usd" if all prices are known and any is paid, else "tokens"."""
        dollars = [usage["cost_usd"] for usage in self._results.efficiency.values()]
        return "cost_usd" if None not in dollars and any(dollars) else "tokens"

    def amount(self, method: str) -> float | None:
        """Return the mean cost of a question in :attr:`unit`; None if it is not known."""
        usage = self._results.efficiency[method]
        if self.unit == "cost_usd":
            return usage["cost_usd"] / self._results.counts[method]["n"]
        return sum_known([usage["avg_prompt_tokens"], usage["avg_output_tokens"]])

    def _mean_costs(self, methods: Sequence[str]) -> dict[str, float | None]:
        """Return method -> mean cost of the questions that all of these methods answered."""
        if not any(self._results.counts[method]["n_search_failed"] for method in methods):
            return {method: self.amount(method) for method in methods}
        costs = costs_by_method([r for r in self._results.rows if r.method in methods], self.unit)
        rows = [costs.get(method, {}) for method in methods]
        keys = [key for key in rows[0] if all(key in row for row in rows)]
        sums = [sum_known(row[key] for key in keys) for row in rows]
        return {
            method: None if total is None or not keys else total / len(keys)
            for method, total in zip(methods, sums, strict=True)
        }

    def least_of_an_index(self, methods: Sequence[str]) -> list[str]:
        """Return the methods that need least of an index: nothing, text units, vectors or a graph.

        If the methods ask different indexes and all prices are known, all methods are returned.
        """
        prices = self.in_all(methods)
        if prices and None not in prices.values():
            return list(methods)
        least = min(map(self._rank, methods), default=0)
        return [method for method in methods if self._rank(method) == least]

    def cheapest(self, methods: Sequence[str]) -> str | None:
        """Return the method that costs least; None if that is not known or not comparable."""
        if len(methods) < 2:
            return next(iter(methods), None)
        amounts = self._mean_costs(methods)
        amounts = self._total_prices(amounts) or amounts
        costs = {method: amount for method, amount in amounts.items() if amount is not None}
        are_equal = all(self._conditions.are_equal(a, b) for a in methods for b in methods)
        if len(costs) < len(amounts) or not are_equal:
            return None
        return min(costs, key=costs.__getitem__)

    def reason(self, method: str, rivals: Sequence[str]) -> str:
        """Return why a method is preferred to equally good rivals: a predicate, as "costs less"."""
        prices = self._total_prices(self._mean_costs([method, *rivals]))
        others = [price for price in map(prices.get, rivals) if price is not None]
        own = prices.get(method)
        if own is not None and len(others) == len(rivals) and own < min(others):
            text = f"{self._format_amount(own)} against {self._format_amount(min(others))} or more"
            return f"is cheapest in all: {N_PRICED:,} questions and the index take {text}"
        parts = self._lacks(method, [m for m in rivals if self._rank(m) > self._rank(method)])
        alike = [rival for rival in rivals if self._rank(rival) == self._rank(method)]
        amounts = self._mean_costs([method, *alike])
        own, others = amounts[method], [amounts[rival] for rival in alike]
        costs = [amount for amount in others if amount is not None]
        if own is not None and costs and len(costs) == len(others):
            fewer, less = ("fewer", "less") if own < min(costs) else ("no more", "no more")
            text = f"costs {less}" if self.unit == "cost_usd" else f"takes {fewer} tokens"
            parts.append(f"{text} than {join_names(alike)}" if parts else text)
        return " and ".join(parts)

    def _lacks(self, method: str, dearer: Sequence[str]) -> list[str]:
        """Return a predicate on the parts of an index that only the method's dearer rivals need."""
        needs = {self._conditions.need_of(rival) for rival in dearer}
        parts = [need for need in reversed(NEEDS) if need in needs]
        if not dearer:
            return []
        if self._conditions.need_of(method) == "nothing":
            return ["needs no index"]
        if not parts:  # unknown of the user's own methods
            return [f"needs only {self._conditions.need_of(method)}"]
        return [f"needs no {' and no '.join(parts)}"]

    def line(self, method: str, rival: str | None, is_named: bool = False) -> str:
        """Return a sentence on the cost of a question, next to a rival's, and of the index.

        It also names a method that is much faster, and failed searches. "" if the cost is not
        known. ``is_named``: whether the sentence names the method.
        """
        own = self.amount(method)
        if own is None:
            return ""
        own_line = f"{self._format_amount(own)} a question"
        if is_named:
            own_line = f"{method} takes {own_line}"
        sentences = [
            f"{own_line}{self._compare_cost(method, rival)}.",
            *map(self._describe_failures, dict.fromkeys((method, rival or method))),
            self._describe_index(method, rival, is_named),
        ]
        return f"Cost: {' '.join(filter(None, sentences))}"

    def _describe_failures(self, method: str) -> str:
        """Return a sentence on how failed searches are counted; "" unless many failed."""
        counts = self._results.counts[method]
        n, failed = counts["n"], counts["n_search_failed"]
        if not failed or failed < _MANY_FAILED * n:
            return ""
        text = f"{failed:,} of {n:,} searches of {method} failed"
        verb = "counts" if failed == 1 else "count"
        return f"{text}, and {verb} in its mean, not in comparisons."

    def _compare_cost(self, method: str, rival: str | None) -> str:
        seconds = {m: s for m, s in self._seconds.items() if self._conditions.are_equal(m, method)}
        mine = seconds.pop(method, None)
        own = other = None
        if rival is not None and rival != method and self._conditions.are_equal(method, rival):
            own, other = self._mean_costs([method, rival]).values()
        text = f", {_format_ratio(own / other)} {rival}" if other and own else ""
        fastest = min(seconds, key=seconds.__getitem__, default="")
        if mine and fastest and mine / seconds[fastest] >= _MUCH:
            return f"{text}; {fastest} is {mine / seconds[fastest]:.0f} times faster"
        if mine and text and rival in seconds and seconds[rival] / mine >= _MUCH:
            return f"{text}, and is {seconds[rival] / mine:.0f} times faster"
        return text

    def _describe_index(self, method: str, rival: str | None, is_weighed: bool) -> str:
        """Return the cost of the index that only one of two methods needs; "" if it is unknown."""
        if rival is not None and self._conditions.differ_in_index(method, rival):
            return self._describe_two_indexes(method, rival)
        dearer = max(method, rival or method, key=self._rank)
        cheaper = method if dearer == rival else rival
        if cheaper is not None and self._rank(dearer) <= self._rank(cheaper):
            cheaper = None
        need, amount = self._conditions.need_of(dearer), self._index_amount(dearer, cheaper)
        if amount is None or (dearer == rival and not is_weighed):
            return ""
        return f"{dearer}'s {need} took {amount} to build."

    def _describe_two_indexes(self, method: str, rival: str) -> str:
        """Return the cost of building each of two methods' indexes; "" if both took the same."""
        if not {method, rival} <= self._conditions.search_methods.keys():
            return ""
        lacking: list[str] = []
        for unit in UNITS:
            costs = {name: cost_of(self._conditions, name, unit) for name in (method, rival)}
            known = {name: cost for name, cost in costs.items() if cost is not None}
            if len(known) < len(costs):
                lacking = lacking or [name for name in costs if name not in known]
            elif any(known.values()):
                dear, cheap = sorted(known, key=known.__getitem__, reverse=True)
                if known[dear] == known[cheap]:
                    return ""
                took = self._format_amount(known[dear], unit)
                other = self._format_amount(known[cheap], unit) if known[cheap] else "nothing"
                return f"{dear}'s index took {took} to build, {cheap}'s {other}."
        if not lacking:
            return ""
        return f"What the index of {join_names(lacking)} took to build is not known."

    def _format_amount(self, amount: float, unit: Unit | None = None) -> str:
        return money(amount, "$") if (unit or self.unit) == "cost_usd" else f"{amount:,.0f} tokens"

    def _index_amount(self, method: str, other: str | None) -> str | None:
        """Return the cost of a method's part of the indexes beyond another method's part."""
        for unit in UNITS:
            costs = [cost_of(self._conditions, m, unit) for m in (method, other) if m is not None]
            if costs[0] is None or None in costs:
                continue
            more = costs[0] - sum(cost for cost in costs[1:] if cost)
            if more > 0:
                return self._format_amount(more, unit)
        return None

    def _rank(self, method: str) -> int:
        return NEEDS.index(self._conditions.need_of(method) or "graph")


def format_budget(by_index: Mapping[str, int]) -> str:
    """Return a method's budget in tokens as text; if indexes differ, the least and the most."""
    sizes = {min(by_index.values()): None, max(by_index.values()): None}
    return " to ".join(f"{size:,}" for size in sizes)


def _format_ratio(times: float) -> str:
    factor = f"{times:.0f}" if times >= 10 else f"{times:.2g}"
    return "about as much as" if 0.9 <= times <= 1.1 else f"{factor} times as much as"
