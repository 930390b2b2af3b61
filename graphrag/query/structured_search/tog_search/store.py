"""The graph of an index and its texts: kept as numpy's and Arrow's files, mapped, looked up."""

import hashlib
import logging
import mmap
import os
import shutil
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from graphrag.query.passages import Passage, Passages
from graphrag.query.structured_search.tog_search.building import (
    ENTITIES,
    RELATIONSHIPS,
    Batch,
    GraphArrays,
    Source,
    TableForm,
    UnreadableTableError,
    arrow,
    build_arrays,
)
from graphrag.query.structured_search.tog_search.names import Found, NameIndex, TrunkIndex
from graphrag.text.held_files import move
from graphrag.text.inflection import Inflection
from graphrag.text.languages import Languages, find_languages, sample
from graphrag.text.ranking import WordIndex, WordIndexes, best_of
from graphrag.text.tokenize import word_key

_log = logging.getLogger(__name__)

FOLDER = "tog_graph"
# Raised whenever the meaning of a byte in the files of a graph changes.
_FORMAT = 11
_READ = ("entities", "relationships", "text_units", "documents")
_TABLES = ("entities", "relationships", "text_units", "cited_ids")
_BUILDING = "building-"
# A build takes minutes at most; what is older was left behind by a process that was stopped.
_ABANDONED_AFTER_S = 6 * 3600
_PROBED_BYTES = 1 << 16
_DAMAGED = (OSError, ValueError, EOFError, arrow.ArrowException)
"""What reading a folder raises that does not hold a whole graph."""
_N_CACHED_ROWS = 4096

_Table: TypeAlias = Any
_Column: TypeAlias = Any
"""A pyarrow.Table, and a pyarrow.ChunkedArray."""
_Row = TypeVar("_Row", "EntityRow", "RelationshipRow")


@dataclass(frozen=True, slots=True)
class EntityRow:
    """What the entities table says, by column, about one entity; its short id is what is cited."""

    id: str
    human_readable_id: int
    title: str
    description: str
    text_unit_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RelationshipRow:
    """What the relationships table says, by column, about one, in its stored direction."""

    human_readable_id: int
    source: str
    target: str
    description: str
    weight: float
    text_unit_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TextUnit:
    """One text unit, of the ``document`` with that title."""

    id: str
    human_readable_id: int
    document: str
    text: str


class GraphStore:
    """Entities as nodes 0..n-1, relationships as edges that are walked both ways.

    Made with :func:`build_in_memory`, or mapped from files by :func:`open_graph`. Self-loops, and
    relationships with an end that is no entity, are never walked; their rows stay readable.

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
        # A search reads a row for scoring it, ranking it, rendering it and for its texts.
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
        """Return the entities whose whole title stands in a text, the rarest first.

        Case, width, punctuation and the endings of words don't matter; "OZ" in "WIZARD OF OZ" does
        not count.
        """
        return self._names_of(text, self._names.find([text], self.n_entities))

    def names_in(self, text: str) -> list[int]:
        """Return the names, see ``GraphArrays``, that stand in a text; as above.

        Those with endings are found of entities alone.
        """
        return self._names_of(text, self._names.find([text]))

    def _names_of(self, text: str, found: Found) -> list[int]:
        """Return names that were found as they are, and those with endings in the other words."""
        (words,) = found.words
        names = found.names.tolist()
        spans: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        for begin, size, near in self._trunks.near(words, self._inflection.trunks):
            spans[begin, size] += near.tolist()
        for (begin, size), near in spans.items():
            span = slice(begin, begin + size)
            if found.taken[span].any():
                continue
            if size == 1 and not self._inflection.may_be_name(words[begin], text):
                continue
            if nearest := self._nearest(dict.fromkeys(near), words[span]):
                found.taken[span] = True
                names += nearest
        return self._rarest_first(names)

    def _nearest(self, nodes: Iterable[int], words: Sequence[str]) -> list[int]:
        """Return the entities whose titles words are forms of, those that differ least."""
        titles = {node: word_key(self.title(node)).split() for node in nodes}
        away = {
            node: distance
            for node, title in titles.items()
            if (distance := self._inflection.distance(title, words)) is not None
        }
        most = min(away.values(), default=0) + 1
        return [node for node, distance in away.items() if distance <= most]

    def with_forms(self, nodes: Sequence[int]) -> list[int]:
        """Return entities and other forms of their names, see ``GraphArrays``, the rarest first."""
        names, others = self.arrays.form_names, self.arrays.form_others
        ends = (np.searchsorted(names, nodes, side=side) for side in ("left", "right"))
        forms = [others[begin:end] for begin, end in zip(*ends, strict=True)]
        return self._rarest_first([*nodes, *(node for part in forms for node in part.tolist())])

    def _rarest_first(self, names: Iterable[int]) -> list[int]:
        return sorted(dict.fromkeys(names), key=self.standing)

    def standing(self, name: int) -> int:
        """Return in how many text units a name stands, also as a part of a longer one, >= 1."""
        return max(1, int(self.arrays.name_standing[name]))

    def rank_by_words(self, question: str, k: int) -> list[int]:
        """Return the `k` best entities by BM25 over titles and descriptions, best first.

        The first call counts the words of all entities, in time and memory that grow with them.
        """
        with self._counting:  # of searches that begin together one counts, the others wait
            nodes, words = self._words
        return [nodes[place] for place, _ in words.best(question, k)]

    @cached_property
    def _words(self) -> tuple[list[int], WordIndex]:
        """The nodes by title, so that of equal texts the same comes first, and their words."""
        details = self._entities.column("description").to_pylist()
        rows = sorted(zip(self._titles.to_pylist(), details, range(self.n_entities), strict=True))
        texts = [f"{title} {description}" for title, description, _ in rows]
        return [node for _, _, node in rows], WordIndex(texts, self.languages)

    def neighbours(self, node: int, cap: int) -> list[tuple[int, int]]:
        """Return the `cap` heaviest edges of a node, both ways, in O(cap): node there, edge row.

        Edge rows are as ``GraphArrays`` has them, signed and counted from 1.
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
    """Ranks text units and reads them, by passages of ``passage_tokens``, see :class:`Passages`.

    ``words`` is where the words of all texts are counted; None: here alone.
    """

    def __init__(
        self, table: _Table, words: WordIndexes | None = None, passage_tokens: int | None = None
    ) -> None:
        self._table = table
        self._words = words or WordIndexes()
        self._passage_tokens = passage_tokens
        self._by_size: dict[int | None, TextUnits] = {passage_tokens: self}
        self._counting = Lock()
        self.passage: Callable[[int], Passage[TextUnit]] = lru_cache(_N_CACHED_ROWS)(self._passage)
        """Reads a passage by its place, with the text unit that it is of."""

    def in_passages(self, size: int | None) -> "TextUnits":
        """Return the same text units by passages of another size."""
        with self._counting:
            if size not in self._by_size:
                self._by_size[size] = TextUnits(self._table, self._words, size)
            return self._by_size[size]

    def score_by_words(self, question: str, k: int) -> list[tuple[int, float]]:
        """Return rows and scores of at most `k` text units by BM25, those of their best passages.

        The first call counts the words of all texts, unless they were counted before.
        """
        ranked = self._ready()
        best = best_of(ranked.passages.scores(question), k, ranked.precedence)
        scores: dict[int, float] = {}
        for place, score in best:
            scores.setdefault(int(ranked.passages.rows[place]), score)
        return list(scores.items())

    def by_row(self, scores: Mapping[str, float]) -> dict[int, float]:
        """Return scores of text units by row, given by id; an id that none has is left out."""
        rows = self._rows
        return {rows[name]: score for name, score in scores.items() if name in rows}

    @cached_property
    def _rows(self) -> dict[str, int]:
        ids = self._table.column("id").to_pylist()
        return {name: row for row, name in enumerate(ids)}

    def best(self, masses: Mapping[int, float], k: int, question: str) -> list[int]:
        """Return the places of the passages of the `k` text units with most mass, most first.

        The mass of a text unit, given by row, is that of its passage with the highest score by the
        words of the question; its others have a part of it, as of the score. Blank text units are
        left out. Sums that differ only by the order of their terms are equal, and ordered by
        human_readable_id.
        """
        ranked = self._ready()
        rows = np.array(list(masses), np.int64)
        values = np.round(np.array(list(masses.values()), np.float64), 12)
        order = rows[np.lexsort((ranked.unit_precedence[rows], -values))][:k]
        texts, passages = self._table.column("text"), ranked.passages
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
        row = self.row(place)
        names = (f.name for f in fields(TextUnit))
        unit = TextUnit(*(self._table.column(name)[row].as_py() for name in names))
        return self._ready().passages.of_units([place], {row: unit})[0]

    def _ready(self) -> "_Ranked":
        with self._counting:  # of searches that begin together one counts, the others wait
            return self._ranked

    @cached_property
    def _ranked(self) -> "_Ranked":
        names = ("human_readable_id", "id", "text", "n_tokens")
        *keys, texts, counts = (self._table.column(name).to_pylist() for name in names)
        passages = Passages(texts, counts, self._passage_tokens, self._words)
        keyed = list(zip(*keys, texts, strict=True))
        of_units = np.argsort(sorted(range(len(texts)), key=keyed.__getitem__))
        order = np.argsort(of_units[passages.rows], kind="stable")
        return _Ranked(passages, of_units, np.argsort(order))


@dataclass(frozen=True, slots=True)
class _Ranked:
    """The passages of texts; the precedence of each text unit, and of each passage.

    They come by number and id, whatever the table's order.
    """

    passages: Passages
    unit_precedence: npt.NDArray[np.int64]
    precedence: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class OpenedGraph:
    """A graph and the texts behind it."""

    graph: GraphStore
    text_units: TextUnits

    @property
    def has_texts(self) -> bool:
        """Say whether the index has text units."""
        return len(self.graph.arrays.unit_topics) > 0


def open_graph(files: Mapping[str, Path], words: WordIndexes | None = None) -> OpenedGraph:
    """Map the graph of an index, building it first where that was not done since it changed.

    ``files``: Parquet or CSV files of the tables ``entities``, ``relationships`` and ``text_units``
    and, where there is one, of ``documents``; others are passed over. The graph lies in the folder
    ``tog_graph`` beside the entities table, in one that is named by the tables' fingerprint and put
    there whole; of processes that build it at once the first to finish wins. Where that can't be
    written, the graph is built in memory. ``words`` is where others find the words of the texts,
    too. Raises UnreadableTableError if a table lacks a column or can't be read.
    """
    home = files["entities"].parent / FOLDER
    place = home / fingerprint_files(files)
    if place.exists():
        try:
            return _map_graph(place, words)
        except _DAMAGED as error:
            what = error or type(error).__name__
            _log.warning("The cached graph is built again: %s can't be used: %s", place, what)
            shutil.rmtree(place, ignore_errors=True)
    draft = home / f"{_BUILDING}{uuid.uuid4().hex}"
    try:
        draft.mkdir(parents=True)
        _write_graph(draft, files)
        with suppress(OSError):  # another process was faster
            move(draft, place)
        return _map_graph(place, words)
    except UnreadableTableError:
        raise
    except _DAMAGED as error:
        _log.warning(
            "The graph can't be kept beside the index, so every start builds it anew: %s", error
        )
        return build_in_memory(*map(files.get, _READ), words=words)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        _remove_outdated(home, place)


def build_in_memory(
    entities: Source,
    relationships: Source,
    text_units: Source = None,
    documents: Source = None,
    words: WordIndexes | None = None,
) -> OpenedGraph:
    """Build the graph of an index, which leaves no file; see :func:`open_graph`.

    Entities have ``id`` and ``title``, relationships ``source`` and ``target`` (titles), both
    optionally ``human_readable_id``, ``description`` and ``text_unit_ids``, relationships
    ``weight`` (default 1); text units ``id``, ``text`` and optionally ``human_readable_id`` and
    ``document_id``; documents ``id`` and ``title``. Of entities with the same title the first is
    used. Raises UnreadableTableError if a column is missing that is needed.
    """
    batches: dict[str, list[Batch]] = {name: [] for name in _TABLES}

    def write(name: str, batch: Batch) -> None:
        batches[name].append(batch)

    arrays = build_arrays(write, entities, relationships, text_units, documents)
    tables = {name: arrow.Table.from_batches(parts) for name, parts in batches.items()}
    return _open(arrays, tables, words)


def fingerprint_files(files: Mapping[str, Path]) -> str:
    """Return a hash that changes when a table does, without reading the tables.

    It covers each file's name, length and time of change, and its first and last 64 KiB: a Parquet
    file ends with row counts and column statistics, so that a rewritten one is noticed, too.
    """
    digest = hashlib.blake2b(f"{_FORMAT}".encode(), digest_size=16)
    for path in filter(None, map(files.get, _READ)):
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            digest.update(f"|{path.name}|{status.st_size}|{status.st_mtime_ns}|".encode())
            digest.update(file.read(_PROBED_BYTES))
            file.seek(max(0, status.st_size - _PROBED_BYTES))
            digest.update(file.read(_PROBED_BYTES))
    return digest.hexdigest()


def _write_graph(folder: Path, files: Mapping[str, Path]) -> None:
    """Build a graph in an empty folder: ``.npy`` arrays and uncompressed Arrow IPC tables."""
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

        arrays = build_arrays(write, *map(files.get, _READ))
    for field in fields(arrays):
        np.save(folder / f"{field.name}.npy", getattr(arrays, field.name), allow_pickle=False)
    for path in folder.iterdir():
        with path.open("rb+") as file:  # so that no crash leaves a folder without its files
            os.fsync(file.fileno())
    home = files["entities"].parent
    _log.info("Built the graph of %s in %.1f s", home, time.perf_counter() - began)


def _map_graph(folder: Path, words: WordIndexes | None) -> OpenedGraph:
    """Map the graph in a folder; nothing is read but the beginnings and ends of its files."""
    files = [folder / f"{field.name}.npy" for field in fields(GraphArrays)]
    arrays = GraphArrays(*(np.load(file, mmap_mode="r").view(np.ndarray) for file in files))
    tables = {name: _map_table(folder / f"{name}.arrow") for name in _TABLES}
    return _open(arrays, tables, words)


def _open(
    arrays: GraphArrays,
    tables: Mapping[str, _Table],
    words: WordIndexes | None,
) -> OpenedGraph:
    words = words or WordIndexes()
    if (languages := words.languages) is None:
        texts = tables["text_units"].column("text")
        languages = find_languages([texts[place].as_py() for place in sample(len(texts))])
    graph = GraphStore(arrays, tables, languages)
    return OpenedGraph(graph, TextUnits(tables["text_units"], words))


def _map_table(path: Path) -> _Table:
    # pyarrow's own memory map touches every page at once.
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return arrow.ipc.open_file(arrow.BufferReader(arrow.py_buffer(mapped))).read_all()


def _remove_outdated(home: Path, current: Path) -> None:
    """Remove the graphs of earlier tables, and what stopped builds have left."""
    with suppress(OSError):
        for folder in home.iterdir():
            is_draft = folder.name.startswith(_BUILDING)
            if is_draft and time.time() - folder.stat().st_mtime < _ABANDONED_AFTER_S:
                continue
            if folder != current:
                # First under another name: what somebody has mapped stays whole on Windows.
                removed = home / f"{_BUILDING}{uuid.uuid4().hex}"
                with suppress(OSError):
                    folder.rename(removed)
                    shutil.rmtree(removed, ignore_errors=True)
