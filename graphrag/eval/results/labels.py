"""The label of the embedded models on a run's figures, from what was really asked."""

from collections.abc import Iterable, Sequence

from graphrag.eval.records import METRICS, SEARCH_FAILED, QueryResult
from graphrag.query.model_labels import (
    ANSWERS,
    EMBEDDINGS,
    VERDICTS,
    Part,
    label_names,
    label_roles,
)
from graphrag.query.usage import Usage


def label_embedded(results: Iterable[QueryResult], further: Iterable[Usage] = ()) -> str | None:
    """Return the label of results; ``further`` is what further judges asked."""
    given = list(results)
    judged = [(_is_judged(result), result.judge_usage) for result in given]
    return label_usages(
        answered=[(result.failure is None, result.usage or Usage()) for result in given],
        judged=[
            *((was, usage or Usage()) for was, usage in judged),
            *((False, u) for u in further),
        ],
    )


def label_usages(
    answered: Sequence[tuple[bool, Usage]], judged: Sequence[tuple[bool, Usage]]
) -> str | None:
    """Return the label of what was asked.

    Parameters
    ----------
    answered : sequence of (bool, Usage)
        Of each search whether it gave an answer, which then came from somewhere though no model
        may be named, and what it asked.
    judged : sequence of (bool, Usage)
        The same of each response's verdicts.

    Returns
    -------
    str or None
        See :func:`~graphrag.query.model_labels.label_roles`. Usages that an older release kept do
        not tell who answered from who embedded: then the models' names decide alone.
    """
    usages = [usage for _, usage in (*answered, *judged)]
    if any(usage.models and usage.completion_models is None for usage in usages):
        return label_names(model for usage in usages for model in usage.models)
    embedding = frozenset(model for usage in usages for model in usage.embedding_models or ())
    return label_roles(
        {ANSWERS: _part(answered), VERDICTS: _part(judged), EMBEDDINGS: Part(embedding)}
    )


def names_no_model(usages: Iterable[Usage]) -> bool:
    """Say whether no model is named at all, so that only a run's setup may tell."""
    return not any(usage.models for usage in usages)


def _part(asked: Sequence[tuple[bool, Usage]]) -> Part:
    return Part(
        frozenset(model for _, usage in asked for model in usage.completion_models or ()),
        others=any(was and not usage.completion_models for was, usage in asked),
    )


def _is_judged(result: QueryResult) -> bool:
    verdicts = [result.scores.get(metric) for metric in METRICS]
    return any(v.score is not None and v.reason != SEARCH_FAILED for v in verdicts)
