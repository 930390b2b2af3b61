"""What model calls cost: attempts, their sums, and the scopes that they are recorded in.

A scope is opened with :func:`measure_calls`; each attempt that the models of
:mod:`graphrag.query.models` send while it is open, in this task or in one started from it, is
appended to its log. Scopes live in a context variable, so concurrent searches never mix.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from math import fsum
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from graphrag.query.model_facts import is_offline, model_price
from graphrag.query.own_time import OwnTime

if TYPE_CHECKING:
    import asyncio

    from graphrag.query.limits import CallLimit, CallTime
    from graphrag.query.spending import NotAskedError

Value = TypeVar("Value")
CallKind = Literal["completion", "embedding"]
CountedBy = Literal["provider", "tokenizer", "nobody"]
CUT_OFF = "length"
"""The finish reason of a reply that was cut off."""


@dataclass(frozen=True, slots=True)
class CallAttempt:
    """One request sent to a model, whether it was answered or not.

    Attributes
    ----------
    model : str
        ``provider/model`` as in settings.yaml.
    phase : str
        The phase of the search that asked, e.g. ``reasoning``; ``response`` unless named.
    counted_by : {"provider", "tokenizer", "nobody"}
        Whose count it is; the model's tokenizer here where the provider gave none, nobody's of a
        request that was never answered.
    latency_s : float
        Seconds from sending to the last byte or the failure.
    cached_prompt_tokens : int or None
        The part of prompt_tokens that the provider says it read from its own cache, >= 0.
    finish_reason : str or None
        Why the reply ended, as the provider says: ``length`` for one that was cut off.
    abstained : bool
        Whether the message carries a refusal: the model says that it gives no answer.
    """

    kind: CallKind
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
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "CallAttempt":
        """Read what :meth:`to_dict` gave."""
        return cls(**values)


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
        The part of prompt_tokens that providers say they read from their own caches: the sum
        over the completions for which they say so. None where they do so for none.
    tokens_counted_here : int
        Calls without usage figures, counted with the model's tokenizer instead.
    cost_usd : float or None
        US dollars; None when the price of a model that answered is not known.
    cost_usd_by_model : dict
        model -> US dollars, None when its price is not known.
    llm_calls_by_phase, prompt_tokens_by_phase, output_tokens_by_phase : dict
        phase -> count; the sums equal the totals.
    models : tuple of str
        The models asked, sorted.
    cut_replies : int
        Replies that were cut off, at their bound or because the model's context was full.
    is_counted : bool
        False when something that does not count its calls had a part: every other figure is
        then too low, and the cost None.
    completion_models, embedding_models : tuple of str or None
        Those asked for each; None where only their names are known.
    calls_reporting_cached_tokens : int or None
        Completions whose provider says how much it had cached; where it is below llm_calls,
        cached_prompt_tokens is the least that was.
    cost_usd_at_most : float or None
        Where cost_usd is None only because it is not known what cached tokens cost: what it is
        at most, as if they had not been cached. None otherwise.
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
    def from_dict(cls, values: Mapping[str, Any]) -> "Usage":
        """Read what :meth:`to_dict` gave."""
        names = ("models", "completion_models", "embedding_models")
        given: dict[str, Any] = dict(values)
        for name in names:
            given[name] = None if given.get(name) is None else tuple(given[name])
        return cls(**given)


def summarize_attempts(attempts: Iterable[CallAttempt]) -> Usage:
    """Sum attempts up, completions and embeddings apart."""
    every = list(attempts)
    asked = [each for each in every if each.kind == "completion"]
    embedded = [each for each in every if each.kind == "embedding"]
    cached = [a.cached_prompt_tokens for a in asked if a.cached_prompt_tokens is not None]
    costs: dict[str, list[float | None]] = {}
    at_most: list[float | None] = []
    for each in every:
        cost = attempt_cost_usd(each)
        costs.setdefault(each.model, []).append(cost)
        at_most.append(_most_usd(each) if cost is None else cost)

    def by_phase(count: Callable[[CallAttempt], int]) -> dict[str, int]:
        return _sum_phases({each.phase: count(each)} for each in asked)

    cost_usd = _sum_costs(cost for each in costs.values() for cost in each)
    return Usage(
        llm_calls=len(asked),
        prompt_tokens=sum(each.prompt_tokens for each in asked),
        output_tokens=sum(each.output_tokens for each in asked),
        embedding_calls=len(embedded),
        embedding_tokens=sum(each.prompt_tokens for each in embedded),
        failed_calls=sum(each.error is not None for each in every),
        cached_prompt_tokens=sum(cached) if cached else None,
        tokens_counted_here=sum(each.counted_by == "tokenizer" for each in every),
        cost_usd=cost_usd,
        cost_usd_by_model={model: _sum_costs(costs[model]) for model in sorted(costs)},
        llm_calls_by_phase=by_phase(lambda each: 1),
        prompt_tokens_by_phase=by_phase(lambda each: each.prompt_tokens),
        output_tokens_by_phase=by_phase(lambda each: each.output_tokens),
        models=tuple(sorted(costs)),
        completion_models=tuple(sorted({each.model for each in asked})),
        embedding_models=tuple(sorted({each.model for each in embedded})),
        cut_replies=sum(each.finish_reason == CUT_OFF for each in every),
        calls_reporting_cached_tokens=len(cached),
        cost_usd_at_most=_sum_costs(at_most) if cost_usd is None else None,
    )


_PLAIN_SUMS = (
    "llm_calls",
    "prompt_tokens",
    "output_tokens",
    "embedding_calls",
    "embedding_tokens",
    "failed_calls",
    "tokens_counted_here",
    "cut_replies",
)


def sum_usages(usages: Iterable[Usage]) -> Usage:
    """Add usages up; the cost is None as soon as one of them is."""
    given = list(usages)
    cached = [u.cached_prompt_tokens for u in given if u.cached_prompt_tokens is not None]
    cost_usd = _sum_costs(usage.cost_usd for usage in given)
    at_most = _sum_costs(u.cost_usd_at_most if u.cost_usd is None else u.cost_usd for u in given)
    models = sorted({model for u in given for model in u.cost_usd_by_model})
    asked = [u for u in given if u.models]
    return Usage(
        **{name: sum(getattr(usage, name) for usage in given) for name in _PLAIN_SUMS},
        cached_prompt_tokens=sum(cached) if cached else None,
        cost_usd=cost_usd,
        cost_usd_by_model={
            model: _sum_costs(
                u.cost_usd_by_model[model] for u in given if model in u.cost_usd_by_model
            )
            for model in models
        },
        llm_calls_by_phase=_sum_phases(usage.llm_calls_by_phase for usage in given),
        prompt_tokens_by_phase=_sum_phases(usage.prompt_tokens_by_phase for usage in given),
        output_tokens_by_phase=_sum_phases(usage.output_tokens_by_phase for usage in given),
        models=tuple(sorted({model for usage in given for model in usage.models})),
        is_counted=all(usage.is_counted for usage in given),
        completion_models=_join_known(u.completion_models for u in asked),
        embedding_models=_join_known(u.embedding_models for u in asked),
        calls_reporting_cached_tokens=_if_all_known(
            [u.calls_reporting_cached_tokens for u in given], sum
        ),
        cost_usd_at_most=at_most if cost_usd is None else None,
    )


def _if_all_known(values: list[Value | None], add: Callable[[list[Value]], Any]) -> Any:
    """Add values up, None as soon as one is."""
    known = [value for value in values if value is not None]
    return add(known) if len(known) == len(values) else None


def _join_known(models: Iterable[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    return _if_all_known(
        list(models), lambda known: tuple(sorted({name for names in known for name in names}))
    )


def _sum_costs(costs: Iterable[float | None]) -> float | None:
    return _if_all_known(list(costs), fsum)  # the same whatever their order


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
    cached = attempt.cached_prompt_tokens or 0
    if price is None or (cached and price.cached_prompt_usd is None):
        return None
    return (
        (attempt.prompt_tokens - cached) * price.prompt_usd
        + cached * (price.cached_prompt_usd or 0.0)
        + attempt.output_tokens * price.output_usd
    )


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
    prompts : list or None
        Takes the messages of each completion that is asked for, where it is a list.
    attempts : list of CallAttempt
    failures : list of str
        Causes of the calls that failed for good.
    not_asked : NotAskedError or None
        Why one of them was not made, where that says nothing of what was asked.
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
        self.prompts: list[list[dict[str, Any]]] | None = None
        self.not_asked: NotAskedError | None = None
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
