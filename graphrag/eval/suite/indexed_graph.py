"""What a built index holds of a passage or a document."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphrag_storage import create_storage
from graphrag_storage.tables.table_provider_factory import create_table_provider

from graphrag.data_model.data_reader import DataReader
from graphrag.eval.measures import Extraction, Pair, SourceIndex, fold_text, id_lists_of, texts_of

if TYPE_CHECKING:
    from graphrag.config.models.graph_rag_config import GraphRagConfig


@dataclass(frozen=True, slots=True)
class IndexedGraph:
    """The entities and relationships of an index, with the text units that they were taken from.

    Attributes
    ----------
    entities, relationships : tuple
        (name or pair, ids of its text units).
    units_of_document : dict
        Id and folded title of a document -> ids of its text units.
    sources : SourceIndex
        Finds the text units of a passage.
    """

    entities: tuple[tuple[str, tuple[str, ...]], ...]
    relationships: tuple[tuple[Pair, tuple[str, ...]], ...]
    units_of_document: dict[str, frozenset[str]]
    sources: SourceIndex

    def extraction(self, text: str | None = None, document: str | None = None) -> Extraction:
        """Return what was taken from a passage, a document, or both; from everything without one.

        Raises
        ------
        ValueError
            If no text unit holds the passage, or there is no such document.
        """
        wanted: frozenset[str] | None = None
        if text is not None:
            wanted = self.sources.units_with(text)
            if not wanted:
                msg = "no text unit of the index holds the passage"
                raise ValueError(msg)
        if document is not None:
            units = self._units(document)
            wanted = units if wanted is None else wanted & units
        return Extraction(
            tuple(name for name, units in self.entities if _taken_from(units, wanted)),
            tuple(pair for pair, units in self.relationships if _taken_from(units, wanted)),
        )

    def _units(self, document: str) -> frozenset[str]:
        found = self.units_of_document
        units = found.get(document) or found.get(fold_text(document))
        if units is None:
            msg = f"the index has no document {document!r}"
            raise ValueError(msg)
        return units


async def open_indexed(config: "GraphRagConfig") -> IndexedGraph:
    """Read the tables of a built index."""
    storage = create_storage(config.output_storage)
    reader = DataReader(create_table_provider(config.table_provider, storage=storage))
    entities, relationships = await reader.entities(), await reader.relationships()
    text_units, documents = await reader.text_units(), await reader.documents()
    pairs = zip(texts_of(relationships, "source"), texts_of(relationships, "target"), strict=True)
    return IndexedGraph(
        entities=_with_units(texts_of(entities, "title"), entities),
        relationships=_with_units(list(pairs), relationships),
        units_of_document=_units_of_documents(text_units, documents),
        sources=SourceIndex(text_units),
    )


def _with_units(names: list[Any], table: Any) -> tuple[tuple[Any, tuple[str, ...]], ...]:
    return tuple(zip(names, id_lists_of(table, "text_unit_ids"), strict=True))


def _units_of_documents(text_units: Any, documents: Any) -> dict[str, frozenset[str]]:
    units: dict[str, set[str]] = {}
    for unit, document in zip(
        texts_of(text_units, "id"), texts_of(text_units, "document_id"), strict=True
    ):
        units.setdefault(document, set()).add(unit)
    found = {document: frozenset(ids) for document, ids in units.items()}
    named = zip(texts_of(documents, "id"), texts_of(documents, "title"), strict=True)
    titles = {fold_text(title): found.get(document, frozenset()) for document, title in named}
    return {**titles, **found}


def _taken_from(units: tuple[str, ...], wanted: frozenset[str] | None) -> bool:
    return wanted is None or not wanted.isdisjoint(units)
