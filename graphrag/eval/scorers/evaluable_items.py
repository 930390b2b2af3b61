"""The entities, relationships and texts of a result that is to be judged."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, cast

_TYPE = ("type", "entity_type", "relation_type")


@dataclass(frozen=True, slots=True)
class EvaluableEntity:
    """A retrieved entity; ``type`` and ``description`` are empty when unknown.

    ``confidence``, in [0, 1], is None when unknown, as for every entity that GraphRAG extracts.
    """

    name: str
    type: str = ""
    description: str = ""
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class EvaluableRelationship:
    """A retrieved relationship, in the direction in which it is stored.

    ``confidence``, in [0, 1], is None when unknown.
    """

    source: str
    target: str
    description: str = ""
    type: str = ""
    confidence: float | None = None


def read_entity(item: Any) -> EvaluableEntity:
    """Read a name, a mapping or an object.

    Raises
    ------
    ValueError
        If it has no name, or a confidence that is no number.
    """
    if isinstance(item, EvaluableEntity):
        return item
    name = item if isinstance(item, str) else _needed(item, "an entity", "name", "title")
    return EvaluableEntity(name, _text(item, *_TYPE), _text(item, "description"), _confidence(item))


def read_relationship(item: Any) -> EvaluableRelationship:
    """Read a mapping or an object.

    Raises
    ------
    ValueError
        If it has no source or target, or a confidence that is no number.
    """
    if isinstance(item, EvaluableRelationship):
        return item
    source, target = (_needed(item, "a relationship", end) for end in ("source", "target"))
    description, kind = _text(item, "description"), _text(item, *_TYPE)
    return EvaluableRelationship(source, target, description, kind, _confidence(item))


def read_chunk(item: Any) -> str:
    """Read a text, a mapping or an object.

    Raises
    ------
    ValueError
        If it has no text.
    """
    return item if isinstance(item, str) else _needed(item, "a chunk", "text", "content")


def _look(item: Any, *names: str) -> Any:
    """Return the first of the fields that is there; None without one."""
    for name in names:
        if isinstance(item, Mapping):
            found = cast("Mapping[str, Any]", item).get(name)
        else:
            found = getattr(item, name, None)
        # A text has a method "title".
        if found is not None and not callable(found):
            return found
    return None


def _needed(item: Any, what: str, *names: str) -> str:
    found = _look(item, *names)
    if found is None:
        msg = f"{what} needs its {' or '.join(names)}, which {item!r} has not"
        raise ValueError(msg)
    return str(found)


def _text(item: Any, *names: str) -> str:
    found = _look(item, *names)
    return "" if found is None or found != found else str(found)


def _confidence(item: Any) -> float | None:
    found = _look(item, "confidence")
    if found is None or found != found:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float) or not isfinite(found):
        msg = f"a confidence is a number from 0 to 1, not {found!r}"
        raise ValueError(msg)
    return float(found)
