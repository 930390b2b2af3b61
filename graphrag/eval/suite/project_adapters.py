"""The components of a configured project: searches, the extraction, the built index."""

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
    """The system under test, or the judge, gave no result for a case.

    The ``failure`` is what is recorded: its stage "search" says that the system failed, which
    counts as not passed in a comparison; "judge" that the score is missing.
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class ModelExtractor:
    """Reads a text as a project's indexing does: its prompt, entity types, gleanings and model."""

    def __init__(self, config: "GraphRagConfig") -> None:
        self._section = section = config.extract_graph
        self._model_config = config.get_completion_model_config(section.completion_model_id)
        self._prompt = section.resolved_prompts().extraction_prompt
        self._model = cast("LLMCompletion", open_completion(self._model_config))

    def describe(self) -> dict[str, object]:
        """Return everything that changes what is extracted, JSON-ready, without secrets."""
        return {
            "extraction": {
                **describe_model(self._model_config),
                "prompt": hashlib.blake2b(self._prompt.encode(), digest_size=16).hexdigest(),
                "entity_types": list(self._section.entity_types),
                "max_gleanings": self._section.max_gleanings,
            }
        }

    async def __call__(self, text: str, /) -> Extraction:
        """Return what the model finds, in the names that the index would hold.

        What the model's last call raised is raised: a failed call is not an empty extraction.
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
        names, kinds = (tuple(node[place] for node in nodes) for place in (0, 1))
        return Extraction(
            entities=names, relationships=pairs, types=kinds, languages=find_languages([text])
        )


class ProjectTools:
    """What the cases of a run share: open indexes and models.

    ``config`` names every method that the suites ask, ``headers`` has every index that the cases
    use, ``views`` those that are looked into. Without a ``judge`` the configured one is made when
    first needed.
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
    """Return what tells the seconds from here on, without those that calls waited for their turn.

    None where they are not known: a call was answered from the journal, or held up.
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
    """The components by which a project answers one case, every call counted and bounded.

    They answer by the case's ``method`` (None in a suite without methods) and ``index`` (the one
    it names, or the only one that is configured; "" where no component is asked). ``open_log``
    gives what takes the calls of a component. ``kept``: the answer to the question, where there is
    one. ``response`` is what the last call gave, and what it took, as far as that is not in the
    log; ``extraction`` what it found.
    """

    project: ProjectTools
    method: str | None
    index: str
    open_log: Callable[[], CallLog]
    kept: StoredResponse | None = None
    response: StoredResponse = _NOT_ASKED
    extraction: Extraction | None = None

    def components(self) -> dict[str, object]:
        """Return the tools as a framework's components, without a graph."""
        return dict.fromkeys(("graph_agent", "entity_extractor", "document_processor"), self)

    async def process_query(self, query: str, context: object = None) -> dict[str, str]:
        """Return ``answer`` and ``context``, what the method retrieved; the given one is unused.

        CaseFailedError if the search failed.
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
        """Return ``name`` and ``type`` of what the project's prompt and model find in a text.

        CaseFailedError if a call failed for good.
        """
        log = self.open_log()
        bound, log.bound = log.bound, None  # as the release does: a long extraction is no fault
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
        """Return what the index holds of a document, as a graph; ``metadata`` is unused."""
        return graph_of(self.indexed(document=document))

    def indexed(self, text: str | None = None, document: str | None = None) -> Extraction:
        """As :meth:`look_up`, and note it as what this case gave."""
        started = time.perf_counter()
        extraction = self.look_up(text, document)
        self._note(extraction, text or document or "", time.perf_counter() - started)
        return extraction

    def look_up(self, text: str | None = None, document: str | None = None) -> Extraction:
        """Return what the built index holds of a passage or a document, or all that it holds.

        Of a ``text``, a passage, what was taken from the text units that hold it; a ``document``
        is a title or an id. CaseFailedError if there is no such text unit or document.
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
    """Return an extraction as a framework's graph."""
    return {
        "entities": list(extraction.entities),
        "relationships": list(extraction.relationships),
    }


def project_components(
    config: EvaluationConfig, method: str, index: str | None = None
) -> dict[str, object]:
    """Make the components of an evaluation framework of a configured project.

    Questions are answered by ``method`` over the ``index``, a key of one that is built; None: the
    only one that is configured. They are ``graph_agent``, ``entity_extractor`` and
    ``document_processor``, which raise CaseFailedError for what fails, and ``graph``:
    ``entities``, names, and ``relationships``, pairs (source, target). UsageError if there is no
    such method or index, or the index is not built.
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
    # In a thread with a loop of its own, as the caller's may be running.
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
    """Return a configuration that asks these methods alone, and judges no pairs of others.

    ConfigError, which begins with ``source``, if there is no such method.
    """
    judge = {**config.judge.model_dump(), "pairwise": False}
    changes = {"root": config.root, "methods": methods, "judge": judge}
    return parse_config({**config.model_dump(), **changes}, source)
