"""Builds, from an index's tables, the arrays that its graph is searched by."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from graphrag.query.graph.names import (
    MAX_HEADING_CHARS,
    Ints,
    Names,
    hash_keys,
    title_of,
)
from graphrag.query.index.table_forms import (
    DOCUMENTS,
    ENTITIES,
    RELATIONSHIPS,
    Batch,
    Column,
    Source,
    arrow,
    compute,
)
from graphrag.text.tokenize import word_keys

# Each join builds a hash table of all titles, so that joins get at least this many rows at once.
_MIN_JOINED_ROWS = 1 << 20

Write = Callable[[str, Batch], None]
Pointers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
_Ends = tuple[Ints, Ints, Floats]
_Numbers = defaultdict[str, int]
"""Text unit id -> the order of its first appearance, from 0."""

_NONE = np.empty(0, np.int32)
_AS_RARE = 1.5


@dataclass(frozen=True, slots=True)
class GraphArrays:
    """The arrays that a graph is searched by; row i of a list is ``ptr[i]:ptr[i + 1]``.

    A name is a number: an entity's node or, from the number of entities on, a document title that
    is no entity's title.

    - ``edge_ptr``, ``edge_nodes``, ``edge_rows``, ``edge_weights``: the edges of each node, both
      ways, heaviest first, then by relationship. ``edge_nodes`` has the node at the other end;
      ``edge_rows`` the relationship's row plus one, negated if the node is the stored target.
    - ``key_hashes``, ``key_names``: the :class:`NameIndex` of all names; ``trunk_hashes``,
      ``trunk_names``: the :class:`TrunkIndex` of the entities. ``longest_key``: the ``longest`` of
      both, in this order.
    - ``unit_ptr``, ``unit_names``: the names in each text unit, ascending. ``name_ptr``,
      ``name_units``: the rows of the text units with each name, ascending.
    - ``name_standing``: the number of text units that contain each name, also inside a longer name.
    - ``unit_topics``: the name that is the title of each text unit's document, -1 without one.
    - ``form_names``, ``form_others``: pairs of an entity, ascending, and another form of its name:
      one name is a part of the other, and each is in at most 1.5 times as many text units as the
      other.
    """

    edge_ptr: Pointers
    edge_nodes: Ints
    edge_rows: Ints
    edge_weights: Floats
    key_hashes: npt.NDArray[np.uint64]
    key_names: Ints
    trunk_hashes: npt.NDArray[np.uint64]
    trunk_names: Ints
    longest_key: Pointers
    unit_ptr: Pointers
    unit_names: Ints
    name_ptr: Pointers
    name_units: Ints
    name_standing: Ints
    unit_topics: Ints
    form_names: Ints
    form_others: Ints


def build_arrays(
    write: Write,
    entities: Source,
    relationships: Source,
    text_units: Sequence[Batch],
    documents: Source,
) -> GraphArrays:
    """Build the arrays of a graph from an index's tables, each read from front to back.

    The text units are read twice: they come as record batches with the columns of ``TEXT_UNITS``.
    The ids in ``text_unit_ids`` repeat in many rows, so they are replaced by numbers. ``write``
    receives a name and a record batch to keep: "entities", "relationships", "unit_documents" (row
    i: the title of the document of text unit i), "cited_ids" (row i: the id with the number i).
    """
    names = Names()
    numbers: _Numbers = defaultdict(count().__next__)
    titles: list[Column] = []
    cited_by: list[tuple[Ints, Ints]] = []
    for batch in ENTITIES.stream(entities):
        rows = np.arange(names.n, names.n + batch.num_rows, dtype=np.int32)
        names.add(word_keys(batch.column("title").to_pylist()))
        titles.append(batch.column("title"))
        coded = _number_ids(batch, numbers)
        lists = coded.column("text_unit_ids")
        counts = compute.list_value_length(lists).to_numpy()
        cited_by.append((lists.flatten().to_numpy(), np.repeat(rows, counts)))
        write("entities", coded)
    ends = _read_ends(RELATIONSHIPS.stream(relationships), titles, numbers, write)
    edges = _sort_edges(ends, names.n)
    rows = _rows(DOCUMENTS.stream(documents), "id", "title")
    document_titles = {document: title for document, title in rows if document}
    unit_titles, unit_documents = _titles_of_texts(text_units, document_titles)
    topics = _number_topics(unit_titles, names)
    index = names.index()
    scanned = names.index(scanned=True)
    unit_of = np.full(len(numbers), -1, np.int32)
    pairs = [np.flatnonzero(topics >= 0).astype(np.int32)], [topics[topics >= 0]]
    first = 0
    for batch in text_units:
        for row, name in enumerate(batch.column("id").to_pylist(), first):
            number = numbers.get(name)
            if number is not None and unit_of[number] < 0:
                unit_of[number] = row
        matches = scanned.find(batch.column("text").to_pylist())
        pairs[0].append(matches.texts + first)
        pairs[1].append(matches.names)
        first += batch.num_rows
    documents_of = arrow.array(unit_documents, type=arrow.string())
    write("unit_documents", arrow.RecordBatch.from_pydict({"document": documents_of}))
    ids = arrow.array(list(numbers), type=arrow.string())
    write("cited_ids", arrow.RecordBatch.from_pydict({"id": ids}))
    for cited, nodes in cited_by:
        is_unit = unit_of[cited] >= 0
        pairs[0].append(unit_of[cited][is_unit])
        pairs[1].append(nodes[is_unit])
    mentions = _sort_mentions(np.concatenate(pairs[0]), np.concatenate(pairs[1]), first, names.n)
    inside = names.inside(scanned)
    frequencies = _count_texts(mentions[2], mentions[3], inside, first)
    forms = _find_forms(inside, frequencies, len(edges[0]) - 1)
    arrow.default_memory_pool().release_unused()
    trunks = names.trunks(len(edges[0]) - 1)
    longest = np.array([index.longest, trunks.longest], np.int64)
    keys = (index.hashes, index.names, trunks.hashes, trunks.names, longest)
    return GraphArrays(*edges, *keys, *mentions, frequencies, topics, *forms)


def _titles_of_texts(
    text_units: Iterable[Batch], titles: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """Return the topic and the name of each text unit's document.

    ``titles`` maps document id to title. A text unit without a document counts as a document of its
    own.
    """
    documents: list[str] = []
    beginnings: dict[str, tuple[int, str]] = {}
    units = _rows(text_units, "document_id", "human_readable_id", "text")
    for row, (document, number, text) in enumerate(units):
        document = document or f"\x00{row}"
        documents.append(document)
        if document not in beginnings or number < beginnings[document][0]:
            beginnings[document] = (number, text[: 2 * MAX_HEADING_CHARS].lstrip())
    topics = {name: title_of(titles.get(name, ""), text) for name, (_, text) in beginnings.items()}
    names = _name_documents(topics, titles)
    return [topics[document] for document in documents], [names[key] for key in documents]


def _name_documents(topics: Mapping[str, str], titles: Mapping[str, str]) -> dict[str, str]:
    """Return document -> its name: its topic, or its title if the topic is unknown.

    Documents with the same topic have their titles added, which distinguish them. A single document
    needs no name.
    """
    if len(topics) == 1:
        return dict.fromkeys(topics, "")
    shared = Counter(topics.values())
    names = dict(topics)
    for document, topic in topics.items():
        title = titles.get(document, "").strip()
        if not topic:
            names[document] = title
        elif shared[topic] > 1 and title not in ("", topic):
            names[document] = f"{topic} ({title})"
    return names


def _number_topics(titles: Sequence[str], names: Names) -> Ints:
    """Return the name number of each document title; titles of no entity become new names."""
    keys = word_keys(titles)
    distinct = [key for key in dict.fromkeys(keys) if key]
    rows, entities = names.index().look_up(hash_keys(distinct)[0])
    number: dict[str, int] = {
        distinct[n]: name for n, name in zip(rows.tolist(), entities.tolist(), strict=True)
    }
    new = [key for key in distinct if key not in number]
    number |= {key: name for name, key in enumerate(new, names.n)}
    names.add(new)
    return np.array([number.get(key, -1) for key in keys], np.int32)


def _rows(batches: Iterable[Batch], *columns: str) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        yield from zip(*(batch.column(name).to_pylist() for name in columns), strict=True)


def _read_ends(
    batches: Iterator[Batch], titles: list[Column], numbers: _Numbers, write: Write
) -> _Ends:
    """Return source nodes, target nodes (-1: no entity) and weights of all relationships."""
    title_column = arrow.chunked_array(titles, type=arrow.string())
    # An entity without a title is the end of no relationship.
    title_column = compute.if_else(compute.equal(title_column, ""), None, title_column)
    waiting: list[Batch] = []
    parts: list[_Ends] = []
    for batch in batches:
        write("relationships", _number_ids(batch, numbers))
        waiting.append(batch.select(["source", "target", "weight"]))
        if sum(part.num_rows for part in waiting) >= max(_MIN_JOINED_ROWS, len(title_column)):
            parts.append(_find_ends(waiting, title_column))
            waiting = []
    sources, targets, weights = zip(*parts, _find_ends(waiting, title_column), strict=True)
    return np.concatenate(sources), np.concatenate(targets), np.concatenate(weights)


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
    """Sort relationships into edges by node, without self-loops and those with a missing end."""
    source, target, weight = ends
    if max(n_nodes, len(source)) >= 2**31 - 1:
        msg = "A graph of more than 2,147,483,646 entities or relationships can't be searched."
        raise ValueError(msg)
    usable = np.flatnonzero((source >= 0) & (target >= 0) & (source != target)).astype(np.int32)
    heaviest = usable[np.argsort(-weight[usable], kind="stable")]
    # The two ends of each relationship side by side, heaviest relationship first.
    pairs = np.column_stack((source[heaviest], target[heaviest])).reshape(-1)
    order = np.argsort(pairs, kind="stable").astype(np.int32 if len(pairs) < 2**31 else np.int64)
    row = heaviest[order >> 1]
    signed = np.where(order & 1, -1 - row, 1 + row)
    return _pointers(pairs, n_nodes), pairs[order ^ 1], signed, weight[row]


def _sort_mentions(
    units: Ints, names: Ints, n_units: int, n_names: int
) -> tuple[Pointers, Ints, Pointers, Ints]:
    """Return lists of names by text unit and of text units by name; the pairs may repeat."""
    key = np.unique(units.astype(np.int64) * max(1, n_names) + names)
    row, name = np.divmod(key, max(1, n_names))
    order = np.argsort(name, kind="stable")
    return (
        _pointers(row, n_units),
        name.astype(np.int32),
        _pointers(name, n_names),
        row[order].astype(np.int32),
    )


def _count_texts(pointers: Pointers, units: Ints, inside: tuple[Ints, Ints], n_units: int) -> Ints:
    """Count the text units of each name, also inside longer names, each text unit once."""
    counts = np.diff(pointers).astype(np.int32)
    parts = np.unique(inside[0])
    parts_of = np.concatenate([inside[0], parts]).astype(np.int64)
    owner, at = slices(pointers, np.concatenate([inside[1], parts]))
    pairs = np.unique(parts_of[owner] * max(1, n_units) + units[at])
    counts[parts] = np.bincount(pairs // max(1, n_units), minlength=len(counts))[parts]
    return counts


def _find_forms(inside: tuple[Ints, Ints], frequencies: Ints, n_entities: int) -> tuple[Ints, Ints]:
    """Find pairs of entities whose names are forms of one another and about as rare, both ways."""
    pairs = np.column_stack(inside)
    pairs = pairs[(pairs < n_entities).all(axis=1) & (pairs[:, 0] != pairs[:, 1])]
    counts = frequencies[pairs]
    pairs = pairs[counts.max(axis=1) <= _AS_RARE * counts.min(axis=1)]
    both = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
    return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])


def slices(
    pointers: Pointers, rows: npt.NDArray[np.integer], cap: int | None = None
) -> tuple[Pointers, Pointers]:
    """Return the index in `rows` and the position of the first `cap` items of each row."""
    begins = pointers[rows]
    sizes = np.minimum(pointers[rows + 1] - begins, np.iinfo(np.int64).max if cap is None else cap)
    owner = np.repeat(np.arange(len(rows)), sizes)
    return owner, np.arange(int(sizes.sum())) + np.repeat(begins - np.cumsum(sizes) + sizes, sizes)


def _pointers(rows: npt.NDArray[np.integer], n: int) -> Pointers:
    pointers = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=n), out=pointers[1:])
    return pointers


def _number_ids(batch: Batch, numbers: _Numbers) -> Batch:
    """Return a batch in which numbers replace the ids in ``text_unit_ids``."""
    lists = batch.column("text_unit_ids")
    ids = compute.fill_null(lists.flatten(), "").dictionary_encode()
    of_batch = np.array([numbers[name] for name in ids.dictionary.to_pylist()], np.int32)
    ends = np.zeros(len(lists) + 1, dtype=np.int32)
    np.cumsum(compute.list_value_length(lists).to_numpy(), out=ends[1:])
    coded = arrow.array(of_batch[ids.indices.to_numpy()])
    column = arrow.ListArray.from_arrays(arrow.array(ends), coded)
    number = batch.schema.get_field_index("text_unit_ids")
    return batch.set_column(number, "text_unit_ids", column)
