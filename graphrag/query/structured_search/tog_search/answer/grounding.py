"""From paths and ranked texts to a context: what fits the budget, whole rows only."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from graphrag.config.models.tog_search_config import PPRSearchConfig
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
from graphrag.query.structured_search.tog_search.state import Passages, Path

# No budget holds more.
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
    tokenizer : Tokenizer
        The completion model's.
    config : PPRSearchConfig
    texts_first : bool
        Whether paths and entities get no more than text units leave.
    """

    def __init__(
        self,
        store: GraphStore,
        text_units: TextUnits,
        tokenizer: Tokenizer,
        config: PPRSearchConfig,
        texts_first: bool,
    ) -> None:
        self._store = store
        self._text_units = text_units
        self._count = lru_cache(maxsize=_N_CACHED_COUNTS)(tokenizer.num_tokens)
        self._count_context = tokenizer.num_tokens
        self._budget = config.max_context_tokens
        self._graph_share = config.graph_share
        self._texts_first = texts_first

    def build(self, starts: Sequence[int], paths: Sequence[Path], passages: Passages) -> Context:
        """Choose and render what the model is shown.

        Paths, relationships and entities take at most ``graph_share`` of ``max_context_tokens``
        (all of it where no text unit is there or fits), text units the rest.

        Parameters
        ----------
        starts : sequence of int
            Nodes that the search started from; shown after those on the paths.
        paths : sequence of Path
            Best first.
        passages : Passages
            Ranks the text units.

        Returns
        -------
        Context
            At most ``max_context_tokens`` tokens, unless the bare headings take more.
        """
        draft = _Draft(used=self._count(render_context((), (), (), ())))
        share = int(self._budget * self._graph_share)
        if not self._texts_first:
            self._add_graph(draft, starts, paths, share)
        for unit in self._text_units.best(passages.units, _MAX_UNITS):
            line = source_line(unit)
            if self._take(draft, [line], self._budget):
                draft.sources.append((unit, line))
        if self._texts_first or not draft.sources:
            left = min(self._budget, draft.used + share) if draft.sources else self._budget
            self._add_graph(draft, starts, paths, left)
        return self._finish(draft)

    def _add_graph(
        self, draft: _Draft, starts: Sequence[int], paths: Sequence[Path], limit: int
    ) -> None:
        for path in paths:
            if path not in draft.paths:
                self._add_path(draft, path, limit)
        for path in draft.paths:
            for node in path.nodes:
                self._add_entity(draft, node, limit)
        for node in starts:
            self._add_entity(draft, node, limit)

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
