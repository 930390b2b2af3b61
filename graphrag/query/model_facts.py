"""What a model's name, ``provider/model``, tells: price, limits, whether and how it is embedded."""

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict, cast

from graphrag.installation import WORDLLAMA
from graphrag.offline import OFFLINE_LABEL
from graphrag.text.phrases import join_names

_MAP = "model_prices_and_context_window_backup.json"


class ModelFacts(TypedDict, total=False):
    """What litellm's map says of a model; numbers may be missing or null."""

    litellm_provider: str
    input_cost_per_token: float | None
    output_cost_per_token: float | None
    cache_read_input_token_cost: float | None
    max_input_tokens: int | str | None
    max_output_tokens: int | None
    supports_reasoning: bool
    aliases: list[str] | None


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars a token; cached_prompt_usd is None where the map has no price of cached tokens."""

    prompt_usd: float
    cached_prompt_usd: float | None
    output_usd: float


def is_offline(model: str) -> bool:
    """Say whether ``provider/model`` names one of the embedded models."""
    return model.startswith("offline/")


def is_hashed(model: str) -> bool:
    """Say whether ``provider/model`` embeds by hashed n-grams.

    They know which letters two texts share, which words tell better: fused with words they take
    from what these find.
    """
    return is_offline(model) and model != f"offline/{WORDLLAMA}"


def model_price(model: str) -> Price | None:
    """Look a model's price up in litellm's map, None when it is not there."""
    entry = known_facts(model)
    if "input_cost_per_token" not in entry:
        return None
    prompt = float(cast("float", entry["input_cost_per_token"]))
    cached = entry.get("cache_read_input_token_cost")
    return Price(
        prompt_usd=prompt,
        cached_prompt_usd=None if cached is None else float(cached),
        output_usd=float(entry.get("output_cost_per_token") or 0.0),
    )


def input_limit(model: str) -> int | None:
    """Return the most tokens that a model reads, by litellm's map; None when it does not say."""
    limit = known_facts(model).get("max_input_tokens")
    return int(limit) if isinstance(limit, int | float) else None


def known_facts(model: str) -> ModelFacts:
    """Return what litellm's map says of a model, empty when it is not there.

    The map keys some models as ``provider/name`` and others (OpenAI's) by their bare name,
    which counts only when the entry is of the same provider.
    """
    provider, _, name = model.partition("/")
    # As it is loaded, else as it lies in litellm's files.
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


ANSWERS, VERDICTS, EMBEDDINGS = "answers", "verdicts", "embeddings"


@dataclass(frozen=True, slots=True)
class Part:
    """Who played a role: models as ``provider/model``, and whether others that name none did."""

    models: frozenset[str] = frozenset()
    others: bool = False


def label_roles(parts: Mapping[str, Part]) -> str | None:
    """Return how figures are labeled, given role -> who played it.

    ``offline baseline models`` when nothing else had a part; else the roles that embedded models
    played, as ``embeddings: offline baseline model`` or ``some answers: ...`` where others
    answered, too; None when they played none.
    """
    embedded = {model for part in parts.values() for model in part.models if is_offline(model)}
    if not embedded:
        return None
    if not any(part.others or part.models - embedded for part in parts.values()):
        return OFFLINE_LABEL
    named = [
        f"some {role}" if part.others or part.models - embedded else role
        for role, part in parts.items()
        if part.models & embedded
    ]
    label = OFFLINE_LABEL if len(embedded) > 1 else OFFLINE_LABEL.removesuffix("s")
    return f"{join_names(named)}: {label}"


def label_names(models: Iterable[str]) -> str | None:
    """Return the label where nothing but the names of the models is known."""
    return OFFLINE_LABEL if any(map(is_offline, models)) else None


def announce_embedded(models: Iterable[str]) -> str | None:
    """Return a sentence on the embedded ones of the models that will be asked; None without any."""
    names = sorted(set(models))
    embedded = [model for model in names if is_offline(model)]
    if not embedded:
        return None
    if len(embedded) == len(names):
        return f"Using the {OFFLINE_LABEL}."
    return f"Using {OFFLINE_LABEL} beside the others: {', '.join(embedded)}."
