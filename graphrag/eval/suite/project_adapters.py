"""Turns a configured project's searches, extraction and built index into suite components."""

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, cast

from graphrag.config.models.strict_section import as_sentence, nearest
from graphrag.eval.config.evaluation import EvaluationConfig, parse_config
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.errors import ConfigError, RunStoppedError
from graphrag.eval.metrics.entities import Extraction
from graphrag.eval.metrics.index_view import IndexView
from graphrag.eval.metrics.judge import Judge
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.runner.indexes import read_headers
from graphrag.eval.runner.scheduler import check_asked, search_limits
from graphrag.eval.store.records import StoredResponse, Unit
from graphrag.eval.types.verdicts import Failure
from graphrag.query.client.call_errors import describe_error, is_refusal
from graphrag.query.client.models import open_completion
from graphrag.query.client.rate_limit import CallLimit
from graphrag.query.client.usage import CallLog, Usage, measure_calls
from graphrag.query.index.header import IndexHeader, describe_model
from graphrag.query.index.tables import rows_of
from graphrag.text.languages import find_languages

if TYPE_CHECKING:
    from graphrag_llm.completion import LLMCompletion

    from graphrag.config.models.graph_rag_config import GraphRagConfig


class CaseFailedError(Exception):
    """Raised if the system under test, or the judge, gave no result for a case.

    ``failure`` is recorded. Its stage "search" means that the system failed, which counts
    as not passed in a comparison; "judge" means that the score is missing.
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class ModelExtractor:
    """Extracts entities from a text with a project's prompt, entity types, gleanings and model."""

    def __init__(self, config: "GraphRagConfig") -> None:
        self._section = section = config.extract_graph
        self._model_config = config.get_completion_model_config(section.completion_model_id)
        self._prompt = section.resolved_prompts().extraction_prompt
        self._model = cast("LLMCompletion", open_completion(self._model_config))

    def describe(self) -> dict[str, object]:
        """Return all settings that change what is extracted, JSON-ready, without secrets."""
        return {
            "extraction": {
                **describe_model(self._model_config),
                "prompt": hashlib.blake2b(self._prompt.encode(), digest_size=16).hexdigest(),
                "entity_types": list(self._section.entity_types),
                "max_gleanings": self._section.max_gleanings,
            }
        }

    async def __call__(self, text: str, /) -> Extraction:
        """Return the entities and relationships of a text, named as in an index.

        Raises the error of a failed call, so that it does not count as an empty extraction.
        """
        from graphrag.index.operations.extract_graph.graph_extractor import GraphExtractor

        errors: list[BaseException] = []

        def keep(error: BaseException | None, _trace: str | None, _details: object) -> None:
            errors.append(error or RuntimeError("the extraction failed"))

        gleanings, types = self._section.max_gleanings, self._section.entity_types
        extractor = GraphExtractor(self._model, self._prompt, gleanings, keep)
        entities, relationships = await extractor(text, types, "text")
        if errors:
            raise errors[0]
        nodes = rows_of(entities, "title", "type")
        pairs = tuple(rows_of(relationships, "source", "target"))
        names, kinds = (tuple(node[column] for node in nodes) for column in (0, 1))
        return Extraction(
            entities=names, relationships=pairs, types=kinds, languages=find_languages([text])
        )


class ProjectTools:
    """The open indexes and models that the cases of a run share.

    - ``config``: names every method that the suites ask.
    - ``headers``: every index that the cases use. ``views``: the indexes whose tables are read.
    - ``judge``: None: the configured judge, made when it is first needed.
    """

    def __init__(
        self,
        config: EvaluationConfig,
        headers: Mapping[str, IndexHeader],
        views: Mapping[str, IndexView],
        judge: Judge | None = None,
    ) -> None:
        roots = {key: root for key, root in config.project_folders().items() if key in headers}
        self.config, self.views = config, views
        self.runner = EvaluationRunner(config, judge, roots)

        @cache
        def extractor(index: str) -> ModelExtractor:
            return ModelExtractor(headers[index].config)

        self.extractor = extractor


def stopwatch(log: CallLog) -> Callable[[], float | None]:
    """Return a clock of the seconds from now on, without the time that calls waited in line.

    It returns None if the seconds are not known, because a call was answered from the journal or
    was delayed.
    """
    begun = time.perf_counter() - log.own_time.waited_s

    def seconds() -> float | None:
        is_known = not (log.replayed or log.was_held_up)
        return time.perf_counter() - log.own_time.waited_s - begun if is_known else None

    return seconds


_NOT_ASKED = StoredResponse(
    unit="", sample_id="", method="", response="", context_text="", latency_s=None, usage=Usage()
)


@dataclass(slots=True)
class CaseTools:
    """The components by which a project answers one case; every call is counted and bounded.

    - ``method``, ``index``: the ones that answer. ``method`` is None in a suite without methods.
      ``index`` is the one that the case names, or the only one configured; "" if no component is
      asked.
    - ``open_log``: returns the log for a component's calls.
    - ``kept``: the stored answer to the question, if there is one.
    - ``response``: the result of the last call, with its time and usage unless the log has them.
      ``extraction``: its extraction.
    """

    project: ProjectTools
    method: str | None
    index: str
    open_log: Callable[[], CallLog]
    kept: StoredResponse | None = None
    response: StoredResponse = _NOT_ASKED
    extraction: Extraction | None = None

    def components(self) -> dict[str, object]:
        """Return itself as each of a framework's components, without a graph."""
        return dict.fromkeys(("graph_agent", "entity_extractor", "document_processor"), self)

    async def process_query(self, query: str, context: object = None) -> dict[str, str]:
        """Return ``answer``, and the retrieved text as ``context``; the argument is unused.

        Raises CaseFailedError if the search failed.
        """
        if self.method is None:
            raise ConfigError("the suite names no methods that could answer a question")
        unit = Unit(
            key="",
            sample=Sample(id="", imdb_key=self.index, question=query, ground_truth=""),
            method=self.method,
        )
        answer = self.kept or await self.project.runner.search_unit(unit, self.open_log())
        self.response = answer
        if answer.failure is not None:
            raise CaseFailedError(answer.failure)
        return {"answer": answer.response, "context": answer.context_text or ""}

    async def extract_entities(self, text: str) -> list[dict[str, str]]:
        """Return ``name`` and ``type`` of the entities that the project's model finds in a text.

        Raises CaseFailedError if a call failed for good.
        """
        log = self.open_log()
        bound, log.bound = log.bound, None  # as graphrag does: an extraction may take long
        seconds = stopwatch(log)
        try:
            with measure_calls(log):
                extraction = await self.project.extractor(self.index)(text)
        except Exception as error:
            check_asked(log)
            if is_refusal(error):
                msg = f"The model's service refuses the extraction: {describe_error(error)}"
                raise RunStoppedError(msg) from error
            raise CaseFailedError(
                Failure(stage="search", kind="error", message=describe_error(error))
            ) from error
        finally:
            log.bound = bound
        self._note(extraction, text, seconds())
        pairs = zip(extraction.entities, extraction.types, strict=True)
        return [{"name": name, "type": kind} for name, kind in pairs]

    async def process_document(self, document: str, metadata: object = None) -> dict[str, object]:
        """Return the index's part of a document, as a graph; ``metadata`` is unused."""
        return graph_of(self.indexed(document=document))

    def indexed(self, text: str | None = None, document: str | None = None) -> Extraction:
        """Return :meth:`look_up`, and keep it as the result of this case."""
        started = time.perf_counter()
        extraction = self.look_up(text, document)
        self._note(extraction, text or document or "", time.perf_counter() - started)
        return extraction

    def look_up(self, text: str | None = None, document: str | None = None) -> Extraction:
        """Return the built index's extraction from a passage, from a document, or from all texts.

        ``text``: a passage; every text unit that contains it counts. ``document``: a title or an
        id. Raises CaseFailedError if there is no such text unit or document.
        """
        try:
            return self.project.views[self.index].extraction(text, document)
        except (OSError, ValueError) as error:
            raise CaseFailedError(
                Failure(stage="search", kind="error", message=describe_error(error))
            ) from error

    def _note(self, extraction: Extraction, context: str, seconds: float | None) -> None:
        pairs = [f"{source} -> {target}" for source, target in extraction.relationships]
        text = f"Entities: {', '.join(extraction.entities)}\nRelationships: {', '.join(pairs)}"
        self.response = StoredResponse(
            unit="",
            sample_id="",
            method="",
            response=text,
            context_text=context,
            latency_s=seconds,
            usage=Usage(),
        )
        self.extraction = extraction


def graph_of(extraction: Extraction) -> dict[str, object]:
    """Return an extraction as the graph of a framework."""
    return {
        "entities": list(extraction.entities),
        "relationships": list(extraction.relationships),
    }


def project_components(
    config: EvaluationConfig, method: str, index: str | None = None
) -> dict[str, object]:
    """Make the components of an evaluation framework from a configured project.

    ``method`` answers the questions over ``index``, the key of a built index; None: the only one
    that is configured. Returns ``graph_agent``, ``entity_extractor`` and ``document_processor``,
    which raise CaseFailedError for a failure, and ``graph``: ``entities``, names, and
    ``relationships``, pairs (source, target). Raises UsageError if there is no such method or
    index, or the index is not built.

    Examples
    --------
    >>> config = EvaluationConfig.from_yaml(path="my_project/eval_config.yaml")
    >>> components = project_components(config=config, method="tog", index="mine")
    >>> sorted(components)
    ['document_processor', 'entity_extractor', 'graph', 'graph_agent']
    """
    keys = list(config.indexes)
    if index is None:
        if len(keys) != 1:
            hint = f"Name an index, one of {', '.join(keys)}."
            raise ConfigError(hint if keys else "No index is configured.")
        index = keys[0]
    elif index not in keys:
        msg = f"No index is configured for {index!r}{nearest(index, keys)}"
        raise ConfigError(as_sentence(msg))
    asking = with_methods(config, [method], "project_components")
    # In a thread with an event loop of its own, because the caller's may be running.
    with ThreadPoolExecutor(1) as pool:
        headers, view = pool.submit(asyncio.run, _open(asking, index)).result()
    limit = CallLimit(asking.concurrency, asking.patience_s)

    def open_log() -> CallLog:
        bound, allowed = search_limits(asking)
        return CallLog(limit, bound=bound, time=allowed)

    tools = CaseTools(
        project=ProjectTools(asking, headers, {index: view}),
        method=method,
        index=index,
        open_log=open_log,
    )
    return {**tools.components(), "graph": graph_of(view.extraction())}


async def _open(config: EvaluationConfig, key: str) -> tuple[dict[str, IndexHeader], IndexView]:
    root = {key: config.project_folders()[key]}
    headers = await read_headers(root, config.searches_asked(root))
    return headers, await IndexView.open(headers[key])


def with_methods(config: EvaluationConfig, methods: Sequence[str], source: str) -> EvaluationConfig:
    """Return a configuration that asks only these methods and compares no pairs.

    Raises ConfigError, whose message begins with ``source``, if there is no such method.
    """
    judge = {**config.judge.model_dump(), "pairwise": False}
    changes = {"root": config.root, "methods": methods, "judge": judge}
    return parse_config({**config.model_dump(), **changes}, source)
