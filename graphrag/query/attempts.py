"""What a model call cost, and the sums of many: attempts, tokens, cached tokens and money."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Any, Literal

from graphrag.query.model_facts import is_offline, model_price

CountedBy = Literal["provider", "tokenizer", "nobody"]
CUT_OFF = "length"
"""The finish reason of a reply that was cut off."""
_CACHED = "cached_tokens"
"""An attempt's cached_prompt_tokens as it is kept: under the longer name, earlier releases kept
0 where the provider had said nothing."""


@dataclass(frozen=True, slots=True)
class CallAttempt:
    """One request sent to a model, whether it was answered or not.

    Attributes
    ----------
    kind : {"completion", "embedding"}
    model : str
        ``provider/model`` as in settings.yaml.
    phase : str
        The phase of the search that asked, e.g. ``reasoning``; ``response`` unless named.
    prompt_tokens, output_tokens : int
        Counts, >= 0; output_tokens is 0 for an embedding.
    cached_prompt_tokens : int or None
        The part of prompt_tokens that the provider says it read from its own cache, >= 0. None
        where it says nothing of it, and for embeddings.
    counted_by : {"provider", "tokenizer", "nobody"}
        Who counted the tokens: the provider's usage figures, the model's tokenizer here
        because the provider gave none, or nobody (a request that was never answered).
    latency_s : float
        Seconds from sending to the last byte or the failure.
    error : str or None
        Why the attempt failed; None when it was answered.
    finish_reason : str or None
        Why the reply ended, as the provider says: ``length`` for one that was cut off. None
        where it says nothing, and for embeddings.
    abstained : bool
        Whether the reply's message carries a refusal: the model says that it gives no answer.
    """

    kind: Literal["completion", "embedding"]
    model: str
    phase: str
    prompt_tokens: int
    output_tokens: int
    counted_by: CountedBy
    latency_s: float
    cached_prompt_tokens: int | None = None
    error: str | None = None
    finish_reason: str | None = None
    abstained: bool = False

    def to_dict(self) -> dict[str, object]:
        """Return the attempt as JSON-ready values."""
        given: dict[str, object] = {name: getattr(self, name) for name in self.__slots__}
        given[_CACHED] = given.pop("cached_prompt_tokens")
        return given

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> "CallAttempt":
        """Read what :meth:`to_dict` gave, in this release or an earlier one."""
        given: dict[str, Any] = dict(values)
        if _CACHED in given:
            given["cached_prompt_tokens"] = given.pop(_CACHED)
        else:
            given["cached_prompt_tokens"] = given.get("cached_prompt_tokens") or None
        return cls(**given)


@dataclass(frozen=True, slots=True)
class Usage:
    """The sum of a scope's attempts.

    Completions and embeddings are kept apart, as their tokens differ in price by two orders
    of magnitude: ``llm_calls``, ``prompt_tokens`` and ``output_tokens`` are of completions.

    Attributes
    ----------
    llm_calls, prompt_tokens, output_tokens : int
        Requests sent (failed ones and retries included) and their tokens.
    embedding_calls, embedding_tokens : int
        The same of embeddings.
    failed_calls : int
        Requests of either kind that were not answered.
    cached_prompt_tokens : int or None
        The part of prompt_tokens that providers say they read from their own caches, >= 0: the
        sum over the completions for which they say so. None where they do so for none.
    calls_reporting_cached_tokens : int or None
        How many completions these are; where it is below llm_calls, cached_prompt_tokens is the
        least that was cached. None for a sum that an earlier release kept.
    tokens_counted_here : int
        How many of the calls had no usage figures from the provider and were counted with the
        model's tokenizer instead.
    cost_usd : float or None
        US dollars; None when the price of a model that answered is not known.
    cost_usd_at_most : float or None
        Where cost_usd is None only because it is not known what cached tokens cost: what it is
        at most, as if they had not been cached. None otherwise.
    cost_usd_by_model : dict
        model -> US dollars, None when its price is not known.
    llm_calls_by_phase, prompt_tokens_by_phase, output_tokens_by_phase : dict
        phase -> count; the sums equal the totals.
    models : tuple of str
        The models asked, sorted.
    completion_models, embedding_models : tuple of str or None
        Those asked for completions and for embeddings; None where only their names are known.
    cut_replies : int
        Replies that were cut off, at the bound of their output or because the model's context
        was full.
    is_counted : bool
        False when something that does not count its calls had a part: every other figure is
        then too low, and the cost None.
    """

    llm_calls: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    embedding_calls: int = 0
    embedding_tokens: int = 0
    failed_calls: int = 0
    cached_prompt_tokens: int | None = None
    tokens_counted_here: int = 0
    cost_usd: float | None = 0.0
    cost_usd_by_model: dict[str, float | None] = field(default_factory=dict[str, float | None])
    llm_calls_by_phase: dict[str, int] = field(default_factory=dict[str, int])
    prompt_tokens_by_phase: dict[str, int] = field(default_factory=dict[str, int])
    output_tokens_by_phase: dict[str, int] = field(default_factory=dict[str, int])
    models: tuple[str, ...] = ()
    cut_replies: int = 0
    is_counted: bool = True
    completion_models: tuple[str, ...] | None = None
    embedding_models: tuple[str, ...] | None = None
    calls_reporting_cached_tokens: int | None = 0
    cost_usd_at_most: float | None = None

    @property
    def spent_usd(self) -> float:
        """US dollars as a bound on spending counts them: at most this, unknown prices left out."""
        return self.cost_usd if self.cost_usd is not None else self.cost_usd_at_most or 0.0

    def to_dict(self) -> dict[str, object]:
        """Return the figures as JSON-ready values."""
        given: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        maps = {n: dict(v) for n, v in given.items() if n.endswith(("_by_model", "_by_phase"))}
        return {**given, **maps, "models": list(self.models)}

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> "Usage":
        """Read what :meth:`to_dict` gave, in this release or an earlier one."""
        given: dict[str, Any] = dict(values)
        if "calls_reporting_cached_tokens" not in given:  # then 0 stands for nothing said
            cached = given.get("cached_prompt_tokens") or None
            given["cached_prompt_tokens"] = cached
            given["calls_reporting_cached_tokens"] = 0 if cached is None else None
        for name in ("models", "completion_models", "embedding_models"):
            given[name] = None if given.get(name) is None else tuple(given[name])
        return cls(**given)


def summarize_attempts(attempts: Iterable[CallAttempt]) -> Usage:
    """Sum attempts up, completions and embeddings apart."""
    calls, prompt, output = Counter[str](), Counter[str](), Counter[str]()
    embedding_calls = embedding_tokens = failed = counted_here = cut = 0
    cached: list[int] = []
    costs: dict[str, list[float | None]] = {}
    at_most: list[float | None] = []
    asked: dict[str, set[str]] = {"completion": set(), "embedding": set()}
    for attempt in attempts:
        asked[attempt.kind].add(attempt.model)
        failed += attempt.error is not None
        counted_here += attempt.counted_by == "tokenizer"
        cut += attempt.finish_reason == CUT_OFF
        cost = attempt_cost_usd(attempt)
        costs.setdefault(attempt.model, []).append(cost)
        at_most.append(_most_usd(attempt) if cost is None else cost)
        if attempt.kind == "embedding":
            embedding_calls += 1
            embedding_tokens += attempt.prompt_tokens
        else:
            calls[attempt.phase] += 1
            prompt[attempt.phase] += attempt.prompt_tokens
            output[attempt.phase] += attempt.output_tokens
            if attempt.cached_prompt_tokens is not None:
                cached.append(attempt.cached_prompt_tokens)
    cost_usd = _sum_costs(cost for each in costs.values() for cost in each)
    return Usage(
        llm_calls=calls.total(),
        prompt_tokens=prompt.total(),
        output_tokens=output.total(),
        embedding_calls=embedding_calls,
        embedding_tokens=embedding_tokens,
        failed_calls=failed,
        cached_prompt_tokens=sum(cached) if cached else None,
        tokens_counted_here=counted_here,
        cost_usd=cost_usd,
        cost_usd_by_model={model: _sum_costs(costs[model]) for model in sorted(costs)},
        llm_calls_by_phase=dict(calls),
        prompt_tokens_by_phase=dict(prompt),
        output_tokens_by_phase=dict(output),
        models=tuple(sorted(costs)),
        completion_models=tuple(sorted(asked["completion"])),
        embedding_models=tuple(sorted(asked["embedding"])),
        cut_replies=cut,
        calls_reporting_cached_tokens=len(cached),
        cost_usd_at_most=_sum_costs(at_most) if cost_usd is None else None,
    )


def sum_usages(usages: Iterable[Usage]) -> Usage:
    """Add usages up; the cost is None as soon as one of them is."""
    given = list(usages)
    cached = [u.cached_prompt_tokens for u in given if u.cached_prompt_tokens is not None]
    reporting = [u.calls_reporting_cached_tokens for u in given]
    counted = [n for n in reporting if n is not None]
    cost_usd = _sum_costs(usage.cost_usd for usage in given)
    at_most = _sum_costs(u.cost_usd_at_most if u.cost_usd is None else u.cost_usd for u in given)
    return Usage(
        llm_calls=sum(usage.llm_calls for usage in given),
        prompt_tokens=sum(usage.prompt_tokens for usage in given),
        output_tokens=sum(usage.output_tokens for usage in given),
        embedding_calls=sum(usage.embedding_calls for usage in given),
        embedding_tokens=sum(usage.embedding_tokens for usage in given),
        failed_calls=sum(usage.failed_calls for usage in given),
        cached_prompt_tokens=sum(cached) if cached else None,
        tokens_counted_here=sum(usage.tokens_counted_here for usage in given),
        cost_usd=cost_usd,
        cost_usd_by_model={
            model: _sum_costs(
                u.cost_usd_by_model[model] for u in given if model in u.cost_usd_by_model
            )
            for model in sorted({model for u in given for model in u.cost_usd_by_model})
        },
        llm_calls_by_phase=_sum_phases(usage.llm_calls_by_phase for usage in given),
        prompt_tokens_by_phase=_sum_phases(usage.prompt_tokens_by_phase for usage in given),
        output_tokens_by_phase=_sum_phases(usage.output_tokens_by_phase for usage in given),
        models=tuple(sorted({model for usage in given for model in usage.models})),
        cut_replies=sum(usage.cut_replies for usage in given),
        is_counted=all(usage.is_counted for usage in given),
        completion_models=_sum_models(given, lambda usage: usage.completion_models),
        embedding_models=_sum_models(given, lambda usage: usage.embedding_models),
        calls_reporting_cached_tokens=sum(counted) if len(counted) == len(reporting) else None,
        cost_usd_at_most=at_most if cost_usd is None else None,
    )


def _sum_models(
    usages: Iterable[Usage], pick: Callable[[Usage], tuple[str, ...] | None]
) -> tuple[str, ...] | None:
    """Return all the models of a kind, None as soon as they are not known of one usage."""
    given = [pick(usage) for usage in usages if usage.models]
    known = [models for models in given if models is not None]
    if len(known) < len(given):
        return None
    return tuple(sorted({model for models in known for model in models}))


def _sum_costs(costs: Iterable[float | None]) -> float | None:
    """Add costs up, None as soon as one is; the same whatever their order."""
    given = list(costs)
    known = [cost for cost in given if cost is not None]
    return fsum(known) if len(known) == len(given) else None


def _sum_phases(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return dict(total)


def attempt_spent_usd(attempt: CallAttempt) -> float:
    """Return US dollars as a bound on spending counts them; see ``Usage.spent_usd``."""
    cost = attempt_cost_usd(attempt)
    return (_most_usd(attempt) if cost is None else cost) or 0.0


def _most_usd(attempt: CallAttempt) -> float | None:
    return attempt_cost_usd(replace(attempt, cached_prompt_tokens=None))


def attempt_cost_usd(attempt: CallAttempt) -> float | None:
    """Return what one attempt cost in US dollars, None when the model's price is not known.

    Requests without tokens and the embedded models cost nothing. None too when tokens were
    cached and it is not known what the provider takes for those.
    """
    if attempt.prompt_tokens + attempt.output_tokens == 0 or is_offline(attempt.model):
        return 0.0
    price = model_price(attempt.model)
    if price is None:
        return None
    cached = attempt.cached_prompt_tokens or 0
    if cached and price.cached_prompt_usd is None:
        return None
    return (
        (attempt.prompt_tokens - cached) * price.prompt_usd
        + cached * (price.cached_prompt_usd or 0.0)
        + attempt.output_tokens * price.output_usd
    )
