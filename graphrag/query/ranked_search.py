"""Basic search over text units that are ranked in another way than by their vectors alone."""

import asyncio
import copy
from typing import TYPE_CHECKING, Any, Protocol

from graphrag_vectors import VectorStoreDocument, VectorStoreSearchResult

from graphrag.query.engines import AwaitedEmbedding, OnText, Outcome, answer_from_context
from graphrag.query.structured_search.basic_search.basic_context import BasicSearchContext
from graphrag.text.ranking import WordIndexes, fuse_scores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphrag_vectors import VectorStore

    from graphrag.data_model.text_unit import TextUnit
    from graphrag.query.structured_search.basic_search.search import BasicSearch

FUSED = 1_000
"""Text units of each ranking that are fused."""


class Ranking(Protocol):
    """A way to rank an index's text units; asked concurrently."""

    async def best(self, question: str, k: int) -> "Sequence[TextUnit]":
        """Return at most ``k`` text units, best first."""
        ...


class RankedTexts:
    """The text units of an index and their words, prepared once for all searches of it.

    Parameters
    ----------
    units : sequence of TextUnit
        In the order of the index's table; they are not written into.
    words : WordIndexes
        Where their words are counted.
    """

    def __init__(self, units: "Sequence[TextUnit]", words: WordIndexes) -> None:
        self.units = tuple(units)
        self.places = {unit.id: place for place, unit in enumerate(self.units)}
        self.words = words.of([unit.text for unit in self.units])


class ByWords:
    """Ranks by BM25: text units that share no word with the question are left out."""

    def __init__(self, texts: RankedTexts) -> None:
        self._texts = texts

    async def best(self, question: str, k: int) -> "Sequence[TextUnit]":
        """Return the best text units."""
        return [self._texts.units[place] for place in self._texts.words.rank(question)[:k]]


class ByWordsAndVectors:
    """Ranks by BM25 and by the question's vector, fused by z-scores.

    Parameters
    ----------
    texts : RankedTexts
    vectors : VectorStore
        Of the text units; a vector of a text unit that is not among them is passed over.
    embedding : AwaitedEmbedding
    """

    def __init__(
        self, texts: RankedTexts, vectors: "VectorStore", embedding: AwaitedEmbedding
    ) -> None:
        self._texts = texts
        self._vectors = vectors
        self._embedding = embedding

    async def best(self, question: str, k: int) -> "Sequence[TextUnit]":
        """Return the best text units."""
        vector = await self._embedding.vector_of(question)
        depth = max(FUSED, k)
        hits = await asyncio.to_thread(
            self._vectors.similarity_search_by_vector, vector, k=depth, include_vectors=False
        )
        places = self._texts.places
        near = {
            places[name]: float(hit.score)
            for hit in hits
            if (name := str(hit.document.id)) in places
        }
        words = dict.fromkeys(near, 0.0) | dict(self._texts.words.best(question, depth))
        fused = fuse_scores([words, near])
        return [self._texts.units[place] for place in fused[:k]]


class RankedSearch:
    """The released basic search, shown text units as a ranking orders them, best first.

    Parameters
    ----------
    engine : BasicSearch
        Gets a context builder of its own for each question.
    ranking : Ranking
    """

    def __init__(self, engine: "BasicSearch", ranking: Ranking) -> None:
        self._engine = engine
        self._ranking = ranking

    async def answer(self, question: str, on_text: OnText | None) -> Outcome:
        """Answer a question from one context."""
        k: int = self._engine.context_builder_params["k"]
        units = await self._ranking.best(question, k)
        engine = copy.copy(self._engine)
        engine.context_builder = context_of(units, self._engine.tokenizer)
        return await answer_from_context(engine, question, on_text)


def context_of(units: "Sequence[TextUnit]", tokenizer: Any) -> BasicSearchContext:
    """Return the released context builder, which finds these text units in this order."""
    nothing: Any = None
    found: Any = _Found(units)
    return BasicSearchContext(
        text_embedder=nothing,
        text_unit_embeddings=found,
        text_units=list(units),
        tokenizer=tokenizer,
    )


class _Found:
    """Stands for a vector store: whatever is looked for, the same text units are found."""

    def __init__(self, units: "Sequence[TextUnit]") -> None:
        self._units = units

    def similarity_search_by_text(self, k: int, **_: Any) -> list[VectorStoreSearchResult]:
        """Return the first ``k`` of them."""
        return [
            VectorStoreSearchResult(VectorStoreDocument(unit.id, None), 0.0)
            for unit in self._units[:k]
        ]
