"""The validators of one phase each, for records that are held in memory.

They are the checks of an index over tables made of the records. A document or chunk is a text, a
mapping or an object; an entity or relationship is a mapping or an object; a data frame of an
index stands for its rows. Which fields are read is in docs/validation.md.
"""

from collections.abc import Iterable
from numbers import Integral
from typing import TYPE_CHECKING, Any

from graphrag.eval.validation.documents import check_documents
from graphrag.eval.validation.edges import read_edges
from graphrag.eval.validation.extraction import check_entities, check_relationships
from graphrag.eval.validation.graph import check_counts
from graphrag.eval.validation.inputs import (
    chunk_ids,
    chunk_table,
    document_table,
    entity_table,
    graph_tables,
)
from graphrag.eval.validation.metadata import check_enrichment
from graphrag.eval.validation.records import PhaseValidation, Thresholds
from graphrag.eval.validation.tables import Tables

if TYPE_CHECKING:
    import pandas as pd


class DocumentProcessingValidator:
    """Whether one document was cut into chunks that hold all of it."""

    @staticmethod
    def validate(document: Any, chunks: "Iterable[Any] | pd.DataFrame") -> PhaseValidation:
        """Check a document and its chunks.

        Parameters
        ----------
        document : str, mapping, object or DataFrame
        chunks : iterable or DataFrame
            The document's chunks in their order.

        Returns
        -------
        PhaseValidation
            5 checks. Metrics: ``coverage_ratio``, the share of the document's text that lies in
            chunks, overlap counted once, in [0, 1]; ``metadata_ratio``, the share of chunks with
            a heading, keywords or a summary, in [0, 1]; ``chunks_count``; ``avg_chunk_size`` in
            characters. None where undefined.

        Raises
        ------
        ValueError
            If the document or a chunk has neither text nor content, or the chunks are no list.
        """
        documents, ids = document_table(document)
        tables = Tables(documents, chunk_table(chunks, ids), None, None)
        return check_documents(tables, Thresholds(), check_enrichment)


class EntityExtractionValidator:
    """Whether the entities that were extracted from chunks are well formed."""

    @staticmethod
    def validate(
        chunks: "Iterable[Any] | pd.DataFrame", entities: "Iterable[Any] | pd.DataFrame"
    ) -> PhaseValidation:
        """Check entities and the chunks that they say to be mentioned in.

        Parameters
        ----------
        chunks, entities : iterable or DataFrame

        Returns
        -------
        PhaseValidation
            5 checks. Metrics: ``entities_count``; ``avg_confidence`` over those that give a valid
            one, in [0, 1]; ``avg_mentions_per_entity``. None where undefined.

        Raises
        ------
        ValueError
            If one of the two is no list.
        """
        tables = Tables(None, chunk_ids(chunks), entity_table(entities), None)
        return check_entities(tables, Thresholds())


class RelationshipExtractionValidator:
    """Whether the relationships that were extracted are well formed and join entities."""

    @staticmethod
    def validate(
        entities: "Iterable[Any] | pd.DataFrame", relationships: "Iterable[Any] | pd.DataFrame"
    ) -> PhaseValidation:
        """Check relationships and the entities at their ends.

        Parameters
        ----------
        entities, relationships : iterable or DataFrame
            ``source`` and ``target`` of a relationship are an entity's id or its name.

        Returns
        -------
        PhaseValidation
            4 checks. Metrics: ``relationships_count``; ``relationships_per_entity``;
            ``avg_relationship_confidence`` over those that give a valid one, in [0, 1]. None
            where undefined.

        Raises
        ------
        ValueError
            If one of the two is no list.
        """
        found, edges = graph_tables(entities, relationships)
        tables = Tables(None, None, found, edges)
        return check_relationships(tables, read_edges(found, edges), Thresholds())


class GraphConstructionValidator:
    """Whether the numbers of a graph's parts are in proportion."""

    @staticmethod
    def validate(documents: int, chunks: int, entities: int, relationships: int) -> PhaseValidation:
        """Check counts.

        Parameters
        ----------
        documents, chunks, entities, relationships : int
            Counts, >= 0.

        Returns
        -------
        PhaseValidation
            3 checks. Metrics: the four counts; ``entities_per_chunk``; ``connectivity``, the
            relationships an entity. None where undefined.

        Raises
        ------
        ValueError
            If one of them is not a whole number, or below 0.
        """
        counts = {
            "documents": documents,
            "chunks": chunks,
            "entities": entities,
            "relationships": relationships,
        }
        for name, count in counts.items():
            # Of pandas and numpy too; NaN is below nothing, and would pass for a count.
            if not isinstance(count, Integral) or count < 0:
                msg = f"{name} must be a count of 0 or more, not {count!r}"
                raise ValueError(msg)
        return check_counts(documents, chunks, entities, relationships, Thresholds())
