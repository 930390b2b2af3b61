"""Reads one built index for the evaluation: evidence, entities, relationships, ids."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.metrics.entities import Extraction, FoldedNames, NameRule, fold_name
from graphrag.eval.metrics.quote_matching import Evidence, NamedText, SourceIndex, phrase_key
from graphrag.query.index.header import IndexHeader, index_languages
from graphrag.query.index.numbered_rows import Ids, NumberedRows
from graphrag.query.index.tables import IndexTables, open_tables, rows_of
from graphrag.text.languages import Languages, find_languages, main_language, sample
from graphrag.text.stems import ENGLISH

if TYPE_CHECKING:
    import pandas as pd

_TABLES = ("documents", "text_units", "entities", "relationships")
_CITED = {
    "sources": ("text_units", "id"),
    "relationships": ("relationships", "id"),
    "entities": ("entities", "title"),
}
"""Name of a table in citations -> its name in storage, and the column that its rows are called
by."""


@dataclass(frozen=True, slots=True)
class StoredEntity:
    """An entity as the index stores it; answers cite its ``short_id``."""

    title: str
    short_id: str
    text_unit_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoredEdge:
    """A relationship as the index stores it; ``source`` and ``target`` are titles of entities."""

    source: str
    target: str
    short_id: str
    text_unit_ids: tuple[str, ...]


class IndexGraph:
    """Finds entities by name and by text unit; a node is an entity's row number.

    - ``table``: an Arrow table with ``title`` and ``text_unit_ids``; None: there are no entities.
    - ``read_ends``: returns the (source, target) titles of the relationships.
    - ``find_languages``: returns the languages in which names are looked up.
    - ``language``: the language of most texts.
    """

    def __init__(
        self,
        table: Any,
        read_ends: Callable[[], Iterable[tuple[str, str]]],
        find_languages: Callable[[], Languages],
        language: str,
    ) -> None:
        self._find_languages, self._language = find_languages, language
        self._table, self._read_ends = table, read_ends
        self._titles: list[str] = []
        if table is not None:
            self._titles = [title or "" for title in table.column("title").to_pylist()]

    @cached_property
    def linked(self) -> set[int]:
        """The nodes that have a relationship."""
        node_of = {title: node for node, title in enumerate(self._titles)}
        return {
            node_of[end]
            for source, target in self._read_ends()
            if source in node_of and target in node_of
            for end in (source, target)
        }

    @cached_property
    def _named(self) -> Mapping[str, set[int]]:
        nodes: dict[str, set[int]] = defaultdict(set)
        for node, title in enumerate(self._titles):
            nodes[fold_name(title)].add(node)
        return nodes

    @cached_property
    def _names(self) -> FoldedNames:
        return FoldedNames(self._named, self._find_languages())

    @cached_property
    def _in_unit(self) -> Mapping[str, npt.NDArray[np.int64]]:
        if self._table is None:
            return {}
        lists = self._table.column("text_unit_ids").combine_chunks()
        counts = [0 if n is None else n for n in lists.value_lengths().to_pylist()]
        ids = lists.flatten()
        coded = ids if hasattr(ids, "dictionary") else ids.dictionary_encode()
        codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        order = np.argsort(codes, kind="stable")[np.count_nonzero(codes < 0) :]
        nodes = np.repeat(np.arange(len(counts)), counts)[order]
        names: list[object] = coded.dictionary.to_pylist()
        ends = np.searchsorted(codes[order], np.arange(len(names)), "right")
        return {str(name): part for name, part in zip(names, np.split(nodes, ends), strict=False)}

    def named(self, name: str) -> set[int]:
        """Return the nodes with a name, compared as in :class:`FoldedNames`."""
        keys = self._names.find(fold_name(name))
        return set[int]().union(*(self._named[key] for key in keys))

    def taken_from(self, unit_ids: Iterable[str]) -> set[int]:
        """Return the nodes that were extracted from one of the text units."""
        nodes = (self._in_unit[unit].tolist() for unit in unit_ids if unit in self._in_unit)
        return set[int]().union(*nodes)

    def named_in(self, text: str, nodes: Iterable[int]) -> set[int]:
        """Return those of the given nodes whose titles occur in a text."""
        words, titles = phrase_key(text), self._titles
        named = () if self._language == ENGLISH else NamedText(text, self._language)
        return {
            node
            for node in nodes
            if (key := phrase_key(titles[node])) and (key in words or titles[node] in named)
        }


class IndexView:
    """Reads the tables of one index, each at most once and when it is first needed.

    Only the needed columns are read and kept, if the storage can read single columns. A table that
    is missing or lacks a needed column counts as empty. ``read_languages`` returns the languages in
    which the index is searched; None: they are detected in its texts.
    """

    def __init__(
        self, tables: IndexTables, read_languages: Callable[[], Languages] | None = None
    ) -> None:
        self._tables, self._read_languages = tables, read_languages
        self._evidence: dict[Hashable, tuple[Evidence, ...]] = {}
        self._rules: dict[Hashable, NameRule] = {}

    @classmethod
    async def open(cls, header: IndexHeader, tables: Sequence[str] = _TABLES) -> "IndexView":
        """Open an index; ``tables`` names the tables that will be needed."""
        opened = await open_tables(header.config, tables)
        return cls(opened, partial(index_languages, header.config, opened))

    @property
    def has_text(self) -> bool:
        """Whether the index has text units; without them nothing can be measured."""
        return self._units is not None

    @cached_property
    def sources(self) -> SourceIndex:
        """Finds where quotes and documents occur; empty without text units."""
        documents = self._tables.columns("documents", ("id", "title", "text"))
        return SourceIndex(self._units, documents)

    @cached_property
    def texts(self) -> dict[str, str]:
        """Id of a text unit -> its text."""
        return dict(rows_of(self._units, "id", "text"))

    @cached_property
    def language(self) -> str:
        """The language of most texts of the index."""
        texts = [*self.texts.values()]
        return main_language(texts[place] for place in sample(len(texts)))

    @cached_property
    def languages(self) -> Languages:
        """The languages of the texts, in which names are compared."""
        if self._read_languages is not None:
            return self._read_languages()
        return find_languages(list(self.texts.values()))

    @cached_property
    def entities(self) -> tuple[StoredEntity, ...]:
        """The entities, in the table's order."""
        return tuple(StoredEntity(*row) for row in self._rows("entities", "title"))

    @cached_property
    def entity_names(self) -> FoldedNames:
        """The titles of the entities, folded once for all comparisons."""
        titles = rows_of(self._tables.columns("entities", ("title",)), "title")
        return FoldedNames((title for (title,) in titles), self.languages)

    def name_rule(self, aliases: Mapping[str, str]) -> NameRule:
        """Return the rule by which names are compared, made once for each set of ``aliases``."""
        key = frozenset(aliases.items())
        if key not in self._rules:
            self._rules[key] = NameRule(aliases, self.languages)
        return self._rules[key]

    @cached_property
    def edges(self) -> dict[str, StoredEdge]:
        """Id of a relationship -> the relationship."""
        rows = self._rows("relationships", "id", "source", "target")
        return {edge: StoredEdge(*row) for edge, *row in rows}

    @cached_property
    def graph(self) -> IndexGraph:
        """Finds the entities by name and by text unit."""
        table = self._tables.arrow("entities", ("title", "text_unit_ids"))
        return IndexGraph(table, self._ends, lambda: self.languages, self.language)

    def _ends(self) -> Iterable[tuple[str, str]]:
        """Return the (source, target) titles of the relationships."""
        ends = ("source", "target")
        return rows_of(self._tables.columns("relationships", ends), *ends)

    @cached_property
    def cited(self) -> Mapping[str, Ids]:
        """Name of a table in citations -> its ids by human_readable_id; for entities, titles.

        The tables are "sources", "relationships" and "entities"; each is read when first looked up.
        """
        return {
            cited: Ids(lambda name=name, column=column: self._numbered(name, column), column)
            for cited, (name, column) in _CITED.items()
        }

    def _numbered(self, name: str, column: str) -> NumberedRows:
        return NumberedRows(self._tables, name, (column,))

    def token_counts(self) -> list[int] | None:
        """Return the number of tokens of each text unit; None if the index did not count them.

        The texts themselves, which may be large, are not read.
        """
        table: Any = self._tables.columns("text_units", ("n_tokens",))
        if table is None or table["n_tokens"].isna().any():
            return None
        return table["n_tokens"].astype(int).tolist()

    def look_for(self, samples: Iterable[Sample]) -> None:
        """Search the expected sources of many samples at once, for :meth:`evidence_of`."""
        self.sources.look_for(samples)

    def evidence_of(self, sample: Sample) -> tuple[Evidence, ...]:
        """Return :meth:`SourceIndex.evidence_of`, looked up once for all methods' responses."""
        key = (sample.evidence, sample.expected_sources)
        if key not in self._evidence:
            self._evidence[key] = self.sources.evidence_of(sample)
        return self._evidence[key]

    def extraction(self, text: str | None = None, document: str | None = None) -> Extraction:
        """Return the entities and relationships of a passage, of a document, or of the whole index.

        ``text``: only the text units that contain this passage count. ``document``: only those of
        the document with this title or id count. Raises ValueError if no text unit contains the
        passage or there is no such document.
        """
        unit_ids: frozenset[str] | None = None
        if text is not None:
            unit_ids = self.sources.units_with(text)
            if not unit_ids:
                raise ValueError("no text unit of the index contains the passage")
        if document is not None:
            units = self.sources.units_of(document)
            if units is None:
                raise ValueError(f"the index has no document {document!r}")
            unit_ids = units if unit_ids is None else unit_ids & units

        def is_within(stored: StoredEntity | StoredEdge) -> bool:
            return unit_ids is None or not unit_ids.isdisjoint(stored.text_unit_ids)

        return Extraction(
            entities=tuple(entity.title for entity in self.entities if is_within(entity)),
            relationships=tuple((e.source, e.target) for e in self.edges.values() if is_within(e)),
            languages=self.languages,
        )

    @cached_property
    def _units(self) -> "pd.DataFrame | None":
        return self._tables.columns(
            "text_units", ("id", "human_readable_id", "text", "document_id")
        )

    def _rows(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        """Return rows of a table: the columns, then human_readable_id and text_unit_ids."""
        all_columns = (*columns, "human_readable_id", "text_unit_ids")
        return rows_of(self._tables.columns(name, all_columns), *all_columns)


async def read_index_views(headers: Mapping[str, IndexHeader]) -> dict[str, IndexView]:
    """Return key -> view of each index that has text units; the others can't be measured."""
    views = {key: await IndexView.open(header) for key, header in headers.items()}
    return {key: view for key, view in views.items() if view.has_text}
