"""Whether the paths, names and citations of an answer can be traced to the index."""

from graphrag.eval.measures.citations import CitationCheck, check_citations
from graphrag.eval.measures.declaration import Measure
from graphrag.eval.measures.paths import PathEvidence, check_paths
from graphrag.eval.measures.response import MeasureInput
from graphrag.eval.records import is_abstention


def _paths(given: MeasureInput) -> PathEvidence:
    return check_paths(given.retrieved, given.said, given.index.records)


def _citations(given: MeasureInput) -> CitationCheck:
    # An abstention has nothing to cite.
    citing = "" if is_abstention(given.said) else given.said
    context = given.answered.context_text
    return check_citations(given.retrieved, citing, given.index.records, context)


def _of_paths(name: str, heading: str) -> Measure:
    return Measure(
        name=name,
        kind="share",
        group="traced",
        source="this project",
        compute=lambda given: given.once(_paths).values[name],
        needs_retrieved=True,
        heading=heading,
    )


def _of_citations(name: str, heading: str | None = None, column: int | None = 0) -> Measure:
    return Measure(
        name=name,
        kind="share",
        group="traced",
        source="this project",
        compute=lambda given: given.once(_citations).values[name],
        needs_retrieved=True,
        heading=heading,
        column=column,
    )


MEASURES = (
    _of_paths("path_edges_exist", "edges exist"),
    _of_paths("path_joins_meet", "joins meet"),
    _of_paths("path_edges_supported", "edges supported"),
    _of_paths("answer_entities_traced", "names traced"),
    _of_citations("citations_in_index", "citations in index", column=1),
    _of_citations("citation_validity", "citations shown"),
    _of_citations("context_cited", column=1),
    _of_citations("sources_cited", column=None),
)
