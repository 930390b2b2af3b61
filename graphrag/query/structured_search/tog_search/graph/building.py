"""From a stream of table rows to what a graph is searched with."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphrag.query.structured_search.tog_search.graph.adjacency import (
    Adjacency,
    Ends,
    build_adjacency,
)
from graphrag.query.structured_search.tog_search.graph.mentions import Mentions, join_mentions
from graphrag.query.structured_search.tog_search.graph.name_scan import NameScanner
from graphrag.query.structured_search.tog_search.graph.names import (
    NameIndex,
    hash_names,
    index_names,
)
from graphrag.query.structured_search.tog_search.graph.titles import titles_of_units
from graphrag.text.terms import word_keys

# pyarrow is not typed.
_arrow: Any = pa
_compute: Any = pc

# Each join builds a hash table of all titles, so it is given at least so many rows at once.
_MIN_JOINED_ROWS = 1 << 20

Write = Callable[[str, Any], None]
_Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class TableStreams:
    """The tables of an index as record batches in the forms of ``row_tables``.

    Text units are read twice, so theirs is opened anew each time.
    """

    entities: Iterator[Any]
    relationships: Iterator[Any]
    text_units: Callable[[], Iterator[Any]]
    documents: Iterator[Any]


@dataclass(frozen=True, slots=True)
class GraphParts:
    """What the tables are searched by; the rows themselves are kept elsewhere.

    Attributes
    ----------
    adjacency : Adjacency
    titles, ids, keys : NameIndex
        Entities by title, by id and by the words of the title (``words.word_keys``); among the
        last, from the number of entities on, titles of documents that are no entity's.
    longest_key : int
        Words of the longest title.
    mentions : Mentions
    """

    adjacency: Adjacency
    titles: NameIndex
    ids: NameIndex
    keys: NameIndex
    longest_key: int
    mentions: Mentions


def build_parts(streams: TableStreams, write: Write) -> GraphParts:
    """Read each table front to back.

    The ids in ``text_unit_ids``, each of which stands in many rows, are replaced by numbers.

    Parameters
    ----------
    streams : TableStreams
    write : callable
        Takes ("entities" | "relationships" | "text_units" | "cited_ids" | "topics", record batch)
        to keep; row i of ``cited_ids`` is the id with the number i, row i of ``topics`` the title
        with the number of entities + i.
    """
    builder = _Builder(write)
    builder.read_entities(streams.entities)
    builder.read_relationships(streams.relationships)
    builder.read_titles(streams.documents, streams.text_units())
    builder.read_text_units(streams.text_units())
    _arrow.default_memory_pool().release_unused()
    return builder.finish()


class _Builder:
    """Gathers from the tables, one after the other, what they are searched by."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._cited = _Numbering()
        self._names = {name: _Names() for name in ("titles", "ids", "keys")}
        self._longest_key = 0
        self._keys: list[str] = []
        self._topics = np.empty(0, np.int32)
        self._cited_by: list[tuple[_Ints, _Ints]] = []
        self._found_in: list[tuple[_Ints, _Ints]] = []
        self._unit_of_cited: dict[int, int] = {}
        self._n_names = 0
        self._titles: list[Any] = []
        self._joined: list[Future[Ends]] = []

    def read_entities(self, batches: Iterator[Any]) -> None:
        for batch in batches:
            titles: list[str] = batch.column("title").to_pylist()
            keys = word_keys(titles)
            self._add_keys(keys)
            first = self._names["titles"].n_rows
            self._names["titles"].add(titles)
            self._names["ids"].add(batch.column("id").to_pylist())
            self._titles.append(batch.column("title"))
            coded = self._cited.apply(batch)
            lists = coded.column("text_unit_ids")
            rows = np.arange(first, first + batch.num_rows, dtype=np.int32)
            counts = _compute.list_value_length(lists).to_numpy()
            self._cited_by.append((lists.flatten().to_numpy(), np.repeat(rows, counts)))
            self._write("entities", coded)

    def read_relationships(self, batches: Iterator[Any]) -> None:
        titles = _arrow.chunked_array(self._titles, type=_arrow.string())
        self._titles.clear()
        # An entity without a title is no end of anything.
        titles = _compute.if_else(_compute.equal(titles, ""), None, titles)
        at_once = max(_MIN_JOINED_ROWS, len(titles))
        waiting: list[Any] = []
        with ThreadPoolExecutor(max_workers=1) as worker:
            for batch in _read_ahead(batches):
                self._write("relationships", self._cited.apply(batch))
                waiting.append(batch.select(["source", "target", "weight"]))
                if sum(part.num_rows for part in waiting) >= at_once:
                    self._joined.append(worker.submit(_find_ends, waiting, titles))
                    waiting = []
            if waiting:
                self._joined.append(worker.submit(_find_ends, waiting, titles))

    def read_titles(self, documents: Iterator[Any], text_units: Iterator[Any]) -> None:
        """Find what each text unit's document is about; titles that no entity has are new names."""
        given = {
            name: title
            for batch in documents
            for name, title in zip(*_columns(batch, "id", "title"), strict=True)
        }
        units = (
            unit
            for batch in text_units
            for unit in zip(
                *_columns(batch, "document_id", "human_readable_id", "text"), strict=True
            )
        )
        titles = titles_of_units(units, given)
        keys = word_keys(titles)
        wanted = {key: -1 for key in keys if key}
        for row in range(len(self._keys) - 1, -1, -1):
            if self._keys[row] in wanted:
                wanted[self._keys[row]] = row
        new = {key: title for key, title in zip(keys, titles, strict=True) if wanted.get(key) == -1}
        wanted |= {key: row for row, key in enumerate(new, len(self._keys))}
        self._add_keys(list(new))
        self._topics = np.array([wanted.get(key, -1) for key in keys], np.int32)
        self._write("topics", _text_batch("title", list(new.values())))

    def read_text_units(self, batches: Iterator[Any]) -> None:
        scanner = NameScanner(self._keys)
        n_names = len(self._keys)
        self._keys.clear()
        row = 0
        for batch in batches:
            ids: list[str] = batch.column("id").to_pylist()
            for place, number in enumerate(map(self._cited.number_of, ids), row):
                if number is not None:
                    self._unit_of_cited.setdefault(number, place)
            units, names = scanner.scan(batch.column("text").to_pylist())
            self._found_in.append((units + np.int32(row), names))
            row += batch.num_rows
            self._write("text_units", batch)
        self._write("cited_ids", self._cited.ids())
        self._n_names = n_names

    def _add_keys(self, keys: list[str]) -> None:
        longest = max((key.count(" ") + 1 for key in keys), default=0)
        self._longest_key = max(self._longest_key, longest)
        self._names["keys"].add(keys)
        self._keys += keys

    def _join_mentions(self) -> Mentions:
        """Join what extraction says with the names that stand in the texts."""
        place = np.full(self._cited.n, -1, np.int32)
        place[list(self._unit_of_cited)] = list(self._unit_of_cited.values())
        units = [place[numbers] for numbers, _ in self._cited_by]
        units += [found for found, _ in self._found_in]
        names = [found for _, found in (*self._cited_by, *self._found_in)]
        empty = np.empty(0, np.int32)
        unit, name = np.concatenate([empty, *units]), np.concatenate([empty, *names])
        known = unit >= 0
        return join_mentions(unit[known], name[known], self._topics, self._n_names)

    def finish(self) -> GraphParts:
        indexes = {name: gathered.index() for name, gathered in self._names.items()}
        edges = build_adjacency(self._take_ends(), self._names["titles"].n_rows)
        mentions = self._join_mentions()
        return GraphParts(
            adjacency=edges, longest_key=self._longest_key, mentions=mentions, **indexes
        )

    def _take_ends(self) -> Ends:
        """Return the ends of all relationships; they are given away, so that they can be freed."""
        done = [future.result() for future in self._joined]
        self._joined.clear()
        empty = np.empty(0, np.int32)
        return Ends(
            np.concatenate([empty, *(ends.source for ends in done)]),
            np.concatenate([empty, *(ends.target for ends in done)]),
            np.concatenate([np.empty(0, np.float32), *(ends.weight for ends in done)]),
        )


def _read_ahead(stream: Iterator[Any]) -> Iterator[Any]:
    """Read the next piece while the last one is worked on."""
    with ThreadPoolExecutor(max_workers=1) as reader:
        coming = reader.submit(next, stream, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, stream, None)
            yield batch


class _Names:
    """Gathers the hashes of a column; the empty name is left out."""

    def __init__(self) -> None:
        self.n_rows = 0
        self._hashes: list[npt.NDArray[np.uint32]] = []
        self._rows: list[npt.NDArray[np.int32]] = []

    def add(self, names: list[str]) -> None:
        given = np.fromiter(map(bool, names), dtype=np.bool_, count=len(names))
        self._hashes.append(hash_names(names)[given])
        self._rows.append((np.flatnonzero(given) + self.n_rows).astype(np.int32))
        self.n_rows += len(names)

    def index(self) -> NameIndex:
        return index_names(
            np.concatenate([np.empty(0, np.uint32), *self._hashes]),
            np.concatenate([np.empty(0, np.int32), *self._rows]),
        )


def _find_ends(batches: list[Any], titles: Any) -> Ends:
    """Turn the titles at the ends of relationships into nodes."""
    rows = _arrow.Table.from_batches(batches)
    sources, targets = rows.column("source"), rows.column("target")
    both = _arrow.chunked_array([*sources.chunks, *targets.chunks], type=sources.type)
    found = _compute.index_in(both, value_set=titles)
    nodes = _compute.fill_null(found, -1).to_numpy().astype(np.int32)
    n = rows.num_rows
    return Ends(nodes[:n], nodes[n:], rows.column("weight").to_numpy().astype(np.float32))


class _Numbering:
    """Gives each text unit id the number of its first appearance."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def apply(self, batch: Any) -> Any:
        lists = batch.column("text_unit_ids")
        ids = lists.flatten()
        if ids.null_count:
            ids = _compute.fill_null(ids, "")
        found = ids.dictionary_encode()
        numbers = self._numbers
        of_batch = np.fromiter(
            (numbers.setdefault(name, len(numbers)) for name in found.dictionary.to_pylist()),
            dtype=np.int32,
        )
        coded = of_batch[found.indices.to_numpy()]
        ends = np.zeros(len(lists) + 1, dtype=np.int32)
        np.cumsum(_compute.list_value_length(lists).to_numpy(), out=ends[1:])
        column = _arrow.ListArray.from_arrays(_arrow.array(ends), _arrow.array(coded))
        place = batch.schema.get_field_index("text_unit_ids")
        return batch.set_column(place, "text_unit_ids", column)

    @property
    def n(self) -> int:
        return len(self._numbers)

    def number_of(self, name: str) -> int | None:
        return self._numbers.get(name)

    def ids(self) -> Any:
        return _text_batch("id", list(self._numbers))


def _columns(batch: Any, *names: str) -> list[list[Any]]:
    return [batch.column(name).to_pylist() for name in names]


def _text_batch(name: str, values: list[str]) -> Any:
    return _arrow.RecordBatch.from_pydict({name: _arrow.array(values, type=_arrow.string())})
