"""What is said of the embedded models: in which roles they were asked, and beside whom."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from graphrag.embedded import OFFLINE_LABEL
from graphrag.query.client.model_prices import is_offline
from graphrag.text.phrases import join_names

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
