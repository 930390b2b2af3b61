"""Adds up the usage of searches and verdicts, and labels results of the embedded models."""

from collections.abc import Iterable, Sequence
from statistics import fmean

from graphrag.eval.types.metric_definitions import METRICS
from graphrag.eval.types.query_results import QueryResult
from graphrag.eval.types.verdicts import SEARCH_FAILED
from graphrag.query.client.embedded_labels import (
    ANSWERS,
    EMBEDDINGS,
    VERDICTS,
    Part,
    label_names,
    label_roles,
)
from graphrag.query.client.usage import Usage, sum_known, sum_usages, sum_usd

_SUMS = (
    *("llm_calls_by_phase", "prompt_tokens_by_phase", "output_tokens_by_phase"),
    *("cached_prompt_tokens", "calls_reporting_cached_tokens"),
)


def label_embedded(results: Iterable[QueryResult], further: Iterable[Usage] = ()) -> str | None:
    """Return the label that says where embedded models were asked; None if nowhere.

    They are the rules and word vectors that come with gtog, not a language model. ``further``: what
    further judges asked.
    """
    listed = list(results)
    judged = [
        (any(v.score is not None and v.reason != SEARCH_FAILED for v in verdicts), usage or Usage())
        for verdicts, usage in ((map(r.scores.get, METRICS), r.judge_usage) for r in listed)
    ]
    return label_usages(
        [(result.failure is None, result.usage or Usage()) for result in listed],
        [*judged, *((False, usage) for usage in further)],
    )


def label_usages(
    answered: Sequence[tuple[bool, Usage]], judged: Sequence[tuple[bool, Usage]]
) -> str | None:
    """Return the label of the embedded models by role, see ``label_roles`` in ``embedded_labels``.

    ``answered``: for each search, whether it gave an answer, and what it asked. An answer came from
    somewhere even if no model is named. ``judged``: the same for each response's verdicts. Usages
    that don't distinguish answering from embedding models are labeled by the models' names alone.
    """
    usages = [usage for _, usage in (*answered, *judged)]
    if any(usage.models and usage.completion_models is None for usage in usages):
        return label_names(model for usage in usages for model in usage.models)
    embedding = frozenset(model for usage in usages for model in usage.embedding_models or ())
    return label_roles(
        {ANSWERS: _part(answered), VERDICTS: _part(judged), EMBEDDINGS: Part(embedding)}
    )


def refused_parameters(results: Iterable[QueryResult]) -> dict[str, list[str]]:
    """Return method, or "judge" -> the parameters that its model refused, if there are any."""
    refused: dict[str, set[str]] = {}
    for result in results:
        for asker, usage in (("judge", result.judge_usage), (result.method, result.usage)):
            if usage is not None and usage.left_out:
                refused.setdefault(asker, set()).update(usage.left_out)
    return {asker: sorted(names) for asker, names in refused.items()}


def _part(usages: Sequence[tuple[bool, Usage]]) -> Part:
    return Part(
        frozenset(model for _, usage in usages for model in usage.completion_models or ()),
        others=any(was and not usage.completion_models for was, usage in usages),
    )


def mean_efficiency(results: Sequence[QueryResult]) -> dict[str, object]:
    """Return a method's entry in ``EvaluationResults.efficiency``.

    ``avg_latency``: seconds, over the ``n_latency`` responses whose latency was measured.
    ``n_cut_off``: searches with a reply that was cut off. Other averages are None if the method
    does not count its calls, costs are None if a price is not known. Failed searches count with the
    calls that they made.
    """
    answered = (r.efficiency.latency for r in results if r.failure is None)
    latencies = [latency for latency in answered if latency is not None]
    counted = [r.usage for r in results if r.usage is not None]
    usage = sum_usages(counted)
    judging = sum_usages(r.judge_usage for r in results if r.judge_usage is not None)
    is_known = all(r.judge_usage is not None for r in results if is_judged(r))
    efforts = [r.efficiency for r in results if r.usage is None]
    n = len(results) if len(counted) == len(results) else 0
    return {
        "avg_latency": fmean(latencies) if latencies else None,
        "n_latency": len(latencies),
        "n_cut_off": sum(r.usage is not None and r.usage.cut_replies > 0 for r in results),
        "avg_llm_calls": mean_count([r.efficiency.llm_calls for r in results]),
        "avg_exploring_calls": usage.llm_calls_by_phase.get("exploration", 0) / n
        if n and all(u.is_counted for u in counted)
        else None,
        "avg_prompt_tokens": mean_count([r.efficiency.prompt_tokens for r in results]),
        "avg_output_tokens": mean_count([r.efficiency.output_tokens for r in results]),
        "avg_embedding_calls": usage.embedding_calls / n if n else None,
        "avg_embedding_tokens": usage.embedding_tokens / n if n else None,
        **{name: getattr(usage, name) for name in _SUMS},
        "judge_cached_prompt_tokens": judging.cached_prompt_tokens,
        "calls": sum_known([calls_of(usage), *(effort.llm_calls for effort in efforts)]),
        "tokens": sum_known([tokens_of(usage), *(effort.tokens for effort in efforts)]),
        "judge_calls": calls_of(judging) if is_known else None,
        "judge_tokens": tokens_of(judging) if is_known else None,
        "cost_usd": cost_of_searches(results),
        "cost_usd_by_model": usage.cost_usd_by_model,
        "judge_cost_usd": cost_of_verdicts(results),
    }


def cost_of_searches(results: Sequence[QueryResult]) -> float | None:
    """Return the US dollars of searches; None if a price, or what a result took, is not known."""
    return _cost([result.usage for result in results])


def cost_of_verdicts(results: Sequence[QueryResult]) -> float | None:
    """Return the US dollars of verdicts; None if a price or a result's judging is not known."""
    return _cost([r.judge_usage for r in results if r.judge_usage is not None or is_judged(r)])


def _cost(usages: Sequence[Usage | None]) -> float | None:
    return sum_usd(None if usage is None else usage.cost_usd for usage in usages)


def describe_beside(
    forgotten: Sequence[Usage], unfinished: Sequence[Usage]
) -> dict[str, dict[str, object]]:
    """Return the metadata on a run's costs that belong to no result.

    ``earlier_attempts``: what was asked again, or is no longer used. ``unfinished_answers``:
    answers that are no results yet and go on. An entry that took nothing is left out. Counts are
    None if something that does not count its calls had a part.
    """
    described: dict[str, dict[str, object]] = {}
    for name, usages in (("earlier_attempts", forgotten), ("unfinished_answers", unfinished)):
        usage = sum_usages(usages)
        counts = {
            "calls": usage.llm_calls + usage.embedding_calls,
            "prompt_tokens": usage.prompt_tokens,
            "output_tokens": usage.output_tokens,
            "embedding_tokens": usage.embedding_tokens,
        }
        if not usage.is_counted or any(counts.values()):
            figures = counts if usage.is_counted else dict.fromkeys(counts)
            described[name] = {"searches": len(usages), **figures, "cost_usd": usage.cost_usd}
    return described


def is_judged(result: QueryResult) -> bool:
    """Return whether a judge was asked about a result, whatever it replied."""
    verdicts = (result.scores.get(metric) for metric in METRICS)
    return result.failure is None and any(
        verdict.score is not None or verdict.failure is not None for verdict in verdicts
    )


def calls_of(usage: Usage) -> int | None:
    """Return the number of calls; None if they are not counted."""
    return usage.llm_calls + usage.embedding_calls if usage.is_counted else None


def tokens_of(usage: Usage) -> int | None:
    """Return the number of tokens; None if they are not counted."""
    return usage.tokens if usage.is_counted else None


def mean_count(counts: Sequence[float | None]) -> float | None:
    """Return the mean; None if there are no counts, or one of them is None."""
    numbers = [count for count in counts if count is not None]
    return fmean(numbers) if numbers and len(numbers) == len(counts) else None
