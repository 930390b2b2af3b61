"""Scoring the edges ahead by the completion model; by their words where its reply can't be used."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphrag.query.calls import CutOffReplyError
from graphrag.query.structured_search.tog_search.asking.edges import ShownEdge
from graphrag.query.structured_search.tog_search.asking.prompts import ScoringPrompt
from graphrag.query.structured_search.tog_search.asking.replies import (
    CompletionModel,
    EdgeScores,
    UnreadableReplyError,
    ask,
)
from graphrag.query.structured_search.tog_search.graph.store import GraphStore
from graphrag.query.structured_search.tog_search.state import Candidate, Scores
from graphrag.query.structured_search.tog_search.walk.promise import (
    describe_edge,
    score_by_reach,
    score_by_words,
)
from graphrag.query.usage import OutputBound, phase

_TOKENS_AROUND_SCORES = 60
_TOKENS_PER_EDGE = 40
# Of the relationship and of the neighbour's description: more edges are worth more than more words.
_CHARS = (100, 60)
_BOUND_SETTING = "call_args.max_tokens of the model in settings.yaml"


@dataclass(frozen=True, slots=True)
class Pruner:
    """Scores candidates; made once, used at every depth.

    Parameters
    ----------
    store : GraphStore
    model : CompletionModel
    prompt : ScoringPrompt
    max_scored : int or None
        Edges that the model is shown at a depth at most.
    max_tokens : int
        Tokens of the question and the edges in a scoring call; further edges are left out.
    """

    store: GraphStore
    model: CompletionModel
    prompt: ScoringPrompt
    max_scored: int
    max_tokens: int

    async def score(
        self, question: str, candidates: Sequence[Candidate], reached: Mapping[int, float]
    ) -> Scores:
        """Score candidates in [0, 1]: what the model says of the most promising.

        These are the ``max_scored`` best by :func:`score_by_reach`. An edge that the model leaves
        out, or was not shown, scores 0. A reply that was cut off, or stays unreadable after one
        repair, makes the whole depth fall back to words, as scores from two scales can't be
        compared; the note says so.

        Parameters
        ----------
        question : str
        candidates : sequence of Candidate
        reached : mapping of int to float
            Node -> mass.

        Raises
        ------
        Exception
            Whatever the model raises when it can't be reached.
        """
        promise = (await score_by_reach(question, candidates, reached, self.store)).values
        order = sorted(range(len(candidates)), key=lambda place: (-promise[place], place))
        shown, edges = self._fit(question, candidates, order[: self.max_scored])
        with phase("exploration"):
            scored = await self._score_by_model(question, edges)
        if isinstance(scored, Scores):
            return _put_back(scored, shown, len(candidates))
        note = f"{scored}, so bm25 scored this depth"
        values = (await score_by_words(question, candidates, self.store)).values
        return Scores(values, "bm25", note)

    def _fit(
        self, question: str, candidates: Sequence[Candidate], order: Sequence[int]
    ) -> tuple[list[int], list[ShownEdge]]:
        """Return as many of the first candidates as fit into one request, in their own order."""

        def first(n: int) -> list[ShownEdge]:
            places = sorted(order[:n])
            return [
                describe_edge(candidates[at], self.store, no, _CHARS)
                for no, at in enumerate(places, 1)
            ]

        def fits(n: int) -> bool:
            request = self.prompt.render(question, first(n))
            return int(self.model.tokenizer.num_tokens(request)) <= self.max_tokens

        least, most = 1, len(order)
        while least < most:
            middle = (least + most + 1) // 2
            least, most = (middle, most) if fits(middle) else (least, middle - 1)
        return sorted(order[:least]), first(least)

    async def _score_by_model(self, question: str, edges: Sequence[ShownEdge]) -> Scores | str:
        """Return the model's scores, or why they can't be used."""
        reply = await self._ask_for_scores(question, edges)
        if isinstance(reply, str):
            return reply
        n_unreadable = sum(score is None for score in reply.values())
        note = f"{n_unreadable} scores outside 0 to 1 counted as 0" if n_unreadable else ""
        return Scores(tuple(reply.get(edge.number) or 0.0 for edge in edges), "llm", note)

    async def _ask_for_scores(
        self, question: str, edges: Sequence[ShownEdge]
    ) -> dict[int, float | None] | str:
        """Return edge number -> score (None: not in [0, 1]), or why no reply can be used."""
        request = self.prompt.render(question, edges)
        known = {edge.number for edge in edges}
        n_tokens = _TOKENS_AROUND_SCORES + _TOKENS_PER_EDGE * len(edges)
        bound = OutputBound(n_tokens, _BOUND_SETTING)
        problem = ""
        for _ in range(2):
            messages = [
                {"role": "system", "content": self.prompt.instructions},
                {"role": "user", "content": request + problem},
            ]
            try:
                reply = await ask(self.model, messages, EdgeScores, bound)
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


def _put_back(scores: Scores, shown: Sequence[int], n_candidates: int) -> Scores:
    """Return the scores of all candidates from those of the ones that were shown."""
    if len(shown) == n_candidates:
        return scores
    values = [0.0] * n_candidates
    for place, value in zip(shown, scores.values, strict=True):
        values[place] = value
    note = f"the model was shown the {len(shown)} most promising of {n_candidates} edges"
    return Scores(tuple(values), scores.strategy, "; ".join(filter(None, [note, scores.note])))
