"""Records held in memory, read as the tables of an index are."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, cast

import pandas as pd

from graphrag.eval.validation.metadata import ENRICHMENT
from graphrag.eval.validation.tables import Table, arrow, hold_table

_TEXT = ("text", "content")
_NAME = ("name", "title")
_TYPE = ("type", "entity_type", "relation_type")
_MENTIONS = ("mentions", "text_unit_ids")
_DOCUMENT = "document"
_ABSENT: Any = object()
"""Stands for a field that a record does not have."""


@dataclass(frozen=True, slots=True)
class Records:
    """The records of one kind.

    Attributes
    ----------
    kind : str
        What they are called in errors: chunks, entities, ...
    rows : list
        Texts, mappings or objects.
    is_table : bool
        Whether they are the rows of a data frame: a column that it lacks is not missing in rows.
    """

    kind: str
    rows: list[Any]
    is_table: bool = False

    def has(self, *names: str) -> bool:
        """Say whether some record has one of the fields."""
        return any(look(row, *names) is not _ABSENT for row in self.rows)

    def given(self, name: str) -> list[str | None]:
        """Return a field of each record as text, NaN as it is; None where there is none."""
        values = (look(row, name) for row in self.rows)
        return [None if value is _ABSENT or value is None else str(value) for value in values]

    def column(self, read: Callable[[Any], Any], *names: str) -> list[Any]:
        """Return the first field that is there of each record, None without one."""
        values = (look(row, *names) for row in self.rows)
        return [None if value is _ABSENT or is_missing(value) else read(value) for value in values]


def read_records(given: Any, kind: str) -> Records:
    """Read a list, or any other iterable, of records, or the rows of a data frame.

    Raises
    ------
    ValueError
        If it is one text or mapping, or can't be gone through.
    """
    if isinstance(given, pd.DataFrame):
        cells = given.astype(object)
        filled: Any = cells.where(cells.notna(), None)
        return Records(kind, filled.to_dict("records"), is_table=True)
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        found = type(cast("object", given)).__name__
        msg = f"{kind} must be a list of records or a data frame, not {found}"
        raise ValueError(msg)
    return Records(kind, list(cast("Iterable[Any]", given)))


def document_table(document: Any) -> tuple[Table, list[str]]:
    """Return the table of one document, or of a data frame's, and the documents' ids.

    Raises
    ------
    ValueError
        If a document has no text.
    """
    is_table = isinstance(document, pd.DataFrame)
    records = read_records(document if is_table else [document], "document")
    ids = [each or _DOCUMENT for each in records.column(str, "id")]
    columns = {"id": ids, "text": _texts(records)}
    return _table("documents", len(ids), columns), ids


def chunk_table(chunks: Any, document_ids: Sequence[str]) -> Table:
    """Return the table of the chunks of one document; of several, where the chunks name them.

    Raises
    ------
    ValueError
        If a chunk has no text, or the chunks are no list.
    """
    records = read_records(chunks, "chunks")
    columns: dict[str, list[Any]] = {"text": _texts(records)}
    if records.has("id"):
        columns["id"] = records.column(str, "id")
    if len(document_ids) == 1:
        columns["document_id"] = [document_ids[0]] * len(records.rows)
    elif records.has("document_id") or not records.rows:
        columns["document_id"] = records.column(str, "document_id")
    for kind in ENRICHMENT:
        values = [_first_text(row, kind) for row in records.rows]
        if not records.is_table or records.has(kind, "metadata"):
            columns[kind] = values
    return _table("text_units", len(records.rows), columns)


def chunk_ids(chunks: Any) -> Table:
    """Return the table of the ids of chunks, which has no ids if none has one."""
    records = read_records(chunks, "chunks")
    columns: dict[str, list[Any]] = {}
    if records.has("id") or not records.rows:
        columns["id"] = records.column(str, "id")
    return _table("text_units", len(records.rows), columns)


def entity_table(entities: Any) -> Table:
    """Return the table of entities.

    Raises
    ------
    ValueError
        If they are no list.
    """
    records = read_records(entities, "entities")
    columns = _described(records)
    if records.has(*_NAME):
        columns["title"] = records.column(str, *_NAME)
    if records.has(*_TYPE) or not records.is_table:
        columns["type"] = records.column(str, *_TYPE)
    if records.has(*_MENTIONS):
        lists = records.column(_chunks_of, *_MENTIONS)
        columns["text_unit_ids"] = [each or [] for each in lists]
    return _table("entities", len(records.rows), columns)


def graph_tables(entities: Any, relationships: Any) -> tuple[Table, Table]:
    """Return the tables of entities and relationships; ends that are ids are read as names.

    Raises
    ------
    ValueError
        If one of them is no list.
    """
    found, edges = read_records(entities, "entities"), read_records(relationships, "relationships")
    ids = found.column(str, "id")
    names = found.column(str, *_NAME)
    titles = [one if name is None else name for one, name in zip(ids, names, strict=True)]
    by_id = {one: title for one, title in zip(ids, titles, strict=True) if one is not None}
    # A text that is both is a name: that is what the tables of an index hold.
    by_id.update({title: title for title in titles if title is not None})
    columns = _described(edges)
    for end in ("source", "target"):
        values = edges.column(str, end)
        columns[end] = [None if value is None else by_id.get(value, value) for value in values]
    kinds = (*_TYPE, "description")
    if edges.has(*kinds) or not edges.is_table:
        columns["type"] = edges.column(str, *kinds)
    return (
        _table("entities", len(titles), {"title": titles}),
        _table("relationships", len(edges.rows), columns),
    )


def look(record: Any, *names: str) -> Any:
    """Return the first of the fields that a mapping or an object has."""
    for name in names:
        if isinstance(record, Mapping):
            found = cast("Mapping[str, Any]", record).get(name, _ABSENT)
        else:
            found = getattr(record, name, _ABSENT)
        if found is not _ABSENT:
            return found
    return _ABSENT


def is_missing(value: Any) -> bool:
    """Say whether a value stands for none: None, or the NaN that pandas puts in its place."""
    return value is None or (isinstance(value, float) and isnan(value))


def _described(records: Records) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    for name in ("id", "confidence"):
        if records.has(name):
            columns[name] = records.column(str, name)
    if not records.is_table and "confidence" in columns:
        # A NaN that a client gives is a confidence, and not a valid one.
        columns["confidence"] = records.given("confidence")
    return columns


def _texts(records: Records) -> list[Any]:
    texts = [row if isinstance(row, str) else look(row, *_TEXT) for row in records.rows]
    for number, text in enumerate(texts, start=1):
        if text is _ABSENT:
            msg = f"{records.kind} {number} has neither text nor content"
            raise ValueError(msg)
    return [None if is_missing(text) else str(text) for text in texts]


def _first_text(record: Any, name: str) -> str | None:
    """Return a chunk's heading, keywords or summary as text, its own or that of its metadata."""
    for holder in (record, look(record, "metadata")):
        if isinstance(holder, str) or holder is _ABSENT or holder is None:
            continue
        found = look(holder, name)
        if found is _ABSENT or is_missing(found):
            continue
        if isinstance(found, Iterable) and not isinstance(found, str):
            found = " ".join(map(str, cast("Iterable[Any]", found)))
        text = str(found)
        if text.strip():
            return text
    return None


def _chunks_of(mentions: Any) -> list[str]:
    if isinstance(mentions, str) or not isinstance(mentions, Iterable):
        mentions = [mentions]
    items = cast("Iterable[Any]", mentions)
    named = ((item, look(item, "chunk_id")) for item in items)
    return [str(item if chunk is _ABSENT else chunk) for item, chunk in named]


def _table(name: str, n_rows: int, columns: Mapping[str, list[Any]]) -> Table:
    text, texts = arrow.large_string(), arrow.large_list(arrow.large_string())
    arrays = {
        column: arrow.array(values, texts if column.endswith("_ids") else text)
        for column, values in columns.items()
    }
    return hold_table(name, arrow.table(arrays), n_rows)
