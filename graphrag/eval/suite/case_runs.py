"""Letting a component of one's own run a test case."""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from graphrag.eval.suite.evaluation import TestCase, mapping_of
from graphrag.query.calls import describe_error


@dataclass(frozen=True, slots=True)
class CaseRun:
    """What a component made of a case.

    Attributes
    ----------
    output : dict
        What the evaluators see.
    seconds : float or None
        What the component took; None when none ran.
    failure : str or None
        Why there is nothing to score.
    """

    output: dict[str, Any]
    seconds: float | None = None
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class _Way:
    """An input that a component takes, its coroutine, and the key of what it gives."""

    given: str
    component: str
    method: str
    further: str | None
    key: str


_WAYS = (
    _Way("query", "graph_agent", "process_query", "context", "query_result"),
    _Way("text", "entity_extractor", "extract_entities", None, "extracted_entities"),
    _Way("document", "document_processor", "process_document", "metadata", "processed_document"),
)


async def run_case(case: TestCase, components: Mapping[str, Any]) -> CaseRun:
    """Run a case by the first component that fits it; what the component raises is its failure.

    A case that has no input for any component is about the graph, if there is one: then nothing
    runs, and nothing failed.
    """
    graph = components.get("graph")
    about = {} if graph is None else {"graph": graph}
    given = mapping_of(case.input_data)
    wanted = [way for way in _WAYS if way.given in given]
    fitting = [way for way in wanted if components.get(way.component) is not None]
    if not fitting and not wanted and about:
        return CaseRun({"success": True, **about})
    if not fitting:
        missing = " or ".join(way.component for way in wanted)
        failure = (
            f"no component can run it; give {missing}"
            if wanted
            else "no component can run it: its input_data has no query, text or document"
        )
        return CaseRun({"success": False, "error": failure, **about}, failure=failure)
    way = fitting[0]
    arguments: list[object] = [given[way.given]]
    if way.further is not None:
        arguments.append(given.get(way.further, {}))
    started = time.perf_counter()
    try:
        ask = cast("Callable[..., Awaitable[Any]]", getattr(components[way.component], way.method))
        made = await ask(*arguments)
    except Exception as error:
        # Kept to this case: it goes to the report's failures.
        seconds, failure = time.perf_counter() - started, describe_error(error)
        output = {"success": False, "processing_time": seconds, "error": failure, **about}
        return CaseRun(output, seconds, f"{way.component}: {failure}")
    seconds = time.perf_counter() - started
    output = {"success": True, "processing_time": seconds, way.key: made, **about}
    return CaseRun(output, seconds)
