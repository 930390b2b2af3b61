"""Runs the two searches of the graph, from the question to the cited answer and its counters.

ToG's cycle of reading and going on follows ToG (Sun et al., ICLR 2024, arXiv 2307.07697), ToG-2 (Ma
et al., ICLR 2025, arXiv 2407.10805) and IRCoT (Trivedi et al., ACL 2023, arXiv 2212.10509).
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Generic, TypeVar

from graphrag.config.models.tog_search_config import PPRSearchConfig, ToGSearchConfig
from graphrag.query.client.call_errors import CutOffReplyError
from graphrag.query.client.models import count_completion
from graphrag.query.client.usage import CallLog, OutputBound, current_scope, measure_calls
from graphrag.query.graph import pagerank, prompts
from graphrag.query.graph.answer import (
    Call,
    Context,
    Grounder,
    LiveText,
    Reasoner,
    conclude,
    is_answer,
)
from graphrag.query.graph.candidates import (
    Row,
    rows_to_relationships,
    rows_to_texts,
)
from graphrag.query.graph.store import GraphStore, TextUnits, build_in_memory
from graphrag.query.search_result import CountedSearchResult, OnText, Outcome, make_result
from graphrag.text.message_phrases import fold_line

if TYPE_CHECKING:
    import pandas as pd

    from graphrag.query.index.meaning import TextMeaning

# Text units whose scores by words are fused with those by meaning.
_N_BY_WORDS = 1_000
# Text units in a ranking: no token budget has room for more.
_N_RANKED = 300
_N_SEEDS = 3
_Config = TypeVar("_Config", bound=PPRSearchConfig)
_PHASES = ("exploration", "reasoning")
_NO_CALLS = dict.fromkeys(_PHASES, 0)


@dataclass(frozen=True, slots=True)
class Ranking:
    """The ranking of a question or a look-up: passages by place, best first, and mass by node.

    ``note`` says what the ranking had to do without, and why, or "".
    """

    passages: Sequence[int]
    entities: Mapping[int, float]
    note: str = ""


@dataclass(slots=True)
class _Way:
    """The state of a search: passages and rows shown, kept, followed, and to be shown next.

    - ``own``: the ranking of the question itself.
    - ``entities``: mass by node of the latest rankings.
    - ``kept``: passages that the last call kept or followed, by place; shown first in the next.
    - ``followed``: the rows followed in all calls.
    - ``seen``: all passages shown, by place.
    - ``new``: passages that the last look-ups lead to, by place; shown after ``kept``.
    """

    own: Ranking
    entities: Mapping[int, float]
    kept: list[int] = field(default_factory=list[int])
    followed: list[Row] = field(default_factory=list[Row])
    seen: set[int] = field(default_factory=set[int])
    new: list[int] = field(default_factory=list[int])
    calls: list[Call] = field(default_factory=list[Call])

    def begin_call(self, context: Context) -> Call:
        """Record a call and its context; the first call also notes what the ranking lacked."""
        shown = [unit.human_readable_id for unit in context.sources]
        rows, note = [row.label for row in context.rows], "" if self.calls else self.own.note
        self.calls.append(Call(call=len(self.calls) + 1, shown=shown, rows=rows, note=note))
        return self.calls[-1]


class GraphSearch(Generic[_Config]):
    """A search over one graph that asks its model once; safe for concurrent searches.

    ``ToGSearch(model=model, graph=opened.graph, text_units=opened.text_units)`` makes one, see
    ``open_graph``; ``await search.search(query="Who leads the Birch Desk?")`` gives its result.

    - ``model``: a graphrag_llm completion, or an object with its methods; the calls of such an
      object are not counted, and ``usage.is_counted`` of the result is False.
    - ``text_units``: of an opened graph, or a table as for ``build_in_memory``; without text units
      a search answers from relationships.
    - ``config``: the settings of the section; None: its defaults. Paths of prompt files must be
      absolute. Raises ToGSearchError if a prompt file can't be used.
    - ``response_type``: the form of the answer, in free text.
    - ``meaning``: finds texts by meaning, in addition to the words of the question; None: by words
      alone, and each result has the ``note`` that says why.
    """

    section: str
    """The search's section in settings.yaml."""
    form: type[_Config]
    """The class of that section."""

    def __init__(
        self,
        *,
        model: prompts.CompletionModel,
        graph: GraphStore,
        text_units: "TextUnits | pd.DataFrame",
        config: _Config | None = None,
        response_type: str = "Multiple Paragraphs",
        meaning: "TextMeaning | None" = None,
        note: str = "",
    ) -> None:
        self._config: _Config = config or self.form()
        model = count_completion(model)
        config = self._config
        self.graph = graph
        if not isinstance(text_units, TextUnits):
            text_units = build_in_memory(None, None, text_units).text_units
        text_units = text_units.in_passages(config.passage_tokens)
        self._text_units, self._meaning, self._note = text_units, meaning, note
        self._cap, self._budget = config.max_relations_per_entity, config.max_context_tokens
        self._grounder = Grounder(graph, text_units, model.tokenizer, self._budget)
        self._reasoner = Reasoner(
            model=model,
            exploring=self._exploring_prompt(),
            reasoning=self._prompt("reasoning_prompt", prompts.REASONING_PROMPT),
            response_type=response_type,
            bound=OutputBound(config.max_answer_tokens, f"{self.section}.max_answer_tokens"),
        )

    def _prompt(self, setting: str, built_in: str) -> str:
        path: str | None = getattr(self._config, setting)
        return prompts.read_prompt(path, f"{self.section}.{setting}", built_in)

    def _exploring_prompt(self) -> str:
        """Return the prompt of calls after which the search may go on; "" if there are none."""
        return ""

    async def search(
        self, query: str, on_text: OnText | None = None, **_: object
    ) -> CountedSearchResult:
        """Answer a question; arguments of other searches are ignored.

        ``on_text`` receives the response while it is written, the citations last. If an answer that
        was already shown turns out to cite nothing retrieved, it is withdrawn, and its replacement
        follows.

        ``context_data`` of the result has the data frames ``paths``, ``entities``,
        ``relationships``, ``sources`` and ``exploration``; ``context_text`` is what the last call
        was shown. If the index has nothing on the question, no model is asked, the response says
        so, and the context is empty. The counters cover this search's calls, including failed calls
        and retries, by phase: calls after which the search went on are exploration, calls that
        answered are reasoning.

        Raises ToGSearchError if the question is empty, the index has no entities, or the model's
        answer stays unreadable; CutOffReplyError if the answer was cut off at
        ``max_answer_tokens``. Errors of the model's service pass through unchanged.
        """
        began = time.perf_counter()
        with measure_calls() as log:
            outcome = await self.answer(query, on_text)
        usage = log.usage()
        usage = replace(
            usage,
            llm_calls_by_phase=_NO_CALLS | usage.llm_calls_by_phase,
            prompt_tokens_by_phase=_NO_CALLS | usage.prompt_tokens_by_phase,
            output_tokens_by_phase=_NO_CALLS | usage.output_tokens_by_phase,
        )
        return make_result(outcome, usage, time.perf_counter() - began)

    async def answer(self, question: str, on_text: OnText | None) -> Outcome:
        """Return the outcome for a question, without counters: the caller measures the calls."""
        if not question.strip():
            raise prompts.ToGSearchError("The question is empty.")
        if self.graph.n_entities == 0:
            msg = "The index has no entities, so there is no graph to search; build it again."
            raise prompts.ToGSearchError(msg)
        live = LiveText(on_text) if on_text else None
        own = await self._rank(question)
        if own.passages or own.entities:
            outcome = await self._find(question, _Way(own=own, entities=own.entities), live)
        else:
            no_reply, no_call = (
                prompts.ReasonedAnswer(answer=""),
                Call(call=0, shown=[], rows=[], note=own.note),
            )
            outcome = conclude(no_reply, Context(), [no_call], [], self.graph)
        if live:
            live.finish(outcome.response)
        return replace(outcome, note=own.note)

    async def _rank(self, query: str, leaning: Sequence[int] = ()) -> Ranking:
        """Rank text units for a query; ``leaning`` are places of passages that get extra weight."""
        words, (near, note) = await asyncio.gather(
            asyncio.to_thread(self._text_units.score_by_words, query, _N_BY_WORDS),
            self._near(query),
        )
        return await asyncio.to_thread(self._spread, query, words, near, note, leaning)

    def _spread(
        self,
        query: str,
        words: Sequence[tuple[int, float]],
        near: Mapping[int, float],
        note: str,
        leaning: Sequence[int],
    ) -> Ranking:
        texts = pagerank.weigh_texts(words, near, len(self.graph.arrays.unit_topics))
        names = self.graph.names_in(query)
        if not texts and not names:
            names = self.graph.rank_by_words(query, _N_SEEDS)
        rows = list(dict.fromkeys(map(self._text_units.row, leaning)))
        seeds = pagerank.lean_on(pagerank.find_seeds(names, texts, self.graph), rows)
        reached = pagerank.spread(seeds, self.graph, self._cap)
        best = self._text_units.best(reached.units, _N_RANKED, query)
        return Ranking(best, reached.entities, note)

    async def _near(self, query: str) -> tuple[Mapping[int, float], str]:
        """Return row -> nearness of text units to a query, or an empty mapping, and why."""
        if self._meaning is None:
            return {}, self._note
        scores, note = await self._meaning.near(query)
        return await asyncio.to_thread(self._text_units.by_row, scores), note

    async def _find(self, question: str, way: _Way, live: LiveText | None) -> Outcome:
        """Answer from the texts kept and followed, then from the question's own ranking."""
        context = await asyncio.to_thread(self._last_context, way)
        reply = await self._reasoner.check(question, context, live)
        way.begin_call(context)
        return conclude(reply, context, way.calls, way.followed, self.graph)

    def _last_context(self, way: _Way) -> Context:
        own, rows = way.own, way.followed
        if not own.passages:
            rows = [*rows, *rows_to_relationships(own.entities, set(), self.graph, self._cap)]
        passages = [*way.kept, *_mix_in(way.new, own.passages)]
        return self._grounder.build(passages, _relationships(rows), self._budget)


class PPRSearch(GraphSearch[PPRSearchConfig]):
    """Ranks text units by personalized PageRank, and asks the model once for the answer."""

    section, form = "ppr_search", PPRSearchConfig


class ToGSearch(GraphSearch[ToGSearchConfig]):
    """Think-on-Graph: in each call the model reads texts and rows, and answers or goes on."""

    section, form = "tog_search", ToGSearchConfig

    def _exploring_prompt(self) -> str:
        prompt = self._prompt("exploration_prompt", prompts.EXPLORATION_PROMPT)
        return prompts.fill(prompt, {"width": str(self._config.width)})

    async def _find(self, question: str, way: _Way, live: LiveText | None) -> Outcome:
        log = current_scope() or CallLog()
        for number in range(self._config.depth):
            context = await asyncio.to_thread(self._context, question, way, number)
            call = way.begin_call(context)
            n_before = len(log.attempts)
            try:
                reply, fault = await self._reasoner.explore(question, context, live)
            except CutOffReplyError:
                log.name_phase(n_before, *_PHASES)  # the search might have gone on after it
                raise
            if reply is not None and is_answer(reply, context):
                log.name_phase(n_before, *_PHASES)
                return conclude(reply, context, way.calls, way.followed, self.graph)
            if fault:
                call.add_note(f"{fault}, so the ranking went on")
            if not await self._go_on(question, way, context, reply):
                break
        return await super()._find(question, way, live)

    def _context(self, question: str, way: _Way, number: int) -> Context:
        """Build the context of a call that may go on: texts take half the budget, later more."""
        depth, n_rows = self._config.depth, self._config.max_rows
        n_texts = round(self._budget * (depth + 1 + number) / (2 * depth + 2))
        own = [place for place in way.own.passages if place not in way.seen]
        fresh, relationships = _mix_in(way.new, own), _relationships(way.followed)
        passages, n_kept = [*way.kept, *fresh], max(1, len(way.kept))  # at least the best passage
        context = self._grounder.build(passages, relationships, n_texts, n_kept, way.calls)
        if way.own.passages:
            seen = {*context.passages, *way.seen}
            ahead = [place for place in fresh if place not in seen][:n_rows]
            last_look_ups = way.calls[-1].looked_up if way.calls else []
            query = " ".join([question, *last_look_ups])
            rows = rows_to_texts(ahead, [*context.passages], query, self.graph, self._text_units)
        else:
            rows = rows_to_relationships(way.entities, set(relationships), self.graph, self._cap)
        return self._grounder.add_rows(context, rows, n_rows)

    async def _go_on(
        self, question: str, way: _Way, context: Context, reply: prompts.NextStep | None
    ) -> bool:
        """Take in what a reply keeps, follows and looks up; return whether another call may follow.

        If the reply could not be read (None), all passages shown are kept, and the ranking goes on.
        """
        call = way.calls[-1]
        way.seen.update(context.passages)
        way.new = []
        if reply is None:
            way.kept = list(context.passages)
            return True
        call.missing = reply.missing
        if not reply.missing and reply.answer:
            call.add_note("its answer cited nothing that it was shown")
        units = {unit.human_readable_id: unit.id for unit in context.sources}
        ids = [number for number in dict.fromkeys(reply.keep) if number in units]
        passages = context.passages.items()
        way.kept = [place for n in ids for place, unit in passages if unit == units[n]]
        numbers = [n for n in dict.fromkeys(reply.follow) if 0 < n <= len(context.rows)]
        rows = [context.rows[n - 1] for n in numbers[: self._config.width]]
        earlier = [text for past in way.calls for text in past.looked_up]
        look_ups = _drop_asked(reply.look_up, [question, *earlier])[: self._config.width]
        call.kept, call.followed, call.looked_up = ids, [row.label for row in rows], look_ups
        way.followed += rows
        if not rows and not look_ups:
            return False
        ahead = [row.passage for row in rows if row.passage is not None]
        way.kept += ahead
        rankings = await asyncio.gather(*(self._rank(q, way.kept) for q in look_ups or [question]))
        taken = {*way.seen, *ahead}
        fresh = _interleave([ranking.passages for ranking in rankings])
        way.new = [*ahead, *(place for place in fresh if place not in taken)]
        way.entities = {n: m for ranking in reversed(rankings) for n, m in ranking.entities.items()}
        # Another call needs something new to read.
        return not way.own.passages or bool(way.new) or not way.seen.issuperset(way.own.passages)


def _relationships(rows: Sequence[Row]) -> list[int]:
    return [row.relationship for row in rows if row.relationship is not None]


def _drop_asked(look_ups: Sequence[str], earlier: Sequence[str]) -> list[str]:
    """Return the look-ups, each on one line, without blank ones and ones asked before."""
    unasked: dict[str, str] = {}
    for text in look_ups:
        unasked.setdefault(fold_line(text), " ".join(text.split()))
    seen = {"", *map(fold_line, earlier)}
    return [text for key, text in unasked.items() if key not in seen]


def _interleave(rankings: Sequence[Sequence[int]]) -> list[int]:
    """Return the best of each ranking, then the next of each, and so on, without repetitions."""
    turns = zip_longest(*rankings)
    return list(dict.fromkeys(row for turn in turns for row in turn if row is not None))


def _mix_in(new: Sequence[int], own: Sequence[int]) -> list[int]:
    """Put one of the question's own passages after every two new ones, without repetitions."""
    return _interleave([new[::2], new[1::2], own])
