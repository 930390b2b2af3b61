"""Chooses the texts that questions are drafted from: text units, graph paths, communities."""

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from graphrag.eval.dataset.drafts import ANYBODY, Asker, Passage
from graphrag.eval.stats.intervals import grouped
from graphrag.query.index.tables import IndexTables, rows_of
from graphrag.text.ranking import best_of

if TYPE_CHECKING:
    from graphrag.eval.runner.draft_paths import GraphPaths

T = TypeVar("T")
_LEAST_WORDS = 30
"""Fewest words of a text unit that a question is drafted from."""
_HUB = 0.1
"""An entity in more than this share of the text units joins nothing in particular."""
_IN_COMMUNITY = 4
_N_KEPT = 4096
_LINK_FORMS = ("bridge", "comparison", "set")


def find_quote(text: str, quote: str) -> str:
    """Return a quote as a text has it: the same letters, with the text's own white space.

    "" if the text does not contain it.
    """
    if quote in text:
        return quote
    match = re.search(r"\s+".join(map(re.escape, quote.split())), text)
    return "" if match is None else match[0]


@dataclass(frozen=True, slots=True)
class Material:
    """The material of one question: the passages that it is drafted from.

    ``about`` describes what joins the passages, "" for one passage; ``form``: the form of question
    preferred for a link ("bridge", "comparison" or "set").
    """

    kind: str
    passages: tuple[Passage, ...]
    about: str = ""
    form: str = ""
    asker: Asker = ANYBODY


class Materials:
    """The materials of an index, each kind spread evenly over documents or communities.

    The order is always the same, so that an interrupted draft can go on.
    """

    def __init__(self, tables: IndexTables) -> None:
        # It is part of the searches, which take a second to load.
        from graphrag.query.index.texts import open_texts

        self._tables = tables
        source = tables.paths.get("text_units")
        if source is None and tables.has("text_units"):
            self._texts = open_texts(tables.table("text_units"))
        else:
            self._texts = open_texts(source)
        self._titles: dict[str, str] = dict(self._rows("documents", "id", "title"))
        self._documents: list[str] = self._texts.table.column("document_id").to_pylist()
        self._first: dict[str, int] = {}  # document -> its first text unit
        for unit, document in enumerate(self._documents):
            self._first.setdefault(document, unit)
        self._passage: Callable[[int], Passage] = lru_cache(_N_KEPT)(self._read)

    def _rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        return rows_of(self._tables.columns(table, columns), *columns)

    def _read(self, unit: int) -> Passage:
        from graphrag.query.graph.names import title_of

        texts, document = self._texts.table.column("text"), self._documents[unit]
        title = self._titles.get(document) or ""
        first = self._first[document] if document in self._titles else unit
        heading = title_of(title, texts[first].as_py())
        return Passage(texts[unit].as_py(), title or document, heading)

    def _document(self, unit: int) -> str:
        document = self._documents[unit]
        return self._titles.get(document) or document

    def find(self, quote: str) -> Passage | None:
        """Return the first text unit with a quote (see :func:`find_quote`); None without one."""
        batches = self._texts.batches()
        texts = (text for batch in batches for text in batch.column("text").to_pylist())
        unit = next((unit for unit, text in enumerate(texts) if find_quote(text, quote)), None)
        return None if unit is None else self._passage(unit)

    def best(self, question: str, k: int = 5) -> tuple[Passage, ...]:
        """Return the ``k`` text units that BM25 ranks highest for a question.

        The first call counts the words of all texts, unless the counts are kept next to the index.
        """
        scores = self._texts.passages(None).scores(question)
        return tuple(self._passage(unit) for unit, _ in best_of(scores, k))

    @cached_property
    def _long(self) -> list[int]:
        batches = self._texts.batches()
        texts = (text for batch in batches for text in batch.column("text").to_pylist())
        units = [unit for unit, text in enumerate(texts) if len(text.split()) >= _LEAST_WORDS]
        return units or [*range(len(self._documents))]

    def of(self, kind: str) -> Iterator[Material]:
        """Yield the materials of a kind of question, each once."""
        rng = random.Random(f"0:{kind}")
        if kind == "link":
            return self._links(rng)
        if kind == "global":
            return self._communities(rng)
        by_document = grouped((self._document(unit), unit) for unit in self._long)
        spread = _spread([_shuffled(group, rng) for group in by_document.values()], rng)
        return (Material(kind=kind, passages=(self._passage(unit),)) for unit in spread)

    def _links(self, rng: random.Random) -> Iterator[Material]:
        """Yield relationships that share an entity and come from different text units.

        Each entity joins relationships once. Paths are searched only as materials are taken.
        """
        paths = self._paths
        documents = grouped((self._document(unit), unit) for unit in paths.units)
        joined = set[int]()

        def begin_in(unit: int) -> Iterator[Material]:
            for edge, bridge in _shuffled(paths.ends_in(unit), rng):
                if bridge in joined or not paths.joins(bridge):
                    continue
                form = _LINK_FORMS[len(joined) % len(_LINK_FORMS)]
                path = {unit: edge}
                for other in _shuffled(paths.edges_of(bridge), rng):
                    new = next((u for u in paths.units_of(other) if u not in path), None)
                    is_short = len(path) < (3 if form == "set" else 2)
                    if other != edge and new is not None and is_short:
                        path[new] = other
                if len(path) > 1:
                    joined.add(bridge)
                    about = f"{paths.names[bridge]} joins them. {paths.describe(path.values())}"
                    yield Material(
                        kind="link",
                        passages=tuple(map(self._passage, path)),
                        about=about,
                        form=form,
                    )

        def of_document(units: Sequence[int]) -> Iterator[Material]:
            yield from _in_turn(map(begin_in, _shuffled(units, rng)))

        return _spread([of_document(units) for units in documents.values()], rng)

    @cached_property
    def _paths(self) -> "GraphPaths":
        from graphrag.eval.runner.draft_paths import GraphPaths

        most = max(2.0, _HUB * len(self._documents))
        return GraphPaths(self._tables, self._texts.table.column("id").to_pylist(), most)

    def _communities(self, rng: random.Random) -> Iterator[Material]:
        summaries: dict[str, str] = dict(self._rows("community_reports", "community", "summary"))
        by_level = defaultdict[str, list[Material]](list)
        columns = ("community", "level", "title", "text_unit_ids")
        for key, level, title, units in self._rows("communities", *columns):
            members = [self._texts.rows[unit] for unit in units if unit in self._texts.rows]
            if len(members) < 2:
                continue
            by_document = grouped((self._document(u), u) for u in _shuffled(members, rng))
            chosen = [*_spread(list(by_document.values()), rng)][:_IN_COMMUNITY]
            passages = tuple(map(self._passage, chosen))
            about = summaries.get(key, str(title))
            by_level[level].append(Material(kind="global", passages=passages, about=about))
        return _spread([_shuffled(group, rng) for group in by_level.values()], rng)


def _shuffled(items: Sequence[T], rng: random.Random) -> list[T]:
    return rng.sample(items, len(items))


def _spread(groups: Sequence[Iterable[T]], rng: random.Random) -> Iterator[T]:
    """Take one item of each group in turn, with the groups in random order."""
    return _in_turn(map(iter, _shuffled(groups, rng)))


def _in_turn(groups: Iterable[Iterator[T]]) -> Iterator[T]:
    """Take one item of each group in turn; read no group further than items are taken."""
    waiting = [*groups]
    while waiting:
        left: list[Iterator[T]] = []
        for group in waiting:
            for item in islice(group, 1):
                left.append(group)
                yield item
        waiting = left
