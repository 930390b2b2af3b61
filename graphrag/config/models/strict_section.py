"""Settings sections that refuse an unknown key, and the texts of errors about settings."""

import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import ClassVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails


class StrictSection(BaseModel):
    """A section that refuses an unknown key and names the nearest known one."""

    model_config = ConfigDict(extra="forbid")
    other_names: ClassVar[Collection[str]] = ()  # keys allowed in addition to the fields

    @model_validator(mode="before")
    @classmethod
    def _name_nearest_key(cls, values: object) -> object:
        if isinstance(values, Mapping):
            for key in cast("Mapping[str, object]", values):
                if key not in cls.model_fields:
                    names = (*cls.model_fields, *cls.other_names)
                    raise ValueError(f"unknown key {key!r}{nearest(str(key), names)}")
        return cast("object", values)


def name_problem(error: ErrorDetails) -> str:
    """Return the problem of a value: the message of the project's own check that refused it.

    Without such a check it is pydantic's message.
    """
    raised = error.get("ctx", {}).get("error")
    return error["msg"] if raised is None else str(raised)


def explain_first(error: ValidationError, hints: bool = False) -> str:
    """Return the first problem with its position.

    ``hints``: for an unknown name, add the nearest known one.
    """
    first = error.errors()[0]
    where, problem = ".".join(map(str, first["loc"])), name_problem(first)
    if hints and first["type"] == "literal_error":
        word, known = str(first["input"]), str(first.get("ctx", {}).get("expected"))
        hint = nearest(word, known.split("'")[1::2]) or f"; known: {known}"
        problem = f"unknown name {word!r}{hint}"
    return f"{where}: {problem}" if where else problem


def nearest(word: str, words: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the known word nearest to a mistyped one, or ``""``."""
    matches = difflib.get_close_matches(word, list(words), n=1, cutoff=0.6)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def as_sentence(text: str) -> str:
    """Return a text with a full stop at its end, unless it ends with a question mark."""
    return text if text.endswith("?") else f"{text}."
