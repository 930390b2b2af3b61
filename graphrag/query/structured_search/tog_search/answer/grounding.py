"""From paths to a context: the texts behind them, and what fits the budget, whole rows only."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from graphrag.config.models.tog_search_config import ToGSearchConfig
from graphrag.query.structured_search.tog_search.answer.tables import (
    Context,
    entity_line,
    path_line,
    relationship_line,
    render_context,
    source_line,
)
from graphrag.query.structured_search.tog_search.asking.replies import Tokenizer
from graphrag.query.structured_search.tog_search.graph.store import (
    EntityRow,
    GraphStore,
    RelationshipRow,
)
from graphrag.query.structured_search.tog_search.graph.text_units import TextUnit, TextUnits
from graphrag.query.structured_search.tog_search.state import Passages, Path, Question
from graphrag.query.structured_search.tog_search.vectors import cosine_by_id
from graphrag.text.ranking import bm25_scores

if TYPE_CHECKING:
    from graphrag_vectors import VectorStore

_DECAY = 0.8
_ENTITY_WEIGHT = 0.5
# Text that shares no word with the question may still hold the second half of an answer.
_FLOOR = 0.05
# An entity of a large index may stand in thousands of text units; a search looks at so many.
_MAX_UNITS_PER_ROW = 100
_MAX_UNITS = 300
_N_CACHED_COUNTS = 2048


@dataclass(slots=True)
class _Draft:
    """The rows chosen so far, each with its rendered line, and the tokens they take."""

    used: int
    paths: dict[Path, str] = field(default_factory=dict[Path, str])
    relationships: dict[int, tuple[RelationshipRow, str]] = field(
        default_factory=dict[int, tuple[RelationshipRow, str]]
    )
    entities: dict[int, tuple[EntityRow, str]] = field(
        default_factory=dict[int, tuple[EntityRow, str]]
    )
    sources: list[tuple[TextUnit, str]] = field(default_factory=list[tuple[TextUnit, str]])

    def render(self) -> str:
        return render_context(
            self.paths.values(),
            (line for _, line in self.entities.values()),
            (line for _, line in self.relationships.values()),
            (line for _, line in self.sources),
        )

    def drop_last(self) -> bool:
        """Take the least important row out; False when there is none left."""
        if self.sources:
            self.sources.pop()
        elif self.entities:
            self.entities.popitem()
        elif self.paths:
            self.paths.popitem()
            needed = {
                link.relationship
                for path in self.paths
                for step in path.steps
                for link in step.edge.links
            }
            for row in [row for row in self.relationships if row not in needed]:
                del self.relationships[row]
        else:
            return False
        return True


class Grounder:
    """Builds contexts over one index.

    Parameters
    ----------
    store : GraphStore
    text_units : TextUnits
    text_unit_vectors : VectorStore or None
        Ranks text units under the strategy semantic; bm25 does otherwise.
    tokenizer : Tokenizer
        The completion model's.
    config : ToGSearchConfig
    """

    def __init__(
        self,
        store: GraphStore,
        text_units: TextUnits,
        text_unit_vectors: "VectorStore | None",
        tokenizer: Tokenizer,
        config: ToGSearchConfig,
    ) -> None:
        self._store = store
        self._text_units = text_units
        self._vectors = text_unit_vectors if config.prune_strategy == "semantic" else None
        self._count = lru_cache(maxsize=_N_CACHED_COUNTS)(tokenizer.num_tokens)
        self._count_context = tokenizer.num_tokens
        self._budget = config.max_context_tokens
        self._graph_share = config.graph_share
        self._with_texts = config.ground_text_units

    async def build(
        self,
        question: Question,
        starts: Sequence[int],
        paths: Sequence[Path],
        passages: Passages | None = None,
    ) -> Context:
        """Choose and render what the model is shown.

        Paths, relationships and entities take at most ``graph_share`` of ``max_context_tokens``
        (all of it without grounding; the best path alone may take more), text units the rest.

        Parameters
        ----------
        question : Question
        starts : sequence of int
            Nodes that the search started from; shown after those on the paths.
        paths : sequence of Path
            Best first.
        passages : Passages or None
            Ranks the text units; without it those behind the paths are ranked.

        Returns
        -------
        Context
            At most ``max_context_tokens`` tokens, unless the bare headings take more.
        """
        draft = _Draft(used=self._count(render_context((), (), (), ())))
        limit = int(self._budget * self._graph_share) if self._with_texts else self._budget
        for path in paths:
            self._add_path(draft, path, limit if draft.paths else self._budget)
        for path in draft.paths:
            for node in path.nodes:
                self._add_entity(draft, node, limit)
        for node in starts:
            self._add_entity(draft, node, limit if draft.paths or draft.entities else self._budget)
        if self._with_texts:
            ranked = (
                self._read_ranked(passages)
                if passages
                else await self._rank_text_units(question, starts, paths)
            )
            for unit in ranked:
                line = source_line(unit)
                if self._take(draft, [line], self._budget):
                    draft.sources.append((unit, line))
        return self._finish(draft)

    def _finish(self, draft: _Draft) -> Context:
        # Joined rows may take a few tokens more than the rows counted one by one.
        text = draft.render()
        n_tokens = self._count_context(text)
        while n_tokens > self._budget and draft.drop_last():
            text = draft.render()
            n_tokens = self._count_context(text)
        return Context(
            text=text,
            n_tokens=n_tokens,
            paths=tuple(draft.paths),
            entities=tuple(row for row, _ in draft.entities.values()),
            relationships=tuple(row for row, _ in draft.relationships.values()),
            sources=tuple(unit for unit, _ in draft.sources),
        )

    def _take(self, draft: _Draft, lines: Sequence[str], limit: int) -> bool:
        cost = sum(self._count(line + "\n") for line in lines)
        if draft.used + cost > limit:
            return False
        draft.used += cost
        return True

    def _add_path(self, draft: _Draft, path: Path, limit: int) -> None:
        line = path_line(path, self._store)
        new: dict[int, tuple[RelationshipRow, str]] = {}
        for step in path.steps:
            for link in step.edge.links:
                if link.relationship not in draft.relationships:
                    row = self._store.relationship_row(link.relationship)
                    new[link.relationship] = (row, relationship_line(row))
        if self._take(draft, [line, *(text for _, text in new.values())], limit):
            draft.paths[path] = line
            draft.relationships.update(new)

    def _add_entity(self, draft: _Draft, node: int, limit: int) -> None:
        if node in draft.entities:
            return
        row = self._store.entity_row(node)
        line = entity_line(row)
        if self._take(draft, [line], limit):
            draft.entities[node] = (row, line)

    def _read_ranked(self, passages: Passages) -> list[TextUnit]:
        found = (self._text_units.get(name) for name in passages.ranked_units()[:_MAX_UNITS])
        return [unit for unit in found if unit is not None]

    async def _rank_text_units(
        self, question: Question, starts: Sequence[int], paths: Sequence[Path]
    ) -> list[TextUnit]:
        """Rank the text units behind paths and entities, best first.

        Each path, and each entity with half its best path's weight, ranks its own text units
        by relevance to the question and gives the one at rank r (from 0) its score times
        e^(-0.8 r); a text unit's gifts add up and are multiplied by its relevance. So every
        path speaks for its best text, and what many paths share but the question does not ask
        for stays behind. The decay is ToG-2's (arXiv 2407.10805), the rest is ours.
        """
        supporters = self._list_supporters(starts, paths)
        units: dict[str, TextUnit] = {}
        for _, unit_ids in supporters:
            for unit_id in unit_ids:
                if unit_id not in units and len(units) < _MAX_UNITS:
                    unit = self._text_units.get(unit_id)
                    if unit is not None:
                        units[unit_id] = unit
        relevance = await self._relevance(question, list(units.values()))

        def order(unit_id: str) -> tuple[float, int, str]:
            return (-relevance[unit_id], units[unit_id].human_readable_id, unit_id)

        total: defaultdict[str, float] = defaultdict(float)
        for weight, unit_ids in supporters:
            known = sorted({name for name in unit_ids if name in units}, key=order)
            for rank, unit_id in enumerate(known):
                total[unit_id] += weight * math.exp(-_DECAY * rank) * relevance[unit_id]
        best = sorted(units, key=lambda unit_id: (-total[unit_id], *order(unit_id)))
        return [units[unit_id] for unit_id in best]

    def _list_supporters(
        self, starts: Sequence[int], paths: Sequence[Path]
    ) -> list[tuple[float, list[str]]]:
        supporters: list[tuple[float, list[str]]] = []
        weight_of_node: dict[int, float] = {} if paths else dict.fromkeys(starts, 1.0)
        for path in paths:
            of_path: list[str] = []
            for step in path.steps:
                for link in step.edge.links:
                    row = self._store.relationship_row(link.relationship)
                    of_path += row.text_unit_ids[:_MAX_UNITS_PER_ROW]
            supporters.append((path.score, of_path))
            for node in path.nodes:
                weight_of_node[node] = max(path.score, weight_of_node.get(node, 0.0))
        least = min((path.score for path in paths), default=1.0)
        for node in starts:
            weight_of_node.setdefault(node, least)
        for node, weight in weight_of_node.items():
            of_node = self._store.entity_row(node).text_unit_ids[:_MAX_UNITS_PER_ROW]
            supporters.append((_ENTITY_WEIGHT * weight, list(of_node)))
        return supporters

    async def _relevance(self, question: Question, units: list[TextUnit]) -> dict[str, float]:
        """Return each text unit's relevance to the question, in [_FLOOR, 1]."""
        if self._vectors is not None:
            near = await cosine_by_id(question.vector, [unit.id for unit in units], self._vectors)
            return {unit.id: max(_FLOOR, near.get(unit.id, 0.0)) for unit in units}
        scores = bm25_scores(question.text, self._text_units.terms(units))
        best = float(scores.max(initial=0.0)) or 1.0
        return {
            unit.id: max(_FLOOR, float(score) / best)
            for unit, score in zip(units, scores, strict=True)
        }
