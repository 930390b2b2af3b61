"""What a rubric judge looks at: a question, its answer, and what the method retrieved for it."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

from graphrag.text.tables import read_context

if TYPE_CHECKING:
    import pandas as pd

    from graphrag.query.structured_search.base import SearchResult


@dataclass(frozen=True, slots=True)
class EvaluableEntity:
    """A retrieved entity; ``type`` and ``description`` are empty when unknown."""

    name: str
    type: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class EvaluableRelationship:
    """A retrieved relationship, in the direction in which it is stored."""

    source: str
    target: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class EvaluableQueryResult:
    """One answered question and what was retrieved for it, whichever method it was.

    Attributes
    ----------
    question, answer : str
    entities : tuple of EvaluableEntity
        In the method's order, each name once.
    relationships : tuple of EvaluableRelationship
        In the method's order, each once.
    texts : tuple of str
        Whole texts, best first: sources, then community reports.
    method : str
        Never shown to a judge.
    """

    question: str
    answer: str
    entities: tuple[EvaluableEntity, ...] = ()
    relationships: tuple[EvaluableRelationship, ...] = ()
    texts: tuple[str, ...] = ()
    method: str = ""

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
        builder = EvaluableQueryResultBuilder(entity_types).question(question).method(method)
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
        builder = EvaluableQueryResultBuilder(entity_types).question(question).answer(answer)
        return builder.method(method).add_context(context_text).build()

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {**asdict(self), "texts": list(self.texts)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "EvaluableQueryResult":
        """Read what :meth:`to_dict` gave."""
        return cls(
            question=values["question"],
            answer=values["answer"],
            entities=tuple(EvaluableEntity(**entity) for entity in values["entities"]),
            relationships=tuple(EvaluableRelationship(**edge) for edge in values["relationships"]),
            texts=tuple(values["texts"]),
            method=values["method"],
        )


class EvaluableQueryResultBuilder:
    """Puts an :class:`EvaluableQueryResult` together; every step returns the builder.

    Parameters
    ----------
    entity_types : mapping of str to str, optional
        Title -> type, for entities that are added without one.
    """

    def __init__(self, entity_types: Mapping[str, str] | None = None) -> None:
        self._types = entity_types or {}
        self._question: str | None = None
        self._answer: str | None = None
        self._method = ""
        self._entities: dict[str, EvaluableEntity] = {}
        self._ends: dict[str, None] = {}
        self._relationships: dict[EvaluableRelationship, None] = {}
        self._sources: dict[str, None] = {}
        self._reports: dict[str, None] = {}

    def question(self, text: str) -> "EvaluableQueryResultBuilder":
        """Set the question."""
        self._question = text
        return self

    def answer(self, text: str) -> "EvaluableQueryResultBuilder":
        """Set the answer; it may be empty."""
        self._answer = text
        return self

    def method(self, name: str) -> "EvaluableQueryResultBuilder":
        """Set the method's name."""
        self._method = name
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
            If the question or the answer was not set.
        """
        if self._question is None or self._answer is None:
            missing = "question" if self._question is None else "answer"
            msg = f"an evaluable result needs its {missing}"
            raise ValueError(msg)
        for end in self._ends:
            self.add_entity(end)
        return EvaluableQueryResult(
            question=self._question,
            answer=self._answer,
            entities=tuple(self._entities.values()),
            relationships=tuple(self._relationships),
            texts=(*self._sources, *self._reports),
            method=self._method,
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
