"""What the methods of a run were given and what they need, where that differs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphrag.eval.store.index_costs import IndexCost
from graphrag.eval.store.records import RunSetup
from graphrag.query.methods import BUDGET, Need, has_budget, need_of


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
