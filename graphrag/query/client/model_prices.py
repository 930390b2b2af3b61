"""Looks up prices and limits of a model, named ``provider/model``, in litellm's price map.

Also tests whether a model is one of the embedded ones, which work offline.
"""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from typing import Any, TypedDict, cast

from graphrag.installation import WORDLLAMA

_MAP = "model_prices_and_context_window_backup.json"
_RATES = ("input_cost_per_token", "cache_read_input_token_cost", "output_cost_per_token")
_STEP = re.compile(rf"{_RATES[0]}(_above_(\d+)(k?)_tokens)")


class ModelFacts(TypedDict, total=False):
    """Contains the entry of a model in litellm's map; numbers may be missing or null."""

    litellm_provider: str
    max_input_tokens: int | str | None
    max_output_tokens: int | None
    supports_reasoning: bool
    aliases: list[str] | None


@dataclass(frozen=True, slots=True)
class Price:
    """Contains prices in US dollars a token.

    ``cached_prompt_usd`` is None if the map has no price of cached tokens.
    """

    prompt_usd: float
    cached_prompt_usd: float | None
    output_usd: float


def is_offline(model: str) -> bool:
    """Say whether ``provider/model`` names one of the embedded models."""
    return model.startswith("offline/")


def is_hashed(model: str) -> bool:
    """Say whether ``provider/model`` embeds by hashed n-grams, short runs of letters.

    Such vectors show which letters two texts share, but their words show more: fused with these
    vectors, a ranking by words gets worse.
    """
    return is_offline(model) and model != f"offline/{WORDLLAMA}"


def model_price(model: str, prompt_tokens: int = 0, tier: str | None = None) -> Price | None:
    """Return the price of a request with so many prompt tokens; None if it is not in litellm's map.

    ``tier``: the service tier that is asked for; the standard one if the map has no price of it.
    """
    prices = list_prices(model, tier)
    matching = (price for above, price in reversed(prices) if prompt_tokens > above)
    return next(matching, prices[0][1] if prices else None)


def list_prices(model: str, tier: str | None = None) -> list[tuple[int, Price]]:
    """Return a model's prices, each with the number of prompt tokens above which it applies.

    The price applies to all tokens of such a request. Empty if the model is not in litellm's map.
    """
    if is_offline(model):
        return [(0, Price(0.0, 0.0, 0.0))]
    entry, (prompt, cached, output) = cast("dict[str, Any]", known_facts(model)), _RATES
    end = f"_{tier}"
    entry = entry | {k.removesuffix(end): entry[k] for k in entry if k.endswith(end) and entry[k]}
    ranges = [part for part in entry.get("tiered_pricing") or () if prompt in part]
    own = {output: entry.get(output)}
    tiers = [(part["range"][0], {cached: part[prompt], **own, **part}) for part in ranges]
    if not ranges and prompt in entry:
        tiers = [(0, {**entry})]
        for step in filter(None, map(_STEP.fullmatch, entry)):
            at_it = entry.get("litellm_provider") == "xai"  # its price applies from that number on
            dearer = {name: entry.get(f"{name}{step[1]}") or entry.get(name) for name in _RATES}
            tiers.append((int(step[2]) * (1_000 if step[3] else 1) - at_it, dearer))
    return [
        (
            int(above),
            Price(float(rates[prompt] or 0), rates.get(cached), float(rates.get(output) or 0)),
        )
        for above, rates in sorted(tiers, key=itemgetter(0))
    ]


def input_limit(model: str) -> int | None:
    """Return the most tokens that a model reads, by litellm's map; None if the map has none."""
    limit = known_facts(model).get("max_input_tokens")
    return int(limit) if isinstance(limit, int | float) else None


def known_facts(model: str) -> ModelFacts:
    """Return a model's entry in litellm's map, empty if there is none.

    The map lists some models as ``provider/name`` and others (OpenAI's) by the bare name, which
    counts only if the entry is of the same provider.
    """
    provider, _, name = model.partition("/")
    # The map that litellm has loaded, else the one in its files.
    loaded: Mapping[str, ModelFacts] | None = getattr(
        sys.modules.get("litellm"), "model_cost", None
    )
    facts = loaded or _read_map()
    if model in facts:
        return facts[model]
    entry = facts.get(name)
    return entry if entry and entry.get("litellm_provider") == provider else {}


@cache
def _read_map() -> Mapping[str, ModelFacts]:
    spec = find_spec("litellm")
    path = None if spec is None or spec.origin is None else Path(spec.origin).with_name(_MAP)
    if path is None or not path.is_file():
        return {}
    facts: dict[str, ModelFacts] = json.loads(path.read_bytes())
    facts.pop("fallback_generalizations", None)
    others: dict[str, ModelFacts] = {}
    for entry in facts.values():
        for alias in entry.pop("aliases", None) or ():
            others.setdefault(alias, entry)
    return {**others, **facts}
