"""From an index's tables to the arrays that a graph is searched with."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphrag.query.structured_search.tog_search.names import (
    Ints,
    NameIndex,
    hash_keys,
    index_names,
    titles_of_units,
)
from graphrag.query.structured_search.tog_search.tables import Batch, Column, arrow, compute
from graphrag.text.terms import word_keys

# Each join builds a hash table of all titles, so it is given at least so many rows at once.
_MIN_JOINED_ROWS = 1 << 20
_CHUNK = 1 << 21
# A single word as short as this is more often another word than the name that it could be.
_SHORTEST_WORD = 4
_LONGEST_NAME = 8
_NONE = np.empty(0, np.int32)

Write = Callable[[str, Batch], None]
Pointers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
_Ends = tuple[Ints, Ints, Floats]


@dataclass(frozen=True, slots=True)
class TableStreams:
    """The tables of an index as record batches in the forms of ``tables``.

    Text units are read twice, so theirs is opened anew each time.
    """

    entities: Iterator[Batch]
    relationships: Iterator[Batch]
    text_units: Callable[[], Iterator[Batch]]
    documents: Iterator[Batch]


@dataclass(frozen=True, slots=True)
class GraphArrays:
    """What a graph is searched by, as compressed sparse rows: row i is ``ptr[i]:ptr[i + 1]``.

    A name is an entity's node, or, from the number of entities on, a title that no entity has.

    Attributes
    ----------
    edge_ptr : numpy.ndarray
        int64, shape (n_nodes + 1,): the edges of a node, both ways, by falling weight, then by
        relationship.
    edge_nodes : numpy.ndarray
        int32: where each edge leads.
    edge_rows : numpy.ndarray
        int32: row of the relationship plus one, negative where the node is its stored target.
    edge_weights : numpy.ndarray
        float32.
    key_hashes, key_names : numpy.ndarray
        As in ``NameIndex``.
    longest_key : numpy.ndarray
        int64, shape (1,): words of the longest name.
    unit_ptr, unit_names : numpy.ndarray
        int64 and int32: the names in a text unit, ascending.
    name_ptr, name_units : numpy.ndarray
        int64 and int32: the rows of the text units with a name, ascending.
    unit_topics : numpy.ndarray
        int32, shape (n_units,): the name that is the title of the text unit's document, -1
        without one.
    """

    edge_ptr: Pointers
    edge_nodes: Ints
    edge_rows: Ints
    edge_weights: Floats
    key_hashes: npt.NDArray[np.uint64]
    key_names: Ints
    longest_key: Pointers
    unit_ptr: Pointers
    unit_names: Ints
    name_ptr: Pointers
    name_units: Ints
    unit_topics: Ints


def build_arrays(tables: TableStreams, write: Write) -> GraphArrays:
    """Read each table front to back.

    The ids in ``text_unit_ids``, each of which stands in many rows, are replaced by numbers.

    Parameters
    ----------
    tables : TableStreams
    write : callable
        Takes ("entities" | "relationships" | "text_units" | "cited_ids", record batch) to keep;
        row i of ``cited_ids`` is the id with the number i.
    """
    cited, names = _Numbering(), _Names()
    titles: list[Column] = []
    cited_by: list[tuple[Ints, Ints]] = []
    for batch in tables.entities:
        rows = np.arange(names.n, names.n + batch.num_rows, dtype=np.int32)
        names.add(word_keys(batch.column("title").to_pylist()))
        titles.append(batch.column("title"))
        coded = cited.apply(batch)
        lists = coded.column("text_unit_ids")
        counts = compute.list_value_length(lists).to_numpy()
        cited_by.append((lists.flatten().to_numpy(), np.repeat(rows, counts)))
        write("entities", coded)
    edges = _sort_edges(_read_ends(tables.relationships, titles, cited, write), names.n)
    topics = _read_topics(tables, names)
    index = names.index()
    scanned = names.index(scanned=True)
    unit_of = np.full(cited.n, -1, np.int32)
    pairs = [np.flatnonzero(topics >= 0).astype(np.int32)], [topics[topics >= 0]]
    first = 0
    for batch in tables.text_units():
        for row, number in enumerate(map(cited.number_of, batch.column("id").to_pylist()), first):
            if number is not None and unit_of[number] < 0:
                unit_of[number] = row
        units, found = scanned.find(batch.column("text").to_pylist())
        pairs[0].append(units + first)
        pairs[1].append(found)
        first += batch.num_rows
        write("text_units", batch)
    write("cited_ids", cited.ids())
    for numbers, nodes in cited_by:
        known = unit_of[numbers] >= 0
        pairs[0].append(unit_of[numbers][known])
        pairs[1].append(nodes[known])
    mentions = _sort_mentions(np.concatenate(pairs[0]), np.concatenate(pairs[1]), first, names.n)
    arrow.default_memory_pool().release_unused()
    longest = np.array([index.longest], np.int64)
    return GraphArrays(*edges, index.hashes, index.names, longest, *mentions, topics)


class _Names:
    """Gathers the hashes of names, in the order of their numbers."""

    def __init__(self) -> None:
        self.n = 0
        self._hashes = [np.empty(0, np.uint64)]
        self._n_words = [_NONE]
        self._short = [np.empty(0, np.bool_)]

    def add(self, keys: list[str]) -> None:
        hashes, n_words = hash_keys(keys)
        chars = np.fromiter(map(len, keys), np.int64, len(keys))
        self._hashes.append(hashes)
        self._n_words.append(n_words)
        self._short.append((n_words == 1) & (chars < _SHORTEST_WORD))
        self.n += len(keys)

    def index(self, scanned: bool = False) -> NameIndex:
        """Index all names; for scanning texts, those only that are telling enough."""
        hashes, n_words = np.concatenate(self._hashes), np.concatenate(self._n_words)
        rows = np.arange(self.n, dtype=np.int32)
        if scanned:
            telling = ~np.concatenate(self._short) & (n_words <= _LONGEST_NAME)
            hashes, n_words, rows = hashes[telling], n_words[telling], rows[telling]
        return index_names(hashes, n_words, rows, sieved=scanned)


def _read_topics(tables: TableStreams, names: _Names) -> Ints:
    """Find what each text unit's document is about; titles that no entity has are new names."""
    documents = {
        name: title
        for batch in tables.documents
        for name, title in zip(*_columns(batch, "id", "title"), strict=True)
    }
    units = (
        unit
        for batch in tables.text_units()
        for unit in zip(*_columns(batch, "document_id", "human_readable_id", "text"), strict=True)
    )
    titles = titles_of_units(units, documents)
    keys = word_keys(titles)
    distinct = [key for key in dict.fromkeys(keys) if key]
    known, entities = names.index().look_up(hash_keys(distinct)[0])
    number: dict[str, int] = {
        distinct[place]: name for place, name in zip(known.tolist(), entities.tolist(), strict=True)
    }
    new = [key for key in distinct if key not in number]
    number |= {key: name for name, key in enumerate(new, names.n)}
    names.add(new)
    return np.array([number.get(key, -1) for key in keys], np.int32)


def _read_ends(
    batches: Iterator[Batch], titles: list[Column], cited: "_Numbering", write: Write
) -> _Ends:
    """Return the nodes at the ends of all relationships, -1 for no entity, and their weights."""
    known = arrow.chunked_array(titles, type=arrow.string())
    # An entity without a title is no end of anything.
    known = compute.if_else(compute.equal(known, ""), None, known)
    waiting: list[Batch] = []
    joined: list[Future[_Ends]] = []
    with ThreadPoolExecutor(1) as reader, ThreadPoolExecutor(1) as joiner:
        coming = reader.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, batches, None)
            write("relationships", cited.apply(batch))
            waiting.append(batch.select(["source", "target", "weight"]))
            if sum(part.num_rows for part in waiting) >= max(_MIN_JOINED_ROWS, len(known)):
                joined.append(joiner.submit(_find_ends, waiting, known))
                waiting = []
        joined.append(joiner.submit(_find_ends, waiting, known))
    parts = [future.result() for future in joined]
    return (
        np.concatenate([part[0] for part in parts]),
        np.concatenate([part[1] for part in parts]),
        np.concatenate([part[2] for part in parts]),
    )


def _find_ends(batches: list[Batch], titles: Column) -> _Ends:
    if not batches:
        return _NONE, _NONE, np.empty(0, np.float32)
    rows = arrow.Table.from_batches(batches)
    sources, targets = rows.column("source"), rows.column("target")
    both = arrow.chunked_array([*sources.chunks, *targets.chunks], type=sources.type)
    nodes = compute.fill_null(compute.index_in(both, value_set=titles), -1).to_numpy()
    nodes = nodes.astype(np.int32)
    weights = rows.column("weight").to_numpy().astype(np.float32)
    return nodes[: rows.num_rows], nodes[rows.num_rows :], weights


def _sort_edges(ends: _Ends, n_nodes: int) -> tuple[Pointers, Ints, Ints, Floats]:
    """Sort relationships into rows; self-loops and those with a missing end are left out.

    Takes about 60 bytes a relationship while it works and 24 in the end.
    """
    source, target, weight = ends
    if max(n_nodes, len(source)) >= 2**31 - 1:
        msg = "A graph of more than 2,147,483,646 entities or relationships can't be searched."
        raise ValueError(msg)
    usable = np.flatnonzero((source >= 0) & (target >= 0) & (source != target)).astype(np.int32)
    order = usable[np.argsort(-weight[usable], kind="stable")]
    n = len(order)
    # The two ends of each relationship side by side, heaviest relationship first.
    pairs = np.empty(2 * n, dtype=np.int32)
    pairs[::2], pairs[1::2] = source[order], target[order]
    weight = weight[order]
    del ends, usable, source, target
    pointers = _pointers(pairs, n_nodes)
    # One sort of integers does it: the node in the upper bits, its place among all ends below.
    shift = (2 * n).bit_length()
    keys = pairs.astype(np.int64)
    keys <<= shift
    for begin in range(0, 2 * n, _CHUNK):
        keys[begin : begin + _CHUNK] |= np.arange(begin, min(begin + _CHUNK, 2 * n))
    keys.sort()
    nodes, rows = np.empty(2 * n, np.int32), np.empty(2 * n, np.int32)
    weights = np.empty(2 * n, np.float32)
    for begin in range(0, 2 * n, _CHUNK):
        chunk = slice(begin, begin + _CHUNK)
        place = keys[chunk] & ((1 << shift) - 1)
        nodes[chunk] = pairs[place ^ 1]
        is_target = (place & 1).astype(bool)
        place >>= 1
        row = order[place] + 1
        rows[chunk] = np.negative(row, out=row, where=is_target)
        weights[chunk] = weight[place]
    return pointers, nodes, rows, weights


def _sort_mentions(
    units: Ints, names: Ints, n_units: int, n_names: int
) -> tuple[Pointers, Ints, Pointers, Ints]:
    """Make the rows, both ways, of pairs of text unit and name, which may repeat."""
    key = np.unique(units.astype(np.int64) * max(1, n_names) + names)
    row, name = np.divmod(key, max(1, n_names))
    order = np.argsort(name, kind="stable")
    return (
        _pointers(row, n_units),
        name.astype(np.int32),
        _pointers(name, n_names),
        row[order].astype(np.int32),
    )


def _pointers(rows: npt.NDArray[np.integer], n: int) -> Pointers:
    pointers = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=n), out=pointers[1:])
    return pointers


class _Numbering:
    """Gives each text unit id the number of its first appearance."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def apply(self, batch: Batch) -> Batch:
        """Put numbers in place of the ids in a batch's ``text_unit_ids``."""
        lists = batch.column("text_unit_ids")
        ids = compute.fill_null(lists.flatten(), "").dictionary_encode()
        numbers = self._numbers
        of_batch = np.fromiter(
            (numbers.setdefault(name, len(numbers)) for name in ids.dictionary.to_pylist()),
            dtype=np.int32,
        )
        ends = np.zeros(len(lists) + 1, dtype=np.int32)
        np.cumsum(compute.list_value_length(lists).to_numpy(), out=ends[1:])
        coded = arrow.array(of_batch[ids.indices.to_numpy()])
        column = arrow.ListArray.from_arrays(arrow.array(ends), coded)
        place = batch.schema.get_field_index("text_unit_ids")
        return batch.set_column(place, "text_unit_ids", column)

    @property
    def n(self) -> int:
        return len(self._numbers)

    def number_of(self, name: str) -> int | None:
        return self._numbers.get(name)

    def ids(self) -> Batch:
        ids = arrow.array(list(self._numbers), type=arrow.string())
        return arrow.RecordBatch.from_pydict({"id": ids})


def _columns(batch: Batch, *names: str) -> list[list[str]]:
    return [batch.column(name).to_pylist() for name in names]
