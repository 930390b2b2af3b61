"""After how many questions an index that costs more to build pays by cheaper searches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from graphrag.eval.results.rows import QuestionKey, Row, item_means
from graphrag.eval.stats.intervals import Estimate, grouped, mean_real
from graphrag.eval.store.index_costs import KINDS, IndexCost
from graphrag.query.methods import RANKED, embeds
from graphrag.query.usage import sum_usd

_TEXTS_ALONE = ("basic", *RANKED)
"""Search methods that read text units and, where they embed, their vectors, but no graph."""
Costs = Mapping[QuestionKey, float | None]
"""Question -> US dollars of its search; None where they are not known."""


@dataclass(frozen=True, slots=True)
class Payoff:
    """Two ways to answer, each by an index of its own or by a part of one, in US dollars.

    ``more_usd``: what the index of ``first``, the more expensive one, costs more. ``saved_usd``:
    the mean that its searches cost less, question by question; each None where it is not known.
    ``questions``: after which it has paid, with ``at_most`` by the upper limit of 95 %; None:
    never, or not known.
    """

    first: str
    second: str
    more_usd: float | None
    saved_usd: Estimate | None
    questions: int | None
    at_most: int | None


def hold_against(
    names: tuple[str, str], index_usd: tuple[float | None, float | None], costs: tuple[Costs, Costs]
) -> Payoff | None:
    """Hold two ways to answer against each other; None where their indexes cost the same."""
    (first, second), (a, b), (ours, theirs) = names, index_usd, costs
    if a is not None and b is not None and a <= b:
        return None if a == b else hold_against((second, first), (b, a), (theirs, ours))
    more = None if a is None or b is None else a - b
    keys = [key for key in ours if key in theirs]
    pairs = [(ours[key], theirs[key]) for key in keys]
    saved = [None if x is None or y is None else y - x for x, y in pairs]
    known = bool(saved) and None not in saved
    mean = mean_real(saved, [document for document, _ in keys]) if known else None
    if mean is None:
        return Payoff(first, second, more, None, None, None)
    return Payoff(first, second, more, mean, _after(more, mean.mean), _after(more, mean.low))


def _after(more: float | None, saved: float | None) -> int | None:
    return ceil(more / saved) if more is not None and saved is not None and saved > 0 else None


def index_usd(search: str, costs: Mapping[str, IndexCost | None]) -> float | None:
    """Return what a search method needs of indexes costs together; None where it is not known.

    Of the vectors of texts it is not known what they took beside those of the graph, which the same
    workflow makes: all of them count for a method that needs some.
    """
    needed = KINDS if search not in _TEXTS_ALONE else KINDS[1:] if embeds(search) else ()
    usd = [None if cost is None else cost.cost_usd(needed) for cost in costs.values()]
    return sum_usd(usd) if usd else None


def costs_by_method(rows: Sequence[Row]) -> dict[str, Costs]:
    """Return method -> what its searches cost."""
    return {
        method: item_means((row.key, row.cost_usd) for row in of)
        for method, of in grouped((row.method, row) for row in rows).items()
    }


def compute_payoffs(
    rows: Sequence[Row], costs: Mapping[str, IndexCost | None], search_methods: Mapping[str, str]
) -> list[Payoff]:
    """Hold each method that reads the graph against each that reads texts alone.

    Methods that need the same parts of an index share what it cost.
    """
    searches = costs_by_method([row for row in rows if row.method in search_methods])
    by_texts = [name for name in searches if search_methods[name] in _TEXTS_ALONE]
    payoffs = (
        hold_against(
            (a, b),
            (index_usd(search_methods[a], costs), index_usd(search_methods[b], costs)),
            (searches[a], searches[b]),
        )
        for a in searches
        if a not in by_texts
        for b in by_texts
    )
    return [payoff for payoff in payoffs if payoff is not None]
