"""Compares an answer's citations with the index and the context, without a model call."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from graphrag.eval.metrics.index_view import IndexView
from graphrag.eval.metrics.quote_matching import fold_text
from graphrag.eval.types.query_results import Retrieved
from graphrag.text.citations import CITATION, PARTS

_TABLE = re.compile(r"([^\W\d_][^()\[\];,\u3001\u060c\u061b]*?)\s*\(([^()]*)(?:\)|$)")
_MORE = re.compile(r"\+?\s*more")
# Global search shows its reports without a heading; only they have titles.
_SECTION = re.compile(r"^(?:-{3,} *(\w[^\n]*?) *-{3,} *|id\|title\|[^\n]*)$", re.MULTILINE)
_ROW = re.compile(r"^([^\s|]{1,64})\|", re.MULTILINE)
_ONLY_IN_TEXT = ("reports", "claims")
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
    """One cited id as the answer writes it; ``[Data: Sources (1, 2)]`` contains two.

    ``table`` is in lower case and plural, or "" if the citation names no table.
    """

    table: str
    id: str


Shares: TypeAlias = dict[str, float | None]
"""Measure -> share in [0, 1]; None if there is nothing to measure.

Defined by this project, not by a paper."""


def check_citations(
    retrieved: Retrieved | None, response: str, index: IndexView | None, context_text: str = ""
) -> Shares:
    """Return the shares of an answer's citations that the index and the context confirm.

    - ``retrieved``, ``index``: None if not known; every share is then None.
    - ``response``: "" for a failed search, and for an abstention, which has nothing to cite.
    - ``context_text``: what the model was shown. Reports and claims are read from it, because
      ``retrieved`` does not list them.

    ``citations_in_index`` and ``citation_validity`` are the shares of the distinct cited ids that
    the index and the context contain. An id of a table that is not read from the index, such as
    reports, counts as in the index if the context contains it. ``context_cited`` is the share of
    the context's rows (sources, relationships, entities, reports, claims) that the answer cites.
    ``sources_cited`` is the same for sources alone, which all searches except global show.
    """
    if retrieved is None or index is None or not response.strip():
        return Shares.fromkeys(CITATION_MEASURES)
    citations = read_citations(response)
    context_rows = _shown_rows(retrieved, context_text)
    if not any(context_rows.values()) and retrieved.text_unit_ids is None:
        return Shares.fromkeys(CITATION_MEASURES)
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
    shares = (part / total if total else None for part, total in counts)
    return dict(zip(CITATION_MEASURES, shares, strict=True))


def read_citations(response: str) -> tuple[Citation, ...]:
    """Return the distinct ids that an answer cites, in order.

    ``[Data: Sources (1, 2); Relationships (3, +more)]`` contains three: "+more" is not an id. A
    citation that is not written as a table with ids in parentheses counts as one id without a
    table, which no index contains.
    """
    citations: list[Citation] = []
    for inside in CITATION.findall(fold_text(response)):
        tables = _TABLE.findall(inside)
        for name, ids in tables:
            parts = (part.strip() for part in PARTS.split(ids))
            table = _table_name(name)
            citations += [Citation(table, p) for p in parts if p and not _MORE.fullmatch(p)]
        if not tables:
            citations.append(Citation("", inside.strip()))
    return tuple(dict.fromkeys(citations))


def cited_sources(response: str) -> list[str]:
    """Return the numbers of the text units that an answer cites."""
    return [citation.id for citation in read_citations(response) if citation.table == "sources"]


def strip_citations(response: str) -> str:
    """Return an answer without its citations, folded by :func:`fold_text`."""
    return CITATION.sub(" ", fold_text(response))


def _table_name(name: str) -> str:
    folded = " ".join(name.casefold().split())
    return _PLURALS.get(folded, folded)


def _shown_rows(retrieved: Retrieved, context_text: str) -> Mapping[str, frozenset[str]]:
    """Return table -> ids of the shown rows: ids of the index, or ids written in the context."""
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
