"""Sections of settings that refuse an unknown key."""

import difflib
from collections.abc import Iterable, Mapping
from typing import cast

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails


class StrictSection(BaseModel):
    """A section that refuses an unknown key and names the nearest known one."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _name_nearest_key(cls, values: object) -> object:
        if isinstance(values, Mapping):
            for key in cast("Mapping[str, object]", values):
                if key not in cls.model_fields:
                    raise ValueError(f"unknown key {key!r}{nearest(str(key), cls.model_fields)}")
        return cast("object", values)


def name_problem(error: ErrorDetails) -> str:
    """Return what is wrong with a value, in the words of the check of ours that refused it."""
    raised = error.get("ctx", {}).get("error")
    return error["msg"] if raised is None else str(raised)


def explain_first(error: ValidationError) -> str:
    """Return where the first problem of values is, and what it is."""
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {name_problem(first)}" if where else name_problem(first)


def nearest(word: str, words: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the known word nearest to a mistyped one, or ``""``."""
    matches = difflib.get_close_matches(word, list(words), n=1, cutoff=0.6)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def as_sentence(text: str) -> str:
    """Return a text with a stop at its end, unless it ends with a question, as a hint does."""
    return text if text.endswith("?") else f"{text}."
