"""Whether what an answer cites was shown to the model, and how much of that it cites."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from graphrag.eval.records import Retrieved
from graphrag.eval.scorers.index_view import IndexView
from graphrag.eval.scorers.quotes import fold_text

_CITATION = re.compile(r"\[\s*data\s*:([^\]]*)(?:\]|$)")
_TABLE = re.compile(r"([^\W\d_][^()\[\];,]*?)\s*\(([^()]*)(?:\)|$)")
_MORE = re.compile(r"\+?\s*more")
# Global search shows its reports without a heading; only they have titles.
_SECTION = re.compile(r"^(?:-{3,} *(\w[^\n]*?) *-{3,} *|id\|title\|[^\n]*)$", re.MULTILINE)
_ROW = re.compile(r"^([^\s|]{1,64})\|", re.MULTILINE)
_ONLY_IN_TEXT = ("reports", "claims")
_ONE = {
    "source": "sources",
    "relationship": "relationships",
    "entity": "entities",
    "report": "reports",
    "claim": "claims",
}


@dataclass(frozen=True, slots=True, order=True)
class Citation:
    """One cited id, as ``[Data: Sources (1, 2)]`` holds two.

    Attributes
    ----------
    table : str
        In lower case and plural; "" when the citation names no table.
    id : str
        As it is written.
    """

    table: str
    id: str

    def __str__(self) -> str:
        """Return ``table (id)``."""
        return f"{self.table} ({self.id})"


@dataclass(frozen=True, slots=True)
class CitationCheck:
    """The citations of one answer against the context that its method showed.

    Attributes
    ----------
    cited : tuple of Citation
        Distinct, in order.
    not_shown, not_in_index : tuple of str
        The cited ids that the context does not have, and those that the index does not.
    n_shown, n_shown_sources : int
        Rows of the context that can be cited, and those of them that are text units.
    n_cited_rows, n_cited_sources : int
        Rows of the context that the answer cites.
    is_known : bool
        Whether there is an answer, and what the model was shown is known.
    """

    cited: tuple[Citation, ...]
    not_shown: tuple[str, ...]
    not_in_index: tuple[str, ...]
    n_shown: int
    n_shown_sources: int
    n_cited_rows: int
    n_cited_sources: int
    is_known: bool

    @property
    def values(self) -> dict[str, float | None]:
        """The measures by name.

        Returns
        -------
        dict
            Each in [0, 1], or None when there is nothing to measure:

            ``citations_in_index``
                Share of the distinct cited ids that the index has; an id of a table that was not
                read, such as reports, counts when the context has it.
            ``citation_validity``
                Share of the distinct cited ids that the context has. Both are None for an answer
                that cites nothing.
            ``context_cited``
                Share of the context's rows (sources, relationships, entities, reports, claims)
                that the answer cites; 0 for an answer that cites nothing.
            ``sources_cited``
                The same of its sources alone, which all searches but global show.

        Notes
        -----
        Defined by this project, not by a paper.
        """
        n = len(self.cited)
        return {
            "citations_in_index": _share(n - len(self.not_in_index), n, self.is_known),
            "citation_validity": _share(n - len(self.not_shown), n, self.is_known),
            "context_cited": _share(self.n_cited_rows, self.n_shown, self.is_known),
            "sources_cited": _share(self.n_cited_sources, self.n_shown_sources, self.is_known),
        }

    def to_dict(self) -> dict[str, object]:
        """Return the record and its measures as JSON-ready values."""
        return {**asdict(self), "measures": self.values}


_NOTHING = CitationCheck((), (), (), 0, 0, 0, 0, is_known=False)


def check_citations(
    retrieved: Retrieved | None,
    response: str,
    index: IndexView | None,
    context_text: str = "",
) -> CitationCheck:
    """Check an answer's citations against what its method showed to the model.

    Parameters
    ----------
    retrieved : Retrieved or None
        What the search showed; None when it is not known.
    response : str
        The answer; "" for a search that failed, and for an abstention, which has nothing to
        cite.
    index : IndexView or None
        Of the index that was searched; None when it can't be looked at.
    context_text : str
        What the model was shown. Tables that `retrieved` does not hold, such as reports and
        claims, are read from it.
    """
    if retrieved is None or index is None or not response.strip():
        return _NOTHING
    cited = read_citations(response)
    shown = _shown_rows(retrieved, index, context_text)
    rows = {citation: _row(citation, index) for citation in cited}
    not_shown = [c for c in cited if rows[c] not in shown.get(c.table, ())]
    not_in_index = [
        c for c in not_shown if c.table not in index.cited or c.id not in index.cited[c.table]
    ]
    used = {(c.table, rows[c]) for c in cited if c not in not_shown}
    n_sources = len(shown.get("sources", ()))
    return CitationCheck(
        cited=cited,
        not_shown=tuple(map(str, not_shown)),
        not_in_index=tuple(map(str, not_in_index)),
        n_shown=sum(map(len, shown.values())),
        n_shown_sources=n_sources,
        n_cited_rows=len(used),
        n_cited_sources=sum(table == "sources" for table, _ in used),
        is_known=any(shown.values()) or retrieved.text_unit_ids is not None,
    )


def read_citations(response: str) -> tuple[Citation, ...]:
    """Return the distinct ids that an answer cites, in order.

    ``[Data: Sources (1, 2); Relationships (3, +more)]`` holds three: "+more" is no id. A citation
    without a table and ids in brackets is one id of no table, which nothing can hold.
    """
    found: dict[Citation, None] = {}
    for inside in _CITATION.findall(fold_text(response)):
        tables = _TABLE.findall(inside)
        if not tables:
            found[Citation("", inside.strip())] = None
        for name, ids in tables:
            table = _table_name(name)
            parts = (part.strip() for part in re.split(r"[,;]", ids))
            found.update(
                (Citation(table, part), None)
                for part in parts
                if part and not _MORE.fullmatch(part)
            )
    return tuple(found)


def strip_citations(response: str) -> str:
    """Return an answer without its citations, as :func:`fold_text` folds it."""
    return _CITATION.sub(" ", fold_text(response))


def _table_name(name: str) -> str:
    folded = " ".join(name.casefold().split())
    return _ONE.get(folded, folded)


def _row(citation: Citation, index: IndexView) -> str | None:
    known = index.cited.get(citation.table)
    return citation.id if known is None else known.get(citation.id)


def _shown_rows(
    retrieved: Retrieved, index: IndexView, context_text: str
) -> Mapping[str, frozenset[str]]:
    """Return table -> the rows shown, as :func:`_row` names them."""
    shown = {
        "sources": frozenset(retrieved.shown_text_unit_ids),
        "relationships": frozenset(retrieved.relationship_ids),
        "entities": frozenset(retrieved.entities),
    }
    parts: list[str | None] = _SECTION.split(context_text)
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        table = "reports" if name is None else _table_name(name)
        if table not in _ONLY_IN_TEXT:
            continue
        rows = frozenset(row.casefold() for row in _ROW.findall(body or "") if row != "id")
        shown[table] = shown.get(table, frozenset()) | rows
    return shown


def _share(count: int, n: int, is_known: bool) -> float | None:
    return count / n if n and is_known else None
