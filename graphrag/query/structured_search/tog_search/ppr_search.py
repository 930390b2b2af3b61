"""Search by personalised PageRank: one call, from the texts that most of a question reaches."""

import pandas as pd

from graphrag.config.models.tog_search_config import PPRSearchConfig
from graphrag.query.structured_search.tog_search.answer.reasoning import LiveText
from graphrag.query.structured_search.tog_search.asking.replies import CompletionModel
from graphrag.query.structured_search.tog_search.graph.store import GraphStore
from graphrag.query.structured_search.tog_search.graph.text_units import TextUnits
from graphrag.query.structured_search.tog_search.graph_search import (
    Found,
    GraphSearch,
    found_nothing,
)
from graphrag.query.structured_search.tog_search.state import Exploration, Passages
from graphrag.query.structured_search.tog_search.walk.exploration import (
    keep_best,
    list_candidates,
)
from graphrag.query.structured_search.tog_search.walk.promise import score_by_reach
from graphrag.query.structured_search.tog_search.walk.starting import find_starts

_WIDTH = 3
_DEPTH = 3


class PPRSearch(GraphSearch):
    """Ranks text units by the mass that reaches them, and asks once.

    The paths that it shows beside them are those along which most mass lies; no model chose
    them. Parameters are those of :class:`GraphSearch`; without a configuration the defaults hold.
    """

    section = "ppr_search"
    texts_first = True

    def __init__(
        self,
        *,
        model: CompletionModel,
        graph: GraphStore,
        text_units: pd.DataFrame | TextUnits,
        config: PPRSearchConfig | None = None,
        response_type: str = "Multiple Paragraphs",
    ) -> None:
        super().__init__(model, graph, text_units, config or PPRSearchConfig(), response_type)

    async def find(self, question: str, live: LiveText | None) -> Found:
        """Rank, show, ask."""
        reached = await self.rank(question)
        walked = find_starts(question, reached.entities, self.graph, _WIDTH)
        if not walked.starts and not reached.units:
            return found_nothing(walked.rounds)
        walked = await self._follow(question, walked, reached)
        return await self.conclude(question, walked, reached, live)

    async def _follow(self, question: str, walked: Exploration, reached: Passages) -> Exploration:
        """Walk where mass and words lead."""
        for _ in range(_DEPTH):
            candidates = list_candidates(walked, self.graph, question, self._cap)
            if not candidates:
                break
            scores = await score_by_reach(question, candidates, reached.entities, self.graph)
            walked = keep_best(walked, candidates, scores, self.graph, _WIDTH)
        return walked
