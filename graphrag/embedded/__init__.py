"""Embedded models for machines without a key, a network or a download.

``type: offline`` in settings.yaml selects them. The completion model works by rules: it
finds names in text, answers with the best-matching sentences of its context, scores edges
and judges by word overlap. The embedding model averages learned word vectors, or hashes n-grams.
All are deterministic. They are a baseline and no language model. Importing this package alone
loads none of them.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

__all__ = ["NOT_FOUND", "OFFLINE_LABEL", "OfflineModelError", "note_call", "watch_offline"]

OFFLINE_LABEL = "offline baseline models"
"""How outputs that used the embedded models are labeled."""

NOT_FOUND = "I could not find this in the provided context."
"""The abstention: the whole answer when no sentence of the context fits the question."""


class OfflineModelError(ValueError):
    """A request or a setting that the embedded models don't support."""


Calls = dict[Literal["completion", "embedding"], set[str]]
"""Names of the embedded models that were called, by what they were called for."""

_calls: ContextVar[Calls | None] = ContextVar("gtog_offline_calls", default=None)


@contextmanager
def watch_offline() -> Generator[Calls]:
    """Gather the embedded models that are called inside the ``with`` block."""
    calls: Calls = {"completion": set(), "embedding": set()}
    token = _calls.set(calls)
    try:
        yield calls
    finally:
        _calls.reset(token)


def note_call(role: Literal["completion", "embedding"], model_id: str) -> None:
    """Note a call where a :func:`watch_offline` block is open."""
    calls = _calls.get()
    if calls is not None:
        calls[role].add(model_id)
