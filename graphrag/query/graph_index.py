"""One built GraphRAG project, opened once and then asked many questions at the same time."""

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag.config.models.strict_section import nearest
from graphrag.query.calls import describe_error, is_refusal, name_remedy
from graphrag.query.index_header import IndexHeader, SearchOptions, read_header
from graphrag.query.index_tables import IndexTables, check_vectors, open_tables
from graphrag.query.methods import GRAPH_METHODS, METHODS, RANKED, embeds
from graphrag.query.output import context_budget
from graphrag.query.usage import CallLog, measure_calls

if TYPE_CHECKING:
    from graphrag.query.counted_result import CountedSearchResult
    from graphrag.query.outcome import OnText, SearchEngine
    from graphrag.text.ranking import WordIndexes


class SearchError(RuntimeError):
    """A search gave no usable response; ``refused``: nor would any further request get one."""

    def __init__(self, message: str, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


class GraphIndex:
    """A built index and the engines that search it.

    Make one with :meth:`open`; ask it with :meth:`search`, from any number of tasks of one
    event loop. Engines are built at the first question of their method and then kept.
    """

    def __init__(self, header: IndexHeader, tables: IndexTables) -> None:
        self.header = header
        self.tables = tables
        self._engines: dict[str, SearchEngine] = {}
        self._building = asyncio.Lock()
        self._shared = _Shared(tables)
        self._unchecked: Path | str | None = None

    @classmethod
    async def open(
        cls,
        root: Path | str,
        data_dir: Path | str | None = None,
        options: SearchOptions | None = None,
        vectors: bool = True,
    ) -> "GraphIndex":
        """Open a project folder, leaving the working directory and the environment alone.

        With ``vectors=False`` its vectors are looked at by the first search that reads them, which
        then raises what is said below of a vector store.

        Raises
        ------
        SettingsError
            If the settings can't be read.
        IndexNotBuiltError
            If a table or vector store is missing or has another embedding size.
        """
        header = await read_header(root, data_dir, options, vectors)
        index = cls(header, await open_tables(header.config))
        index._unchecked = None if vectors else root
        return index

    def under(self, header: IndexHeader) -> "GraphIndex":
        """Return the index under other settings of a method; it shares what is made of tables."""
        if header is self.header:
            return self
        varied = GraphIndex(header, self.tables)
        varied._shared, varied._unchecked = self._shared, self._unchecked
        return varied

    async def search(
        self,
        method: str,
        question: str,
        on_text: "OnText | None" = None,
        log: CallLog | None = None,
    ) -> "CountedSearchResult":
        """Answer a question.

        Parameters
        ----------
        method : {"tog", "ppr", "local", "basic", "global", "drift", "bm25", "hybrid", "agentic"}
        question : str
        on_text : callable or None
            Receives the response piece by piece.
        log : CallLog or None
            Where the calls are recorded, also when the search fails; brings the limit and the
            journal of a run.

        Raises
        ------
        SettingsError
            If a prompt file that the method needs is not there.
        IndexNotBuiltError
            If a table that the method needs is missing, or vectors that were not looked at before.
        SearchError
            If a call failed for good, the response is empty, or the search could not answer;
            an error is never returned as a response.
        """
        from graphrag.query.counted_result import make_result

        log = log or CallLog(live=on_text is not None)
        engine = await self._engine(method)
        started, waited_s = time.perf_counter(), log.waited_s
        with measure_calls(log):
            try:
                outcome = await engine.answer(question, on_text)
            except Exception as error:
                cause = log.failures[0] if log.failures else describe_error(error)
                cause = name_remedy(cause, context_budget(method))
                raise SearchError(cause, refused=is_refusal(error)) from error
        if log.failures:
            raise SearchError(name_remedy(log.failures[0], context_budget(method)))
        if not outcome.response.strip():
            msg = "the model answered with an empty response"
            raise SearchError(msg)
        return make_result(
            outcome.response,
            outcome.context_data,
            outcome.context_text,
            log.usage(),
            seconds=time.perf_counter() - started - (log.waited_s - waited_s),
            abstained=outcome.abstained or log.abstained,
        )

    async def _engine(self, method: str) -> "SearchEngine":
        if method not in METHODS:
            msg = f"unknown method {method!r}{nearest(method, METHODS)}"
            raise ValueError(msg)
        if method not in self._engines:
            async with self._building:
                if method not in self._engines:
                    self._engines[method] = await self._build(method)
        return self._engines[method]

    async def _build(self, method: str) -> "SearchEngine":
        from graphrag.query.engine_building import build_engine

        self.header.prompt_files(method)  # the released engines would take their own in silence
        if self._unchecked is not None and embeds(method):
            check_vectors(self.header.config, Path(self._unchecked))
            self._unchecked = None
        prepared = await self._shared.prepared(method)
        return build_engine(method, self.header, self.tables, prepared)


class _Shared:
    """What all searches of an index share, each part made once, by the first that needs it."""

    def __init__(self, tables: IndexTables) -> None:
        self._tables = tables
        self._words: WordIndexes | None = None
        self._made: dict[str, object] = {}
        self._making = asyncio.Lock()

    async def prepared(self, method: str) -> object:
        """Return the graph or the ranked text units that a method searches, None of others."""
        from graphrag.query.engine_building import open_graph_of, rank_texts_of

        if method not in (*GRAPH_METHODS, *RANKED):
            return None
        kind, make = ("texts", rank_texts_of) if method in RANKED else ("graph", open_graph_of)
        async with self._making:
            if kind not in self._made:
                from graphrag.text.ranking import WordIndexes

                self._words = self._words or WordIndexes()
                # For a large index it takes seconds, in which other searches go on.
                self._made[kind] = await asyncio.to_thread(make, self._tables, self._words)
        return self._made[kind]
