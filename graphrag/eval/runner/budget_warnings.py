"""Whether contexts are small beside the texts, and whether the judge can read them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.judged.discovery import JUDGED_METRICS
from graphrag.eval.runner.methods import MethodSet
from graphrag.eval.scorers.index_view import IndexView
from graphrag.query.methods import GRAPH_METHODS
from graphrag.query.model_facts import input_limit, is_offline
from graphrag.query.output import own_bound

if TYPE_CHECKING:
    from graphrag.query.index_header import IndexHeader

SAYS_LITTLE = "this comparison says little about retrieval"
"""How the warning of a context that holds most of a text ends."""
_MOST = 0.5


@dataclass(frozen=True, slots=True)
class _Room:
    """The tokens of text that a method can show, and what bounds them."""

    text_tokens: int
    bound: str


@dataclass(frozen=True, slots=True)
class _Units:
    """An index's text units: how many are larger than a room, how many, the largest's tokens."""

    n_larger: int
    n: int
    largest: int


async def list_budget_warnings(
    config: EvaluationConfig, methods: MethodSet, headers: "Mapping[str, IndexHeader]"
) -> list[str]:
    """Warn where methods have room for half of an index's text or more, or for no text unit.

    A text's tokens are those that the index counted in its text units, overlaps included; where
    it did not count them nothing is said. Global and DRIFT search show reports, and are left out.

    Returns
    -------
    list of str
        One line for all indexes in which the same methods have so much room, or so little.
    """
    found: dict[tuple[str, ...], list[tuple[str, int, bool]]] = {}
    cramped: dict[tuple[str, ...], dict[str, _Units]] = {}
    for key, header in headers.items():
        counts = (await IndexView.open(header, ("text_units",))).token_counts()
        total = sum(counts or ())
        if counts is None or not total:
            continue
        rooms = {name: _room(name, methods, header, counts) for name in config.methods}
        small = {
            name: room
            for name, room in rooms.items()
            if room is not None and room.text_tokens < max(counts)
        }
        if small:
            listed = tuple(f"{name} ({room.bound})" for name, room in small.items())
            least = max(room.text_tokens for room in small.values())
            n_larger = sum(count > least for count in counts)
            cramped.setdefault(listed, {})[key] = _Units(n_larger, len(counts), max(counts))
        said: list[str] = []
        holds_all = True
        for name, room in rooms.items():
            if room is not None and room.text_tokens >= _MOST * total:
                holds_all = holds_all and room.text_tokens >= total
                said.append(f"{name} ({room.bound})")
        if said:
            found.setdefault(tuple(said), []).append((key, total, holds_all))
    warnings: list[str] = []
    for roomy, indexes in found.items():
        keys = _indexes([key for key, _, _ in indexes])
        tokens = [total for _, total, _ in indexes]
        low, high = min(tokens), max(tokens)
        size = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        part = "all" if all(whole for _, _, whole in indexes) else "half or more"
        verb = "holds" if len(roomy) == 1 else "hold"
        warnings.append(
            f"the context of {_joined(roomy)} {verb} {part} of the text of {keys} ({size} tokens "
            f"in text units): {SAYS_LITTLE}"
        )
    return [*warnings, *(_describe_cramped(names, units) for names, units in cramped.items())]


def list_judge_limit_warnings(
    config: EvaluationConfig,
    judge: str,
    methods: MethodSet,
    headers: "Mapping[str, IndexHeader]",
) -> list[str]:
    """Warn of a judge that reads fewer tokens than a context and a bounded answer may take.

    What it reads is ``judge.max_input_tokens``, else what litellm's map says of the model; of a
    model that neither knows nothing is said.
    """
    limit = config.judge.max_input_tokens
    if limit is None and not is_offline(judge):
        limit = input_limit(judge)
    metrics = [name for name in config.metrics if JUDGED_METRICS[name].reads_context]
    if limit is None or not metrics:
        return []
    needs: dict[str, int] = {}
    for header in headers.values():
        for name in config.methods:
            budget = _budget(name, methods, header)
            if budget is not None:
                answer = answer_bound(name, methods, header, config.max_output_tokens)
                needs[name] = max(needs.get(name, 0), budget + answer)
    short = {name: need for name, need in needs.items() if need >= limit}
    if not short:
        return []
    listed = _joined([f"{name} ({need:,})" for name, need in short.items()])
    return [
        f"the judge {judge} reads {limit:,} tokens, and the context and answer of {listed} may "
        f"take as many or more; verdicts on {_joined(metrics)} may fail: lower "
        "max_context_tokens, or choose another judge.model"
    ]


def list_once(config: EvaluationConfig, methods: MethodSet) -> list[str]:
    """Name the searches of a run at several budgets that have none, and are asked once."""
    at = {name for of_method in config.curves.values() for name in of_method.values()}
    once = [name for name in methods.search_methods() if name not in at]
    if not once:
        return []
    verb = ("has", "is") if len(once) == 1 else ("have", "are")
    return [
        f"{_joined(once)} {verb[0]} no context budget and {verb[1]} asked once: a point among the "
        "curves, without an area"
    ]


def _describe_cramped(names: Sequence[str], units: "Mapping[str, _Units]") -> str:
    found = list(units.values())
    return (
        f"{sum(each.n_larger for each in found):,} of {sum(each.n for each in found):,} text units "
        f"of {_indexes(list(units))} (the largest has {max(each.largest for each in found):,} "
        f"tokens) are larger than the room for text of {_joined(names)}, and can't be shown; raise "
        "max_context_tokens, or index with a smaller chunking.size"
    )


def _room(
    name: str, methods: MethodSet, header: "IndexHeader", counts: Sequence[int]
) -> _Room | None:
    """Return a method's room for text; None when it shows none, or it can't be said."""
    budget = _budget(name, methods, header)
    if budget is None:
        return None
    method = methods.search_method(name)
    section: Any = methods.header(name, header).section(method)
    if method in GRAPH_METHODS:
        return _Room(budget, f"{budget:,} tokens")
    if method == "local":
        tokens = int(budget * section.text_unit_prop)
        return _Room(tokens, f"{tokens:,} of its {budget:,} tokens for text")
    largest = sum(sorted(counts, reverse=True)[: section.k])
    if largest < budget:
        return _Room(largest, f"{section.k} text units")
    return _Room(budget, f"{budget:,} tokens")


def _budget(name: str, methods: MethodSet, header: "IndexHeader") -> int | None:
    if name not in methods.search_methods():
        return None
    method = methods.search_method(name)
    if method in ("global", "drift"):
        return None
    return int(methods.header(name, header).section(method).max_context_tokens)


def answer_bound(name: str, methods: MethodSet, header: "IndexHeader", most: int) -> int:
    """Return the most tokens of an answer; ``most`` is the bound of what reads no graph."""
    method, varied = methods.search_method(name), methods.header(name, header)
    own = own_bound(varied.model_configs(method)["completion"])
    if own is not None:
        return own.tokens
    return int(varied.section(method).max_answer_tokens) if method in GRAPH_METHODS else most


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _indexes(keys: Sequence[str]) -> str:
    """Return index keys as they stand in a sentence, in which they may read like words of it."""
    quoted = [repr(key) for key in keys]
    return f"{'index' if len(keys) == 1 else 'indexes'} {_joined(quoted)}"
