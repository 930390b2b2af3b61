"""Validates a built index as a whole, or records in memory, one phase at a time.

The validators put records into tables and run an index's checks on them. A document or chunk is a
text, a mapping or an object; an entity or relationship is a mapping or an object; a data frame of
an index counts as its rows. docs/api.md lists the fields that are read.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import cast

import pandas as pd

from graphrag.config.project_settings import read_settings
from graphrag.config.settings_files import SettingsError
from graphrag.eval.errors import IndexUnavailableError
from graphrag.eval.validation.checks import (
    ENRICHMENT,
    check_documents,
    check_entities,
    check_relationships,
)
from graphrag.eval.validation.graph import check_counts, check_graph, read_edges
from graphrag.eval.validation.report import PhaseValidation, PipelineValidationReport, Thresholds
from graphrag.eval.validation.table_access import Tables, arrow, open_tables
from graphrag.eval.validation.vectors import check_vectors
from graphrag.text.json_records import fields_of

_NAME = ("name", "title")
_TYPE = ("type", "entity_type", "relation_type")
_MENTIONS = ("mentions", "text_unit_ids")
_ABSENT = object()
"""Marks a field that a record does not have."""
_LIMITS = Thresholds()
Records = Iterable[object] | pd.DataFrame


def validate_index(
    root: Path | str, thresholds: Thresholds | None = None
) -> PipelineValidationReport:
    """Check a built index phase by phase, without asking a model.

    ``root`` is the project folder. This is a plain function: you can call it in a notebook, and
    inside a running event loop, which it blocks. Raises IndexUnavailableError if the settings or a
    table can't be read, or there is no table.

    Examples
    --------
    >>> report = validate_index(root="my_project", thresholds=Thresholds(min_coverage=0.99))
    >>> report.overall_passed
    True
    """
    # A search works if some texts or entities lack something, but not without any.
    limits = replace(thresholds or Thresholds(), of_some_rows="warning")
    try:
        config = read_settings(root)
        tables = open_tables(config, Path(root))
        edges = read_edges(tables)
        phases = (
            check_documents(tables, limits),
            check_entities(tables, limits),
            check_relationships(tables, edges, limits),
            check_graph(tables, edges, limits),
            check_vectors(config, limits),
        )
    except SettingsError as error:
        raise IndexUnavailableError(str(error)) from error
    except (arrow.ArrowException, OSError) as error:
        cause = " ".join(str(error).split())
        msg = f"A table of {root} can't be read ({cause}); build the index anew."
        raise IndexUnavailableError(msg) from error
    return PipelineValidationReport(str(root), phases)


class DocumentProcessingValidator:
    """Checks whether one document was cut into chunks that contain all of it."""

    @staticmethod
    def validate(document: object, chunks: Records) -> PhaseValidation:
        """Check a document (or a data frame of several) and its chunks, given in their order.

        5 checks. Metrics, None if undefined: ``coverage_ratio``, the share of the document's text
        that is in chunks, overlap counted once, in [0, 1]; ``metadata_ratio``, the share of chunks
        with a heading, keywords or a summary, in [0, 1]; ``chunks_count``; ``avg_chunk_size`` in
        characters.

        Raises ValueError if the document or a chunk has neither text nor content, or the chunks are
        not a list.

        Examples
        --------
        >>> phase = DocumentProcessingValidator.validate(
        ...     document="Ann left.", chunks=[{"text": "Ann left.", "heading": "News"}]
        ... )
        >>> phase.passed
        True
        """
        is_table = isinstance(document, pd.DataFrame)
        documents = _read(document if is_table else [document], "document")
        ids = [name or "document" for name in documents.column("id")]
        units = _read(chunks, "chunks")
        columns = {"text": units.texts(), **units.optional_column("id")}
        if len(ids) == 1:
            columns["document_id"] = ids * len(units.rows)
        elif not units.rows or units.has("document_id"):
            columns["document_id"] = units.column("document_id")
        for kind in ENRICHMENT:
            if not units.is_table or units.has(kind, "metadata"):
                columns[kind] = [_enrichment(row, kind) for row in units.rows]
        texts = documents.frame({"id": ids, "text": documents.texts()})
        return check_documents(
            Tables(documents=texts, text_units=units.frame(columns)), _LIMITS, any_enrichment=True
        )


class EntityExtractionValidator:
    """Checks whether the entities that were extracted from chunks are well formed."""

    @staticmethod
    def validate(chunks: Records, entities: Records) -> PhaseValidation:
        """Check entities and the chunks that they list as their mentions.

        5 checks. Metrics, None if undefined: ``entities_count``; ``avg_confidence`` over the
        entities that give a valid one, in [0, 1]; ``avg_mentions_per_entity``. Raises ValueError if
        the chunks or the entities are not a list.

        Examples
        --------
        >>> EntityExtractionValidator.validate(
        ...     chunks=[{"id": "c1", "text": "Ann left."}],
        ...     entities=[{"name": "Ann", "type": "person", "mentions": ["c1"]}],
        ... ).passed
        True
        """
        units, nodes = _read(chunks, "chunks"), _read(entities, "entities")
        columns = nodes.described()
        if nodes.has(*_NAME):
            columns["title"] = nodes.column(*_NAME)
        if nodes.has(*_TYPE) or not nodes.is_table:
            columns["type"] = nodes.column(*_TYPE)
        if nodes.has(*_MENTIONS):
            columns["text_unit_ids"] = nodes.column(*_MENTIONS, read=_chunks_of)
        ids = {"id": units.column("id")} if units.has("id") or not units.rows else {}
        tables = Tables(text_units=units.frame(ids), entities=nodes.frame(columns))
        return check_entities(tables, _LIMITS)


class RelationshipExtractionValidator:
    """Checks whether the relationships that were extracted are well formed and join entities."""

    @staticmethod
    def validate(entities: Records, relationships: Records) -> PhaseValidation:
        """Check relationships and the entities at their ends, which are given by id or name.

        4 checks. Metrics, None if undefined: ``relationships_count``; ``relationships_per_entity``;
        ``avg_relationship_confidence`` over the relationships that give a valid one, in [0, 1].
        Raises ValueError if the entities or the relationships are not a list.

        Examples
        --------
        >>> RelationshipExtractionValidator.validate(
        ...     entities=[{"name": "Ann"}, {"name": "Bo"}],
        ...     relationships=[{"source": "Ann", "target": "Bo", "type": "knows"}],
        ... ).passed
        True
        """
        nodes, edges = _read(entities, "entities"), _read(relationships, "relationships")
        ids, names = nodes.column("id"), nodes.column(*_NAME)
        titles = [one if name is None else name for one, name in zip(ids, names, strict=True)]
        by_id = {one: title for one, title in zip(ids, titles, strict=True) if one is not None}
        # A text that is an id and a name counts as a name, as in the tables of an index.
        by_id |= {title: title for title in titles if title is not None}
        columns = edges.described()
        for end in ("source", "target"):
            columns[end] = [by_id.get(value, value) for value in edges.column(end)]
        kinds = (*_TYPE, "description")
        if edges.has(*kinds) or not edges.is_table:
            columns["type"] = edges.column(*kinds)
        tables = Tables(entities=nodes.frame({"title": titles}), relationships=edges.frame(columns))
        return check_relationships(tables, read_edges(tables), _LIMITS)


class GraphConstructionValidator:
    """Checks whether the numbers of a graph's documents, chunks, entities and relationships fit."""

    @staticmethod
    def validate(documents: int, chunks: int, entities: int, relationships: int) -> PhaseValidation:
        """Check the counts of a graph.

        3 checks. Metrics, None if undefined: the four counts; ``entities_per_chunk``;
        ``connectivity``, the relationships per entity. Raises ValueError if a count is not a whole
        number or is below 0.

        Examples
        --------
        >>> phase = GraphConstructionValidator.validate(
        ...     documents=1, chunks=4, entities=8, relationships=9
        ... )
        >>> phase.passed
        True
        """
        counts = {
            "documents": documents,
            "chunks": chunks,
            "entities": entities,
            "relationships": relationships,
        }
        for name, count in counts.items():
            # Integral includes pandas' and numpy's; NaN is not below 0 and would pass for a count.
            if not isinstance(count, Integral) or count < 0:
                raise ValueError(f"{name} must be a count of 0 or more, not {count!r}")
        return check_counts(counts, _LIMITS)


@dataclass(frozen=True, slots=True)
class _Records:
    """Texts, mappings or objects of one kind; errors name the ``kind``.

    A column that a data frame lacks does not count as missing in its rows.
    """

    kind: str
    rows: list[object]
    is_table: bool = False

    def has(self, *names: str) -> bool:
        """Return whether some record has one of the fields."""
        return any(_look(row, *names) is not _ABSENT for row in self.rows)

    def column(self, *names: str, read: Callable[[object], object] = str) -> list[object]:
        """Return for each record the first of the fields that it has; None if it has none."""
        values = (_look(row, *names) for row in self.rows)
        return [None if value is _ABSENT or _is_missing(value) else read(value) for value in values]

    def optional_column(self, name: str) -> dict[str, list[object]]:
        """Return a column under its name if some record has the field, else nothing."""
        return {name: self.column(name)} if self.has(name) else {}

    def described(self) -> dict[str, list[object]]:
        """Return the columns of ids and confidences, if there are any."""
        columns = {**self.optional_column("id"), **self.optional_column("confidence")}
        if not self.is_table and "confidence" in columns:
            # A NaN from a client is a confidence, but not a valid one.
            values = (_look(row, "confidence") for row in self.rows)
            columns["confidence"] = [
                None if value is _ABSENT or value is None else str(value) for value in values
            ]
        return columns

    def texts(self) -> list[object]:
        """Return each record's text."""
        texts = [
            row if isinstance(row, str) else _look(row, "text", "content") for row in self.rows
        ]
        for number, text in enumerate(texts, start=1):
            if text is _ABSENT:
                raise ValueError(f"{self.kind} {number} has neither text nor content")
        return [None if _is_missing(text) else str(text) for text in texts]

    def frame(self, columns: Mapping[str, list[object]]) -> pd.DataFrame:
        """Return columns as the table of these records."""
        return pd.DataFrame(dict(columns), index=range(len(self.rows)), dtype=object)


def _read(records: object, kind: str) -> _Records:
    if isinstance(records, pd.DataFrame):
        cells = records.astype(object)
        rows = cast("list[object]", cells.where(cells.notna(), None).to_dict("records"))
        return _Records(kind, rows, is_table=True)
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        name = type(cast("object", records)).__name__
        raise ValueError(f"{kind} must be a list of records or a data frame, not {name}")
    return _Records(kind, list(cast("Iterable[object]", records)))


def _look(record: object, *names: str) -> object:
    return next(fields_of(record, *names), _ABSENT)


def _is_missing(value: object) -> bool:
    """Return whether a value is missing: None, or the NaN that pandas has for it."""
    return value is None or (isinstance(value, float) and value != value)


def _enrichment(record: object, name: str) -> str | None:
    """Return a chunk's heading, keywords or summary as text: its own, or that in its metadata."""
    for holder in (record, _look(record, "metadata")):
        value = _ABSENT if isinstance(holder, str) else _look(holder, name)
        if value is _ABSENT or _is_missing(value):
            continue
        if isinstance(value, Iterable) and not isinstance(value, str):
            value = " ".join(map(str, cast("Iterable[object]", value)))
        if str(value).strip():
            return str(value)
    return None


def _chunks_of(mentions: object) -> list[str]:
    if isinstance(mentions, str) or not isinstance(mentions, Iterable):
        mentions = [mentions]
    items = cast("Iterable[object]", mentions)
    named = ((item, _look(item, "chunk_id")) for item in items)
    return [str(item if chunk is _ABSENT else chunk) for item, chunk in named]
