"""Think-on-Graph search: walk the graph from the question's entities, answer from what is found.

In connect mode the entities are joined instead, see ``connecting``.

After ToG (Sun et al., ICLR 2024, arXiv 2307.07697) and ToG-2 (Ma et al., ICLR 2025,
arXiv 2407.10805).
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pandas as pd

from graphrag.config.models.tog_search_config import ToGSearchConfig
from graphrag.query.structured_search.base import SearchResult
from graphrag.query.structured_search.tog_search.answer.grounding import Grounder
from graphrag.query.structured_search.tog_search.answer.reasoning import (
    NOT_FOUND,
    LiveText,
    Reasoner,
)
from graphrag.query.structured_search.tog_search.answer.tables import Context, context_frames
from graphrag.query.structured_search.tog_search.asking.prompts import read_prompts
from graphrag.query.structured_search.tog_search.asking.replies import (
    CompletionModel,
    TextEmbedder,
    ToGSearchError,
)
from graphrag.query.structured_search.tog_search.graph.store import GraphStore
from graphrag.query.structured_search.tog_search.graph.text_units import TextUnits
from graphrag.query.structured_search.tog_search.state import (
    Exploration,
    Passages,
    Question,
    Round,
    Walk,
)
from graphrag.query.structured_search.tog_search.walk.connect_mode import find_ends, join_ends
from graphrag.query.structured_search.tog_search.walk.exploration import (
    is_unimproved,
    keep_best,
    list_candidates,
    select_evidence,
)
from graphrag.query.structured_search.tog_search.walk.pruning import Pruner
from graphrag.query.structured_search.tog_search.walk.spreading import (
    fused_units,
    spread,
    weigh_starts,
)
from graphrag.query.structured_search.tog_search.walk.starting import StartFinder
from graphrag.query.usage import (
    CallAttempt,
    CallLog,
    OutputBound,
    current_scope,
    measure_calls,
    phase,
    summarize_attempts,
)

if TYPE_CHECKING:
    from graphrag_vectors import VectorStore

_PHASES = ("exploration", "reasoning")


@dataclass(frozen=True, slots=True)
class _Found:
    """A response, what it was given from, and how that was come by."""

    response: str
    context: Context
    rounds: tuple[Round, ...]
    abstained: bool
    walk: Walk | None = None


@dataclass
class ToGSearchResult(SearchResult):
    """A search result; ``abstained`` when it says no more than that no answer was found."""

    abstained: bool = False


class ToGSearch:
    """Think-on-Graph search over one index; made once, safe for concurrent searches.

    Parameters
    ----------
    model : CompletionModel
        Scores edges and answers: a graphrag_llm completion.
    text_embedder : TextEmbedder
        Embeds the question: the graphrag_llm embedding that embedded the index.
    graph : GraphStore
    text_units : pandas.DataFrame or TextUnits
        A table with ``id``, ``human_readable_id`` and ``text``, or mapped text units.
    entity_vectors : VectorStore
        Entity descriptions.
    text_unit_vectors : VectorStore or None
        Rank text units beside their words, and alone under ``prune_strategy: semantic`` with
        ``passage_ranking: paths``; without them words decide.
    config : ToGSearchConfig or None
        None for the defaults. Paths of prompt files must be absolute.
    response_type : str
        Form of the answer, free text.

    Raises
    ------
    ToGSearchError
        If a prompt file can't be used.
    """

    def __init__(
        self,
        *,
        model: CompletionModel,
        text_embedder: TextEmbedder,
        graph: GraphStore,
        text_units: pd.DataFrame | TextUnits,
        entity_vectors: "VectorStore",
        text_unit_vectors: "VectorStore | None" = None,
        config: ToGSearchConfig | None = None,
        response_type: str = "Multiple Paragraphs",
    ) -> None:
        config = config or ToGSearchConfig()
        if not isinstance(text_units, TextUnits):
            text_units = TextUnits.from_table(text_units)
        prompts = read_prompts(config)
        self._config = config
        self._graph = graph
        self._spreads = "pagerank" in (config.prune_strategy, config.passage_ranking) or (
            config.prune_strategy == "llm" and config.max_scored_edges is not None
        )
        self._text_embedder = text_embedder
        self._text_units = text_units
        self._text_unit_vectors = text_unit_vectors
        self._finder = StartFinder(
            graph, entity_vectors, text_unit_vectors, tuple(config.start_ranking)
        )
        self._pruner = Pruner(
            store=graph,
            model=model,
            entity_vectors=entity_vectors,
            prompts=prompts,
            strategy=config.prune_strategy,
            temperature=config.temperature_exploration,
            max_scored=config.max_scored_edges,
            max_tokens=config.max_context_tokens,
            tokens_per_edge=config.max_tokens_per_scored_edge,
        )
        self._grounder = Grounder(graph, text_units, text_unit_vectors, model.tokenizer, config)
        self._reasoner = Reasoner(
            model,
            prompts.reasoning,
            config.temperature_reasoning,
            response_type,
            OutputBound(config.max_answer_tokens, "tog_search.max_answer_tokens"),
        )

    async def search(self, query: str, **_: object) -> ToGSearchResult:
        """Answer a question; see :meth:`run`. Further arguments of other searches are ignored."""
        return await self.run(query)

    async def stream_search(self, query: str, **_: object) -> AsyncGenerator[str]:
        """Answer a question piece by piece, as the answer is written.

        The pieces joined are the response, its citations last. Only if an answer that was
        already shown turns out to cite nothing retrieved, a note that withdraws it and the
        text that takes its place follow.

        Raises
        ------
        ToGSearchError
            As :meth:`run`.
        """
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        task = asyncio.create_task(self.run(query, pieces.put_nowait))
        task.add_done_callback(lambda _: pieces.put_nowait(None))
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            await task
        finally:
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def run(
        self, query: str, on_text: Callable[[str], None] | None = None
    ) -> ToGSearchResult:
        """Answer a question.

        Parameters
        ----------
        query : str
            The question.
        on_text : callable or None
            Takes the response piece by piece while it is written; see :meth:`stream_search`.

        Returns
        -------
        ToGSearchResult
            ``context_data`` holds the data frames ``paths``, ``entities``,
            ``relationships``, ``sources``, ``exploration``, ``starts`` and ``edges``,
            ``context_text`` what the last call was shown. Connect mode that finds no path asks
            no model: it says so, the context text is empty and ``exploration`` and ``starts``
            the only frames with rows. The
            counters are those of this search's calls, failed ones and retries included, by the
            phases exploration and reasoning; in a scope that concurrent searches share they
            can't be told apart.

        Raises
        ------
        ToGSearchError
            If the question is empty, the index has no entities or none of them (in connect
            mode: no two) can be started from, or the model's answer stays unreadable.
        CutOffReplyError
            If the model's answer was cut off at ``config.max_answer_tokens``. Failures of the
            models themselves pass through as they are.
        """
        scope = current_scope()
        if scope is not None:
            return await self._run(query, on_text, scope)
        with measure_calls() as own:
            return await self._run(query, on_text, own)

    async def _run(
        self, query: str, on_text: Callable[[str], None] | None, scope: CallLog
    ) -> ToGSearchResult:
        began = time.perf_counter()
        n_before = len(scope.attempts)
        question = await self._embed(query)
        live = LiveText(on_text) if on_text else None
        find = self._connect if self._config.mode == "connect" else self._explore
        found = await find(question, live)
        if live:
            live.finish(found.response)
        return _make_result(
            found,
            frames=context_frames(found.context, found.rounds, self._graph, found.walk),
            seconds=time.perf_counter() - began,
            attempts=scope.attempts[n_before:],
        )

    async def _embed(self, query: str) -> Question:
        if not query.strip():
            msg = "The question is empty."
            raise ToGSearchError(msg)
        if self._graph.n_entities == 0:
            msg = "The index has no entities, so there is no graph to search; build it again."
            raise ToGSearchError(msg)
        with phase("embedding"):
            embedded = await self._text_embedder.embedding_async(input=[query])
        return Question(query, list(embedded.first_embedding))

    async def _connect(self, question: Question, live: LiveText | None) -> _Found:
        """Join the question's entities, and answer from the paths; without a path, ask nobody."""
        config, graph = self._config, self._graph
        ends = await find_ends(question, graph, self._finder, config)
        joined = join_ends(ends, graph, config)
        rounds = (Round(0, "start", 0, len(ends.nodes), ends.note), *joined.rounds)
        if not joined.paths:
            nothing = f"{NOT_FOUND} {joined.unconnected}"
            return _Found(nothing, Context("", 0), rounds, True, Walk(ends.nodes))
        context = await self._grounder.build(question, ends.nodes, joined.paths)
        verdict = await self._reasoner.check(question.text, context, True, live)
        response = f"{verdict.response} {joined.unconnected}".strip()
        rounds = _note_dropped(rounds, verdict.n_dropped_ids)
        return _Found(response, context, rounds, verdict.abstained, Walk(ends.nodes))

    async def _explore(self, question: Question, live: LiveText | None) -> _Found:
        walked = await self._finder.find(question, self._config.width)
        if not walked.starts:
            msg = (
                "No entity to start from: none is named in the question and the vector store "
                "knows no entity of this index; build the index again."
            )
            raise ToGSearchError(msg)
        return await self._think(question, walked, live)

    async def _think(
        self, question: Question, walked: Exploration, live: LiveText | None
    ) -> _Found:
        """Explore, checking at each depth or at the end, until a check gives a response."""
        config = self._config
        reached = await self._spread(question, walked)
        candidates = list_candidates(walked, self._graph, question.text, config)
        while True:
            deeper = True
            if candidates:
                scores = await self._pruner.score(question, candidates, reached.entities)
                before = walked
                walked = keep_best(walked, candidates, scores, self._graph, config)
                deeper = not config.stop_when_unimproved or not is_unimproved(
                    before, walked, config.max_exploration_paths
                )
            # Looking ahead costs no call, and tells whether this check is the last.
            deeper = deeper and len(walked.rounds) <= config.depth
            candidates = (
                list_candidates(walked, self._graph, question.text, config)
                if candidates and deeper
                else []
            )
            final = not candidates
            if not final and config.check == "once":
                continue
            evidence = select_evidence(walked, config.max_exploration_paths)
            passages = reached if config.passage_ranking == "pagerank" else None
            context = await self._grounder.build(question, walked.starts, evidence, passages)
            verdict = await self._reasoner.check(question.text, context, final, live)
            if verdict.response is not None:
                rounds = _note_dropped(walked.rounds, verdict.n_dropped_ids)
                walk = Walk(walked.starts, walked.scored)
                return _Found(verdict.response, context, rounds, verdict.abstained, walk)

    async def _spread(self, question: Question, walked: Exploration) -> Passages:
        if not self._spreads:
            return Passages({}, {})
        units = await fused_units(question, self._text_units, self._text_unit_vectors)
        entities = weigh_starts(question.text, walked.starts, self._graph)
        return spread(entities, units, self._graph, self._config)


def _note_dropped(rounds: tuple[Round, ...], n_dropped: int) -> tuple[Round, ...]:
    if not n_dropped:
        return rounds
    last = rounds[-1]
    said = f"{n_dropped} cited ids were not in the context"
    note = f"{last.note}; {said}" if last.note else said
    return (*rounds[:-1], replace(last, note=note))


def _make_result(
    found: _Found,
    frames: dict[str, pd.DataFrame],
    seconds: float,
    attempts: Sequence[CallAttempt],
) -> ToGSearchResult:
    usage = summarize_attempts(attempts)
    none = dict.fromkeys(_PHASES, 0)
    return ToGSearchResult(
        response=found.response,
        context_data=frames,
        context_text=found.context.text,
        completion_time=seconds,
        llm_calls=usage.llm_calls,
        prompt_tokens=usage.prompt_tokens,
        output_tokens=usage.output_tokens,
        llm_calls_categories={**none, **usage.llm_calls_by_phase},
        prompt_tokens_categories={**none, **usage.prompt_tokens_by_phase},
        output_tokens_categories={**none, **usage.output_tokens_by_phase},
        abstained=found.abstained,
    )
