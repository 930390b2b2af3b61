"""The search methods by name, and what a name alone says of them."""

from typing import Literal, get_args

from graphrag.config.table_files import SEARCHED_TABLES

SearchMethod = Literal[
    "tog", "ppr", "local", "basic", "global", "drift", "bm25", "hybrid", "agentic"
]
METHODS: tuple[SearchMethod, ...] = get_args(SearchMethod)
OWN_METHODS: tuple[SearchMethod, ...] = ("tog", "ppr", "bm25", "hybrid", "agentic")
"""Those that the release does not have."""

GRAPH_METHODS = ("tog", "ppr")
"""Those that read the graph store, each with a section of its own in settings.yaml."""

RANKED = ("bm25", "hybrid", "agentic")
"""Basic search with another ranking of text units, or with several searches by one."""

Need = Literal["nothing", "text units", "vectors", "graph"]
NEEDS: tuple[Need, ...] = get_args(Need)
"""What a method may need of an index, the least first; each is made from what stands before it."""

AGENTIC_ROUNDS = 3
"""Searches of an agentic one at most, and so the completions of a question: its answer is one."""

LONG = 400
"""Tokens that a text unit may have and still be read whole."""


def section_name(method: str) -> str:
    """Return the section of settings.yaml that a search method reads.

    The ranked searches are basic search in all else, so ``basic_search`` is theirs, too.
    """
    return "basic_search" if method in RANKED else f"{method}_search"


def embeds(method: str) -> bool:
    """Say whether a search method asks an embedding model, and so reads stored vectors."""
    return method not in ("global", "bm25", *GRAPH_METHODS)


def need_of(method: str) -> Need | None:
    """Return what a method needs of an index; None of one's own and of an oracle: nobody knows.

    Vectors of entities, and reports of communities, are made of a graph, and count with it.
    """
    if method == "closed_book":
        return "nothing"
    if method in ("basic", *RANKED):
        return "vectors" if embeds(method) else "text units"
    return "graph" if method in METHODS else None


def tables_of(method: str) -> tuple[str, ...]:
    """Return the tables of an index that a method can't do without; of one's own nobody knows."""
    if method in ("basic", *RANKED):
        return ("text_units",)
    if method in GRAPH_METHODS:
        return ("entities", "relationships", "text_units")
    if method == "global":
        return ("entities", "communities", "community_reports")
    return SEARCHED_TABLES


BUDGET = "max_context_tokens"
"""The setting of a search, and of equal terms, that bounds the context of an answer."""


def has_budget(method: str) -> bool:
    """Say whether a setting bounds the context that a search answers from.

    Global search and DRIFT read reports in many calls, and nothing bounds them.
    """
    return method in METHODS and method not in ("global", "drift")


def count_passages(n_tokens: int, size: int | None) -> int:
    """Return how many passages a text of so many tokens has, 1 where it is read whole."""
    if size is None or n_tokens <= max(LONG, size):
        return 1
    return max(2, round(n_tokens / size))
