"""What searches and verdicts took, and the label of the models that were asked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from graphrag.eval.records import (
    DEFAULT_METRICS,
    METRICS,
    SEARCH_FAILED,
    QueryResult,
    measured_latency,
)
from graphrag.query.model_labels import (
    ANSWERS,
    EMBEDDINGS,
    VERDICTS,
    Part,
    label_names,
    label_roles,
)
from graphrag.query.usage import Usage, sum_usages


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


AVERAGES = {"avg_latency": 3, "avg_llm_calls": 1, "avg_prompt_tokens": 0, "avg_output_tokens": 0}
_DIGITS = {**dict.fromkeys(DEFAULT_METRICS, 3), **AVERAGES}


@dataclass(frozen=True, slots=True)
class MethodSummary:
    """The figures of one method.

    Attributes
    ----------
    correctness, faithfulness, relevance, completeness : float or None
        Mean score in [0, 1], as in ``means``.
    avg_latency : float or None
        Seconds, over responses whose latency was measured.
    avg_llm_calls, avg_prompt_tokens, avg_output_tokens : float or None
        A search; None when they are not counted.
    count : int
        Results.
    method : str
    n_search_failed : int
        Searches that failed; they count 0 in the mean of every metric that was asked.
    means : dict
        Metric -> mean score in [0, 1] over failed searches and scored responses; None when
        there is none, and for failed searches alone on a metric that was not asked.
    n_scored : dict
        Metric -> responses with a verdict, failed searches left out.
    n_unscored : dict
        Metric -> responses whose verdict is missing because the judge failed.
    n_not_judged : dict
        Metric -> responses that were not to be judged on it.
    """

    correctness: float | None
    faithfulness: float | None
    relevance: float | None
    completeness: float | None
    avg_latency: float | None
    avg_llm_calls: float | None
    avg_prompt_tokens: float | None
    avg_output_tokens: float | None
    count: int
    method: str = ""
    n_search_failed: int = 0
    means: Mapping[str, float | None] = field(default_factory=dict[str, float | None])
    n_scored: Mapping[str, int] = field(default_factory=dict[str, int])
    n_unscored: Mapping[str, int] = field(default_factory=dict[str, int])
    n_not_judged: Mapping[str, int] = field(default_factory=dict[str, int])

    def to_dict(self) -> dict[str, float | int | None]:
        """Return the first nine: scores and seconds to 3 digits, calls to 1, tokens to 0."""
        rounded = {name: _rounded(getattr(self, name), digits) for name, digits in _DIGITS.items()}
        return {**rounded, "count": self.count}


def mean_efficiency(results: Sequence[QueryResult]) -> dict[str, object]:
    """Return a method's entry of ``EvaluationResults.efficiency``."""
    answered = (measured_latency(r.efficiency.latency) for r in results if r.failure is None)
    latencies = [latency for latency in answered if latency is not None]
    counted = [r.usage for r in results if r.usage is not None]
    usage = sum_usages(counted)
    judging = sum_usages(r.judge_usage for r in results if r.judge_usage is not None)
    is_told = all(r.judge_usage is not None for r in results if is_judged(r))
    efforts = [(r.efficiency.llm_calls, r.efficiency.tokens) for r in results if r.usage is None]
    n = len(results) if len(counted) == len(results) else 0
    return {
        "avg_latency": fmean(latencies) if latencies else None,
        "n_latency": len(latencies),
        "n_impossible_latency": sum(map(has_impossible_latency, results)),
        "n_cut_off": sum(r.usage is not None and r.usage.cut_replies > 0 for r in results),
        "avg_llm_calls": _mean([r.efficiency.llm_calls for r in results]),
        "avg_exploring_calls": usage.llm_calls_by_phase.get("exploration", 0) / n
        if n and all(each.is_counted for each in counted)
        else None,
        "avg_prompt_tokens": _mean([r.efficiency.prompt_tokens for r in results]),
        "avg_output_tokens": _mean([r.efficiency.output_tokens for r in results]),
        "avg_embedding_calls": usage.embedding_calls / n if n else None,
        "avg_embedding_tokens": usage.embedding_tokens / n if n else None,
        "llm_calls_by_phase": usage.llm_calls_by_phase,
        "prompt_tokens_by_phase": usage.prompt_tokens_by_phase,
        "output_tokens_by_phase": usage.output_tokens_by_phase,
        "cached_prompt_tokens": usage.cached_prompt_tokens,
        "calls_reporting_cached_tokens": usage.calls_reporting_cached_tokens,
        "judge_cached_prompt_tokens": judging.cached_prompt_tokens,
        "calls": _sum([calls_of(usage), *(calls for calls, _ in efforts)]),
        "tokens": _sum([tokens_of(usage), *(tokens for _, tokens in efforts)]),
        "judge_calls": calls_of(judging) if is_told else None,
        "judge_tokens": tokens_of(judging) if is_told else None,
        "cost_usd": cost_of_searches(results),
        "cost_usd_by_model": usage.cost_usd_by_model,
        "judge_cost_usd": cost_of_verdicts(results),
    }


def cost_of_searches(results: Sequence[QueryResult]) -> float | None:
    """Return US dollars; None when a price is not known, or a result does not say what it took."""
    usages = [result.usage for result in results]
    known = [usage for usage in usages if usage is not None]
    return sum_usages(known).cost_usd if len(known) == len(usages) else None


def cost_of_verdicts(results: Sequence[QueryResult]) -> float | None:
    """Return the same of the judge, over the results that it was asked about."""
    usages = [r.judge_usage for r in results if r.judge_usage is not None or is_judged(r)]
    known = [usage for usage in usages if usage is not None]
    return sum_usages(known).cost_usd if len(known) == len(usages) else None


def describe_forgotten(usages: Sequence[Usage]) -> dict[str, object]:
    """Return the metadata of what was asked again, or lost its part; empty if it took nothing."""
    usage = sum_usages(usages)
    counts = {
        "calls": usage.llm_calls + usage.embedding_calls,
        "prompt_tokens": usage.prompt_tokens,
        "output_tokens": usage.output_tokens,
        "embedding_tokens": usage.embedding_tokens,
    }
    if usage.is_counted and not any(counts.values()):
        return {}
    return {"earlier_attempts": {"searches": len(usages), **counts, "cost_usd": usage.cost_usd}}


def has_impossible_latency(result: QueryResult) -> bool:
    """Say whether a result has a latency that can't be one."""
    given = result.efficiency.latency
    return given is not None and measured_latency(given) is None


def is_judged(result: QueryResult) -> bool:
    """Say whether a judge was asked about a result, whatever it said."""
    verdicts = (result.scores.get(metric) for metric in METRICS)
    return result.failure is None and any(
        verdict.score is not None or verdict.failure is not None for verdict in verdicts
    )


def calls_of(usage: Usage) -> int | None:
    """Return all calls; None where they are not counted."""
    return usage.llm_calls + usage.embedding_calls if usage.is_counted else None


def tokens_of(usage: Usage) -> int | None:
    """Return all tokens; None where they are not counted."""
    tokens = usage.prompt_tokens + usage.output_tokens + usage.embedding_tokens
    return tokens if usage.is_counted else None


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _mean(counts: Sequence[int | None]) -> float | None:
    """Return the mean, None as soon as one is not counted."""
    known = [count for count in counts if count is not None]
    return fmean(known) if known and len(known) == len(counts) else None


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else float(round(value, digits))
