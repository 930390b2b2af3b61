"""Whether the paths, names and citations of an answer can be traced, without a model call."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from graphrag.eval.records import Hop, Retrieved
from graphrag.eval.scorers.evidence import fold_text, name_key
from graphrag.eval.scorers.index_view import IndexView, StoredEdge

_CITATION = re.compile(r"\[\s*data\s*:([^\]]*)(?:\]|$)")
_TABLE = re.compile(r"([^\W\d_][^()\[\];,]*?)\s*\(([^()]*)(?:\)|$)")
_MORE = re.compile(r"\+?\s*more")
# Global search shows its reports without a heading; only they have titles.
_SECTION = re.compile(r"^(?:-{3,} *(\w[^\n]*?) *-{3,} *|id\|title\|[^\n]*)$", re.MULTILINE)
_ROW = re.compile(r"^([^\s|]{1,64})\|", re.MULTILINE)
_ONLY_IN_TEXT = ("reports", "claims")
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

    def __str__(self) -> str:
        """Return ``table (id)``."""
        return f"{self.table} ({self.id})"


@dataclass(frozen=True, slots=True)
class CitationCheck:
    """The distinct citations of one answer, in order, against the context that its method showed.

    ``not_shown`` and ``not_in_index``: cited ids that the context, or the index, does not have.
    ``n_shown``, ``n_shown_sources``: rows of the context that can be cited, and those of them that
    are text units; ``n_cited_rows``, ``n_cited_sources``: those of them that the answer cites.
    ``is_known``: there is an answer, and what the model was shown is known.
    """

    cited: tuple[Citation, ...] = ()
    not_shown: tuple[str, ...] = ()
    not_in_index: tuple[str, ...] = ()
    n_shown: int = 0
    n_shown_sources: int = 0
    n_cited_rows: int = 0
    n_cited_sources: int = 0
    is_known: bool = False

    @property
    def values(self) -> dict[str, float | None]:
        """The measures by name, in [0, 1], or None when there is nothing to measure.

        ``citations_in_index``, ``citation_validity``: shares of the distinct cited ids that the
        index and the context have; an id of a table that was not read, such as reports, is in the
        index when the context has it. ``context_cited``: share of the context's rows (sources,
        relationships, entities, reports, claims) that the answer cites; ``sources_cited``: of its
        sources alone, which all searches but global show.
        Defined by this project, not by a paper.
        """
        n = len(self.cited)
        counts = {
            "citations_in_index": (n - len(self.not_in_index), n),
            "citation_validity": (n - len(self.not_shown), n),
            "context_cited": (self.n_cited_rows, self.n_shown),
            "sources_cited": (self.n_cited_sources, self.n_shown_sources),
        }
        known = self.is_known
        return {name: part / of if of and known else None for name, (part, of) in counts.items()}


def check_citations(
    retrieved: Retrieved | None,
    response: str,
    index: IndexView | None,
    context_text: str = "",
) -> CitationCheck:
    """Check an answer's citations against what its method showed to the model.

    ``retrieved`` and ``index`` are None when they are not known; ``response`` is "" for a search
    that failed, and for an abstention, which has nothing to cite. Tables that ``retrieved`` does
    not hold, reports and claims, are read from ``context_text``, what the model was shown.
    """
    if retrieved is None or index is None or not response.strip():
        return CitationCheck()
    cited = read_citations(response)
    shown = _shown_rows(retrieved, context_text)
    tables = index.cited
    rows = {c: tables[c.table].get(c.id) if c.table in tables else c.id for c in cited}
    not_shown = [c for c in cited if rows[c] not in shown.get(c.table, ())]
    used = {(c.table, rows[c]) for c in cited if c not in not_shown}
    return CitationCheck(
        cited=cited,
        not_shown=tuple(map(str, not_shown)),
        not_in_index=tuple(str(c) for c in not_shown if c.id not in tables.get(c.table, ())),
        n_shown=sum(map(len, shown.values())),
        n_shown_sources=len(shown["sources"]),
        n_cited_rows=len(used),
        n_cited_sources=sum(table == "sources" for table, _ in used),
        is_known=any(shown.values()) or retrieved.text_unit_ids is not None,
    )


def read_citations(response: str) -> tuple[Citation, ...]:
    """Return the distinct ids that an answer cites, in order.

    ``[Data: Sources (1, 2); Relationships (3, +more)]`` holds three: "+more" is no id. A citation
    without a table and ids in brackets is one id of no table, which nothing can hold.
    """
    cited: list[Citation] = []
    for inside in _CITATION.findall(fold_text(response)):
        tables = _TABLE.findall(inside)
        for name, ids in tables:
            parts = (part.strip() for part in re.split(r"[,;]", ids))
            table = _table_name(name)
            cited += [Citation(table, each) for each in parts if each and not _MORE.fullmatch(each)]
        if not tables:
            cited.append(Citation("", inside.strip()))
    return tuple(dict.fromkeys(cited))


def strip_citations(response: str) -> str:
    """Return an answer without its citations, as :func:`fold_text` folds it."""
    return _CITATION.sub(" ", fold_text(response))


def _table_name(name: str) -> str:
    folded = " ".join(name.casefold().split())
    return _PLURALS.get(folded, folded)


def _shown_rows(retrieved: Retrieved, context_text: str) -> Mapping[str, frozenset[str]]:
    """Return table -> the rows shown: ids of the index, or of the context's own tables."""
    shown = {
        "sources": frozenset(retrieved.shown_text_unit_ids),
        "relationships": frozenset(retrieved.relationship_ids),
        "entities": frozenset(retrieved.entities),
    }
    parts: list[str | None] = _SECTION.split(context_text)
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        table = "reports" if name is None else _table_name(name)
        if table in _ONLY_IN_TEXT:
            rows = frozenset(row.casefold() for row in _ROW.findall(body or "") if row != "id")
            shown[table] = shown.get(table, frozenset()) | rows
    return shown


PATH_MEASURES = (
    "path_edges_exist",
    "path_joins_meet",
    "path_edges_supported",
    "answer_entities_traced",
)


@dataclass(frozen=True, slots=True)
class PathEvidence:
    """What was checked in the paths and the answer of one search, and what did not hold.

    ``n_edges``: distinct relationships on the paths; ``missing_edges``: those that the index does
    not have, or not between these ends in this direction; ``unsupported_edges``: those of which no
    text unit names both ends, the missing ones among them. ``n_joins``: places where one hop of a
    path follows another; ``broken_joins``: those where the next hop does not start where the last
    one ended. ``answer_entities``: titles of the index in the answer; ``untraced_entities``: those
    on no path, at no end of a shown relationship, and in no source shown. ``is_traceable``: the
    search showed sources, relationships or paths at all.
    """

    n_edges: int = 0
    missing_edges: tuple[str, ...] = ()
    unsupported_edges: tuple[str, ...] = ()
    n_joins: int = 0
    broken_joins: tuple[str, ...] = ()
    answer_entities: tuple[str, ...] = ()
    untraced_entities: tuple[str, ...] = ()
    is_traceable: bool = False

    @property
    def values(self) -> dict[str, float | None]:
        """The measures by name, in [0, 1], 1 being best, or None when there is nothing to measure.

        Shares of the paths' distinct relationships that the index has between the same ends in the
        same direction; of the joins, over all paths, that meet (None when no path has two hops); of
        the relationships of which at least one text unit, of those that the index names for them,
        holds the titles of both ends; and of the answer's entities that are traced. The first three
        are None without paths: for every method but Think-on-Graph.
        Defined by this project, not by a paper.
        """
        n_entities = len(self.answer_entities) if self.is_traceable else 0
        counts = (
            (self.missing_edges, self.n_edges),
            (self.broken_joins, self.n_joins),
            (self.unsupported_edges, self.n_edges),
            (self.untraced_entities, n_entities),
        )
        shares = ((n - len(faults)) / n if n else None for faults, n in counts)
        return dict(zip(PATH_MEASURES, shares, strict=True))


def check_paths(
    retrieved: Retrieved | None, response: str, index: IndexView | None
) -> PathEvidence:
    """Check how far an answer's paths and names can be traced to the index.

    ``retrieved`` and ``index`` are None when they are not known; ``response`` is "" for a search
    that failed.
    """
    if retrieved is None or index is None:
        return PathEvidence()
    walked = [hop for path in retrieved.paths for hop in path]
    edges = {(hop.relationship_id, hop.source, hop.target): hop for hop in walked}.values()
    joins = [join for path in retrieved.paths for join in _joins_of(path)]
    entities = index.entities_in(strip_citations(response))
    return PathEvidence(
        n_edges=len(edges),
        missing_edges=tuple(_label(hop) for hop in edges if _stored(hop, index) is None),
        unsupported_edges=tuple(_label(hop) for hop in edges if not _is_supported(hop, index)),
        n_joins=len(joins),
        broken_joins=tuple(place for place, meets in joins if not meets),
        answer_entities=entities,
        untraced_entities=_untraced(entities, walked, retrieved, index) if entities else (),
        is_traceable=retrieved.text_unit_ids is not None,
    )


def _stored(hop: Hop, index: IndexView) -> StoredEdge | None:
    edge = index.edges.get(hop.relationship_id)
    if edge is None or (edge.source, edge.target) != (hop.source, hop.target):
        return None
    return edge


def _is_supported(hop: Hop, index: IndexView) -> bool:
    edge = _stored(hop, index)
    texts = () if edge is None else map(index.text_of, edge.text_unit_ids)
    return any(text and hop.source in text and hop.target in text for text in texts)


def _joins_of(path: Sequence[Hop]) -> list[tuple[str, bool]]:
    """Return each place where a hop follows another, and whether they meet.

    Parallel relationships of one hop must lead from the same entity to the same entity.
    """
    steps: dict[int, set[tuple[str, str]]] = {}
    for hop in path:
        walked = (hop.source, hop.target) if hop.forward else (hop.target, hop.source)
        steps.setdefault(hop.hop, set()).add(walked)
    joins: list[tuple[str, bool]] = []
    for before, after in pairwise(range(1, max(steps, default=0) + 1)):
        last, following = steps.get(before, set()), steps.get(after, set())
        ends, starts = {end for _, end in last}, {start for start, _ in following}
        meets = len(last) == len(following) == 1 and ends == starts
        joins.append((f"hop {before}, {_names(ends)} | hop {after}, {_names(starts)}", meets))
    return joins


def _untraced(
    entities: Sequence[str], walked: Sequence[Hop], retrieved: Retrieved, index: IndexView
) -> tuple[str, ...]:
    shown = [index.edges[i] for i in retrieved.relationship_ids if i in index.edges]
    ends = {name_key(end) or end for e in (*walked, *shown) for end in (e.source, e.target)}
    texts = [text for unit in retrieved.shown_text_unit_ids if (text := index.text_of(unit))]
    return tuple(
        title
        for title in entities
        if (name_key(title) or title) not in ends and not any(title in text for text in texts)
    )


def _label(hop: Hop) -> str:
    return f"{hop.source} -> {hop.target} ({hop.relationship_id})"


def _names(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
