"""Whether the paths, names and citations of an answer can be traced, without a model call."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from graphrag.eval.metrics.evidence import fold_text, name_key
from graphrag.eval.metrics.index_view import IndexView, StoredEdge
from graphrag.eval.records.answers import Hop, Retrieved

_CITATION = re.compile(r"\[\s*data\s*:([^\]]*)(?:\]|$)")
_TABLE = re.compile(r"([^\W\d_][^()\[\];,]*?)\s*\(([^()]*)(?:\)|$)")
_MORE = re.compile(r"\+?\s*more")
# Global search shows its reports without a heading; only they have titles.
_SECTION = re.compile(r"^(?:-{3,} *(\w[^\n]*?) *-{3,} *|id\|title\|[^\n]*)$", re.MULTILINE)
_ROW = re.compile(r"^([^\s|]{1,64})\|", re.MULTILINE)
_ONLY_IN_TEXT = ("reports", "claims")
PATH_MEASURES = (
    "path_edges_exist",
    "path_joins_meet",
    "path_edges_supported",
    "answer_entities_traced",
)
CITATION_MEASURES = ("citations_in_index", "citation_validity", "context_cited", "sources_cited")
_PLURALS = {
    "source": "sources",
    "relationship": "relationships",
    "entity": "entities",
    "report": "reports",
    "claim": "claims",
}


@dataclass(frozen=True, slots=True, order=True)
class Citation:
    """One cited id, as it is written: ``[Data: Sources (1, 2)]`` holds two.

    The table is in lower case and plural; "" when the citation names none.
    """

    table: str
    id: str


Shares: TypeAlias = dict[str, float | None]
"""Measure -> share in [0, 1] that holds, None when there is nothing to measure.

Defined by this project, not by a paper."""


def _shares(names: Sequence[str], counts: Sequence[tuple[int, int]] = ()) -> Shares:
    shares = [part / total if total else None for part, total in counts]
    return dict(zip(names, shares or [None] * len(names), strict=True))


def check_citations(
    retrieved: Retrieved | None, response: str, index: IndexView | None, context_text: str = ""
) -> Shares:
    """Return how far an answer's citations hold against what its method showed to the model.

    ``retrieved`` and ``index`` are None when they are not known; ``response`` is "" for a search
    that failed, and for an abstention, which has nothing to cite. Tables that ``retrieved`` does
    not hold, reports and claims, are read from ``context_text``, what the model was shown.

    ``citations_in_index``, ``citation_validity``: shares of the distinct cited ids that the index
    and the context have; an id of a table that was not read, such as reports, is in the index when
    the context has it. ``context_cited``: share of the context's rows (sources, relationships,
    entities, reports, claims) that the answer cites; ``sources_cited``: of its sources alone,
    which all searches but global show.
    """
    if retrieved is None or index is None or not response.strip():
        return _shares(CITATION_MEASURES)
    citations = read_citations(response)
    context_rows = _shown_rows(retrieved, context_text)
    if not any(context_rows.values()) and retrieved.text_unit_ids is None:
        return _shares(CITATION_MEASURES)
    tables, n = index.cited, len(citations)
    rows = {c: tables[c.table].get(c.id) if c.table in tables else c.id for c in citations}
    valid = [c for c in citations if rows[c] in context_rows.get(c.table, ())]
    used_rows = {(c.table, rows[c]) for c in valid}
    counts = (
        (sum(c in valid or c.id in tables.get(c.table, ()) for c in citations), n),
        (len(valid), n),
        (len(used_rows), sum(map(len, context_rows.values()))),
        (sum(table == "sources" for table, _ in used_rows), len(context_rows["sources"])),
    )
    return _shares(CITATION_MEASURES, counts)


def read_citations(response: str) -> tuple[Citation, ...]:
    """Return the distinct ids that an answer cites, in order.

    ``[Data: Sources (1, 2); Relationships (3, +more)]`` holds three: "+more" is no id. A citation
    without a table and ids in brackets is one id of no table, which nothing can hold.
    """
    citations: list[Citation] = []
    for inside in _CITATION.findall(fold_text(response)):
        tables = _TABLE.findall(inside)
        for name, ids in tables:
            parts = (part.strip() for part in re.split(r"[,;]", ids))
            table = _table_name(name)
            citations += [Citation(table, p) for p in parts if p and not _MORE.fullmatch(p)]
        if not tables:
            citations.append(Citation("", inside.strip()))
    return tuple(dict.fromkeys(citations))


def cited_sources(response: str) -> list[str]:
    """Return the numbers of the text units that an answer cites."""
    return [citation.id for citation in read_citations(response) if citation.table == "sources"]


def strip_citations(response: str) -> str:
    """Return an answer without its citations, as :func:`fold_text` folds it."""
    return _CITATION.sub(" ", fold_text(response))


def _table_name(name: str) -> str:
    folded = " ".join(name.casefold().split())
    return _PLURALS.get(folded, folded)


def _shown_rows(retrieved: Retrieved, context_text: str) -> Mapping[str, frozenset[str]]:
    """Return table -> the rows shown: ids of the index, or of the context's own tables."""
    context_rows = {
        "sources": frozenset(retrieved.shown_text_unit_ids),
        "relationships": frozenset(retrieved.relationship_ids),
        "entities": frozenset(retrieved.entities),
    }
    parts: list[str | None] = _SECTION.split(context_text)
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        table = "reports" if name is None else _table_name(name)
        if table in _ONLY_IN_TEXT:
            rows = frozenset(row.casefold() for row in _ROW.findall(body or "") if row != "id")
            context_rows[table] = context_rows.get(table, frozenset()) | rows
    return context_rows


def check_paths(retrieved: Retrieved | None, response: str, index: IndexView | None) -> Shares:
    """Return how far an answer's paths and names can be traced to the index.

    ``retrieved`` and ``index`` are None when they are not known; ``response`` is "" for a search
    that failed.

    Shares of the paths' distinct relationships that the index has between the same ends in the
    same direction; of the joins, over all paths, where the next hop starts where the last one
    ended (None when no path has two hops); of the relationships of which at least one text unit,
    of those that the index names for them, holds the titles of both ends; and of the answer's
    entities on a path, at an end of a shown relationship or in a source shown. The first three are
    None without paths: for every method but Think-on-Graph.
    """
    if retrieved is None or index is None:
        return _shares(PATH_MEASURES)
    hops = [hop for path in retrieved.paths for hop in path]
    edges = {(hop.relationship_id, hop.source, hop.target): hop for hop in hops}.values()
    joins = [meets for path in retrieved.paths for meets in _joins_of(path)]
    is_known = retrieved.text_unit_ids is not None
    entities = index.entities_in(strip_citations(response)) if is_known else ()
    counts = (
        (sum(_find_edge(hop, index) is not None for hop in edges), len(edges)),
        (sum(joins), len(joins)),
        (sum(_is_supported(hop, index) for hop in edges), len(edges)),
        (_count_traced(entities, hops, retrieved, index) if entities else 0, len(entities)),
    )
    return _shares(PATH_MEASURES, counts)


def _find_edge(hop: Hop, index: IndexView) -> StoredEdge | None:
    edge = index.edges.get(hop.relationship_id)
    if edge is None or (edge.source, edge.target) != (hop.source, hop.target):
        return None
    return edge


def _is_supported(hop: Hop, index: IndexView) -> bool:
    edge = _find_edge(hop, index)
    texts = () if edge is None else map(index.text_of, edge.text_unit_ids)
    return any(text and hop.source in text and hop.target in text for text in texts)


def _joins_of(path: Sequence[Hop]) -> list[bool]:
    """Return of each place where a hop follows another whether they meet.

    Parallel relationships of one hop must lead from the same entity to the same entity.
    """
    steps: dict[int, set[tuple[str, str]]] = {}
    for hop in path:
        ends_of_hop = (hop.source, hop.target) if hop.forward else (hop.target, hop.source)
        steps.setdefault(hop.hop, set()).add(ends_of_hop)
    joins: list[bool] = []
    for before, after in pairwise(range(1, max(steps, default=0) + 1)):
        last, following = steps.get(before, set()), steps.get(after, set())
        ends, starts = {end for _, end in last}, {start for start, _ in following}
        joins.append(len(last) == len(following) == 1 and ends == starts)
    return joins


def _count_traced(
    entities: Sequence[str], hops: Sequence[Hop], retrieved: Retrieved, index: IndexView
) -> int:
    edges = [index.edges[i] for i in retrieved.relationship_ids if i in index.edges]
    ends = {name_key(end) or end for e in (*hops, *edges) for end in (e.source, e.target)}
    texts = [text for unit in retrieved.shown_text_unit_ids if (text := index.text_of(unit))]
    return sum(
        (name_key(title) or title) in ends or any(title in text for text in texts)
        for title in entities
    )
