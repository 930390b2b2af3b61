"""Connect mode: which entities a question asks to relate, and what joins each two of them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, combinations, zip_longest

from graphrag.config.models.tog_search_config import ToGSearchConfig
from graphrag.query.structured_search.tog_search.asking.replies import ToGSearchError
from graphrag.query.structured_search.tog_search.graph.store import GraphStore
from graphrag.query.structured_search.tog_search.state import Path, Round
from graphrag.query.structured_search.tog_search.walk.connecting import Connection, connect
from graphrag.query.structured_search.tog_search.walk.exploration import MAX_PATHS
from graphrag.query.structured_search.tog_search.walk.starting import find_starts
from graphrag.text.terms import shorten

_MIN_ENDS = 2
_MAX_TITLE_CHARS = 200


@dataclass(frozen=True, slots=True)
class Ends:
    """The entities to join, as nodes, and how they were found."""

    nodes: tuple[int, ...]
    note: str


@dataclass(frozen=True, slots=True)
class Joined:
    """What joins some entities.

    Attributes
    ----------
    paths : tuple of Path
        The cheapest path of each pair first, then the second of each, and so on; at most
        ten.
    rounds : tuple of Round
        One for each pair.
    unconnected : str
        A sentence for each pair without a path; empty when every pair has one.
    """

    paths: tuple[Path, ...]
    rounds: tuple[Round, ...]
    unconnected: str


def find_ends(
    question: str, store: GraphStore, reached: Mapping[int, float], config: ToGSearchConfig
) -> Ends:
    """Choose the entities to join: those named in the question.

    At most ``width`` of them, but two even at width 1. When fewer than two are named, those that
    hold most of the question's mass complete the pair, and the note says so.

    Parameters
    ----------
    question : str
    store : GraphStore
    reached : mapping of int to float
        Node -> mass.
    config : ToGSearchConfig

    Raises
    ------
    ToGSearchError
        If the pair can't be completed.
    """
    most = max(_MIN_ENDS, config.width)
    named = store.nodes_named_in(question)
    if len(named) >= _MIN_ENDS:
        left_out = f", {len(named) - most} more left out" if len(named) > most else ""
        return Ends(tuple(named[:most]), f"{min(most, len(named))} named in the question{left_out}")
    nodes = find_starts(question, reached, store, most).starts[:_MIN_ENDS]
    if len(nodes) < _MIN_ENDS:
        msg = (
            f"Connecting needs two entities, and {len(nodes)} of the index stands in the question "
            "or near it; name both in the question."
        )
        raise ToGSearchError(msg)
    added = " and ".join(_title(store, node) for node in nodes[len(named) :])
    return Ends(nodes, f"{len(named)} named in the question; nearest to it: {added}")


def join_ends(ends: Ends, store: GraphStore, config: ToGSearchConfig) -> Joined:
    """Join each two of the entities; see :func:`connecting.connect`."""
    found = [connect(store, a, b, config) for a, b in combinations(ends.nodes, 2)]
    by_rank = chain.from_iterable(zip_longest(*(one.paths for one in found)))
    paths = [path for path in by_rank if path is not None]
    return Joined(
        paths=tuple(paths[:MAX_PATHS]),
        rounds=tuple(
            Round(
                config.max_hops,
                "connect",
                one.n_edges,
                len(one.paths),
                _describe(one, store, config.max_hops),
            )
            for one in found
        ),
        unconnected=" ".join(
            _describe(one, store, config.max_hops) for one in found if not one.paths
        ),
    )


def _describe(found: Connection, store: GraphStore, max_hops: int) -> str:
    pair = f"{_title(store, found.source)} and {_title(store, found.target)}"
    if found.paths:
        best = found.paths[0]
        return (
            f"{pair}: {_count(len(found.paths), 'path')}, the cheapest of "
            f"{_count(len(best.steps), 'hop')} at cost {-math.log2(best.score):.1f}"
        )
    within = f"within {_count(max_hops, 'hop')}"
    if found.is_cut:
        return f"No path {within} was found between {pair}, but not every relationship was tried."
    return f"{pair} are not connected {within}."


def _title(store: GraphStore, node: int) -> str:
    return shorten(store.title(node), _MAX_TITLE_CHARS)


def _count(n: int, thing: str) -> str:
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"
