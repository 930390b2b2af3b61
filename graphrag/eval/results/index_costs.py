"""After how many questions an index that costs more to build pays by cheaper searches."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any, Literal, TypeAlias, get_args

from graphrag.eval.results.rows import QuestionKey, Row, item_means
from graphrag.eval.results.terms import Terms
from graphrag.eval.stats.intervals import Estimate, grouped, mean_real
from graphrag.eval.store.index_costs import KINDS, IndexCost
from graphrag.query.methods import need_of
from graphrag.query.usage import sum_known

Unit: TypeAlias = Literal["cost_usd", "tokens"]
UNITS: tuple[Unit, ...] = get_args(Unit)
"""What costs are counted in: tokens where dollars are not known, or none are paid."""
Costs = Mapping[QuestionKey, float | None]
"""Question -> what its search cost; None where that is not known."""


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
    known = bool(saved) and None not in saved
    mean = mean_real(saved, [document for document, _ in keys]) if known else None
    if mean is None:
        return Payoff(first, second, unit, more, None, None, None)
    return Payoff(first, second, unit, more, mean, _after(more, mean.mean), _after(more, mean.low))


def _after(more: float | None, saved: float | None) -> int | None:
    return ceil(more / saved) if more is not None and saved is not None and saved > 0 else None


def choose_payoff(payoffs: Iterable[Payoff | None]) -> Payoff | None:
    """Return the first that is known, else one that says what is not, else None."""
    every = [each for each in payoffs if each is not None]
    known = (each for each in every if each.more is not None and each.saved is not None)
    return next(known, every[0] if every else None)


def index_cost(search: str, costs: Mapping[str, IndexCost | None], unit: Unit) -> float | None:
    """Return what a search method needs of indexes costs together; None where it is not known.

    Of the vectors of texts it is not known what they took beside those of the graph, which the same
    workflow makes: all of them count for a method that needs some.
    """
    needed = {"graph": KINDS, "vectors": KINDS[1:]}.get(need_of(search) or "", ())
    sums = [
        of and (of.cost_usd(needed) if unit == "cost_usd" else of.count_tokens(needed))
        for of in costs.values()
    ]
    return sum_known(sums) if sums else None


def costs_by_method(rows: Sequence[Row], unit: Unit) -> dict[str, Costs]:
    """Return method -> what its searches cost."""
    return {
        method: item_means((row.key, getattr(row, unit)) for row in of)
        for method, of in grouped((row.method, row) for row in rows).items()
    }


def compute_payoffs(rows: Sequence[Row], terms: Terms) -> list[Payoff]:
    """Hold each method that needs more of an index against each that needs less.

    Methods that need the same parts of an index share what it cost. What methods of different
    budgets take is not compared.
    """
    costs = {unit: costs_by_method(rows, unit) for unit in UNITS}
    searches = {m: s for m, s in terms.search_methods.items() if m in costs["tokens"]}
    of_graph = [m for m in searches if terms.need_of(m) == "graph"]
    payoffs = (
        choose_payoff(
            hold_against(
                (a, b),
                (
                    index_cost(searches[a], terms.index_costs, unit),
                    index_cost(searches[b], terms.index_costs, unit),
                ),
                (costs[unit][a], costs[unit][b]),
                unit,
            )
            for unit in UNITS
        )
        for a in of_graph
        for b in searches
        if b not in of_graph and terms.are_equal(a, b)
    )
    return [payoff for payoff in payoffs if payoff is not None]
