"""What is known of a model by its name, ``provider/model``: price, limits, whether embedded."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars a token; cached_prompt_usd equals prompt_usd where no discount is known."""

    prompt_usd: float
    cached_prompt_usd: float
    output_usd: float


def is_offline(model: str) -> bool:
    """Say whether ``provider/model`` names one of the embedded models."""
    return model.startswith("offline/")


def model_price(model: str) -> Price | None:
    """Look a model's price up in litellm's map, None when it is not there."""
    entry = known_facts(model)
    if "input_cost_per_token" not in entry:
        return None
    prompt = float(entry["input_cost_per_token"])
    cached = entry.get("cache_read_input_token_cost")
    return Price(
        prompt_usd=prompt,
        cached_prompt_usd=prompt if cached is None else float(cached),
        output_usd=float(entry.get("output_cost_per_token") or 0.0),
    )


def input_limit(model: str) -> int | None:
    """Return the most tokens that a model reads, by litellm's map; None when it does not say."""
    found = known_facts(model).get("max_input_tokens")
    return int(found) if isinstance(found, int | float) else None


def known_facts(model: str) -> Mapping[str, Any]:
    """Return what litellm's map says of a model, empty when it is not there.

    The map keys some models as ``provider/name`` and others (OpenAI's) by their bare name,
    which counts only when the entry is of the same provider.
    """
    import litellm

    provider, _, name = model.partition("/")
    known = cast("dict[str, dict[str, Any]]", litellm.model_cost)
    if model in known:
        return known[model]
    entry = known.get(name, {})
    return entry if entry.get("litellm_provider") == provider else {}
