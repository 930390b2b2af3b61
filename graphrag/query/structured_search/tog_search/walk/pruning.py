"""Scoring the edges ahead: by the completion model, by stored vectors or by word statistics."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from graphrag.query.calls import CutOffReplyError
from graphrag.query.structured_search.tog_search.asking.edges import ShownEdge
from graphrag.query.structured_search.tog_search.asking.prompts import Prompts
from graphrag.query.structured_search.tog_search.asking.replies import (
    CompletionModel,
    EdgeScores,
    UnreadableReplyError,
    ask,
)
from graphrag.query.structured_search.tog_search.graph.store import GraphStore
from graphrag.query.structured_search.tog_search.state import Candidate, Question, Scores, Strategy
from graphrag.query.structured_search.tog_search.vectors import cosine_by_id
from graphrag.query.usage import OutputBound, phase
from graphrag.text.ranking import bm25_scores, load_bm25
from graphrag.text.terms import shorten, split_terms

if TYPE_CHECKING:
    from graphrag_vectors import VectorStore

_MAX_TITLE_CHARS = 200
_MAX_RELATIONSHIP_CHARS = 300
_MAX_DESCRIPTION_CHARS = 160
# Sharing no word with the question is weak evidence against an edge, not a proof: it stays
# walkable, and weight decides among such edges.
_FLOOR = 0.05
_TOKENS_AROUND_SCORES = 60


@dataclass(frozen=True, slots=True)
class Pruner:
    """Scores candidates; made once, used at every depth.

    Parameters
    ----------
    store : GraphStore
    model : CompletionModel
        Asked by the strategy llm only.
    entity_vectors : VectorStore
        Read by the strategy semantic only.
    prompts : Prompts
    strategy : {"llm", "semantic", "bm25", "pagerank"}
    temperature : float
    max_scored : int or None
        Edges that the model is shown at a depth; None: all.
    max_tokens : int
        Tokens of edges that one scoring call may show; more are split into concurrent calls.
    tokens_per_edge : int
        Tokens that a reply may have for each edge that it scores.
    """

    store: GraphStore
    model: CompletionModel
    entity_vectors: "VectorStore"
    prompts: Prompts
    strategy: Strategy
    temperature: float
    max_scored: int | None
    max_tokens: int
    tokens_per_edge: int

    async def score(
        self,
        question: Question,
        candidates: Sequence[Candidate],
        reached: Mapping[int, float] | None = None,
    ) -> Scores:
        """Score candidates in [0, 1].

        llm: what the model says of the ``max_scored`` best by pagerank; an edge it leaves out, or
        was not shown, scores 0. A reply that was cut off, or
        stays unreadable after one repair, makes the whole depth fall back to bm25, as scores
        from two scales can't be compared; the note says so. semantic: cosine of the question and
        the neighbour's description. bm25: over names and descriptions, relative to the best edge.
        pagerank: the mean of that and of ``reached`` (node -> mass), relative to the most.

        Raises
        ------
        Exception
            Whatever the model raises when it can't be reached.
        """
        if self.strategy == "semantic":
            return await self._score_by_vectors(question, candidates)
        if self.strategy == "bm25":
            await load_bm25()
            return self._score_by_words(question, candidates)
        if self.strategy == "pagerank":
            await load_bm25()
            return self._score_by_reach(question, candidates, reached or {})
        shown = list(range(len(candidates)))
        if self.max_scored is not None and len(shown) > self.max_scored:
            await load_bm25()
            first = self._score_by_reach(question, candidates, reached or {}).values
            best = sorted(shown, key=lambda place: (-first[place], place))[: self.max_scored]
            shown = sorted(best)
        with phase("exploration"):
            scored = await self._score_by_model(question, [candidates[place] for place in shown])
        if isinstance(scored, Scores):
            return _put_back(scored, shown, len(candidates))
        await load_bm25()
        note = f"{scored}, so bm25 scored this depth"
        return Scores(self._score_by_words(question, candidates).values, "bm25", note)

    def _score_by_words(self, question: Question, candidates: Sequence[Candidate]) -> Scores:
        texts = [_as_text(self._describe(candidate)) for candidate in candidates]
        raw = bm25_scores(question.text, split_terms(texts))
        best = float(raw.max(initial=0.0))
        values = [_FLOOR + (1 - _FLOOR) * (float(s) / best if best > 0 else 0.0) for s in raw]
        return Scores(tuple(values), "bm25")

    def _score_by_reach(
        self, question: Question, candidates: Sequence[Candidate], reached: Mapping[int, float]
    ) -> Scores:
        mass = [reached.get(candidate.edge.target, 0.0) for candidate in candidates]
        most = max(mass, default=0.0)
        said = self._score_by_words(question, candidates).values
        values = [
            # Rounded, as sums that differ only by the order of their terms are equal.
            round((words + _FLOOR + (1 - _FLOOR) * (part / most if most > 0 else 0.0)) / 2, 9)
            for words, part in zip(said, mass, strict=True)
        ]
        return Scores(tuple(values), "pagerank")

    async def _score_by_vectors(
        self, question: Question, candidates: Sequence[Candidate]
    ) -> Scores:
        ids = [self.store.entity_row(candidate.edge.target).id for candidate in candidates]
        near = await cosine_by_id(question.vector, ids, self.entity_vectors)
        values = tuple(max(_FLOOR, near.get(name, 0.0)) for name in ids)
        unknown = len({name for name in ids if name not in near})
        note = f"{unknown} neighbours have no stored vector" if unknown else ""
        return Scores(values, "semantic", note)

    async def _score_by_model(
        self, question: Question, candidates: Sequence[Candidate]
    ) -> Scores | str:
        """Return the model's scores, or why they can't be used."""
        edges = [
            self._describe(candidate, number) for number, candidate in enumerate(candidates, 1)
        ]
        batches = self._split(edges, candidates)
        try:
            async with asyncio.TaskGroup() as group:
                asked = [
                    group.create_task(self._ask_for_scores(question.text, batch))
                    for batch in batches
                ]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        replies = [task.result() for task in asked]
        values = [0.0] * len(candidates)
        n_unreadable = 0
        for reply in replies:
            if isinstance(reply, str):
                return reply
            for number, score in reply.items():
                if score is None:
                    n_unreadable += 1
                else:
                    values[number - 1] = score
        note = f"{n_unreadable} scores outside 0 to 1 counted as 0" if n_unreadable else ""
        return Scores(tuple(values), "llm", note)

    def _split(
        self, edges: list[ShownEdge], candidates: Sequence[Candidate]
    ) -> list[list[ShownEdge]]:
        batches: list[list[ShownEdge]] = []
        per_entity = self.prompts.per_entity
        numbered = zip(edges, candidates, strict=True)
        # A beam ends at different entities, so without per_entity there is one group.
        for _, group in groupby(numbered, lambda pair: pair[1].edge.source if per_entity else 0):
            used = self.max_tokens + 1
            for edge, _ in group:
                alone = self.prompts.render_edges("", [edge])
                n_tokens = int(self.model.tokenizer.num_tokens(alone))
                if used + n_tokens > self.max_tokens:
                    batches.append([])
                    used = 0
                batches[-1].append(edge)
                used += n_tokens
        return batches

    async def _ask_for_scores(
        self, question: str, edges: list[ShownEdge]
    ) -> dict[int, float | None] | str:
        """Return edge number -> score (None: not in [0, 1]), or why no reply can be used."""
        request = self.prompts.render_edges(question, edges)
        known = {edge.number for edge in edges}
        n_tokens = _TOKENS_AROUND_SCORES + self.tokens_per_edge * len(edges)
        bound = OutputBound(n_tokens, "tog_search.max_tokens_per_scored_edge")
        problem = ""
        for _ in range(2):
            messages = [
                {"role": "system", "content": self.prompts.scoring},
                {"role": "user", "content": request + problem},
            ]
            try:
                reply = await ask(self.model, messages, self.temperature, EdgeScores, bound)
            except CutOffReplyError as error:
                return str(error)
            except UnreadableReplyError as error:
                problem = f"\n\nYour last reply could not be used: {error}. Reply with JSON only."
                continue
            found: dict[int, float | None] = {}
            for item in reply.scores:
                if item.edge in known:
                    valid = math.isfinite(item.score) and 0 <= item.score <= 1
                    found.setdefault(item.edge, item.score if valid else None)
            if found:
                return found
            problem = "\n\nYour last reply scored none of these edges. Use their numbers."
        return "the model's scores could not be read"

    def _describe(self, candidate: Candidate, number: int = 1) -> ShownEdge:
        edge = candidate.edge
        rows = [self.store.relationship_row(link.relationship) for link in edge.links]
        first = rows[0]
        told = [
            row.description
            if (row.source, row.target) == (first.source, first.target)
            else f"({row.source} to {row.target}) {row.description}"
            for row in rows
        ]
        neighbour = self.store.entity_row(edge.target)
        return ShownEdge(
            number=number,
            entity=shorten(self.store.title(edge.source), _MAX_TITLE_CHARS),
            neighbour=shorten(neighbour.title, _MAX_TITLE_CHARS),
            forward=edge.links[0].forward,
            relationship=shorten("; ".join(told), _MAX_RELATIONSHIP_CHARS),
            about_neighbour=shorten(neighbour.description, _MAX_DESCRIPTION_CHARS),
        )


def _as_text(edge: ShownEdge) -> str:
    """Join what is said of an edge; the neighbour's name counts twice, as it is what is sought."""
    names = (edge.entity, edge.neighbour)
    ends = names if edge.forward else names[::-1]
    return " ".join((*ends, edge.relationship, edge.neighbour, edge.about_neighbour))


def _put_back(scores: Scores, shown: Sequence[int], n_candidates: int) -> Scores:
    """Return the scores of all candidates from those of the ones that were shown."""
    if len(shown) == n_candidates:
        return scores
    values = [0.0] * n_candidates
    for place, value in zip(shown, scores.values, strict=True):
        values[place] = value
    note = f"the model was shown the {len(shown)} most promising of {n_candidates} edges"
    return Scores(tuple(values), scores.strategy, "; ".join(filter(None, [note, scores.note])))
