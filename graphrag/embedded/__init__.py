"""Offline models, based on rules, for machines without a key, a network or a download.

``type: offline`` in settings.yaml selects these embedded models. The completion model works by
rules: it finds names in text, answers with the best-matching sentences of its context, and judges
by word overlap. The embedding model averages learned word vectors, or hashes n-grams. Both are
deterministic. They are a baseline, not language models. Importing this package loads none of them.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

__all__ = ["NOT_FOUND", "OFFLINE_LABEL", "OfflineModelError", "note_call", "watch_offline"]

OFFLINE_LABEL = "offline baseline models"
"""The label of outputs that used the embedded models."""

NOT_FOUND = "I could not find this in the provided context."
"""The full answer if no sentence of the context fits the question."""


class OfflineModelError(ValueError):
    """The embedded models don't support a request or a setting."""


Calls = dict[Literal["completion", "embedding"], set[str]]
"""Role (completion or embedding) -> names of the embedded models that were called for it."""

_calls: ContextVar[Calls | None] = ContextVar("gtog_offline_calls", default=None)


@contextmanager
def watch_offline() -> Generator[Calls]:
    """Collect the embedded models that are called inside the ``with`` block."""
    calls: Calls = {"completion": set(), "embedding": set()}
    token = _calls.set(calls)
    try:
        yield calls
    finally:
        _calls.reset(token)


def note_call(role: Literal["completion", "embedding"], model_id: str) -> None:
    """Record a call if a :func:`watch_offline` block is open."""
    calls = _calls.get()
    if calls is not None:
        calls[role].add(model_id)
