"""A configured project as the components that a framework is given."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from graphrag.config.models.strict_section import as_sentence, nearest
from graphrag.eval.config import EvaluationConfig, parse_config
from graphrag.eval.errors import ConfigError
from graphrag.eval.measures import Extraction, IndexView
from graphrag.eval.run import read_headers
from graphrag.eval.suite.tools import CaseTools, SharedTools
from graphrag.query.index_header import IndexHeader


class GraphAgent:
    """Answers by one method over one index."""

    def __init__(self, tools: CaseTools) -> None:
        self._tools = tools

    async def process_query(
        self, query: str, context: Mapping[str, Any] | None = None
    ) -> dict[str, str]:
        """Return ``answer`` and ``context``, the text that the method retrieved.

        ``context`` as it is given is not looked at. A failed search raises CaseFailedError.
        """
        found = await self._tools.search(query)
        return {"answer": found.response, "context": found.context_text}


class EntityExtractor:
    """Reads texts by the project's extraction prompt and model."""

    def __init__(self, tools: CaseTools) -> None:
        self._tools = tools

    async def extract_entities(self, text: str) -> list[dict[str, str]]:
        """Return the ``name`` and ``type`` of each entity; CaseFailedError if a call failed."""
        found = await self._tools.extract(text)
        return [
            {"name": name, "type": kind}
            for name, kind in zip(found.entities, found.types, strict=True)
        ]


class DocumentProcessor:
    """Says what the built index holds of a document."""

    def __init__(self, tools: CaseTools) -> None:
        self._tools = tools

    async def process_document(
        self, document: str, metadata: Mapping[str, Any] | None = None
    ) -> dict[str, list[Any]]:
        """Return ``entities`` and ``relationships`` of a document, given by title or id.

        ``metadata`` is not looked at. CaseFailedError if the index has no such document.
        """
        return _graph(await self._tools.indexed(document=document))


def project_components(
    config: EvaluationConfig, method: str, index: str | None = None
) -> dict[str, Any]:
    """Make the components of an evaluation framework of a configured project.

    Parameters
    ----------
    config : EvaluationConfig
    method : str
        By which questions are answered.
    index : str, optional
        Key of a built index; None: the only one that is configured.

    Returns
    -------
    dict
        ``graph_agent``, ``entity_extractor``, ``document_processor``, and ``graph``:
        ``entities``, names, and ``relationships``, pairs (source, target).

    Raises
    ------
    UsageError
        If there is no such method or index, or the index is not built.
    """
    key = _key_of(config, index)
    changes = {"root": config.root, "methods": [method]}
    asking = parse_config({**config.model_dump(), **changes}, "project_components")
    # In a thread with a loop of its own, as the caller's may be running.
    with ThreadPoolExecutor(1) as pool:
        headers, extraction = pool.submit(asyncio.run, _open(asking, key)).result()
    tools = CaseTools(SharedTools(asking, headers), "components", method, key)
    return {
        "graph_agent": GraphAgent(tools),
        "entity_extractor": EntityExtractor(tools),
        "document_processor": DocumentProcessor(tools),
        "graph": _graph(extraction),
    }


async def _open(config: EvaluationConfig, key: str) -> tuple[dict[str, IndexHeader], Extraction]:
    headers = await read_headers({key: config.project_folders()[key]})
    return headers, (await IndexView.open(headers[key])).extraction()


def _key_of(config: EvaluationConfig, index: str | None) -> str:
    keys = list(config.indexes)
    if index in keys:
        return index
    if index is None and len(keys) == 1:
        return keys[0]
    if index is None:
        msg = f"Name an index, one of {', '.join(keys)}." if keys else "No index is configured."
    else:
        msg = as_sentence(f"No index is configured for {index!r}{nearest(index, keys)}")
    raise ConfigError(msg)


def _graph(found: Extraction) -> dict[str, list[Any]]:
    return {"entities": list(found.entities), "relationships": list(found.relationships)}
