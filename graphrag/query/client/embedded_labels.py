"""Labels figures in which embedded models took part, and announces these models.

Embedded models are those that come with this project and work offline.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from graphrag.embedded import OFFLINE_LABEL
from graphrag.query.client.model_prices import is_offline
from graphrag.text.message_phrases import join_names

ANSWERS, VERDICTS, EMBEDDINGS = "answers", "verdicts", "embeddings"


@dataclass(frozen=True, slots=True)
class Part:
    """Lists the models that played a role, such as answering.

    ``models`` are ``provider/model``; ``others``: whether somebody who names no model took part,
    too.
    """

    models: frozenset[str] = frozenset()
    others: bool = False


def label_roles(parts: Mapping[str, Part]) -> str | None:
    """Return the label of figures from a mapping of role -> who played it.

    The label is None if embedded models played no role, and ``offline baseline models`` if nobody
    else took part. Else it names the roles that embedded models played, as ``embeddings: offline
    baseline model``, or ``some answers: ...`` if others answered, too.
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
    """Return the label if only the models' names are known, not their roles.

    None if no model is embedded.
    """
    return OFFLINE_LABEL if any(map(is_offline, models)) else None


def announce_embedded(models: Iterable[str]) -> str | None:
    """Return a sentence that announces the embedded models among those that will be asked.

    None if there are none.
    """
    names = sorted(set(models))
    embedded = [model for model in names if is_offline(model)]
    if not embedded:
        return None
    if len(embedded) == len(names):
        return f"Using the {OFFLINE_LABEL}."
    return f"Using {OFFLINE_LABEL} in addition to the others: {', '.join(embedded)}."
