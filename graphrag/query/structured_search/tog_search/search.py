"""The two searches of the graph, from the question to the cited answer and its counters.

After ToG (Sun et al., ICLR 2024, arXiv 2307.07697), ToG-2 (Ma et al., ICLR 2025, arXiv 2407.10805).
"""

import asyncio
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Protocol

import pandas as pd

from graphrag.config.models.tog_search_config import PPRSearchConfig, ToGSearchConfig
from graphrag.query.calls import CutOffReplyError
from graphrag.query.counted_result import CountedSearchResult, OnText, Outcome, make_result
from graphrag.query.methods import LEAST_SCORING, SCORING_SHARE
from graphrag.query.replies import UnreadableReplyError
from graphrag.query.structured_search.tog_search import asking, spreading, walk
from graphrag.query.structured_search.tog_search.answer import (
    NOT_FOUND,
    Context,
    Grounder,
    LiveText,
    Reasoner,
    context_frames,
)
from graphrag.query.structured_search.tog_search.connecting import find_ends, join_ends
from graphrag.query.structured_search.tog_search.store import GraphStore, TextUnits
from graphrag.query.usage import (
    OutputBound,
    current_scope,
    measure_calls,
    phase,
    summarize_attempts,
)
from graphrag.text.ranking import load_bm25

# Those whose words are known where meaning adds to them.
_N_BY_WORDS = 1_000
_NO_CALLS = {"exploration": 0, "reasoning": 0}
_TOKENS_AROUND_SCORES = 60
_TOKENS_PER_EDGE = 40
_BOUND_SETTING = "call_args.max_tokens of the model in settings.yaml"


class Meaning(Protocol):
    """Says how near text units are to a question; asked once a search."""

    async def near(self, question: str) -> tuple[Mapping[str, float], str]:
        """Return the nearest text units by id, the greater the nearer; or none, and why."""
        ...


class GraphSearch(ABC):
    """A search over one graph; made once, safe for concurrent searches.

    ``model`` is a graphrag_llm completion. Text units are a table with ``id``,
    ``human_readable_id`` and ``text``, or mapped; without rows a search answers from the graph
    alone. Paths of prompt files must be absolute; one that can't be used raises ToGSearchError.
    ``response_type`` is the form of the answer, free text. Texts are found by the words of a
    question, and by their ``meaning``; None: by words alone.
    """

    section: str
    """Its section of settings.yaml."""
    texts_first: bool
    """Whether a text ranker: paths and entities are shown only where text units leave room."""

    def __init__(
        self,
        *,
        model: asking.CompletionModel,
        graph: GraphStore,
        text_units: pd.DataFrame | TextUnits,
        config: PPRSearchConfig | None = None,
        response_type: str = "Multiple Paragraphs",
        meaning: Meaning | None = None,
    ) -> None:
        config = config or PPRSearchConfig()
        if not isinstance(text_units, TextUnits):
            text_units = TextUnits.from_table(text_units)
        self.graph = graph
        self._text_units, self._meaning = text_units, meaning
        self._cap = config.max_relations_per_entity
        self._grounder = Grounder(graph, text_units, model.tokenizer, config, self.texts_first)
        self._reasoner = Reasoner(
            model,
            asking.read_prompt(
                config.reasoning_prompt,
                f"{self.section}.reasoning_prompt",
                asking.REASONING_PROMPT,
                asking.REASONING_FIELDS,
            ),
            response_type,
            OutputBound(config.max_answer_tokens, f"{self.section}.max_answer_tokens"),
        )
        self._width, self._depth = 3, 3

    @abstractmethod
    async def _score(
        self, question: str, candidates: Sequence[walk.Candidate], masses: Mapping[int, float]
    ) -> walk.Scores:
        """Score the edges ahead; ``masses`` are those of the question at nodes."""

    async def search(
        self, query: str, on_text: OnText | None = None, **_: object
    ) -> CountedSearchResult:
        """Answer a question; further arguments of other searches are ignored.

        ``on_text`` takes the response while it is written, its citations last; if an answer that
        was already shown turns out to cite nothing retrieved, it is withdrawn, and what takes its
        place follows.

        ``context_data`` holds the data frames ``paths``, ``entities``, ``relationships``,
        ``sources``, ``exploration``, ``starts`` and ``edges``, ``context_text`` what the last call
        was shown. A search that finds nothing of the question in the index, or in connect mode no
        path, asks no model: it says so, the context text is empty and ``exploration`` and
        ``starts`` the only frames with rows. The counters are those of this search's calls, failed
        ones and retries included, by the phases exploration and reasoning; in a scope that
        concurrent searches share they can't be told apart.

        ToGSearchError if the question is empty, the index has no entities, in connect mode no two
        of them are near the question, or the model's answer stays unreadable; CutOffReplyError if
        that was cut off at ``max_answer_tokens``. Failures of the models pass through as they are.
        """
        scope = current_scope()
        with measure_calls() if scope is None else nullcontext(scope) as log:
            began, n_before = time.perf_counter(), len(log.attempts)
            outcome = await self.answer(query, on_text)
            usage = summarize_attempts(log.attempts[n_before:])
        usage = replace(
            usage,
            llm_calls_by_phase=_NO_CALLS | usage.llm_calls_by_phase,
            prompt_tokens_by_phase=_NO_CALLS | usage.prompt_tokens_by_phase,
            output_tokens_by_phase=_NO_CALLS | usage.output_tokens_by_phase,
        )
        return make_result(outcome, usage, time.perf_counter() - began)

    async def answer(self, question: str, on_text: OnText | None) -> Outcome:
        """Answer a question as one of the methods, which are counted from outside."""
        if not question.strip():
            raise asking.ToGSearchError("The question is empty.")
        if self.graph.n_entities == 0:
            msg = "The index has no entities, so there is no graph to search; build it again."
            raise asking.ToGSearchError(msg)
        live = LiveText(on_text) if on_text else None
        await load_bm25()
        words, (near, note) = await asyncio.gather(
            asyncio.to_thread(self._text_units.score_by_words, question, _N_BY_WORDS),
            self._near(question),
        )
        texts = spreading.weigh_texts(words, near, len(self.graph.arrays.unit_topics))
        seeds = spreading.find_seeds(self.graph.names_in(question), texts, self.graph)
        outcome = await self._find(question, seeds, live)
        if note:
            starts = outcome.context_data["exploration"]
            starts.loc[0, "note"] = f"{starts.loc[0, 'note']}; {note}"
        if live:
            live.finish(outcome.response)
        return outcome

    async def _near(self, question: str) -> tuple[Mapping[int, float], str]:
        """Return how near text units, by row, are to a question; or none, and why."""
        if self._meaning is None:
            return {}, ""
        scores, note = await self._meaning.near(question)
        return await asyncio.to_thread(self._text_units.by_row, scores), note

    def _named(self, question: str) -> list[int]:
        """Return the entities named in a question, in each form of the name, no common nouns."""
        arrays = self.graph.arrays

        def is_common(node: int) -> bool:
            units = arrays.name_units[arrays.name_ptr[node] : arrays.name_ptr[node + 1]]
            return self._text_units.is_common_noun(self.graph.title(node), units.tolist())

        named = [node for node in self.graph.nodes_named_in(question) if not is_common(node)]
        return self.graph.with_forms(named)

    async def _spread(
        self, seeds: spreading.Seeds, paths: Sequence[walk.Path] = ()
    ) -> spreading.Passages:
        """Return how much mass of a question, and of paths, reaches each text unit and entity."""
        seeds = spreading.join_paths(seeds, paths, self.graph)
        return await asyncio.to_thread(spreading.spread, seeds, self.graph, self._cap)

    async def _find(self, question: str, seeds: spreading.Seeds, live: LiveText | None) -> Outcome:
        """Walk to the end, then check and answer in one call."""
        reached = await self._spread(seeds)
        named = await asyncio.to_thread(self._named, question)
        walked = walk.find_starts(question, named, reached.entities, self.graph, self._width)
        if not walked.starts and not reached.units:
            return self._without_asking(walked)
        for _ in range(self._depth):
            candidates = walk.list_candidates(walked, self.graph, question, self._cap)
            if not candidates:
                break
            scores = await self._score(question, candidates, reached.entities)
            before = walked
            walked = walk.keep_best(walked, candidates, scores, self.graph, self._width)
            if not self.texts_first and walk.is_unimproved(before, walked):
                break
        paths = walk.select_evidence(walked)
        if not self.texts_first:
            reached = await self._spread(seeds, paths)
        return await self._conclude(question, walked, paths, reached, live)

    async def _conclude(
        self,
        question: str,
        walked: walk.Exploration,
        paths: Sequence[walk.Path],
        reached: spreading.Passages,
        live: LiveText | None,
    ) -> Outcome:
        """Answer from paths, and from the texts that most mass reached; note what they lacked."""
        context = await asyncio.to_thread(self._grounder.build, walked.starts, paths, reached.units)
        verdict = await self._reasoner.check(question, context, live)
        last = walked.rounds[-1]
        note = "; ".join(filter(None, [last.note, verdict.note]))
        rounds = (*walked.rounds[:-1], replace(last, note=note))
        shown = context_frames(context, replace(walked, rounds=rounds), self.graph)
        return Outcome(verdict.response, shown, context.text, verdict.abstained)

    def _without_asking(self, walked: walk.Exploration, more: str = "") -> Outcome:
        """Return what is said where the index holds nothing of a question, or no path."""
        shown = context_frames(Context(), walked, self.graph)
        return Outcome(f"{NOT_FOUND} {more}".strip(), shown, "", abstained=True)


class ToGSearch(GraphSearch):
    """Think-on-Graph search: a model scores the edges ahead at each depth, then checks and answers.

    Parameters are those of :class:`GraphSearch`; without a configuration the defaults hold.
    """

    section = "tog_search"
    texts_first = False

    def __init__(
        self,
        *,
        model: asking.CompletionModel,
        graph: GraphStore,
        text_units: pd.DataFrame | TextUnits,
        config: ToGSearchConfig | None = None,
        response_type: str = "Multiple Paragraphs",
        meaning: Meaning | None = None,
    ) -> None:
        config = config or ToGSearchConfig()
        super().__init__(
            model=model,
            graph=graph,
            text_units=text_units,
            config=config,
            response_type=response_type,
            meaning=meaning,
        )
        self._config, self._width, self._depth = config, config.width, config.depth
        prompt = asking.read_prompt(
            config.scoring_prompt, "tog_search.scoring_prompt", asking.EDGE_SCORING_PROMPT
        )
        self._model, self._prompt = model, asking.fill(prompt, {"most": str(2 * config.width)})
        self._max_tokens = max(LEAST_SCORING, config.max_context_tokens // SCORING_SHARE)

    async def _score(
        self, question: str, candidates: Sequence[walk.Candidate], masses: Mapping[int, float]
    ) -> walk.Scores:
        """Score candidates in [0, 1]: what the model says of the best by :func:`score_by_reach`.

        It is shown at most ``max_scored_edges``, and no more than fit beside the question. An edge
        that the model leaves out, or was not shown, scores 0. A reply that was cut off, or
        stays unreadable after one repair, makes the whole depth fall back to words, as scores from
        two scales can't be compared. What the model raises when it can't be reached passes through.
        """
        by_reach = await walk.score_by_reach(question, candidates, masses, self.graph)
        promise = by_reach.values
        order = sorted(range(len(candidates)), key=lambda place: (-promise[place], place))
        places, request = self._fit(question, candidates, order[: self._config.max_scored_edges])
        with phase("exploration"):
            reply = await self._ask_for_scores(request, len(places))
        if isinstance(reply, str):
            words = await walk.score_by_words(question, candidates, self.graph)
            return replace(words, note=f"{reply}, so bm25 scored this depth")
        notes: list[str] = []
        if len(places) < len(candidates):
            notes.append(
                f"the model was shown the {len(places)} most promising of {len(candidates)} edges"
            )
        if n_unreadable := sum(score is None for score in reply.values()):
            notes.append(f"{n_unreadable} scores outside 0 to 1 counted as 0")
        scores = [0.0] * len(candidates)
        for number, score in reply.items():
            scores[places[number - 1]] = score or 0.0
        return walk.Scores(tuple(scores), "llm", "; ".join(notes))

    def _fit(
        self, question: str, candidates: Sequence[walk.Candidate], order: Sequence[int]
    ) -> tuple[list[int], str]:
        """Return the places of as many of the first candidates as fit, and the request."""
        shown = {
            at: walk.describe_edge(candidates[at], self.graph, walk.SHOWN_CHARS) for at in order
        }

        def render(n: int) -> str:
            return asking.render_rows(question, [shown[place] for place in sorted(order[:n])])

        least, most = 1, len(order)
        while least < most:
            middle = (least + most + 1) // 2
            fits = int(self._model.tokenizer.num_tokens(render(middle))) <= self._max_tokens
            least, most = (middle, most) if fits else (least, middle - 1)
        return sorted(order[:least]), render(least)

    async def _ask_for_scores(self, request: str, n_edges: int) -> dict[int, float | None] | str:
        """Return edge number -> score (None: not in [0, 1]), or why no reply can be used."""
        bound = OutputBound(_TOKENS_AROUND_SCORES + _TOKENS_PER_EDGE * n_edges, _BOUND_SETTING)
        problem = ""
        for _ in range(2):
            messages = [
                {"role": "system", "content": self._prompt},
                {"role": "user", "content": request + problem},
            ]
            try:
                reply = await asking.ask(self._model, messages, asking.EdgeScores, bound)
            except CutOffReplyError as error:
                return str(error)
            except UnreadableReplyError as error:
                problem = f"\n\nYour last reply could not be used: {error}. Reply with JSON only."
                continue
            scores: dict[int, float | None] = {}
            for item in reply.scores:
                if 1 <= item.edge <= n_edges:
                    valid = math.isfinite(item.score) and 0 <= item.score <= 1
                    scores.setdefault(item.edge, item.score if valid else None)
            if scores:
                return scores
            problem = "\n\nYour last reply scored none of these edges. Use their numbers."
        return "the model's scores could not be read"

    async def _find(self, question: str, seeds: spreading.Seeds, live: LiveText | None) -> Outcome:
        if self._config.mode == "explore":
            return await super()._find(question, seeds, live)
        reached = await self._spread(seeds)
        # Join the question's entities, and answer from the paths; without a path, ask nobody.
        ends, note = find_ends(question, self.graph, reached.entities, self._config)
        paths, rounds, unconnected = join_ends(ends, self.graph, self._config)
        start = walk.Round(0, "start", 0, len(ends), note)
        walked = walk.Exploration(ends, rounds=(start, *rounds))
        if not paths:
            return self._without_asking(walked, unconnected)
        outcome = await self._conclude(question, walked, paths, reached, live)
        return replace(outcome, response=f"{outcome.response} {unconnected}".strip())


class PPRSearch(GraphSearch):
    """Ranks text units by the mass that reaches them, and asks once.

    The paths that it shows beside them are those along which most mass lies; no model chose
    them. Parameters are those of :class:`GraphSearch`; without a configuration the defaults hold.
    """

    section = "ppr_search"
    texts_first = True

    async def _score(
        self, question: str, candidates: Sequence[walk.Candidate], masses: Mapping[int, float]
    ) -> walk.Scores:
        return await walk.score_by_reach(question, candidates, masses, self.graph)
