"""One built GraphRAG project, opened once and then asked many questions at the same time."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from graphrag.config.models.strict_section import nearest
from graphrag.query.calls import describe_error, is_refusal, name_remedy
from graphrag.query.index_header import IndexHeader, SearchOptions, read_header
from graphrag.query.index_tables import Tables, check_vectors, open_tables
from graphrag.query.methods import GRAPH_METHODS, METHODS, RANKED, embeds
from graphrag.query.output import context_budget
from graphrag.query.usage import CallLog, measure_calls

if TYPE_CHECKING:
    from graphrag.query.counted_result import CountedSearchResult
    from graphrag.query.engines import OnText, SearchEngine
    from graphrag.query.ranked_search import RankedTexts
    from graphrag.query.structured_search.tog_search import OpenedGraph
    from graphrag.text.ranking import WordIndexes

Made = TypeVar("Made")


class SearchError(RuntimeError):
    """A search gave no usable response.

    Attributes
    ----------
    refused : bool
        True when the model's service would refuse every further request too.
    """

    def __init__(self, message: str, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


class GraphIndex:
    """A built index and the engines that search it.

    Make one with :meth:`open`; ask it with :meth:`search`, from any number of tasks of one
    event loop. Engines are built at the first question of their method and then kept.

    Parameters
    ----------
    header : IndexHeader
        The project's settings with absolute paths.
    tables : Tables
    """

    def __init__(self, header: IndexHeader, tables: Tables) -> None:
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
        """Return the index as searched under these settings; what is made of its tables is shared.

        Parameters
        ----------
        header : IndexHeader
            This index's, or the same with other settings of a method.
        """
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
        # They load the search engines, which takes a second; who only judges needs none.
        from graphrag.query.engine_building import EngineBuilder
        from graphrag.query.models import open_completion, open_embedding

        self.header.prompt_files(method)  # the released engines would take their own in silence
        if self._unchecked is not None and embeds(method):
            check_vectors(self.header.config, Path(self._unchecked))
            self._unchecked = None
        models = self.header.model_configs(method)
        embedding = models.get("embedding")
        # For a large index both take seconds, in which other searches go on.
        prepared = None
        if method in GRAPH_METHODS:
            prepared = await self._shared.graph()
        elif method in RANKED:
            prepared = await self._shared.texts()
        return EngineBuilder(self.header, self.tables).build(
            method,
            open_completion(models["completion"]),
            None if embedding is None else open_embedding(embedding),
            prepared,
        )


class _Shared:
    """What all searches of an index share, each part made by the first search that needs it."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._words: WordIndexes | None = None
        self._graph: _Later[OpenedGraph] = _Later()
        self._texts: _Later[RankedTexts] = _Later()

    async def graph(self) -> "OpenedGraph":
        """Return its graph."""
        from graphrag.query.engine_building import open_graph_of

        return await self._graph.made_by(open_graph_of, self._tables, self._counted())

    async def texts(self) -> "RankedTexts":
        """Return its text units, made ready for ranking."""
        from graphrag.query.engine_building import rank_texts_of

        return await self._texts.made_by(rank_texts_of, self._tables, self._counted())

    def _counted(self) -> "WordIndexes":
        from graphrag.text.ranking import WordIndexes

        self._words = self._words or WordIndexes()
        return self._words


class _Later(Generic[Made]):
    """Something that is made once, in a thread, however many tasks ask for it."""

    def __init__(self) -> None:
        self._made: Made | None = None
        self._making = asyncio.Lock()

    async def made_by(self, make: Callable[..., Made], *given: object) -> Made:
        """Return it; if it was not made yet, by this function."""
        async with self._making:
            if self._made is None:
                self._made = await asyncio.to_thread(make, *given)
            return self._made
