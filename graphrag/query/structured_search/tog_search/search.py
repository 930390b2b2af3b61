"""Think-on-Graph search: walk the graph from the question's entities, answer from what is found.

In connect mode the entities are joined instead, see ``connecting``.

After ToG (Sun et al., ICLR 2024, arXiv 2307.07697) and ToG-2 (Ma et al., ICLR 2025,
arXiv 2407.10805).
"""

import pandas as pd

from graphrag.config.models.tog_search_config import ToGSearchConfig
from graphrag.query.methods import LEAST_SCORING, SCORING_SHARE
from graphrag.query.structured_search.tog_search.answer.reasoning import NOT_FOUND, LiveText
from graphrag.query.structured_search.tog_search.answer.tables import Context
from graphrag.query.structured_search.tog_search.asking.prompts import read_scoring_prompt
from graphrag.query.structured_search.tog_search.asking.replies import CompletionModel
from graphrag.query.structured_search.tog_search.graph.store import GraphStore
from graphrag.query.structured_search.tog_search.graph.text_units import TextUnits
from graphrag.query.structured_search.tog_search.graph_search import (
    Found,
    GraphSearch,
    found_nothing,
    note_verdict,
)
from graphrag.query.structured_search.tog_search.state import Round, Walk
from graphrag.query.structured_search.tog_search.walk.connect_mode import find_ends, join_ends
from graphrag.query.structured_search.tog_search.walk.exploration import (
    is_unimproved,
    keep_best,
    list_candidates,
    select_evidence,
)
from graphrag.query.structured_search.tog_search.walk.pruning import Pruner
from graphrag.query.structured_search.tog_search.walk.starting import find_starts


class ToGSearch(GraphSearch):
    """Think-on-Graph search: a model scores the edges ahead at each depth, then checks and answers.

    Parameters are those of :class:`GraphSearch`; without a configuration the defaults hold.
    """

    section = "tog_search"
    texts_first = False

    def __init__(
        self,
        *,
        model: CompletionModel,
        graph: GraphStore,
        text_units: pd.DataFrame | TextUnits,
        config: ToGSearchConfig | None = None,
        response_type: str = "Multiple Paragraphs",
    ) -> None:
        config = config or ToGSearchConfig()
        super().__init__(model, graph, text_units, config, response_type)
        self._config = config
        self._pruner = Pruner(
            store=graph,
            model=model,
            prompt=read_scoring_prompt(config.scoring_prompt, 2 * config.width),
            max_scored=config.max_scored_edges,
            max_tokens=max(LEAST_SCORING, config.max_context_tokens // SCORING_SHARE),
        )

    async def find(self, question: str, live: LiveText | None) -> Found:
        """Walk, or join; and answer."""
        find = self._connect if self._config.mode == "connect" else self._explore
        return await find(question, live)

    async def _connect(self, question: str, live: LiveText | None) -> Found:
        """Join the question's entities, and answer from the paths; without a path, ask nobody."""
        config, graph = self._config, self.graph
        reached = await self.rank(question)
        ends = find_ends(question, graph, reached.entities, config)
        joined = join_ends(ends, graph, config)
        rounds = (Round(0, "start", 0, len(ends.nodes), ends.note), *joined.rounds)
        walk = Walk(ends.nodes)
        if not joined.paths:
            nothing = f"{NOT_FOUND} {joined.unconnected}"
            return Found(nothing, Context("", 0), rounds, True, walk)
        context = await self.show(ends.nodes, joined.paths, reached)
        verdict = await self.check(question, context, live)
        response = f"{verdict.response} {joined.unconnected}".strip()
        rounds = note_verdict(rounds, verdict)
        return Found(response, context, rounds, verdict.abstained, walk)

    async def _explore(self, question: str, live: LiveText | None) -> Found:
        """Walk to the end, then check and answer in one call."""
        config, graph = self._config, self.graph
        reached = await self.rank(question)
        walked = find_starts(question, reached.entities, graph, config.width)
        if not walked.starts and not reached.units:
            return found_nothing(walked.rounds)
        for _ in range(config.depth):
            candidates = list_candidates(walked, graph, question, config.max_relations_per_entity)
            if not candidates:
                break
            scores = await self._pruner.score(question, candidates, reached.entities)
            before = walked
            walked = keep_best(walked, candidates, scores, graph, config.width)
            if is_unimproved(before, walked):
                break
        reached = await self.rank(question, select_evidence(walked))
        return await self.conclude(question, walked, reached, live)
