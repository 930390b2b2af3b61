"""Opens, caches and looks up the graph of an index and its texts, as memory-mapped files."""

import hashlib
import logging
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from graphrag.query.graph.build import GraphArrays, build_arrays
from graphrag.query.graph.names import NameIndex, NameMatches, TrunkIndex
from graphrag.query.index.table_forms import (
    ENTITIES,
    RELATIONSHIPS,
    Batch,
    Source,
    TableForm,
    arrow,
)
from graphrag.query.index.text_languages import FOLDER
from graphrag.query.index.texts import IndexTexts, open_texts
from graphrag.query.passages import Passage, Passages
from graphrag.text.folder_cache import KeptFolder, map_arrays, map_table, save_arrays
from graphrag.text.inflection import Inflection
from graphrag.text.languages import Languages
from graphrag.text.ranking import WordIndex, best_of
from graphrag.text.tokenize import word_key

_log = logging.getLogger(__name__)

# Raise this number whenever the format of a graph's files changes.
_FORMAT = 15
_READ = ("entities", "relationships", "documents")
_TABLES = ("entities", "relationships", "unit_documents", "cited_ids")
_PROBED_BYTES = 1 << 16
_N_CACHED_ROWS = 4096

_Table: TypeAlias = Any
"""A pyarrow.Table."""
_Column: TypeAlias = Any
"""A pyarrow.ChunkedArray."""
_Row = TypeVar("_Row", "EntityRow", "RelationshipRow")


@dataclass(frozen=True, slots=True)
class EntityRow:
    """One row of the entities table; answers cite its human_readable_id."""

    id: str
    human_readable_id: int
    title: str
    description: str
    text_unit_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RelationshipRow:
    """One row of the relationships table, in its stored direction."""

    human_readable_id: int
    source: str
    target: str
    description: str
    weight: float
    text_unit_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TextUnit:
    """One text unit; ``document`` is the name of its document."""

    id: str
    human_readable_id: int
    document: str
    text: str


class GraphStore:
    """The graph of an index: entities are nodes 0..n-1, relationships are edges walked both ways.

    :func:`build_in_memory` builds one; :func:`open_graph` maps one from files. Self-loops and
    relationships with an end that is no entity are never walked, but their rows can be read.

    ``tables`` are ``entities``, ``relationships`` and ``cited_ids``, see ``build_arrays``.
    """

    def __init__(
        self, arrays: GraphArrays, tables: Mapping[str, _Table], languages: Languages
    ) -> None:
        self.arrays = arrays
        longest, longest_trunk = arrays.longest_key.tolist()
        self._names = NameIndex(arrays.key_hashes, arrays.key_names, longest)
        self._trunks = TrunkIndex(arrays.trunk_hashes, arrays.trunk_names, longest_trunk)
        self.languages, self._inflection = languages, Inflection(languages)
        self._entities, relationships = tables["entities"], tables["relationships"]
        cited = tables["cited_ids"].column("id")
        self._titles = self._entities.column("title")
        self.n_entities: int = self._entities.num_rows
        self.n_relationships: int = relationships.num_rows
        # A search reads a row several times: to score, rank and render it, and for its texts.
        cache = lru_cache(_N_CACHED_ROWS)
        self.entity_row: Callable[[int], EntityRow] = cache(
            partial(_read_row, EntityRow, ENTITIES, self._entities, cited)
        )
        """Reads a row of the entities table; a missing human_readable_id is the row number."""
        self.relationship_row: Callable[[int], RelationshipRow] = cache(
            partial(_read_row, RelationshipRow, RELATIONSHIPS, relationships, cited)
        )
        """Reads a row of the relationships table by its row number."""
        self._counting = Lock()

    def title(self, node: int) -> str:
        """Return an entity's title."""
        return self._titles[node].as_py()

    def nodes_named_in(self, text: str) -> list[int]:
        """Return the entities whose full title is in a text, rarest first.

        Case, width, punctuation and the endings of words don't matter. A title inside a longer
        title that is also there does not count: "OZ" in "WIZARD OF OZ".
        """
        return self._names_of(text, self._names.find([text], self.n_entities))

    def names_in(self, text: str) -> list[int]:
        """Return the names (entities and document titles) in a text, like :meth:`nodes_named_in`.

        With other endings only entities are found, not titles of documents.
        """
        return self._names_of(text, self._names.find([text]))

    def _names_of(self, text: str, matches: NameMatches) -> list[int]:
        """Return the names found as they are and, in the remaining words, inflected names."""
        (words,) = matches.words
        names = matches.names.tolist()
        spans: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        for begin, size, near in self._trunks.near(words, self._inflection.trunks):
            spans[begin, size] += near.tolist()
        for (begin, size), near in spans.items():
            span = slice(begin, begin + size)
            if matches.taken[span].any():
                continue
            if size == 1 and not self._inflection.may_be_name(words[begin], text):
                continue
            if nearest := self._nearest(dict.fromkeys(near), words[span]):
                matches.taken[span] = True
                names += nearest
        return self._rarest_first(names)

    def _nearest(self, nodes: Iterable[int], words: Sequence[str]) -> list[int]:
        """Return the entities whose titles the words are forms of, those that differ least."""
        titles = {node: word_key(self.title(node)).split() for node in nodes}
        return self._inflection.nearest(titles, words)

    def with_forms(self, nodes: Sequence[int]) -> list[int]:
        """Return entities and those with other forms of their names, rarest first.

        See ``form_names`` of :class:`GraphArrays`.
        """
        names, others = self.arrays.form_names, self.arrays.form_others
        ends = (np.searchsorted(names, nodes, side=side) for side in ("left", "right"))
        forms = [others[begin:end] for begin, end in zip(*ends, strict=True)]
        return self._rarest_first([*nodes, *(node for part in forms for node in part.tolist())])

    def _rarest_first(self, names: Iterable[int]) -> list[int]:
        return sorted(dict.fromkeys(names), key=self.frequency)

    def frequency(self, name: int) -> int:
        """Return the number (>= 1) of text units that contain a name, also inside a longer one."""
        return max(1, int(self.arrays.name_standing[name]))

    def rank_by_words(self, question: str, k: int) -> list[int]:
        """Return the ``k`` best entities by BM25 over titles and descriptions, best first.

        The first call counts the words of all entities; its time and memory grow with their text.
        """
        with self._counting:  # of searches that begin together one counts, the others wait
            nodes, words = self._words
        return [nodes[number] for number, _ in words.best(question, k)]

    @cached_property
    def _words(self) -> tuple[list[int], WordIndex]:
        """The nodes by title and description, so that ties have a fixed order; their words."""
        details = self._entities.column("description").to_pylist()
        rows = sorted(zip(self._titles.to_pylist(), details, range(self.n_entities), strict=True))
        texts = [f"{title} {description}" for title, description, _ in rows]
        return [node for _, _, node in rows], WordIndex.of(texts, self.languages)

    def neighbours(self, node: int, cap: int) -> list[tuple[int, int]]:
        """Return node and edge row of the ``cap`` heaviest edges of a node, both ways, in O(cap).

        Edge rows are as in :class:`GraphArrays`: counted from 1, negative against the stored
        direction.
        """
        arrays = self.arrays
        begin = int(arrays.edge_ptr[node])
        span = slice(begin, min(int(arrays.edge_ptr[node + 1]), begin + cap))
        nodes, rows = arrays.edge_nodes[span].tolist(), arrays.edge_rows[span].tolist()
        return list(zip(nodes, rows, strict=True))


def _read_row(
    make: Callable[..., _Row], form: TableForm, table: _Table, cited: _Column, row: int
) -> _Row:
    *values, units = (table.column(name)[row].as_py() for name in form.columns)
    return make(*values, tuple(cited[number].as_py() for number in units))


class TextUnits:
    """Ranks and reads text units by passages of ``passage_tokens`` tokens, see :class:`Passages`.

    ``documents``: the document name of each text unit.
    """

    def __init__(
        self, texts: IndexTexts, documents: _Column, passage_tokens: int | None = None
    ) -> None:
        self._texts, self._documents = texts, documents
        self._passage_tokens = passage_tokens
        self._by_size: dict[int | None, TextUnits] = {passage_tokens: self}
        self._counting = Lock()
        self.passage: Callable[[int], Passage[TextUnit]] = lru_cache(_N_CACHED_ROWS)(self._passage)
        """Reads a passage, with its text unit, by its place among all passages."""

    def in_passages(self, size: int | None) -> "TextUnits":
        """Return the same text units with passages of another size."""
        with self._counting:
            if size not in self._by_size:
                self._by_size[size] = TextUnits(self._texts, self._documents, size)
            return self._by_size[size]

    def score_by_words(self, question: str, k: int) -> list[tuple[int, float]]:
        """Return row and BM25 score of the text units with the ``k`` best passages, best first.

        A text unit has the score of its best passage. The first call counts the words of all texts,
        unless they were counted before.
        """
        ranked = self._ready()
        best = best_of(ranked.passages.scores(question), k, ranked.precedence)
        scores: dict[int, float] = {}
        for place, score in best:
            scores.setdefault(int(ranked.passages.rows[place]), score)
        return list(scores.items())

    def by_row(self, scores: Mapping[str, float]) -> dict[int, float]:
        """Return scores by row of text units, given by id; unknown ids are left out."""
        rows = self._texts.rows
        return {rows[name]: score for name, score in scores.items() if name in rows}

    def best(self, masses: Mapping[int, float], k: int, question: str) -> list[int]:
        """Return the passages, by place, of the ``k`` text units with most mass, best first.

        ``masses`` maps row of a text unit to mass. The passage with the highest score by the words
        of the question has the mass of its text unit; the other passages have a part of it in
        proportion to their scores. Blank text units are left out. Masses that differ only by
        rounding are equal, and ordered by human_readable_id.
        """
        ranked = self._ready()
        rows = np.array(list(masses), np.int64)
        values = np.round(np.array(list(masses.values()), np.float64), 12)
        order = rows[np.lexsort((ranked.unit_precedence[rows], -values))][:k]
        texts, passages = self._texts.table.column("text"), ranked.passages
        units = [passages.of(row) for row in order.tolist() if texts[row].as_py().strip()]
        places = [place for unit_places in units for place in unit_places]
        if len(places) > len(units):
            scores = passages.scores(question)
            worth: dict[int, float] = {}
            for unit_places in units:
                most = max(float(scores[place]) for place in unit_places)
                for place in unit_places:
                    part = float(scores[place]) / most if most > 0 else 1.0
                    worth[place] = round(masses[self.row(place)] * part, 12)
            places.sort(key=lambda place: -worth[place])
        return places

    def row(self, place: int) -> int:
        """Return the row of a passage's text unit."""
        return int(self._ready().passages.rows[place])

    def _passage(self, place: int) -> Passage[TextUnit]:
        return self._ready().passages.of_units(np.array([place]), self._unit)[0]

    def _unit(self, row: int) -> TextUnit:
        name, number, text = (
            self._texts.table.column(column)[row].as_py()
            for column in ("id", "human_readable_id", "text")
        )
        return TextUnit(
            id=name, human_readable_id=number, document=self._documents[row].as_py(), text=text
        )

    def _ready(self) -> "_Ranked":
        with self._counting:  # of searches that begin together one counts, the others wait
            return self._ranked

    @cached_property
    def _ranked(self) -> "_Ranked":
        passages = self._texts.passages(self._passage_tokens)
        of_units = np.argsort(_sort_units(self._texts.table))
        order = np.argsort(of_units[passages.rows], kind="stable")
        return _Ranked(passages, of_units, np.argsort(order))


def _sort_units(table: _Table) -> npt.NDArray[np.int64]:
    """Return the rows of text units ordered by human_readable_id, ties by id and text."""
    numbers = table.column("human_readable_id").to_numpy()
    if len(np.unique(numbers)) == len(numbers):
        return np.argsort(numbers)
    columns = (table.column(name).to_pylist() for name in ("human_readable_id", "id", "text"))
    keyed = list(zip(*columns, strict=True))
    return np.array(sorted(range(len(keyed)), key=keyed.__getitem__), np.int64)


@dataclass(frozen=True, slots=True)
class _Ranked:
    """The passages of texts, and the precedence of each text unit and of each passage.

    Precedence follows human_readable_id and id, whatever the table's order.
    """

    passages: Passages
    unit_precedence: npt.NDArray[np.int64]
    precedence: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class OpenedGraph:
    """A graph and the texts that it was extracted from."""

    graph: GraphStore
    text_units: TextUnits

    @property
    def has_texts(self) -> bool:
        """Whether the index has text units."""
        return len(self.graph.arrays.unit_topics) > 0


def open_graph(files: Mapping[str, Path], texts: IndexTexts | None = None) -> OpenedGraph:
    """Map the graph of an index from files, building it first if the tables changed since.

    - ``files``: Parquet or CSV files of the tables ``entities``, ``relationships``, ``text_units``
      and, if there is one, ``documents``; other tables are ignored.
    - ``texts``: the text units, if they are open already.

    The graph is kept in the folder ``tog_graph`` next to the entities table, in a subfolder named
    after the tables' fingerprint that appears only when complete. If several processes build it at
    once, the first to finish wins. If the folder can't be written, the graph is built in memory.
    Raises UnreadableTableError if a table lacks a column or can't be read.
    """
    texts = texts or open_texts(files.get("text_units"))
    name = fingerprint_files(files, texts.name)
    kept = KeptFolder(home=files["entities"].parent / FOLDER, kind="", content=name, what="graph")
    opened = kept.open(
        partial(_write_graph, files=files, texts=texts), partial(_map_graph, texts=texts)
    )
    return opened or build_in_memory(
        files["entities"], files["relationships"], texts, files.get("documents")
    )


def build_in_memory(
    entities: Source,
    relationships: Source,
    text_units: IndexTexts | Source = None,
    documents: Source = None,
) -> OpenedGraph:
    """Build the graph of an index without writing files; see :func:`open_graph`.

    - ``entities``: ``id``, ``title``; optional: ``human_readable_id``, ``description``,
      ``text_unit_ids``. The first of several entities with the same title is used.
    - ``relationships``: ``source``, ``target`` (titles); optional: the same three and ``weight``
      (default 1).
    - ``text_units``: opened, or ``id``, ``text``; optional: ``human_readable_id``, ``document_id``.
    - ``documents``: ``id``, ``title``.

    Raises UnreadableTableError if a required column is missing.
    """
    texts = text_units if isinstance(text_units, IndexTexts) else open_texts(text_units)
    batches: dict[str, list[Batch]] = {name: [] for name in _TABLES}

    def write(name: str, batch: Batch) -> None:
        batches[name].append(batch)

    arrays = build_arrays(write, entities, relationships, texts.batches(), documents)
    tables = {name: arrow.Table.from_batches(parts) for name, parts in batches.items()}
    return _open(arrays, tables, texts)


def fingerprint_files(files: Mapping[str, Path], texts: str = "") -> str:
    """Return a hash that changes when a table changes, without reading whole tables.

    ``texts`` is the name of the text units' content (``IndexTexts.name``). For each other file the
    hash covers name, length, modification time, and the first and last 64 KiB: a Parquet file ends
    with row counts and column statistics, so that a rewritten file is noticed, too.
    """
    digest = hashlib.blake2b(f"{_FORMAT} {texts}".encode(), digest_size=16)
    for path in filter(None, map(files.get, _READ)):
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            digest.update(f"|{path.name}|{status.st_size}|{status.st_mtime_ns}|".encode())
            digest.update(file.read(_PROBED_BYTES))
            file.seek(max(0, status.st_size - _PROBED_BYTES))
            digest.update(file.read(_PROBED_BYTES))
    return digest.hexdigest()


def _write_graph(folder: Path, files: Mapping[str, Path], texts: IndexTexts) -> None:
    """Build a graph in an empty folder, as ``.npy`` arrays and uncompressed Arrow IPC tables."""
    began = time.perf_counter()
    with ExitStack() as open_files:
        writers: dict[str, Any] = {}

        def write(name: str, batch: Batch) -> None:
            if name not in writers:
                sink = open_files.enter_context(arrow.OSFile(str(folder / f"{name}.arrow"), "wb"))
                writer = arrow.ipc.new_file(sink, batch.schema)
                writers[name] = open_files.enter_context(writer)
            if batch.num_rows:
                writers[name].write_batch(batch)

        entities, relationships, documents = map(files.get, _READ)
        arrays = build_arrays(write, entities, relationships, texts.batches(), documents)
    save_arrays(folder, arrays)
    home = files["entities"].parent
    _log.info("Built the graph of %s in %.1f s", home, time.perf_counter() - began)


def _map_graph(folder: Path, texts: IndexTexts) -> OpenedGraph:
    """Map the graph in a folder; only the beginnings and ends of its files are read."""
    arrays = map_arrays(folder, GraphArrays)
    tables = {name: map_table(folder / f"{name}.arrow") for name in _TABLES}
    return _open(arrays, tables, texts)


def _open(arrays: GraphArrays, tables: Mapping[str, _Table], texts: IndexTexts) -> OpenedGraph:
    graph = GraphStore(arrays, tables, texts.languages)
    documents = tables["unit_documents"].column("document")
    return OpenedGraph(graph, TextUnits(texts, documents))
