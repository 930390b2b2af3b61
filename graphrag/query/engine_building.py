"""Making the engine of a search method from an index's tables and settings."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphrag.config.embeddings import (
    community_full_content_embedding,
    entity_description_embedding,
    text_unit_text_embedding,
)
from graphrag.query.agentic_search import AgenticSearch
from graphrag.query.engines import (
    AwaitedEmbedding,
    ContextSearch,
    DriftSearch,
    GlobalMapReduce,
    OfGraph,
    SearchEngine,
)
from graphrag.query.factory import (
    get_basic_search_engine,
    get_drift_search_engine,
    get_global_search_engine,
    get_local_search_engine,
)
from graphrag.query.index_header import IndexHeader, SearchOptions, model_name
from graphrag.query.index_tables import StoredTables, Tables
from graphrag.query.indexer_adapters import (
    read_indexer_communities,
    read_indexer_covariates,
    read_indexer_entities,
    read_indexer_relationships,
    read_indexer_report_embeddings,
    read_indexer_reports,
    read_indexer_text_units,
)
from graphrag.query.known_tokens import KnownTokens
from graphrag.query.model_facts import is_hashed
from graphrag.query.models import CountedCompletion, CountedEmbedding
from graphrag.query.ranked_search import (
    ByWords,
    ByWordsAndVectors,
    RankedSearch,
    RankedTexts,
    Ranking,
    context_of,
)
from graphrag.query.structured_search.basic_search.search import BasicSearch
from graphrag.query.structured_search.tog_search import (
    GraphStore,
    OpenedGraph,
    PPRSearch,
    TableFiles,
    TextUnits,
    ToGSearch,
    open_graph,
)
from graphrag.text.ranking import WordIndexes
from graphrag.utils.api import get_embedding_store, load_search_prompt

if TYPE_CHECKING:
    import pandas as pd
    from graphrag_vectors import VectorStore

    from graphrag.config.models.graph_rag_config import GraphRagConfig


@dataclass(frozen=True, slots=True)
class EngineBuilder:
    """Makes engines over one index; the released readers write into tables, so each gets a copy."""

    header: IndexHeader
    tables: Tables

    @property
    def config(self) -> "GraphRagConfig":
        """The project's settings."""
        return self.header.config

    @property
    def options(self) -> SearchOptions:
        """What the settings leave open."""
        return self.header.options

    def build(
        self,
        method: str,
        completion: CountedCompletion,
        embedding: CountedEmbedding | None,
        prepared: "OpenedGraph | RankedTexts | None" = None,
    ) -> SearchEngine:
        """Make the engine of a method.

        Parameters
        ----------
        method : str
            One of ``METHODS``.
        completion : CountedCompletion
        embedding : CountedEmbedding or None
            Those methods need it that ``methods.embeds`` names.
        prepared : OpenedGraph, RankedTexts or None
            For tog and ppr, from :func:`open_graph_of`; for a ranked search, from
            :func:`rank_texts_of`.
        """
        if method == "global":
            return GlobalMapReduce(_with_model(self._global(), completion))
        if isinstance(prepared, RankedTexts):
            return self._ranked(method, prepared, completion, embedding)
        if prepared is not None:
            return self._of_graph(method, prepared, completion)
        assert embedding is not None
        if method == "drift":
            engine = _with_model(self._drift(), completion)
            engine.context_builder.model = completion
            engine.primer.chat_model = completion
            engine.local_search.model = completion
            return DriftSearch(engine, embedding)
        engine = self._local() if method == "local" else self._basic()
        engine.context_builder.tokenizer = KnownTokens(engine.context_builder.tokenizer)
        return ContextSearch(_with_model(engine, completion), embedding)

    def _of_graph(
        self, method: str, opened: OpenedGraph, completion: CountedCompletion
    ) -> SearchEngine:
        make = ToGSearch if method == "tog" else PPRSearch
        return OfGraph(
            make(
                model=completion,
                graph=opened.graph,
                text_units=opened.text_units,
                config=self.header.section(method),
                response_type=self.options.response_type,
            )
        )

    def _local(self) -> Any:
        claims = self.tables.table("covariates") if self.tables.has("covariates") else None
        return get_local_search_engine(
            config=self.config,
            reports=self._reports(),
            text_units=self._text_units(),
            entities=self._entities(),
            relationships=self._relationships(),
            covariates={"claims": [] if claims is None else read_indexer_covariates(claims)},
            description_embedding_store=self._store(entity_description_embedding),
            response_type=self.options.response_type,
            system_prompt=load_search_prompt(self.config.local_search.prompt),
        )

    def _basic(self) -> Any:
        return get_basic_search_engine(
            config=self.config,
            text_units=self._text_units(),
            text_unit_embeddings=self._store(text_unit_text_embedding),
            response_type=self.options.response_type,
            system_prompt=load_search_prompt(self.config.basic_search.prompt),
        )

    def _ranked(
        self,
        method: str,
        texts: RankedTexts,
        completion: CountedCompletion,
        embedding: CountedEmbedding | None,
    ) -> SearchEngine:
        section = self.config.basic_search
        tokenizer = KnownTokens(completion.tokenizer)
        engine = BasicSearch(
            model=completion,
            context_builder=context_of((), tokenizer),
            tokenizer=tokenizer,
            system_prompt=load_search_prompt(section.prompt),
            response_type=self.options.response_type,
            model_params=completion.config.call_args,
            context_builder_params={
                "k": section.k,
                "max_context_tokens": section.max_context_tokens,
            },
        )
        ranking: Ranking = ByWords(texts)
        if embedding is not None and not is_hashed(model_name(embedding.config)):
            vectors = self._store(text_unit_text_embedding)
            ranking = ByWordsAndVectors(texts, vectors, AwaitedEmbedding(embedding))
        search = AgenticSearch if method == "agentic" else RankedSearch
        return search(engine, ranking)

    def _global(self) -> Any:
        dynamic = self.options.dynamic_community_selection
        section = self.config.global_search
        return get_global_search_engine(
            config=self.config,
            reports=self._reports(dynamic),
            communities=read_indexer_communities(
                self.tables.table("communities"), self.tables.table("community_reports")
            ),
            entities=self._entities(),
            response_type=self.options.response_type,
            dynamic_community_selection=dynamic,
            map_system_prompt=load_search_prompt(section.map_prompt),
            reduce_system_prompt=load_search_prompt(section.reduce_prompt),
            general_knowledge_inclusion_prompt=load_search_prompt(section.knowledge_prompt),
        )

    def _drift(self) -> Any:
        reports = self._reports()
        read_indexer_report_embeddings(reports, self._store(community_full_content_embedding))
        section = self.config.drift_search
        return get_drift_search_engine(
            config=self.config,
            reports=reports,
            text_units=self._text_units(),
            entities=self._entities(),
            relationships=self._relationships(),
            description_embedding_store=self._store(entity_description_embedding),
            response_type=self.options.response_type,
            local_system_prompt=load_search_prompt(section.prompt),
            reduce_system_prompt=load_search_prompt(section.reduce_prompt),
        )

    def _store(self, name: str) -> "VectorStore":
        return get_embedding_store(self.config.vector_store, name)

    def _reports(self, dynamic: bool = False) -> Any:
        return read_indexer_reports(
            self.tables.table("community_reports"),
            self.tables.table("communities"),
            self.options.community_level,
            dynamic_community_selection=dynamic,
        )

    def _entities(self) -> Any:
        level = self.options.community_level
        return read_indexer_entities(
            self.tables.table("entities"), self.tables.table("communities"), level
        )

    def _relationships(self) -> Any:
        return read_indexer_relationships(self.tables.table("relationships"))

    def _text_units(self) -> Any:
        return read_indexer_text_units(self.tables.table("text_units"))


def open_graph_of(tables: Tables, words: WordIndexes | None = None) -> OpenedGraph:
    """Map the graph of tables that are files, see ``open_graph``; build that of others in memory.

    May take seconds on a large index that was not opened before.

    Parameters
    ----------
    tables : Tables
    words : WordIndexes or None
        Where the words of the text units are counted, if a search asks for them.

    Raises
    ------
    UnreadableTableError
        If a table lacks a column or can't be read.
    """
    if isinstance(tables, StoredTables):
        paths = tables.paths
        read = (paths[name] for name in ("entities", "relationships", "text_units"))
        opened = open_graph(TableFiles(*read, documents=paths.get("documents")))
    else:
        # Without them a walk answers from its paths alone.
        units = tables.table("text_units") if tables.has("text_units") else _no_text_units()
        graph = GraphStore.from_tables(
            tables.table("entities"),
            tables.table("relationships"),
            units,
            tables.columns("documents", ("id", "title")),
        )
        opened = OpenedGraph(graph, TextUnits.from_table(units))
    return OpenedGraph(opened.graph, opened.text_units.counted_in(words or WordIndexes()))


def rank_texts_of(tables: Tables, words: WordIndexes) -> RankedTexts:
    """Prepare the text units of an index for the ranked searches; seconds for a large one.

    Parameters
    ----------
    tables : Tables
    words : WordIndexes
        Where their words are counted.

    Raises
    ------
    IndexNotBuiltError
        If the index has no text units.
    """
    return RankedTexts(read_indexer_text_units(tables.table("text_units")), words)


def _no_text_units() -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame({"id": [], "text": []}, dtype=str)


def _with_model(engine: Any, completion: CountedCompletion) -> Any:
    engine.model = completion
    return engine
