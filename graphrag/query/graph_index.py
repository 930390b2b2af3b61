"""Opens a built GraphRAG project once, and answers many questions on it at the same time."""

import asyncio
import time
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from graphrag.config.models.strict_section import nearest
from graphrag.query.client.call_errors import name_remedy, read_failure
from graphrag.query.client.model_prices import is_hashed
from graphrag.query.client.structured_output import context_budget
from graphrag.query.client.usage import CallLog, FailedCall, measure_calls
from graphrag.query.index.header import (
    IndexHeader,
    SearchOptions,
    check_vectors,
    index_languages,
    model_name,
    read_header,
)
from graphrag.query.index.tables import (
    IndexTables,
    check_tables,
    open_tables,
    read_titles,
)
from graphrag.query.methods import GRAPH_METHODS, METHODS, RANKED

if TYPE_CHECKING:
    from graphrag_llm.config import ModelConfig

    from graphrag.config.models.graph_rag_config import GraphRagConfig
    from graphrag.query.engines import Records
    from graphrag.query.graph import OpenedGraph
    from graphrag.query.index.meaning import TextMeaning
    from graphrag.query.index.texts import IndexTexts
    from graphrag.query.search_result import CountedSearchResult, OnText, SearchEngine


_Part = TypeVar("_Part")


class SearchError(RuntimeError):
    """Raised when a search gave no usable response.

    ``refused``: whether every further request would be refused, too. ``context_is_full``: whether
    its model's context had no room for a request or a reply.
    """

    def __init__(self, message: str, refused: bool = False, context_is_full: bool = False) -> None:
        super().__init__(message)
        self.refused = refused
        self.context_is_full = context_is_full


def _search_error(failure: FailedCall, budget: str) -> SearchError:
    return SearchError(name_remedy(failure, budget), failure.refused, failure.context_is_full)


class GraphIndex:
    """Searches a built index, from any number of tasks of one event loop.

        index = await GraphIndex.open(root="my_project")
        result = await index.search(method="tog", question="Who signed?")
        response = result.response

    The engine of a method is built at its first question and then kept.
    """

    def __init__(self, header: IndexHeader, tables: IndexTables) -> None:
        self.header = header
        self.tables = tables
        self._engines: dict[str, SearchEngine] = {}
        self._building = asyncio.Lock()
        self._shared = _Shared(header, tables)
        self._unchecked: Path | None = None
        self._budget: str | None = None

    @classmethod
    async def open(
        cls,
        root: Path | str,
        data_dir: Path | str | None = None,
        options: SearchOptions | None = None,
        vectors: bool = True,
        detects_changes: bool = True,
    ) -> "GraphIndex":
        """Open a project folder, leaving the working directory and the environment alone.

        ``data_dir`` is the folder of the tables, if it is not the one in the settings. With
        ``vectors=False`` tables and vectors are looked for by the first search that reads them,
        which then raises the errors below. ``detects_changes`` as in ``read_header``. Raises
        SettingsError if the settings can't be read. Raises IndexNotBuiltError if tables or vectors
        are missing, can't be read, or the vectors are another model's.
        """
        methods = ("local", "basic") if vectors else ()  # together they need all that others do
        header = await read_header(
            root, data_dir, options or SearchOptions(), methods, detects_changes
        )
        index = cls(header, await open_tables(header.config))
        index._unchecked = None if vectors else Path(root)
        return index

    def under(self, header: IndexHeader, budget: str | None = None) -> "GraphIndex":
        """Return the index with other settings of a method; both share the parts made of tables.

        ``budget`` names the setting that bounds the context; None for the project's own.
        """
        if header is self.header and budget is None:
            return self
        index = GraphIndex(header, self.tables)
        index._shared, index._unchecked = self._shared, self._unchecked
        index._budget = budget
        return index

    async def search(
        self,
        method: str,
        question: str,
        on_text: "OnText | None" = None,
        log: CallLog | None = None,
    ) -> "CountedSearchResult":
        """Answer a question by a search method; return a CountedSearchResult.

        - ``method``: {"tog", "ppr", "local", "basic", "global", "drift", "bm25", "hybrid",
          "agentic"}.
        - ``on_text``: receives the response piece by piece.
        - ``log``: records the calls, even if the search fails; brings the limit and the journal of
          a run.

        Raises SearchError if there is no usable response, ValueError if the method is unknown.
        """
        from graphrag.query.search_result import make_result

        log = log or CallLog(live=on_text is not None)
        budget = self._budget or context_budget(method)
        engine = await self._find_engine(method)
        started, waited_s = time.perf_counter(), log.own_time.waited_s
        with measure_calls(log):
            try:
                outcome = await engine.answer(question, on_text)
            except Exception as error:
                failure = log.failures[0] if log.failures else read_failure(error)
                raise _search_error(failure, budget) from error
        if log.failures:
            raise _search_error(log.failures[0], budget)
        if not outcome.response.strip():
            raise SearchError("the model answered with an empty response")
        seconds = time.perf_counter() - started - (log.own_time.waited_s - waited_s)
        outcome = replace(outcome, abstained=outcome.abstained or log.abstained)
        return make_result(outcome, log.usage(), seconds)

    async def _find_engine(self, method: str) -> "SearchEngine":
        if method not in METHODS:
            raise ValueError(f"unknown method {method!r}{nearest(method, METHODS)}")
        if method not in self._engines:
            async with self._building:
                if method not in self._engines:
                    self._engines[method] = await self._build_engine(method)
        return self._engines[method]

    async def _build_engine(self, method: str) -> "SearchEngine":
        self.header.prompt_files(method)  # the released engines silently use default prompts
        if (root := self._unchecked) is not None:
            await asyncio.to_thread(check_tables, self.tables, self.header.config, root, (method,))
            check_vectors(self.header.config, root, (method,))
        if method in GRAPH_METHODS:
            return await self._shared.graph_engine(method, self.header)
        if method in RANKED:
            return await self._shared.ranked_engine(method, self.header)
        from graphrag.query.engines import build_global, build_released

        if method == "global":
            return build_global(self.header, self.tables)
        records = await self._shared.records(method, self.header.options.community_level)
        return build_released(method, self.header, self.tables, records)


class _Shared:
    """Keeps the parts that all searches of an index share; each is made once, in a thread."""

    def __init__(self, header: IndexHeader, tables: IndexTables) -> None:
        self._config, self._tables = header.config, tables
        self._making = asyncio.Lock()
        self._made: dict[Hashable, Any] = {}

    async def _make_once(self, key: Hashable, make: Callable[[], _Part]) -> _Part:
        async with self._making:
            if key not in self._made:
                self._made[key] = await asyncio.to_thread(make)
        return self._made[key]

    async def graph(self) -> "OpenedGraph":
        return await self._make_once("graph", lambda: open_graph_of(self._tables, self._texts))

    async def graph_engine(self, method: str, header: IndexHeader) -> "SearchEngine":
        from graphrag.query.client.models import open_completion
        from graphrag.query.graph import PPRSearch, ToGSearch

        opened, models = await self.graph(), header.model_configs(method)
        make = ToGSearch if method == "tog" else PPRSearch
        return make(
            model=open_completion(models["completion"]),
            graph=opened.graph,
            text_units=opened.text_units,
            config=header.section(method),
            response_type=header.options.response_type,
            meaning=self._meaning(header.config, models.get("embedding"), opened),
            note=_explain_words_alone(header, method) if opened.has_texts else "",
        )

    async def records(self, method: str, level: int | None) -> "Records":
        from graphrag.query.index.context_records import EntityRecords, TextRecords

        texts = await self._make_once("records of texts", lambda: TextRecords(self._tables))
        if method == "basic":
            return texts
        return await self._make_once(
            ("records", level), lambda: EntityRecords(self._tables, texts, level)
        )

    async def ranked_engine(self, method: str, header: IndexHeader) -> "SearchEngine":
        from graphrag.query import ranked_search as ranked
        from graphrag.query.client.models import open_completion, open_embedding
        from graphrag.query.index.meaning import open_text_vectors
        from graphrag.utils.api import load_search_prompt

        section, models = header.section(method), header.model_configs(method)
        prompt = load_search_prompt(section.prompt)
        answering = ranked.Answering(
            open_completion(models["completion"]),
            header.options.response_type,
            section.k,
            section.max_context_tokens,
            titles=await self._make_once("titles", lambda: read_titles(self._tables)),
            **({"prompt": prompt} if prompt else {}),
        )
        size = section.passage_tokens

        texts = await self._make_once(
            ("texts", size), lambda: ranked.RankedTexts(self._texts, size)
        )
        ranking, note = texts.by_words, _explain_words_alone(header, method)
        embedding = models.get("embedding")
        if embedding is not None and not note:
            vectors = open_text_vectors(header.config)
            ranking = texts.by_words_and(vectors, open_embedding(embedding))
        search = ranked.AgenticSearch if method == "agentic" else ranked.RankedSearch
        return search(answering, ranking, note)

    def _meaning(
        self, config: "GraphRagConfig", model: "ModelConfig | None", opened: "OpenedGraph"
    ) -> "TextMeaning | None":
        """Return the ``TextMeaning`` of a model, the same one for all searches that ask it."""
        if model is None:
            return None
        from graphrag.query.index.meaning import TextMeaning

        return self._made.setdefault(
            ("meaning", repr(model)), TextMeaning(config, model, opened.has_texts)
        )

    @cached_property
    def _texts(self) -> "IndexTexts":
        from graphrag.query.index.texts import open_texts

        tables = self._tables
        # Without text units the searches of the graph answer from relationships.
        source = tables.paths.get("text_units")
        if source is None and tables.has("text_units"):
            source = tables.table("text_units")
        return open_texts(source, index_languages(self._config, tables))


def _explain_words_alone(header: IndexHeader, method: str) -> str:
    """Return why only words rank a method's texts; "" if vectors do, too, or are not wanted."""
    from graphrag.query.index.meaning import HASHED

    name = getattr(header.section(method), "embedding_model_id", None)
    model = header.config.embedding_models.get(name or "")
    is_left = model is not None and is_hashed(model_name(model))
    return HASHED if is_left and method != "bm25" else ""


def open_graph_of(tables: IndexTables, texts: "IndexTexts | None" = None) -> "OpenedGraph":
    """Open the graph of an index: map files (see ``open_graph``), build other tables in memory.

    ``texts``: the text units, if they are open. May take seconds on a large index that was not
    opened before. Raises UnreadableTableError if a table lacks a column or can't be read.
    """
    from graphrag.query.graph import build_in_memory, open_graph
    from graphrag.query.index.texts import open_texts

    if tables.paths:
        return open_graph(tables.paths, texts)
    if texts is None and tables.has("text_units"):
        texts = open_texts(tables.table("text_units"))
    return build_in_memory(
        tables.table("entities"),
        tables.table("relationships"),
        texts,
        tables.columns("documents", ("id", "title")),
    )
