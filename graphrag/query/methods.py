"""Lists the search methods, and the properties that follow from a method's name alone."""

from typing import Literal, get_args

from graphrag.config.table_files import SEARCHED_TABLES

SearchMethod = Literal[
    "tog", "ppr", "local", "basic", "global", "drift", "bm25", "hybrid", "agentic"
]
METHODS: tuple[SearchMethod, ...] = get_args(SearchMethod)
OWN_METHODS: tuple[SearchMethod, ...] = ("tog", "ppr", "bm25", "hybrid", "agentic")
"""Methods that the released graphrag does not have."""

GRAPH_METHODS = ("tog", "ppr")
"""Methods that read the graph store; each has its own section in settings.yaml."""

RANKED = ("bm25", "hybrid", "agentic")
"""Methods that are basic search with another ranking of text units, or with several searches."""

Need = Literal["nothing", "text units", "vectors", "graph"]
NEEDS: tuple[Need, ...] = get_args(Need)
"""What a method may need of an index, the least first; each is made from the one before it."""

AGENTIC_ROUNDS = 3
"""Most rounds of an agentic search, and so its most completions: one of them is the answer."""

LONG = 400
"""Most tokens of a text unit that is still read in full."""


def section_name(method: str) -> str:
    """Return the section of settings.yaml that a search method reads.

    The ranked searches read ``basic_search``, because they are basic search in all else.
    """
    return "basic_search" if method in RANKED else f"{method}_search"


def embeds(method: str) -> bool:
    """Say whether a search method needs an embedding model and stored vectors."""
    return method not in ("global", "bm25", *GRAPH_METHODS)


def need_of(method: str) -> Need | None:
    """Return a method's need of an index; None if it is not known.

    It is not known of an oracle or of a method of the user's own. Vectors of entities and reports
    of communities count as graph, because they are made from one.
    """
    if method == "closed_book":
        return "nothing"
    if method in ("basic", *RANKED):
        return "vectors" if embeds(method) else "text units"
    return "graph" if method in METHODS else None


def tables_of(method: str) -> tuple[str, ...]:
    """Return the tables of an index that a method can't do without; all of them if unknown."""
    if method in ("basic", *RANKED):
        return ("text_units",)
    if method in GRAPH_METHODS:
        return ("entities", "relationships", "text_units")
    if method == "global":
        return ("entities", "communities", "community_reports")
    return SEARCHED_TABLES


BUDGET = "max_context_tokens"
"""The setting that bounds the context of an answer, in a search's section and in
``equal_terms``."""


def has_budget(method: str) -> bool:
    """Say whether a setting bounds the context that a search answers from.

    Nothing bounds the reports that global and DRIFT search read in many calls.
    """
    return method in METHODS and method not in ("global", "drift")


def count_passages(n_tokens: int, size: int | None) -> int:
    """Return how many passages a text of so many tokens has; 1 if it is read in full."""
    if size is None or n_tokens <= max(LONG, size):
        return 1
    return max(2, round(n_tokens / size))
