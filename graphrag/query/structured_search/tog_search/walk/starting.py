"""Choosing the entities to start from: those named in the question, and those nearest to it."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphrag.config.models.tog_search_config import StartRanking
from graphrag.query.structured_search.tog_search.graph.store import GraphStore
from graphrag.query.structured_search.tog_search.state import Exploration, Path, Question, Round
from graphrag.text.ranking import fuse_ranks, load_bm25

if TYPE_CHECKING:
    from graphrag_vectors import VectorStore

_MIN_RANKED = 10
_N_UNITS = 10
# A text unit names few entities; of one that names more, the first of the table count.
_MAX_ENTITIES_PER_UNIT = 100


@dataclass(frozen=True, slots=True)
class StartFinder:
    """Finds the starts of searches over one index.

    Parameters
    ----------
    store : GraphStore
    entity_vectors : VectorStore
        Entity descriptions; a document's id is the entity's id.
    text_unit_vectors : VectorStore or None
        Without them the ranking ``texts`` is empty.
    rankings : sequence of {"descriptions", "texts", "words"}
        What is fused.
    """

    store: GraphStore
    entity_vectors: "VectorStore"
    text_unit_vectors: "VectorStore | None" = None
    rankings: Sequence[StartRanking] = ("descriptions",)

    async def find(self, question: Question, width: int) -> Exploration:
        """Choose the entities to start from.

        Parameters
        ----------
        question : Question
            Embedded by the model that embedded the index.
        width : int
            At most so many entities named in the question, and as many of the fused ranking.

        Returns
        -------
        Exploration
            A beam of paths without steps, named entities first; empty when none was found.
        """
        n_ranked = max(2 * width, _MIN_RANKED)
        ranked: list[list[int]] = []
        stale = 0
        for name in self.rankings:
            if name == "descriptions":
                nodes, stale = await self._rank_descriptions(question, n_ranked)
                ranked.append(nodes)
            elif name == "texts":
                ranked.append((await self._rank_texts(question))[:n_ranked])
            else:
                await load_bm25()
                words = self.store.rank_by_words
                ranked.append(await asyncio.to_thread(words, question.text, n_ranked))
        named = self.store.nodes_named_in(question.text)[:width]
        near = [node for node in self._fuse(ranked) if node not in named][:width]
        starts = tuple(dict.fromkeys([*named, *near]))
        note = f"{len(named)} named in the question, {len(starts) - len(named)} near it"
        if stale:
            note += f"; {stale} entity vectors are of no entity of this index"
        return Exploration(
            starts=starts,
            beam=tuple(Path(node) for node in starts),
            rounds=(Round(0, "start", 0, len(starts), note),),
        )

    def _fuse(self, ranked: list[list[int]]) -> list[int]:
        # By title where scores are equal: rows may stand in any order.
        named = [[(self.store.title(node), node) for node in nodes] for nodes in ranked]
        return [node for _, node in fuse_ranks(named)]

    async def _rank_descriptions(self, question: Question, k: int) -> tuple[list[int], int]:
        """Return the nearest entities, and how many vectors are of none."""
        hits = await asyncio.to_thread(
            self.entity_vectors.similarity_search_by_vector,
            question.vector,
            k=k,
            include_vectors=False,
        )
        ranked = sorted(
            (-hit.score, self.store.title(node), node)
            for hit in hits
            if (node := self.store.node_of_id(str(hit.document.id))) is not None
        )
        return [node for _, _, node in ranked], len(hits) - len(ranked)

    async def _rank_texts(self, question: Question) -> list[int]:
        """Rank the entities of the nearest text units by the sum of their reciprocal ranks.

        An entity's sum is divided by the number of text units that name it, so that one that
        stands everywhere does not come first everywhere.
        """
        if self.text_unit_vectors is None:
            return []
        hits = await asyncio.to_thread(
            self.text_unit_vectors.similarity_search_by_vector,
            question.vector,
            k=_N_UNITS,
            include_vectors=False,
        )
        near = [name for _, name in sorted((-hit.score, str(hit.document.id)) for hit in hits)]
        total: defaultdict[int, float] = defaultdict(float)
        for name, score in fuse_ranks([near]).items():
            for node in self.store.entities_in(name, _MAX_ENTITIES_PER_UNIT):
                total[node] += score / len(self.store.entity_row(node).text_unit_ids)
        return sorted(total, key=lambda node: (-round(total[node], 12), self.store.title(node)))
