"""Collects what the rubric judge reads: a question, its answer and the retrieved material."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Self, cast

from graphrag.text.context_tables import read_context
from graphrag.text.json_records import Stored, fields_of

if TYPE_CHECKING:
    import pandas as pd

    from graphrag.query.structured_search.base import SearchResult


_TYPE = ("type", "entity_type", "relation_type")
# Table, columns of names, column of text. The columns identify a table: not every search names it.
_TABLES = (
    ("Entities", ("entity",), "description"),
    ("Relationships", ("source", "target"), "description"),
    ("Ends", ("source", "target"), "path_id"),
    ("Sources", (), "text"),
    ("Reports", (), "content"),
)


@dataclass(frozen=True, slots=True)
class EvaluableEntity:
    """A retrieved entity; ``type`` and ``description`` are empty if unknown.

    ``confidence`` is in [0, 1]; None if unknown, as for every entity that GraphRAG extracts.
    """

    name: str
    type: str = ""
    description: str = ""
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class EvaluableRelationship:
    """A retrieved relationship, in the direction in which it is stored.

    ``confidence`` is in [0, 1]; None if unknown.
    """

    source: str
    target: str
    description: str = ""
    type: str = ""
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class ResultMetadata:
    """Facts about a result other than its content; no judge sees them.

    The builder sets the counts to the lengths of the result's lists. ``retrieval_strategy`` is the
    method's name. ``processing_time_ms`` is None if not measured.
    """

    entities_count: int = 0
    relationships_count: int = 0
    chunks_count: int = 0
    retrieval_strategy: str = ""
    processing_time_ms: int | None = None
    custom: dict[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class EvaluableQueryResult(Stored):
    """One answered question and what any method retrieved for it, as the rubric judge reads it.

    Entities and relationships are in the method's order. ``context_chunks`` are full texts, best
    first: sources, then community reports.

    Examples
    --------
    >>> shown = EvaluableQueryResult(query="Who signed?", answer="The mayor",
    ...                              context_chunks=["The mayor signed."])
    >>> shown.to_dict()["answer"]
    'The mayor'
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
        """Make one from the result of any search.

        It reads the data frames in ``context_data``, at any depth (DRIFT nests them by follow-up
        question); without any, it reads ``context_text``. ``entity_types`` is title -> type, which
        no search shows; see :func:`read_entity_types`.
        """
        builder = EvaluableQueryResultBuilder(entity_types).query(question)
        builder.retrieval_strategy(method)
        response: object = result.response
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
        """Make one from a recorded response and the context as the model was shown it.

        Context tables are read row by row; any other text counts as one text.
        """
        builder = EvaluableQueryResultBuilder(entity_types).query(question).answer(answer)
        return builder.retrieval_strategy(method).add_context(context_text).build()

    def to_json(self) -> str:
        """Return :meth:`to_dict` as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "EvaluableQueryResult":
        """Read the JSON that :meth:`to_json` returned."""
        return cls.from_dict(json.loads(text))


class EvaluableQueryResultBuilder:
    """Builds an :class:`EvaluableQueryResult` step by step; every step returns the builder.

    Items that are set come first, as they are; items that are added follow, each once.
    ``entity_types``: title -> type, for entities that are added without a type.

    Examples
    --------
    >>> builder = EvaluableQueryResultBuilder().query(text="Who signed?").answer(text="The mayor")
    >>> builder.add_text(text="The mayor signed.").build().context_chunks
    ['The mayor signed.']
    """

    def __init__(self, entity_types: Mapping[str, str] | None = None) -> None:
        self._types = entity_types or {}
        self._query: str | None = None
        self._answer: str | None = None
        self._metadata = ResultMetadata()
        self._set_entities: list[EvaluableEntity] = []
        self._set_relationships: list[EvaluableRelationship] = []
        self._set_chunks: list[str] = []
        self._entities: dict[str, EvaluableEntity] = {}
        self._ends: dict[str, None] = {}
        self._relationships: dict[EvaluableRelationship, None] = {}
        self._sources: dict[str, None] = {}
        self._reports: dict[str, None] = {}

    def query(self, text: str) -> Self:
        """Set the question."""
        self._query = text
        return self

    def answer(self, text: str) -> Self:
        """Set the answer; it may be empty."""
        self._answer = text
        return self

    def entities(self, items: Iterable[object]) -> Self:
        """Set the entities: names, or mappings or objects with name or title.

        Raises ValueError for an item without either.
        """
        self._set_entities = [_read_entity(item) for item in items]
        return self

    def relationships(self, items: Iterable[object]) -> Self:
        """Set the relationships: mappings or objects with source and target.

        Raises ValueError for an item that lacks one of them.
        """
        self._set_relationships = [_read_relationship(item) for item in items]
        return self

    def chunks(self, items: Iterable[object]) -> Self:
        """Set the texts: texts, or mappings or objects with text or content.

        Raises ValueError for an item without either, and for a single text instead of a list.
        """
        if isinstance(items, str):
            # It would be taken letter by letter.
            raise ValueError("chunks must be a list of texts, not one text")
        self._set_chunks = [
            item if isinstance(item, str) else _read_required(item, "a chunk", "text", "content")
            for item in items
        ]
        return self

    def retrieval_strategy(self, name: str) -> Self:
        """Set the method's name."""
        self._metadata = replace(self._metadata, retrieval_strategy=name)
        return self

    def processing_time_ms(self, milliseconds: int) -> Self:
        """Set how many milliseconds the method took."""
        self._metadata = replace(self._metadata, processing_time_ms=milliseconds)
        return self

    def custom_metadata(self, key: str, value: object) -> Self:
        """Add one more key and value to the metadata."""
        self._metadata = replace(self._metadata, custom={**self._metadata.custom, key: value})
        return self

    def add_entity(self, name: str, type: str = "", description: str = "") -> Self:
        """Add an entity; a name that was added before keeps its first description."""
        earlier_type = self._types.get(name, "")
        self._entities.setdefault(
            name, EvaluableEntity(name=name, type=type or earlier_type, description=description)
        )
        return self

    def add_relationship(self, source: str, target: str, description: str = "") -> Self:
        """Add a relationship; its ends become entities, after those that were added by name."""
        self._relationships[
            EvaluableRelationship(source=source, target=target, description=description)
        ] = None
        self._ends.update({source: None, target: None})
        return self

    def add_text(self, text: str) -> Self:
        """Add a retrieved text without the white space around it; blank texts are left out."""
        if text.strip():
            self._sources[text.strip()] = None
        return self

    def add_context(self, context: object) -> Self:
        """Add a context as a model was shown it: a text, or a list or mapping of texts."""
        if isinstance(context, str):
            records = read_context(context, ("|", ","))
            for record in records:
                self._add_row(record.table, record.names, record.text)
            return self if records else self.add_text(context)
        for part in _parts(context):
            self.add_context(part)
        return self

    def add_context_data(self, data: object) -> bool:
        """Add the shown rows of every data frame in a search's ``context_data``.

        Returns whether there was a data frame that could be read, even an empty one.
        """
        if hasattr(data, "to_dict") and hasattr(data, "columns"):
            return self._add_frame(cast("pd.DataFrame", data))
        return sum(map(self.add_context_data, _parts(data))) > 0

    def build(self) -> EvaluableQueryResult:
        """Return the result; raises ValueError if the query or the answer was not set."""
        if self._query is None or self._answer is None:
            missing = "query" if self._query is None else "answer"
            raise ValueError(f"an evaluable result needs its {missing}")
        for end in self._ends:
            self.add_entity(end)
        names = {entity.name for entity in self._set_entities}
        added = [entity for name, entity in self._entities.items() if name not in names]
        entities = [*self._set_entities, *added]
        relationships = [*self._set_relationships, *self._relationships]
        chunks = [*self._set_chunks, *self._sources, *self._reports]
        metadata = replace(
            self._metadata,
            entities_count=len(entities),
            relationships_count=len(relationships),
            chunks_count=len(chunks),
        )
        return EvaluableQueryResult(
            query=self._query,
            answer=self._answer,
            retrieved_entities=entities,
            retrieved_relationships=relationships,
            context_chunks=chunks,
            metadata=metadata,
        )

    def _add_frame(self, frame: "pd.DataFrame") -> bool:
        columns = {str(column) for column in frame.columns}
        fitting = [entry for entry in _TABLES if {*entry[1], entry[2]} <= columns]
        if not fitting or "object_id" in columns:  # claims
            return False
        table, names, text = fitting[0]
        for row in cast("list[dict[str, object]]", frame.to_dict("records")):
            if row.get("in_context", True):
                self._add_row(table, tuple(_text(row[name]) for name in names), _text(row[text]))
        return True

    def _add_row(self, table: str, names: tuple[str, ...], text: str) -> None:
        if table == "Entities" and names:
            self.add_entity(names[0], description=text)
        elif table == "Relationships" and len(names) == 2:
            self.add_relationship(*names, text)
        elif table == "Ends":
            self._ends.update(dict.fromkeys(names))
        elif table == "Reports":
            self._reports[text.strip()] = None
        elif table == "Sources":
            self.add_text(text)


def read_entity_types(entities: "pd.DataFrame") -> dict[str, str]:
    """Return title -> type from an index's entities table; the first of equal titles counts.

    Examples
    --------
    >>> read_entity_types(entities=pd.DataFrame({"title": ["Ann"], "type": ["person"]}))
    {'Ann': 'person'}
    """
    rows = cast("list[dict[str, object]]", entities.to_dict("records"))
    return {str(row["title"]): _text(row["type"]) for row in reversed(rows)}


def _read_entity(item: object) -> EvaluableEntity:
    if isinstance(item, EvaluableEntity):
        return item
    name = item if isinstance(item, str) else _read_required(item, "an entity", "name", "title")
    return EvaluableEntity(
        name=name,
        type=_read_text(item, *_TYPE),
        description=_read_text(item, "description"),
        confidence=_confidence(item),
    )


def _read_relationship(item: object) -> EvaluableRelationship:
    if isinstance(item, EvaluableRelationship):
        return item
    source, target = (_read_required(item, "a relationship", end) for end in ("source", "target"))
    description, kind = _read_text(item, "description"), _read_text(item, *_TYPE)
    return EvaluableRelationship(
        source=source,
        target=target,
        description=description,
        type=kind,
        confidence=_confidence(item),
    )


def _read_field(item: object, *names: str) -> object:
    """Return the first of the named fields that an item has; None if it has none."""
    values = fields_of(item, *names)
    return next((v for v in values if v is not None and not callable(v)), None)  # "".title


def _read_required(item: object, kind: str, *names: str) -> str:
    value = _read_field(item, *names)
    if value is None:
        raise ValueError(f"{kind} needs its {' or '.join(names)}, which {item!r} has not")
    return str(value)


def _read_text(item: object, *names: str) -> str:
    return _text(_read_field(item, *names))


def _confidence(item: object) -> float | None:
    value = _read_field(item, "confidence")
    if value is None or value != value:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError(f"a confidence is a number from 0 to 1, not {value!r}")
    return float(value)


def _parts(data: object) -> Iterable[object]:
    if isinstance(data, Mapping):
        return cast("Mapping[str, object]", data).values()
    is_list = isinstance(data, Sequence) and not isinstance(data, str)
    return cast("Sequence[object]", data) if is_list else ()


def _text(value: object) -> str:
    """Return a cell as text; a missing one (None or NaN) as an empty text."""
    return "" if value is None or value != value else str(value)
