"""What the searches of the graph share: asking once, the frames of a result, its counters."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import pandas as pd

from graphrag.config.models.tog_search_config import PPRSearchConfig
from graphrag.query.structured_search.base import SearchResult
from graphrag.query.structured_search.tog_search.answer.grounding import Grounder
from graphrag.query.structured_search.tog_search.answer.reasoning import (
    NOT_FOUND,
    LiveText,
    Reasoner,
    Verdict,
)
from graphrag.query.structured_search.tog_search.answer.tables import Context, context_frames
from graphrag.query.structured_search.tog_search.asking.prompts import read_reasoning_prompt
from graphrag.query.structured_search.tog_search.asking.replies import (
    CompletionModel,
    ToGSearchError,
)
from graphrag.query.structured_search.tog_search.graph.store import GraphStore
from graphrag.query.structured_search.tog_search.graph.text_units import TextUnits
from graphrag.query.structured_search.tog_search.state import (
    Exploration,
    Passages,
    Path,
    Round,
    Walk,
)
from graphrag.query.structured_search.tog_search.walk.exploration import select_evidence
from graphrag.query.structured_search.tog_search.walk.spreading import rank_passages
from graphrag.query.usage import (
    CallAttempt,
    CallLog,
    OutputBound,
    current_scope,
    measure_calls,
    summarize_attempts,
)

_PHASES = ("exploration", "reasoning")


@dataclass(frozen=True, slots=True)
class Found:
    """A response, what it was given from, and how that was come by."""

    response: str
    context: Context
    rounds: tuple[Round, ...]
    abstained: bool
    walk: Walk | None = None


@dataclass
class GraphSearchResult(SearchResult):
    """A search result; ``abstained`` when it says no more than that no answer was found."""

    abstained: bool = False


class GraphSearch(ABC):
    """A search over one graph; made once, safe for concurrent searches.

    Parameters
    ----------
    model : CompletionModel
        A graphrag_llm completion.
    graph : GraphStore
    text_units : pandas.DataFrame or TextUnits
        A table with ``id``, ``human_readable_id`` and ``text``, or mapped text units. Without
        rows a search answers from the graph alone.
    config : PPRSearchConfig
        Paths of prompt files must be absolute.
    response_type : str
        Form of the answer, free text.

    Raises
    ------
    ToGSearchError
        If a prompt file can't be used.
    """

    section: str
    """Its section of settings.yaml."""
    texts_first: bool
    """Whether paths and entities are shown only where text units leave room."""

    def __init__(
        self,
        model: CompletionModel,
        graph: GraphStore,
        text_units: pd.DataFrame | TextUnits,
        config: PPRSearchConfig,
        response_type: str,
    ) -> None:
        if not isinstance(text_units, TextUnits):
            text_units = TextUnits.from_table(text_units)
        self.graph = graph
        self._text_units = text_units
        self._cap = config.max_relations_per_entity
        self._grounder = Grounder(graph, text_units, model.tokenizer, config, self.texts_first)
        self._reasoner = Reasoner(
            model,
            read_reasoning_prompt(config.reasoning_prompt, self.section),
            response_type,
            OutputBound(config.max_answer_tokens, f"{self.section}.max_answer_tokens"),
        )

    @abstractmethod
    async def find(self, question: str, live: LiveText | None) -> Found:
        """Search and answer."""

    async def search(self, query: str, **_: object) -> GraphSearchResult:
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
    ) -> GraphSearchResult:
        """Answer a question.

        Parameters
        ----------
        query : str
            The question.
        on_text : callable or None
            Takes the response piece by piece while it is written; see :meth:`stream_search`.

        Returns
        -------
        GraphSearchResult
            ``context_data`` holds the data frames ``paths``, ``entities``,
            ``relationships``, ``sources``, ``exploration``, ``starts`` and ``edges``,
            ``context_text`` what the last call was shown. A search that finds nothing of the
            question in the index, or in connect mode no path, asks no model: it says so, the
            context text is empty and ``exploration`` and ``starts``
            the only frames with rows. The
            counters are those of this search's calls, failed ones and retries included, by the
            phases exploration and reasoning; in a scope that concurrent searches share they
            can't be told apart.

        Raises
        ------
        ToGSearchError
            If the question is empty, the index has no entities, in connect mode no two of them
            are near the question, or the model's answer stays unreadable.
        CutOffReplyError
            If the model's answer was cut off at ``max_answer_tokens``. Failures of the
            models themselves pass through as they are.
        """
        scope = current_scope()
        if scope is not None:
            return await self._run(query, on_text, scope)
        with measure_calls() as own:
            return await self._run(query, on_text, own)

    async def _run(
        self, query: str, on_text: Callable[[str], None] | None, scope: CallLog
    ) -> GraphSearchResult:
        began = time.perf_counter()
        n_before = len(scope.attempts)
        if not query.strip():
            msg = "The question is empty."
            raise ToGSearchError(msg)
        if self.graph.n_entities == 0:
            msg = "The index has no entities, so there is no graph to search; build it again."
            raise ToGSearchError(msg)
        live = LiveText(on_text) if on_text else None
        found = await self.find(query, live)
        if live:
            live.finish(found.response)
        return _make_result(
            found,
            frames=context_frames(found.context, found.rounds, self.graph, found.walk),
            seconds=time.perf_counter() - began,
            attempts=scope.attempts[n_before:],
        )

    async def rank(self, question: str, paths: Sequence[Path] = ()) -> Passages:
        """Return how much mass of a question, and of paths, reaches each text unit and entity."""
        return await rank_passages(question, self.graph, self._text_units, self._cap, paths)

    async def show(
        self, starts: Sequence[int], paths: Sequence[Path], passages: Passages
    ) -> Context:
        """Return the context that a check is shown."""
        return await asyncio.to_thread(self._grounder.build, starts, paths, passages)

    async def check(self, question: str, context: Context, live: LiveText | None) -> Verdict:
        """Ask whether a context suffices, and for the answer; see :meth:`Reasoner.check`."""
        return await self._reasoner.check(question, context, live)

    async def conclude(
        self, question: str, walked: Exploration, reached: Passages, live: LiveText | None
    ) -> Found:
        """Answer from where a walk led, and from the texts that most mass reached."""
        context = await self.show(walked.starts, select_evidence(walked), reached)
        verdict = await self.check(question, context, live)
        rounds = note_verdict(walked.rounds, verdict)
        walk = Walk(walked.starts, walked.scored)
        return Found(verdict.response, context, rounds, verdict.abstained, walk)


def found_nothing(rounds: tuple[Round, ...]) -> Found:
    """Return what is said of a question of which the index holds no word and no entity."""
    return Found(NOT_FOUND, Context("", 0), rounds, True)


def note_verdict(rounds: tuple[Round, ...], verdict: Verdict) -> tuple[Round, ...]:
    """Say in the last round what the context lacked, and which cited ids it did not hold."""
    last = rounds[-1]
    notes = [last.note] if last.note else []
    if verdict.n_dropped_ids:
        notes.append(f"{verdict.n_dropped_ids} cited ids were not in the context")
    if verdict.lacking:
        notes.append(f"the model says that the context lacks this: {verdict.lacking}")
    return (*rounds[:-1], replace(last, note="; ".join(notes)))


def _make_result(
    found: Found,
    frames: dict[str, pd.DataFrame],
    seconds: float,
    attempts: Sequence[CallAttempt],
) -> GraphSearchResult:
    usage = summarize_attempts(attempts)
    none = dict.fromkeys(_PHASES, 0)
    return GraphSearchResult(
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
