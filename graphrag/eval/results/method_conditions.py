"""Describes the conditions under which methods answered: budgets, indexes, costs, handicaps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from graphrag.eval.results.handicaps import Handicap, Handicaps
from graphrag.eval.results.scored_rows import QuestionKey, Row, item_means
from graphrag.eval.stats.intervals import grouped
from graphrag.eval.store.index_costs import KINDS, IndexCost
from graphrag.eval.store.records import RunSetup
from graphrag.query.client.usage import sum_known
from graphrag.query.methods import BUDGET, Need, has_budget, need_of

Unit: TypeAlias = Literal["cost_usd", "tokens"]
UNITS: tuple[Unit, ...] = get_args(Unit)
"""The unit of costs: dollars, or tokens if dollars are not known or none are paid."""
Costs = Mapping[QuestionKey, float | None]
"""Question -> what its search cost; None if that is not known."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions under which the methods of a run answered, as far as they are known.

    - ``search_methods``: method -> the search behind it; a method that is missing has its own name.
    - ``budgets``: method -> index key -> the most tokens of context that an answer is written from,
      for methods with such a setting.
    - ``index_costs``: name of an index -> what it took to build, None if that is not known.
    - ``indexes``: method -> index key -> name of the index that it asks; for a method that is
      missing, the key is the name.
    - ``handicaps``: see :func:`read_handicaps`.
    """

    search_methods: Mapping[str, str] = field(default_factory=dict[str, str])
    budgets: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, dict[str, int]])
    index_costs: Mapping[str, IndexCost | None] = field(default_factory=dict[str, IndexCost | None])
    indexes: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, dict[str, str]])
    handicaps: Handicaps = field(default_factory=dict[str, tuple[Handicap, ...]])

    def index_of(self, key: str, method: str) -> str:
        """Return the name of the index that a method asks for an index key."""
        return self.indexes.get(method, {}).get(key, key)

    def differ_in_index(self, a: str, b: str) -> bool:
        """Return whether two methods ask different indexes for the same key."""
        return self.indexes.get(a) != self.indexes.get(b)

    def costs_of(self, method: str) -> Mapping[str, IndexCost | None]:
        """Return name -> building cost of the indexes that a method asks."""
        index_names = self.indexes.get(method)
        if index_names is None:
            return self.index_costs
        return {name: self.index_costs.get(name) for name in index_names.values()}

    def need_of(self, method: str) -> Need | None:
        """Return the part of an index that a method needs, such as "vectors"; None if not known."""
        return need_of(self.search_methods.get(method, method))

    @property
    def differ_by_variants(self) -> bool:
        """Whether variants of one search have different budgets, which somebody set on purpose."""
        by_search: dict[str, list[Mapping[str, int]]] = {}
        for method, budget in self.budgets.items():
            by_search.setdefault(self.search_methods.get(method, method), []).append(budget)
        return any(budgets.count(budgets[0]) < len(budgets) for budgets in by_search.values())

    def are_equal(self, a: str, b: str) -> bool:
        """Return whether the costs of two methods may be compared: their budgets don't differ."""
        budgets_a, budgets_b = self.budgets.get(a), self.budgets.get(b)
        return budgets_a is None or budgets_b is None or budgets_a == budgets_b

    @property
    def differ(self) -> bool:
        """Whether methods had different context budgets."""
        budgets = list(self.budgets.values())
        return any(budget != budgets[0] for budget in budgets)


def read_conditions(
    setup: RunSetup,
    search_methods: Mapping[str, str],
    index_costs: Mapping[str, IndexCost | None] | None = None,
) -> Conditions:
    """Return the conditions that a run's setup shows; handicaps come from its responses.

    ``search_methods``, ``index_costs``: see :class:`Conditions`.
    """
    budgets: dict[str, dict[str, int]] = {}
    index_names: dict[str, dict[str, str]] = {}
    indexes = setup.indexes if "indexes" in setup.root else dict[str, dict[str, Any]]()
    for key, by_method in indexes.items():
        for method, described in by_method.items():
            budget = described.get("settings", {}).get(BUDGET)
            if budget is not None and has_budget(search_methods.get(method, method)):
                budgets.setdefault(method, {})[key] = budget
            index_names.setdefault(method, {})[key] = setup.index_of(key, method)
    return Conditions(
        search_methods=search_methods,
        budgets=budgets,
        index_costs=index_costs or {},
        indexes=index_names,
    )


def index_cost(search: str, costs: Mapping[str, IndexCost | None], unit: Unit) -> float | None:
    """Return the cost of the part of indexes that a search needs; None if not known.

    One workflow makes the vectors of texts and those of the graph, and it is not known what each
    took: all count for a search that needs vectors. ``costs``: name of an index -> its cost.
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
    """Return method -> question -> what its search cost, for questions that the method answered.

    A failed search took less than an answer does, which saves nothing, so it is left out.
    """
    return {
        method: item_means((row.key, getattr(row, unit)) for row in searches if not row.censored)
        for method, searches in grouped((row.method, row) for row in rows).items()
    }


def cost_of(conditions: Conditions, method: str, unit: Unit) -> float | None:
    """Return the cost of the part of its indexes that a method needs; None if not known."""
    return index_cost(
        conditions.search_methods.get(method, method), conditions.costs_of(method), unit
    )
