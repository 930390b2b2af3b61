"""What every model call cost: attempts, tokens, retries, cache hits and money, per scope.

A scope is opened with :func:`measure_calls`; each attempt that the models of
:mod:`graphrag.query.models` send while it is open, in this task or in one started from it, is
appended to its log. Scopes live in a context variable, so concurrent searches never mix.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import fsum
from typing import TYPE_CHECKING, Any, Literal, Protocol

from graphrag.query.model_facts import is_offline, model_price
from graphrag.query.own_time import OwnTime

if TYPE_CHECKING:
    import asyncio

    from graphrag.query.limits import CallLimit, CallTime, ServiceDownError

CountedBy = Literal["provider", "tokenizer", "nobody"]
CUT_OFF = "length"
"""The finish reason of a reply that was cut off."""


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
    prompt_tokens, output_tokens, cached_prompt_tokens : int
        Counts, >= 0; output_tokens is 0 for an embedding. cached_prompt_tokens is the part of
        prompt_tokens that the provider says it served from its own cache.
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
    cached_prompt_tokens: int = 0
    error: str | None = None
    finish_reason: str | None = None
    abstained: bool = False


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
    cached_prompt_tokens : int
        The part of prompt_tokens served from the provider's cache.
    tokens_counted_here : int
        How many of the calls had no usage figures from the provider and were counted with the
        model's tokenizer instead.
    cost_usd : float or None
        US dollars; None when the price of a model that answered is not known.
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
    cached_prompt_tokens: int = 0
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

    def to_dict(self) -> dict[str, object]:
        """Return the figures as JSON-ready values."""
        given: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        maps = {n: dict(v) for n, v in given.items() if n.endswith(("_by_model", "_by_phase"))}
        return {**given, **maps, "models": list(self.models)}

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> "Usage":
        """Read what :meth:`to_dict` gave."""
        given: dict[str, Any] = dict(values)
        for name in ("models", "completion_models", "embedding_models"):
            given[name] = None if given.get(name) is None else tuple(given[name])
        return cls(**given)


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A finished call as a journal keeps it: the reply and every attempt it took.

    ``reply`` is JSON-ready: the text of a completion or the vectors of an embedding.
    """

    reply: Any
    attempts: tuple[CallAttempt, ...]


class CallJournal(Protocol):
    """Keeps finished calls, so that an interrupted search need not pay for them again."""

    def replay(self, key: str) -> RecordedCall | None:
        """Return the finished call of this key, or None."""
        ...

    def start(self, key: str) -> None:
        """Note that the call is about to be sent."""
        ...

    def finish(self, key: str, call: RecordedCall) -> None:
        """Keep a call that was answered."""
        ...

    def abandon(self, key: str) -> None:
        """Note that the call has failed for good and is no longer in flight."""
        ...


@dataclass(frozen=True, slots=True)
class OutputBound:
    """The most tokens that a reply may have, >= 1, and the setting that says so."""

    tokens: int
    setting: str


class CallLog:
    """The attempts of one scope, in the order in which they ended.

    Attributes
    ----------
    limit : CallLimit, asyncio.Semaphore or None
        Gives a place to each request in flight; shared between the scopes of a run.
    journal : CallJournal or None
        Where finished calls are kept and looked up.
    live : bool
        Whether streamed replies must reach the caller piece by piece. When False a streamed
        request is sent as an ordinary one, whose usage figures and retries are exact.
    bound : OutputBound or None
        Of every completion that sets none itself; None: as the provider has it.
    time : CallTime or None
        Of each request; None: ten minutes.
    own_time : OwnTime
        Stands still while all calls of this scope wait for their turn.
    replayed : int
        Calls that were answered from the journal; their attempts count as they did first.
    counted : set of str
        The journal's keys of the finished calls whose attempts are among ``attempts``.
    attempts : list of CallAttempt
    failures : list of str
        Causes of the calls that failed for good.
    service_down : ServiceDownError or None
        Why one of them failed, where that says nothing of what was asked.
    was_held_up : bool
        Whether a call waited for a service that was down: the seconds are not known then.
    """

    def __init__(
        self,
        limit: "CallLimit | asyncio.Semaphore | None" = None,
        journal: CallJournal | None = None,
        live: bool = False,
        bound: OutputBound | None = None,
        own_time: OwnTime | None = None,
        time: "CallTime | None" = None,
    ) -> None:
        self.limit = limit
        self.journal = journal
        self.live = live
        self.bound = bound
        self.own_time, self.time = own_time or OwnTime(), time
        self.service_down: ServiceDownError | None = None
        self.was_held_up, self.replayed, self.counted = False, 0, set[str]()
        self.attempts, self.failures = list[CallAttempt](), list[str]()
        self._asked: Counter[str] = Counter()

    @property
    def waited_s(self) -> float:
        """Seconds in which all calls of this scope waited for their turn."""
        return self.own_time.waited_s

    @property
    def abstained(self) -> bool:
        """Whether the last completion, which gives the response, is a refusal."""
        replies = (a for a in reversed(self.attempts) if a.kind == "completion" and not a.error)
        last = next(replies, None)
        return last is not None and last.abstained

    def ordinal(self, fingerprint: str) -> int:
        """Return how often an equal request was made before in this scope."""
        self._asked[fingerprint] += 1
        return self._asked[fingerprint] - 1

    def usage(self) -> Usage:
        """Sum up what has been recorded so far."""
        return summarize_attempts(self.attempts)


_scope: ContextVar[CallLog | None] = ContextVar("gtog_call_scope", default=None)
_phase: ContextVar[str] = ContextVar("gtog_call_phase", default="response")


@contextmanager
def measure_calls(log: CallLog | None = None) -> Generator[CallLog]:
    """Record the model calls made inside the ``with`` block; an inner scope hides the outer."""
    log = log or CallLog()
    token = _scope.set(log)
    try:
        yield log
    finally:
        _scope.reset(token)


@contextmanager
def phase(name: str) -> Generator[None]:
    """Name the phase under which the calls made inside the ``with`` block are counted."""
    token = _phase.set(name)
    try:
        yield
    finally:
        _phase.reset(token)


def current_scope() -> CallLog | None:
    """Return the log of the innermost open scope, None outside any."""
    return _scope.get()


def current_phase() -> str:
    """Return the phase that calls are counted under."""
    return _phase.get()


def summarize_attempts(attempts: Iterable[CallAttempt]) -> Usage:
    """Sum attempts up, completions and embeddings apart."""
    calls, prompt, output = Counter[str](), Counter[str](), Counter[str]()
    embedding_calls = embedding_tokens = failed = cached = counted_here = cut = 0
    costs: dict[str, list[float | None]] = {}
    asked: dict[str, set[str]] = {"completion": set(), "embedding": set()}
    for attempt in attempts:
        asked[attempt.kind].add(attempt.model)
        failed += attempt.error is not None
        counted_here += attempt.counted_by == "tokenizer"
        cut += attempt.finish_reason == CUT_OFF
        costs.setdefault(attempt.model, []).append(attempt_cost_usd(attempt))
        if attempt.kind == "embedding":
            embedding_calls += 1
            embedding_tokens += attempt.prompt_tokens
        else:
            calls[attempt.phase] += 1
            prompt[attempt.phase] += attempt.prompt_tokens
            output[attempt.phase] += attempt.output_tokens
            cached += attempt.cached_prompt_tokens
    return Usage(
        llm_calls=calls.total(),
        prompt_tokens=prompt.total(),
        output_tokens=output.total(),
        embedding_calls=embedding_calls,
        embedding_tokens=embedding_tokens,
        failed_calls=failed,
        cached_prompt_tokens=cached,
        tokens_counted_here=counted_here,
        cost_usd=_sum_costs(cost for each in costs.values() for cost in each),
        cost_usd_by_model={model: _sum_costs(costs[model]) for model in sorted(costs)},
        llm_calls_by_phase=dict(calls),
        prompt_tokens_by_phase=dict(prompt),
        output_tokens_by_phase=dict(output),
        models=tuple(sorted(costs)),
        completion_models=tuple(sorted(asked["completion"])),
        embedding_models=tuple(sorted(asked["embedding"])),
        cut_replies=cut,
    )


def sum_usages(usages: Iterable[Usage]) -> Usage:
    """Add usages up; the cost is None as soon as one of them is."""
    given = list(usages)
    return Usage(
        llm_calls=sum(usage.llm_calls for usage in given),
        prompt_tokens=sum(usage.prompt_tokens for usage in given),
        output_tokens=sum(usage.output_tokens for usage in given),
        embedding_calls=sum(usage.embedding_calls for usage in given),
        embedding_tokens=sum(usage.embedding_tokens for usage in given),
        failed_calls=sum(usage.failed_calls for usage in given),
        cached_prompt_tokens=sum(usage.cached_prompt_tokens for usage in given),
        tokens_counted_here=sum(usage.tokens_counted_here for usage in given),
        cost_usd=_sum_costs(usage.cost_usd for usage in given),
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


def attempt_cost_usd(attempt: CallAttempt) -> float | None:
    """Return what one attempt cost in US dollars, None when the model's price is not known.

    Requests without tokens and the embedded models cost nothing.
    """
    if attempt.prompt_tokens + attempt.output_tokens == 0 or is_offline(attempt.model):
        return 0.0
    price = model_price(attempt.model)
    if price is None:
        return None
    fresh = attempt.prompt_tokens - attempt.cached_prompt_tokens
    return (
        fresh * price.prompt_usd
        + attempt.cached_prompt_tokens * price.cached_prompt_usd
        + attempt.output_tokens * price.output_usd
    )
