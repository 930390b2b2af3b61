"""The two searches of the graph, from the question to the cited answer and its counters.

Reading, then answering or going on, is after ToG (Sun et al., ICLR 2024, arXiv 2307.07697), ToG-2
(Ma et al., ICLR 2025, arXiv 2407.10805) and IRCoT (Trivedi et al., ACL 2023, arXiv 2212.10509).
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
from graphrag.text.phrases import fold_line

if TYPE_CHECKING:
    import pandas as pd

    from graphrag.query.index.meaning import TextMeaning

# Those whose words are known where meaning adds to them.
_N_BY_WORDS = 1_000
# Text units of a ranking: no budget holds more.
_N_RANKED = 300
_N_SEEDS = 3
_Config = TypeVar("_Config", bound=PPRSearchConfig)
_PHASES = ("exploration", "reasoning")
_NO_CALLS = dict.fromkeys(_PHASES, 0)


@dataclass(frozen=True, slots=True)
class Ranking:
    """What a question or a look-up leads to: passages by place, best first, and mass by node."""

    passages: Sequence[int]
    entities: Mapping[int, float]
    note: str = ""


@dataclass(slots=True)
class _Way:
    """How far a search has come: what was shown, kept and followed, and what is next.

    ``kept`` and ``seen`` are passages, by place: ``kept``, and followed, by the last call are shown
    first in the next one, and ``new`` before others.
    """

    own: Ranking
    entities: Mapping[int, float]
    kept: list[int] = field(default_factory=list[int])
    followed: list[Row] = field(default_factory=list[Row])
    seen: set[int] = field(default_factory=set[int])
    new: list[int] = field(default_factory=list[int])
    calls: list[Call] = field(default_factory=list[Call])

    def begin_call(self, context: Context) -> Call:
        """Note a call that is shown a context; the first tells what the ranking did without."""
        shown = [unit.human_readable_id for unit in context.sources]
        rows, note = [row.label for row in context.rows], "" if self.calls else self.own.note
        self.calls.append(Call(call=len(self.calls) + 1, shown=shown, rows=rows, note=note))
        return self.calls[-1]


class GraphSearch(Generic[_Config]):
    """A search over one graph, which asks once; made once, safe for concurrent searches.

    ``model`` is a graphrag_llm completion, or has its methods; ``usage.is_counted`` is then False.
    ``text_units``: as they were opened, or a table, see ``build_in_memory``; without any a search
    answers from relationships. ``config``: the section's settings; None: its defaults. Paths of
    prompt files must be absolute; one that can't be used raises ToGSearchError. ``response_type``
    is the form of the answer, free text. Texts are found by the words of a question, and by their
    ``meaning``; None: by words alone, and each result has the ``note`` that says why.
    """

    section: str
    """Its section of settings.yaml."""
    form: type[_Config]
    """What that section holds."""

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
        """Return the prompt of calls that may go on; "" where none may."""
        return ""

    async def search(
        self, query: str, on_text: OnText | None = None, **_: object
    ) -> CountedSearchResult:
        """Answer a question; further arguments of other searches are ignored.

        ``on_text`` takes the response while it is written, its citations last; if an answer that
        was already shown turns out to cite nothing retrieved, it is withdrawn, and what takes its
        place follows.

        ``context_data`` holds the data frames ``paths``, ``entities``, ``relationships``,
        ``sources`` and ``exploration``, ``context_text`` what the last call was shown. A search
        that finds nothing of the question in the index asks no model: it says so, and the context
        is empty. The counters are those of this search's calls, failed ones and retries included,
        by phase: calls that went on are exploration, those that answered reasoning.

        ToGSearchError if the question is empty, the index has no entities, or the model's answer
        stays unreadable; CutOffReplyError if that was cut off at ``max_answer_tokens``. Failures of
        the models pass through as they are.
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
        """Answer a question as one of the methods, which are counted from outside."""
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
            nothing, nobody = (
                prompts.ReasonedAnswer(answer=""),
                Call(call=0, shown=[], rows=[], note=own.note),
            )
            outcome = conclude(nothing, Context(), [nobody], [], self.graph)
        if live:
            live.finish(outcome.response)
        return replace(outcome, note=own.note)

    async def _rank(self, query: str, leaning: Sequence[int] = ()) -> Ranking:
        """Rank text units by what of a query reaches them, leaning on some, by passage."""
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
        """Return how near text units, by row, are to a query; or none, and why."""
        if self._meaning is None:
            return {}, self._note
        scores, note = await self._meaning.near(query)
        return await asyncio.to_thread(self._text_units.by_row, scores), note

    async def _find(self, question: str, way: _Way, live: LiveText | None) -> Outcome:
        """Answer from what was kept and followed, then from what the question leads to."""
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
    """Ranks text units by the mass that reaches them, and asks once."""

    section, form = "ppr_search", PPRSearchConfig


class ToGSearch(GraphSearch[ToGSearchConfig]):
    """Think-on-Graph search: a model reads texts and rows, and answers or says what is next."""

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
                log.name_phase(n_before, *_PHASES)  # such a call might have gone on
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
        """Return what a call that may go on is shown: half of the budget in texts, later more."""
        depth, n_rows = self._config.depth, self._config.max_rows
        n_texts = round(self._budget * (depth + 1 + number) / (2 * depth + 2))
        own = [place for place in way.own.passages if place not in way.seen]
        fresh, relationships = _mix_in(way.new, own), _relationships(way.followed)
        passages, n_kept = [*way.kept, *fresh], max(1, len(way.kept))  # or the best one
        context = self._grounder.build(passages, relationships, n_texts, n_kept)
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
        """Take what a call keeps, follows and looks up; say whether another may go on from there.

        A reply that could not be read keeps all that was shown, and the ranking goes on.
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
        # Without anything new another call would know no more.
        return not way.own.passages or bool(way.new) or not way.seen.issuperset(way.own.passages)


def _relationships(rows: Sequence[Row]) -> list[int]:
    return [row.relationship for row in rows if row.relationship is not None]


def _drop_asked(look_ups: Sequence[str], earlier: Sequence[str]) -> list[str]:
    """Return look-ups in one line each, none that is blank or was asked before."""
    unasked: dict[str, str] = {}
    for text in look_ups:
        unasked.setdefault(fold_line(text), " ".join(text.split()))
    seen = {"", *map(fold_line, earlier)}
    return [text for key, text in unasked.items() if key not in seen]


def _interleave(rankings: Sequence[Sequence[int]]) -> list[int]:
    """Take the best of each ranking, then the next of each; none twice."""
    turns = zip_longest(*rankings)
    return list(dict.fromkeys(row for turn in turns for row in turn if row is not None))


def _mix_in(new: Sequence[int], own: Sequence[int]) -> list[int]:
    """Put one of the question's own text units after every two new ones; none twice."""
    return _interleave([new[::2], new[1::2], own])
