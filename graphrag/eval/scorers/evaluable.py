"""What a rubric judge looks at: a question, its answer, and what the method retrieved for it."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

from pydantic import TypeAdapter

from graphrag.text.tables import read_context

if TYPE_CHECKING:
    import pandas as pd

    from graphrag.query.structured_search.base import SearchResult


_TYPE = ("type", "entity_type", "relation_type")


@dataclass(frozen=True, slots=True)
class EvaluableEntity:
    """A retrieved entity; ``type`` and ``description`` are empty when unknown.

    ``confidence``, in [0, 1], is None when unknown, as for every entity that GraphRAG extracts.
    """

    name: str
    type: str = ""
    description: str = ""
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class EvaluableRelationship:
    """A retrieved relationship, in the direction in which it is stored.

    ``confidence``, in [0, 1], is None when unknown.
    """

    source: str
    target: str
    description: str = ""
    type: str = ""
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class ResultMetadata:
    """What is known of a result beside its content; no judge sees it.

    Attributes
    ----------
    entities_count, relationships_count, chunks_count : int
        Lengths of the result's lists, where the builder made it.
    retrieval_strategy : str
        The method's name.
    processing_time_ms : int or None
        None when it was not measured.
    custom : dict
        Anything else.
    """

    entities_count: int = 0
    relationships_count: int = 0
    chunks_count: int = 0
    retrieval_strategy: str = ""
    processing_time_ms: int | None = None
    custom: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class EvaluableQueryResult:
    """One answered question and what was retrieved for it, whichever method it was.

    Attributes
    ----------
    query, answer : str
        The question and its answer.
    retrieved_entities : list of EvaluableEntity
        In the method's order.
    retrieved_relationships : list of EvaluableRelationship
        In the method's order.
    context_chunks : list of str
        Whole texts, best first: sources, then community reports.
    metadata : ResultMetadata
    """

    query: str
    answer: str
    retrieved_entities: list[EvaluableEntity] = field(default_factory=list[EvaluableEntity])
    retrieved_relationships: list[EvaluableRelationship] = field(
        default_factory=list[EvaluableRelationship]
    )
    context_chunks: list[str] = field(default_factory=list[str])
    metadata: ResultMetadata = field(default_factory=ResultMetadata)

    @classmethod
    def from_search_result(
        cls,
        question: str,
        result: "SearchResult",
        method: str = "",
        entity_types: Mapping[str, str] | None = None,
    ) -> "EvaluableQueryResult":
        """Read the result of any search.

        Parameters
        ----------
        question : str
        result : SearchResult
            Its ``context_data`` is read when it holds data frames, at any depth (DRIFT nests
            them by follow-up question); else its ``context_text``.
        method : str
        entity_types : mapping of str to str, optional
            Title -> type, as no search shows types; see :func:`read_entity_types`.
        """
        builder = EvaluableQueryResultBuilder(entity_types).query(question)
        builder.retrieval_strategy(method)
        response: Any = result.response
        builder.answer(
            response if isinstance(response, str) else json.dumps(response, ensure_ascii=False)
        )
        if not builder.add_context_data(result.context_data):
            builder.add_context(result.context_text)
        return builder.build()

    @classmethod
    def from_context_text(
        cls,
        question: str,
        answer: str,
        context_text: str,
        method: str = "",
        entity_types: Mapping[str, str] | None = None,
    ) -> "EvaluableQueryResult":
        """Read what a recorded run kept: the response and the context as the model was shown it.

        Parameters
        ----------
        context_text : str
            Context tables are read by row; any other text stands as one text.
        """
        builder = EvaluableQueryResultBuilder(entity_types).query(question).answer(answer)
        return builder.retrieval_strategy(method).add_context(context_text).build()

    def to_dict(self) -> dict[str, object]:
        """Return JSON-ready values."""
        return _RESULT.dump_python(self, mode="json")

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> "EvaluableQueryResult":
        """Read what :meth:`to_dict` gave."""
        return _RESULT.validate_python(values)

    def to_json(self) -> str:
        """Return :meth:`to_dict` as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "EvaluableQueryResult":
        """Read what :meth:`to_json` gave."""
        return cls.from_dict(json.loads(text))


_RESULT = TypeAdapter(EvaluableQueryResult)


class EvaluableQueryResultBuilder:
    """Puts an :class:`EvaluableQueryResult` together; every step returns the builder.

    Parameters
    ----------
    entity_types : mapping of str to str, optional
        Title -> type, for entities that are added without one.
    """

    def __init__(self, entity_types: Mapping[str, str] | None = None) -> None:
        self._types = entity_types or {}
        self._query: str | None = None
        self._answer: str | None = None
        self._metadata = ResultMetadata()
        self._given_entities: list[EvaluableEntity] = []
        self._given_relationships: list[EvaluableRelationship] = []
        self._given_chunks: list[str] = []
        self._entities: dict[str, EvaluableEntity] = {}
        self._ends: dict[str, None] = {}
        self._relationships: dict[EvaluableRelationship, None] = {}
        self._sources: dict[str, None] = {}
        self._reports: dict[str, None] = {}

    def query(self, text: str) -> "EvaluableQueryResultBuilder":
        """Set the question."""
        self._query = text
        return self

    def answer(self, text: str) -> "EvaluableQueryResultBuilder":
        """Set the answer; it may be empty."""
        self._answer = text
        return self

    def entities(self, items: Iterable[Any]) -> "EvaluableQueryResultBuilder":
        """Set the entities, as they are: names, mappings, or objects with name or title.

        Raises
        ------
        ValueError
            If one has no name.
        """
        self._given_entities = [_read_entity(item) for item in items]
        return self

    def relationships(self, items: Iterable[Any]) -> "EvaluableQueryResultBuilder":
        """Set the relationships, as they are: mappings or objects with source and target.

        Raises
        ------
        ValueError
            If one has no source or target.
        """
        self._given_relationships = [_read_relationship(item) for item in items]
        return self

    def chunks(self, items: Iterable[Any]) -> "EvaluableQueryResultBuilder":
        """Set the texts, as they are: texts, mappings, or objects with text or content.

        Raises
        ------
        ValueError
            If one has no text, or they are one text and not a list.
        """
        if isinstance(items, str):
            # It would be taken letter by letter.
            msg = "chunks must be a list of texts, not one text"
            raise ValueError(msg)
        self._given_chunks = [
            item if isinstance(item, str) else _needed(item, "a chunk", "text", "content")
            for item in items
        ]
        return self

    def retrieval_strategy(self, name: str) -> "EvaluableQueryResultBuilder":
        """Set the method's name."""
        self._metadata = replace(self._metadata, retrieval_strategy=name)
        return self

    def processing_time_ms(self, milliseconds: int) -> "EvaluableQueryResultBuilder":
        """Set how long the method took."""
        self._metadata = replace(self._metadata, processing_time_ms=milliseconds)
        return self

    def custom_metadata(self, key: str, value: Any) -> "EvaluableQueryResultBuilder":
        """Add one more thing to the metadata."""
        custom = {**self._metadata.custom, key: value}
        self._metadata = replace(self._metadata, custom=custom)
        return self

    def add_entity(
        self, name: str, type: str = "", description: str = ""
    ) -> "EvaluableQueryResultBuilder":
        """Add an entity; a name that is already there keeps its first description."""
        known = self._types.get(name, "")
        self._entities.setdefault(name, EvaluableEntity(name, type or known, description))
        return self

    def add_relationship(
        self, source: str, target: str, description: str = ""
    ) -> "EvaluableQueryResultBuilder":
        """Add a relationship; its ends count as entities after those that were added."""
        self._relationships[EvaluableRelationship(source, target, description)] = None
        self._ends.update({source: None, target: None})
        return self

    def add_text(self, text: str) -> "EvaluableQueryResultBuilder":
        """Add a retrieved text, whole, freed of space around it; blank ones are left out."""
        if text.strip():
            self._sources[text.strip()] = None
        return self

    def add_context(self, context: Any) -> "EvaluableQueryResultBuilder":
        """Add a context as a model was shown it: a text, or a list or mapping of texts."""
        if isinstance(context, Mapping):
            context = cast("Mapping[str, Any]", context).values()
        elif isinstance(context, str):
            context = [context]
        for text in cast("Iterable[Any]", context or ()):
            if not isinstance(text, str):
                self.add_context(text)
            elif not self._add_tables(text):
                self.add_text(text)
        return self

    def add_context_data(self, data: Any) -> bool:
        """Add every row of the data frames in a search's ``context_data``.

        Returns
        -------
        bool
            Whether there was a data frame that could be read, even an empty one.
        """
        found = False
        for frame in _frames(data):
            found = self._add_frame(frame) or found
        return found

    def build(self) -> EvaluableQueryResult:
        """Return the result.

        Raises
        ------
        ValueError
            If the query or the answer was not set.
        """
        if self._query is None or self._answer is None:
            missing = "query" if self._query is None else "answer"
            msg = f"an evaluable result needs its {missing}"
            raise ValueError(msg)
        for end in self._ends:
            self.add_entity(end)
        named = {entity.name for entity in self._given_entities}
        added = [entity for name, entity in self._entities.items() if name not in named]
        entities = [*self._given_entities, *added]
        relationships = [*self._given_relationships, *self._relationships]
        chunks = [*self._given_chunks, *self._sources, *self._reports]
        counts = (len(entities), len(relationships), len(chunks))
        told = self._metadata
        metadata = ResultMetadata(
            *counts, told.retrieval_strategy, told.processing_time_ms, dict(told.custom)
        )
        return EvaluableQueryResult(
            self._query, self._answer, entities, relationships, chunks, metadata
        )

    def _add_tables(self, text: str) -> bool:
        records = read_context(text, ("|", ","))
        for record in records:
            if record.table == "Entities" and record.names:
                self.add_entity(record.names[0], description=record.text)
            elif record.table == "Relationships" and len(record.names) == 2:
                self.add_relationship(*record.names, record.text)
            elif record.table == "Reports":
                self._reports[record.text.strip()] = None
            elif record.table == "Sources":
                self.add_text(record.text)
        return bool(records)

    def _add_frame(self, frame: "pd.DataFrame") -> bool:
        columns = {str(column) for column in frame.columns}
        rows = cast("list[dict[str, Any]]", frame.to_dict("records"))
        shown = [row for row in rows if row.get("in_context", True)]
        # Columns tell the tables apart: not every search names them.
        if {"entity", "description"} <= columns and "object_id" not in columns:
            for row in shown:
                self.add_entity(str(row["entity"]), description=_text(row["description"]))
        elif {"source", "target", "description"} <= columns:
            for row in shown:
                ends = str(row["source"]), str(row["target"])
                self.add_relationship(*ends, _text(row["description"]))
        elif {"source", "target", "path_id"} <= columns:
            for row in shown:
                self._ends.update({str(row["source"]): None, str(row["target"]): None})
        elif "text" in columns:
            for row in shown:
                self.add_text(_text(row["text"]))
        elif "content" in columns:
            self._reports.update(dict.fromkeys(_text(row["content"]).strip() for row in shown))
        else:
            return False
        return True


def read_entity_types(entities: "pd.DataFrame") -> dict[str, str]:
    """Return title -> type from an index's entities table; the first of equal titles wins."""
    types: dict[str, str] = {}
    rows = cast("list[dict[str, Any]]", entities.to_dict("records"))
    for row in rows:
        types.setdefault(str(row["title"]), _text(row["type"]))
    return types


def _read_entity(item: object) -> EvaluableEntity:
    if isinstance(item, EvaluableEntity):
        return item
    name = item if isinstance(item, str) else _needed(item, "an entity", "name", "title")
    return EvaluableEntity(
        name, _field(item, *_TYPE), _field(item, "description"), _confidence(item)
    )


def _read_relationship(item: object) -> EvaluableRelationship:
    if isinstance(item, EvaluableRelationship):
        return item
    source, target = (_needed(item, "a relationship", end) for end in ("source", "target"))
    description, kind = _field(item, "description"), _field(item, *_TYPE)
    return EvaluableRelationship(source, target, description, kind, _confidence(item))


def _look(item: object, *names: str) -> object:
    """Return the first of the fields that is there; None without one."""
    for name in names:
        if isinstance(item, Mapping):
            value = cast("Mapping[str, object]", item).get(name)
        else:
            value = getattr(item, name, None)
        if value is not None and not callable(value):  # a text has a method "title"
            return value
    return None


def _needed(item: object, what: str, *names: str) -> str:
    value = _look(item, *names)
    if value is None:
        msg = f"{what} needs its {' or '.join(names)}, which {item!r} has not"
        raise ValueError(msg)
    return str(value)


def _field(item: object, *names: str) -> str:
    return _text(_look(item, *names))


def _confidence(item: object) -> float | None:
    value = _look(item, "confidence")
    if value is None or value != value:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        msg = f"a confidence is a number from 0 to 1, not {value!r}"
        raise ValueError(msg)
    return float(value)


def _frames(data: Any) -> Iterator["pd.DataFrame"]:
    if hasattr(data, "to_dict") and hasattr(data, "columns"):
        yield data
    elif isinstance(data, Mapping):
        for part in cast("Mapping[Any, Any]", data).values():
            yield from _frames(part)
    elif isinstance(data, Sequence) and not isinstance(data, str):
        for part in cast("Sequence[Any]", data):
            yield from _frames(part)


def _text(value: Any) -> str:
    """Return a cell as text; a missing one (None or NaN) as an empty text."""
    return "" if value is None or value != value else str(value)
