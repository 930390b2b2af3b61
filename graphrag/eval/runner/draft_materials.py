"""What questions are drafted from: text units, paths of the graph, communities of an index."""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any, NamedTuple, TypeVar, cast

from graphrag.eval.dataset.drafts import ANYBODY, Asker, Passage
from graphrag.eval.stats.intervals import grouped
from graphrag.query.index_tables import IndexTables, rows_of
from graphrag.text.ranking import WordIndex

T = TypeVar("T")
_LEAST_WORDS = 30
"""Of a text unit that a question is drafted from."""
_HUB = 0.1
"""An entity named in more than this share of the text units joins nothing in particular."""
_IN_COMMUNITY = 4
_LINK_FORMS = ("bridge", "comparison", "set")


@dataclass(frozen=True, slots=True)
class Material:
    """What one question is drafted from; ``about`` says what joins the passages, "" for one."""

    kind: str
    passages: tuple[Passage, ...]
    about: str = ""
    form: str = ""
    asker: Asker = ANYBODY


class _Edge(NamedTuple):
    source: str
    target: str
    text: str
    units: list[str]


class Materials:
    """The materials of an index, each kind spread evenly over documents and communities.

    The order is always the same, so that an interrupted draft goes on with it.
    """

    def __init__(self, tables: IndexTables) -> None:
        # It comes with the searches, which take a second to load.
        from graphrag.query.structured_search.tog_search.names import title_of

        self._tables = tables
        titles: dict[str, str] = dict(self._rows("documents", "id", "title"))
        units = self._rows("text_units", "id", "text", "document_id")
        first: dict[str, str] = {}  # document -> its beginning
        self._passages = {
            name: Passage(
                text, t or str(d), title_of(t, first.setdefault(d if d in titles else name, text))
            )
            for name, text, d in units
            for t in [titles.get(d) or ""]
        }
        self._words: WordIndex | None = None

    def _rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        return rows_of(self._tables.columns(table, columns), *columns)

    def find(self, quote: str) -> Passage | None:
        """Return the first text unit that holds a quote letter by letter, None without one."""
        return next((passage for passage in self._passages.values() if quote in passage.text), None)

    def best(self, question: str, k: int = 5) -> tuple[Passage, ...]:
        """Return the text units that BM25 ranks highest for a question."""
        passages = list(self._passages.values())
        self._words = self._words or WordIndex.of([passage.text for passage in passages])
        return tuple(passages[place] for place, _ in self._words.best(question, k))

    def of(self, kind: str) -> Iterator[Material]:
        """Go through the materials of a kind of question, each once."""
        rng = random.Random(f"0:{kind}")
        if kind == "link":
            return self._links(rng)
        if kind == "global":
            return self._communities(rng)
        long = [p for p in self._passages.values() if len(p.text.split()) >= _LEAST_WORDS]
        by_document = grouped((p.document, p) for p in long or self._passages.values())
        spread = _spread([_shuffled(group, rng) for group in by_document.values()], rng)
        return (Material(kind, (passage,)) for passage in spread)

    def _links(self, rng: random.Random) -> Iterator[Material]:
        """Give two relationships that share an entity, and stand in different text units."""
        columns = ("source", "target", "description", "text_unit_ids")
        edges = [
            _Edge(a, b, text, [unit for unit in units if unit in self._passages])
            for a, b, text, units in self._rows("relationships", *columns)
        ]
        ends = defaultdict[str, list[int]](list)
        units_of = defaultdict[str, set[str]](set)
        for place, edge in enumerate(edges):
            for entity in (edge.source, edge.target):
                ends[entity].append(place)
                units_of[entity].update(edge.units)
        most = max(2.0, _HUB * len(self._passages))
        bridges = [e for e, places in ends.items() if len(places) > 1 and len(units_of[e]) <= most]
        links: list[Material] = []
        for number, bridge in enumerate(_shuffled(bridges, rng)):
            form = _LINK_FORMS[number % len(_LINK_FORMS)]
            path: dict[str, _Edge] = {}  # text unit -> the edge that it is taken for
            for edge in (edges[place] for place in _shuffled(ends[bridge], rng)):
                new = next((unit for unit in edge.units if unit not in path), None)
                if new is not None and len(path) < (3 if form == "set" else 2):
                    path[new] = edge
            if len(path) > 1:
                relations = "; ".join(f"{e.source} - {e.target}: {e.text}" for e in path.values())
                passages = tuple(self._passages[unit] for unit in path)
                links.append(Material("link", passages, f"{bridge} joins them. {relations}", form))
        by_document = grouped((link.passages[0].document, link) for link in links)
        return _spread(list(by_document.values()), rng)

    def _communities(self, rng: random.Random) -> Iterator[Material]:
        summaries: dict[str, str] = dict(self._rows("community_reports", "community", "summary"))
        by_level = defaultdict[str, list[Material]](list)
        columns = ("community", "level", "title", "text_unit_ids")
        for key, level, title, units in self._rows("communities", *columns):
            members = [self._passages[unit] for unit in units if unit in self._passages]
            if len(members) < 2:
                continue
            by_document = grouped((p.document, p) for p in _shuffled(members, rng))
            passages = tuple(_spread(list(by_document.values()), rng))[:_IN_COMMUNITY]
            about = summaries.get(key, str(title))
            by_level[level].append(Material("global", passages, about))
        return _spread([_shuffled(group, rng) for group in by_level.values()], rng)


def _shuffled(items: Sequence[T], rng: random.Random) -> list[T]:
    return rng.sample(items, len(items))


def _spread(groups: Sequence[Sequence[T]], rng: random.Random) -> Iterator[T]:
    """Take one of each group in turn."""
    missing = object()
    turns = zip_longest(*_shuffled(groups, rng), fillvalue=missing)
    return (cast("T", item) for item in chain.from_iterable(turns) if item is not missing)
