"""Whether the paths, names and citations of an answer can be traced to the index."""

from collections.abc import Callable

from graphrag.eval.scorers.citations import CitationCheck, check_citations
from graphrag.eval.scorers.measure_declaration import Measure
from graphrag.eval.scorers.paths import PathEvidence, check_paths
from graphrag.eval.scorers.response import MeasureInput


def _paths(given: MeasureInput) -> PathEvidence:
    return check_paths(given.retrieved, given.said, given.index)


def _citations(given: MeasureInput) -> CitationCheck:
    # An abstention has nothing to cite.
    citing = "" if given.answered.abstained else given.said
    context = given.answered.context_text
    return check_citations(given.retrieved, citing, given.index, context)


def _declare(
    name: str,
    check: Callable[[MeasureInput], PathEvidence | CitationCheck],
    heading: str | None = None,
    column: int | None = 0,
) -> Measure:
    return Measure(
        name=name,
        kind="share",
        group="traced",
        source="this project",
        compute=lambda given: given.once(check).values[name],
        needs_retrieved=True,
        heading=heading,
        column=column,
    )


MEASURES = (
    _declare("path_edges_exist", _paths, "edges exist"),
    _declare("path_joins_meet", _paths, "joins meet"),
    _declare("path_edges_supported", _paths, "edges supported"),
    _declare("answer_entities_traced", _paths, "names traced"),
    _declare("citations_in_index", _citations, "citations in index", column=1),
    _declare("citation_validity", _citations, "citations shown"),
    _declare("context_cited", _citations, column=1),
    _declare("sources_cited", _citations, column=None),
)
