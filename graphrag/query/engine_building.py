"""Making the engine of a search method from an index's tables and settings."""

from typing import TYPE_CHECKING, Any

from graphrag.config.embeddings import text_unit_text_embedding
from graphrag.query.index_tables import IndexTables
from graphrag.query.methods import GRAPH_METHODS, RANKED
from graphrag.query.model_facts import is_hashed
from graphrag.query.models import open_completion, open_embedding
from graphrag.query.outcome import OnText, Outcome, SearchEngine
from graphrag.utils.api import get_embedding_store, load_search_prompt

if TYPE_CHECKING:
    from graphrag.query.index_header import IndexHeader
    from graphrag.query.ranked_search import RankedTexts
    from graphrag.query.structured_search.tog_search import GraphSearch, OpenedGraph
    from graphrag.text.ranking import WordIndexes


def build_engine(
    method: str, header: "IndexHeader", tables: IndexTables, prepared: Any
) -> SearchEngine:
    """Make the engine of a method, and import what that one needs.

    ``prepared`` is, for tog and ppr, from :func:`open_graph_of`, for a ranked search from
    :func:`rank_texts_of`, else None.
    """
    if method in GRAPH_METHODS:
        return _of_graph(method, header, prepared)
    if method in RANKED:
        return _ranked(method, header, prepared)
    from graphrag.query.engines import build_released

    return build_released(method, header, tables)


class _OfGraph:
    """Think-on-Graph or PageRank search as one of the methods."""

    def __init__(self, search: "GraphSearch") -> None:
        self._search = search

    async def answer(self, question: str, on_text: OnText | None) -> Outcome:
        found = await self._search.run(question, on_text)
        shown = found.context_data, found.context_text
        return Outcome(str(found.response), *shown, found.abstained)


def _of_graph(method: str, header: "IndexHeader", opened: "OpenedGraph") -> SearchEngine:
    from graphrag.query.structured_search.tog_search import PPRSearch, ToGSearch

    make = ToGSearch if method == "tog" else PPRSearch
    return _OfGraph(
        make(
            model=open_completion(header.model_configs(method)["completion"]),
            graph=opened.graph,
            text_units=opened.text_units,
            config=header.section(method),
            response_type=header.options.response_type,
        )
    )


def _ranked(method: str, header: "IndexHeader", texts: "RankedTexts") -> SearchEngine:
    from graphrag.query import ranked_search as ranked

    section, models = header.config.basic_search, header.model_configs(method)
    prompt = load_search_prompt(section.prompt)
    answering = ranked.Answering(
        open_completion(models["completion"]),
        header.options.response_type,
        section.k,
        section.max_context_tokens,
        **({"prompt": prompt} if prompt else {}),
    )
    ranking: ranked.Ranking = ranked.ByWords(texts)
    embedding = models.get("embedding")
    if embedding is not None and not is_hashed(f"{embedding.model_provider}/{embedding.model}"):
        vectors = get_embedding_store(header.config.vector_store, text_unit_text_embedding)
        ranking = ranked.ByWordsAndVectors(texts, vectors, open_embedding(embedding))
    search = ranked.AgenticSearch if method == "agentic" else ranked.RankedSearch
    return search(answering, ranking)


def open_graph_of(tables: IndexTables, words: "WordIndexes | None" = None) -> "OpenedGraph":
    """Map the graph of tables that are files, see ``graph_cache``; build that of others in memory.

    May take seconds on a large index that was not opened before. Raises UnreadableTableError if a
    table lacks a column or can't be read.
    """
    from graphrag.query.structured_search.tog_search import (
        OpenedGraph,
        TableFiles,
        build_in_memory,
        open_graph,
    )
    from graphrag.text.ranking import WordIndexes

    if tables.paths:
        paths = tables.paths
        read = (paths[name] for name in ("entities", "relationships", "text_units"))
        opened = open_graph(TableFiles(*read, documents=paths.get("documents")))
    else:
        opened = build_in_memory(
            tables.table("entities"),
            tables.table("relationships"),
            # Without them a walk answers from its paths alone.
            tables.table("text_units") if tables.has("text_units") else None,
            tables.columns("documents", ("id", "title")),
        )
    return OpenedGraph(opened.graph, opened.text_units.counted_in(words or WordIndexes()))


def rank_texts_of(tables: IndexTables, words: "WordIndexes") -> "RankedTexts":
    """Prepare the text units of an index for the ranked searches; seconds for a large one."""
    from graphrag.query.indexer_adapters import read_indexer_text_units
    from graphrag.query.ranked_search import RankedTexts

    return RankedTexts(read_indexer_text_units(tables.table("text_units")), words)
