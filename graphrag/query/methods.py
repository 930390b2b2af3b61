"""The search methods by name, and what a name alone says of them."""

from typing import Literal, get_args

SearchMethod = Literal["tog", "local", "basic", "global", "drift", "bm25", "hybrid"]
METHODS: tuple[SearchMethod, ...] = get_args(SearchMethod)
OWN_METHODS: tuple[SearchMethod, ...] = ("tog", "bm25", "hybrid")
"""Those that the release does not have."""

_UNDER_BASIC = ("bm25", "hybrid")


def section_name(method: str) -> str:
    """Return the section of settings.yaml that a search method reads.

    bm25 and hybrid are basic search with another ranking, so ``basic_search`` is theirs, too.
    """
    return "basic_search" if method in _UNDER_BASIC else f"{method}_search"


def embeds(method: str) -> bool:
    """Say whether a search method asks an embedding model, and so reads stored vectors."""
    return method not in ("global", "bm25")
