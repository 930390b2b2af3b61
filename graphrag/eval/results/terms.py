"""On what terms the methods of a run answered: what each was given, what it needs and costs.

And after how many questions an index that costs more to build pays by cheaper searches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from math import ceil
from typing import Any, Literal, TypeAlias, get_args

from graphrag.eval.results.rows import QuestionKey, Row, item_means
from graphrag.eval.stats.intervals import Estimate, grouped, mean_real
from graphrag.eval.store.index_costs import KINDS, IndexCost
from graphrag.eval.store.records import RunSetup
from graphrag.query.methods import BUDGET, Need, has_budget, need_of
from graphrag.query.usage import sum_known

Unit: TypeAlias = Literal["cost_usd", "tokens"]
UNITS: tuple[Unit, ...] = get_args(Unit)
"""What costs are counted in: tokens where dollars are not known, or none are paid."""
Costs = Mapping[QuestionKey, float | None]
"""Question -> what its search cost; None where that is not known."""


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms the methods of a run answered, as far as it is known.

    ``search_methods``: method -> the search behind it; one that is not there has its own name.
    ``budgets``: method -> index key -> the most tokens of context that an answer is written from,
    of methods with such a setting. ``index_costs``: name of an index -> what it took to build, None
    where that is not known. ``indexes``: method -> index key -> name of the index that it asks; of
    a method that is not there the key.
    """

    search_methods: Mapping[str, str] = field(default_factory=dict[str, str])
    budgets: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, dict[str, int]])
    index_costs: Mapping[str, IndexCost | None] = field(default_factory=dict[str, IndexCost | None])
    indexes: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, dict[str, str]])

    def index_of(self, key: str, method: str) -> str:
        """Return the name of the index that a method asks about a key."""
        return self.indexes.get(method, {}).get(key, key)

    def differ_in_index(self, a: str, b: str) -> bool:
        """Say whether two methods ask different indexes about a key."""
        return self.indexes.get(a) != self.indexes.get(b)

    def costs_of(self, method: str) -> Mapping[str, IndexCost | None]:
        """Return name -> cost of the indexes that a method asks."""
        index_names = self.indexes.get(method)
        if index_names is None:
            return self.index_costs
        return {name: self.index_costs.get(name) for name in index_names.values()}

    def need_of(self, method: str) -> Need | None:
        """Return what a method needs of an index; None where that is not known."""
        return need_of(self.search_methods.get(method, method))

    def are_equal(self, a: str, b: str) -> bool:
        """Say whether what two methods take may be compared: no budgets of theirs differ."""
        ours, theirs = self.budgets.get(a), self.budgets.get(b)
        return ours is None or theirs is None or ours == theirs

    @property
    def differ(self) -> bool:
        """Whether methods had different budgets."""
        budgets = list(self.budgets.values())
        return any(budget != budgets[0] for budget in budgets)


def read_terms(
    setup: RunSetup,
    search_methods: Mapping[str, str],
    index_costs: Mapping[str, IndexCost | None] | None = None,
) -> Terms:
    """Return the terms of a run that was set up so."""
    budgets: dict[str, dict[str, int]] = {}
    index_names: dict[str, dict[str, str]] = {}
    indexes = setup.indexes if "indexes" in setup.root else dict[str, dict[str, Any]]()
    for key, by_method in indexes.items():
        for method, described in by_method.items():
            budget = described.get("settings", {}).get(BUDGET)
            if budget is not None and has_budget(search_methods.get(method, method)):
                budgets.setdefault(method, {})[key] = budget
            index_names.setdefault(method, {})[key] = setup.index_of(key, method)
    return Terms(search_methods, budgets, index_costs or {}, index_names)


@dataclass(frozen=True, slots=True)
class Payoff:
    """Two ways to answer, each by an index of its own or by a part of one, in a unit.

    ``more``: what the index of ``first``, the more expensive one, costs more. ``saved``: the mean
    that its searches cost less, question by question; each None where it is not known.
    ``questions``: after which it has paid, with ``at_most`` by the upper limit of 95 %; None:
    never, or not known.
    """

    first: str
    second: str
    unit: Unit
    more: float | None
    saved: Estimate | None
    questions: int | None
    at_most: int | None

    @property
    def never_pays(self) -> bool:
        """Whether it is shown that the searches of ``first`` cost no less."""
        return self.saved is not None and self.saved.high is not None and self.saved.high <= 0

    def to_dict(self) -> dict[str, Any]:
        """Return it as files have it: dollars and tokens apart, null in the other unit."""
        values = asdict(self)
        unit, more, saved = (values.pop(name) for name in ("unit", "more", "saved"))
        for kept, name in (("cost_usd", "usd"), ("tokens", "tokens")):
            is_counted = kept == unit
            values[f"more_{name}"] = more if is_counted else None
            values[f"saved_{name}"] = saved if is_counted else None
        return values


def hold_against(
    names: tuple[str, str],
    index: tuple[float | None, float | None],
    costs: tuple[Costs, Costs],
    unit: Unit = "cost_usd",
) -> Payoff | None:
    """Hold two ways to answer against each other; None where their indexes cost the same."""
    (first, second), (a, b), (ours, theirs) = names, index, costs
    if a is not None and b is not None and a <= b:
        return None if a == b else hold_against((second, first), (b, a), (theirs, ours), unit)
    more = None if a is None or b is None else a - b
    keys = [key for key in ours if key in theirs]
    pairs = [(ours[key], theirs[key]) for key in keys]
    saved = [None if x is None or y is None else y - x for x, y in pairs]
    is_known = bool(saved) and None not in saved
    mean = mean_real(saved, [document for document, _ in keys]) if is_known else None
    if mean is None:
        return Payoff(first, second, unit, more, None, None, None)
    return Payoff(first, second, unit, more, mean, _after(more, mean.mean), _after(more, mean.low))


def _after(more: float | None, saved: float | None) -> int | None:
    return ceil(more / saved) if more is not None and saved is not None and saved > 0 else None


def hold_in_units(
    names: tuple[str, str],
    index: Mapping[Unit, tuple[float | None, float | None]],
    costs: Mapping[Unit, tuple[Costs, Costs]],
) -> Payoff | None:
    """Hold two ways against each other in dollars, in tokens where those are unknown or none.

    Of what is known in neither the payoff says what is not; None where the indexes cost the same.
    """
    unknown: Payoff | None = None
    for unit in UNITS:
        payoff = hold_against(names, index[unit], costs[unit], unit)
        if payoff is None:
            if any(index[unit]) or any(any(side.values()) for side in costs[unit]):
                return None
        elif payoff.more is not None and payoff.saved is not None:
            return payoff
        unknown = unknown or payoff
    return unknown


def index_cost(search: str, costs: Mapping[str, IndexCost | None], unit: Unit) -> float | None:
    """Return what a search method needs of indexes costs together; None where it is not known.

    Of the vectors of texts it is not known what they took beside those of the graph, which the same
    workflow makes: all of them count for a method that needs some.
    """
    needed = {"graph": KINDS, "vectors": KINDS[1:]}.get(need_of(search) or "", ())
    if not needed:
        return 0.0 if costs else None
    # One that several keys name was built once.
    built = {cost and (cost.fingerprint, *cost.seconds.values()): cost for cost in costs.values()}
    sums = [
        cost and (cost.cost_usd(needed) if unit == "cost_usd" else cost.count_tokens(needed))
        for cost in built.values()
    ]
    return sum_known(sums) if sums else None


def costs_by_method(rows: Sequence[Row], unit: Unit) -> dict[str, Costs]:
    """Return method -> what its searches cost, of questions that it answered.

    A search that failed took less than an answer does, which saves nothing.
    """
    return {
        method: item_means((row.key, getattr(row, unit)) for row in searches if not row.censored)
        for method, searches in grouped((row.method, row) for row in rows).items()
    }


def payoff_of(rows: Sequence[Row], terms: Terms, a: str, b: str) -> Payoff | None:
    """Hold two methods against each other by what each needs of an index; None where that is alike.

    What methods of different budgets take is not compared.
    """
    if a == b or not terms.are_equal(a, b) or not {a, b} <= terms.search_methods.keys():
        return None
    of_both = [row for row in rows if row.method in (a, b)]
    costs: dict[Unit, dict[str, Costs]] = {u: costs_by_method(of_both, u) for u in UNITS}
    if not {a, b} <= costs["tokens"].keys():
        return None
    return hold_in_units(
        (a, b),
        {unit: (cost_of(terms, a, unit), cost_of(terms, b, unit)) for unit in UNITS},
        {unit: (by_method[a], by_method[b]) for unit, by_method in costs.items()},
    )


def cost_of(terms: Terms, method: str, unit: Unit) -> float | None:
    """Return what the indexes that a method asks cost, as far as it needs them; None: not known."""
    return index_cost(terms.search_methods.get(method, method), terms.costs_of(method), unit)


def compute_payoffs(rows: Sequence[Row], terms: Terms) -> list[Payoff]:
    """Hold against each other methods that need more or less of the same indexes.

    And those that are one search of different indexes.
    """
    pairs = [
        (a, b)
        for a, b in combinations(terms.search_methods, 2)
        if (
            terms.search_methods[a] == terms.search_methods[b]
            if terms.differ_in_index(a, b)
            else (terms.need_of(a) == "graph") != (terms.need_of(b) == "graph")
        )
    ]
    ordered = ((a, b) if terms.need_of(a) == "graph" else (b, a) for a, b in pairs)
    return [payoff for a, b in ordered if (payoff := payoff_of(rows, terms, a, b)) is not None]
