"""Which evaluator scores a suite: one of this project, or one's own."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from graphrag.config.models.strict_section import as_sentence, nearest
from graphrag.eval.errors import ConfigError
from graphrag.eval.run import load_method
from graphrag.eval.suite.cases import Suite, explain_values
from graphrag.eval.suite.evaluators import EntityExtraction, Evaluator, QueryResponse
from graphrag.eval.suite.metric_suites import (
    GraphConnectivity,
    ProcessingTime,
    ResponseCompleteness,
    ResponseRelevance,
)

_BUILT_IN: Mapping[str, type[Evaluator]] = {
    "entity_extraction": EntityExtraction,
    "query_response": QueryResponse,
    "response_relevance": ResponseRelevance,
    "response_completeness": ResponseCompleteness,
    "query_processing_time": ProcessingTime,
    "graph_connectivity": GraphConnectivity,
}


def make_evaluator(
    suite: Suite, root: Path, registered: Mapping[str, Evaluator] | None = None
) -> Evaluator:
    """Return the evaluator of a suite, its cases checked.

    Parameters
    ----------
    suite : Suite
    root : Path
        Folder of eval_config.yaml, where ``module:Class`` may lie.
    registered : mapping, optional
        Name -> evaluator; its settings are not touched.

    Raises
    ------
    ConfigError
        If there is no such evaluator, it refuses its settings, or a case.
    """
    given = registered or {}
    evaluator = given[suite.evaluator] if suite.evaluator in given else _make(suite, root, given)
    check = getattr(evaluator, "check", None)
    for case in suite.cases if check is not None else ():
        try:
            cast("Any", check)(case)
        except ValueError as error:
            msg = f"Suite {suite.name}, case {case.id!r}: {error}."
            raise ConfigError(msg) from error
    return evaluator


def needs_of(evaluator: Evaluator) -> Sequence[str]:
    """Return what an evaluator says it needs."""
    return cast("Sequence[str]", getattr(evaluator, "needs", ()))


def may_read_index(evaluator: Evaluator) -> bool:
    """Whether an evaluator reads or searches a built index, or does not say that it doesn't."""
    return not hasattr(evaluator, "needs") or not {"index", "methods"}.isdisjoint(
        needs_of(evaluator)
    )


def is_built_in(evaluator: Evaluator) -> bool:
    """Whether it is one of this project's, each of which reads an index or asks its models."""
    return isinstance(evaluator, tuple(_BUILT_IN.values()))


def _make(suite: Suite, root: Path, registered: Mapping[str, Evaluator]) -> Evaluator:
    name = suite.evaluator
    kind: Any = load_method(name, root) if ":" in name else _BUILT_IN.get(name)
    if kind is None:
        known = [*_BUILT_IN, *registered]
        msg = (
            f"Suite {suite.name}: there is no evaluator {name!r}"
            f"{nearest(name, known) or '; write your own as module:Class'}"
        )
        raise ConfigError(as_sentence(msg))
    if not hasattr(kind, "evaluate"):  # asked before it is called: a suite may be anybody's
        msg = f"Suite {suite.name}: {name} has no method evaluate(case, tools)."
        raise ConfigError(msg)
    try:
        made: Any = kind(**suite.settings)
    except ValidationError as error:
        msg = f"Suite {suite.name}: settings: {explain_values(error)}."
        raise ConfigError(msg) from error
    except (TypeError, ValueError) as error:
        msg = f"Suite {suite.name}: {name} refuses its settings: {error}."
        raise ConfigError(msg) from error
    if not callable(getattr(made, "evaluate", None)):
        msg = f"Suite {suite.name}: {name} has no method evaluate(case, tools)."
        raise ConfigError(msg)
    return cast("Evaluator", made)
