"""Records model calls and what they cost: attempts, their sums, and the scopes that collect them.

A scope is the group of calls made inside one :func:`measure_calls` block.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from math import fsum
from operator import attrgetter
from typing import Annotated, Any, Literal, Protocol, TypeVar, cast

from pydantic import Field

from graphrag.query.client.active_time import OwnTime
from graphrag.query.client.checked_numbers import Count, Dollars, StoredFigures
from graphrag.query.client.model_prices import model_price

T = TypeVar("T")
_Number = TypeVar("_Number", int, float)
CallKind = Literal["completion", "embedding"]
CountedBy = Literal["provider", "tokenizer", "nobody"]
Message = Mapping[str, object]
"""One of the messages of a completion's request."""
CUT_OFF, FILTERED = "length", "content_filter"
"""The finish reasons of a reply that was cut off, and of a reply that the service's filter
stopped."""


class NotAskedError(RuntimeError):
    """Raised when a call is not made, for a reason unrelated to the question.

    The message is one sentence.
    """


@dataclass(frozen=True, slots=True)
class FailedCall:
    """Records why a call failed for good, in one sentence.

    - ``context_is_full``: whether its model's context had no room.
    - ``refused``: whether every further call to the model would be refused, too.
    - ``refusal``: the kind of the error if the service refuses this request for good, else "".
    """

    cause: str
    context_is_full: bool = False
    refused: bool = False
    refusal: str = ""


_LeftOut = Annotated[tuple[str, ...], Field(exclude_if=lambda names: not names)]


@dataclass(frozen=True, slots=True)
class CallAttempt(StoredFigures):
    """Records one request sent to a model, whether it was answered or not.

    - ``model``: ``provider/model`` as in settings.yaml.
    - ``phase``: the phase of the search that sent it, e.g. ``reasoning``; ``response`` by default.
    - ``counted_by``: {"provider", "tokenizer", "nobody"}. Who counted the tokens: the provider, the
      model's tokenizer here if the provider gave no count, or nobody if the request was never
      answered.
    - ``latency_s``: seconds from sending to the last byte or the failure.
    - ``cached_prompt_tokens``: the part of prompt_tokens that the provider reports as read from
      its own cache, >= 0.
    - ``finish_reason``: why the reply ended, by the provider; ``length`` if it was cut off.
    - ``abstained``: whether the message carries a refusal: the model declines to answer.
    - ``service_tier``: the tier that the settings ask for; not written if there is none.
    - ``left_out``: names of parameters that the model refuses and that were left out of the
      request; not written if there are none.
    """

    kind: CallKind
    model: str
    phase: str
    prompt_tokens: Count
    output_tokens: Count
    counted_by: CountedBy
    latency_s: float
    cached_prompt_tokens: Count | None = None
    error: str | None = None
    finish_reason: str | None = None
    abstained: bool = False
    service_tier: Annotated[str | None, Field(exclude_if=lambda tier: tier is None)] = None
    left_out: _LeftOut = ()

    @property
    def cost_usd(self) -> float | None:
        """US dollars; None if the model's price is not known.

        Requests without tokens and the embedded models cost nothing. None also if tokens were
        cached and the price of cached tokens is not known.
        """
        if self.prompt_tokens + self.output_tokens == 0:
            return 0.0
        price = model_price(self.model, self.prompt_tokens, self.service_tier)
        cached = self.cached_prompt_tokens or 0
        if price is None or (cached and price.cached_prompt_usd is None):
            return None
        return (
            (self.prompt_tokens - cached) * price.prompt_usd
            + cached * (price.cached_prompt_usd or 0.0)
            + self.output_tokens * price.output_usd
        )

    @property
    def most_usd(self) -> float | None:
        """US dollars; if the price of cached tokens is not known, as if nothing had been cached."""
        cost = self.cost_usd
        return replace(self, cached_prompt_tokens=None).cost_usd if cost is None else cost


@dataclass(frozen=True, slots=True)
class Usage(StoredFigures):
    """Sums a scope's attempts, failed ones and retries included.

    ``llm_calls``, ``prompt_tokens`` and ``output_tokens`` count completions alone, because
    embeddings' tokens differ in price by two orders of magnitude. Dicts are by model (US dollars)
    or by phase (counts, whose sums equal the totals); names of models are sorted.

    - ``failed_calls``: requests of either kind that were not answered.
    - ``cached_prompt_tokens``: the part of prompt_tokens that providers report as read from their
      own caches, None if no provider reports it.
    - ``calls_reporting_cached_tokens``: completions that report it; if fewer than all do,
      ``cached_prompt_tokens`` is a lower bound.
    - ``tokens_counted_here``: calls without usage figures, counted with the model's tokenizer
      instead.
    - ``cost_usd``: US dollars; None if the price of a model that answered is not known.
    - ``cut_replies``: replies that were cut off, at their bound or because the model's context was
      full.
    - ``is_counted``: False if something that does not count its calls took part: every other figure
      is then too low, and the cost None.
    - ``completion_models``, ``embedding_models``: models asked for each; None if only their names
      are known.
    - ``cost_usd_at_most``: if cost_usd is None only because the price of cached tokens is not
      known, the cost as if nothing had been cached. None otherwise.
    - ``left_out``: sorted names of parameters that a model refused and that were left out; not
      written if there are none.
    """

    llm_calls: Count = 0
    prompt_tokens: Count = 0
    output_tokens: Count = 0
    embedding_calls: Count = 0
    embedding_tokens: Count = 0
    failed_calls: Count = 0
    cached_prompt_tokens: Count | None = None
    tokens_counted_here: Count = 0
    cost_usd: Dollars | None = 0.0
    cost_usd_by_model: dict[str, Dollars | None] = field(default_factory=dict[str, float | None])
    llm_calls_by_phase: dict[str, Count] = field(default_factory=dict[str, int])
    prompt_tokens_by_phase: dict[str, Count] = field(default_factory=dict[str, int])
    output_tokens_by_phase: dict[str, Count] = field(default_factory=dict[str, int])
    models: tuple[str, ...] = ()
    cut_replies: Count = 0
    is_counted: bool = True
    completion_models: tuple[str, ...] | None = None
    embedding_models: tuple[str, ...] | None = None
    calls_reporting_cached_tokens: Count | None = 0
    cost_usd_at_most: Dollars | None = None
    left_out: _LeftOut = ()

    @property
    def spent_usd(self) -> float:
        """US dollars as a limit on spending counts them: at most this, without unknown prices."""
        return self.cost_usd if self.cost_usd is not None else self.cost_usd_at_most or 0.0

    @property
    def tokens(self) -> int:
        """All tokens, embeddings included, as far as they are counted."""
        return self.prompt_tokens + self.output_tokens + self.embedding_tokens


UNCOUNTED = Usage(cost_usd=None, is_counted=False)
"""The usage of something that does not count its calls: its amounts are not known."""
_TOTALS = (
    *("llm_calls", "prompt_tokens", "output_tokens", "embedding_calls", "embedding_tokens"),
    *("failed_calls", "tokens_counted_here", "cut_replies"),
)


def summarize_attempts(attempts: Iterable[CallAttempt]) -> Usage:
    """Return the sum of attempts, with completions and embeddings apart."""
    return sum_usages(map(_usage_of, attempts))


def _usage_of(attempt: CallAttempt) -> Usage:
    model, cost, cached = attempt.model, attempt.cost_usd, attempt.cached_prompt_tokens
    usage = Usage(
        failed_calls=int(attempt.error is not None),
        tokens_counted_here=int(attempt.counted_by == "tokenizer"),
        cost_usd=cost,
        cost_usd_by_model={model: cost},
        models=(model,),
        cut_replies=int(attempt.finish_reason == CUT_OFF),
        completion_models=(),
        embedding_models=(),
        cost_usd_at_most=attempt.most_usd if cost is None else None,
        left_out=attempt.left_out if attempt.error is None else (),
    )
    if attempt.kind == "embedding":
        embedded = {"embedding_calls": 1, "embedding_tokens": attempt.prompt_tokens}
        return replace(usage, **embedded, embedding_models=(model,))
    return replace(
        usage,
        llm_calls=1,
        prompt_tokens=attempt.prompt_tokens,
        output_tokens=attempt.output_tokens,
        cached_prompt_tokens=cached,
        llm_calls_by_phase={attempt.phase: 1},
        prompt_tokens_by_phase={attempt.phase: attempt.prompt_tokens},
        output_tokens_by_phase={attempt.phase: attempt.output_tokens},
        completion_models=(model,),
        calls_reporting_cached_tokens=int(cached is not None),
    )


def sum_usages(usages: Iterable[Usage]) -> Usage:
    """Return the sum of usages; the cost is None as soon as one of them is."""
    all_usages = list(usages)
    cached = [u.cached_prompt_tokens for u in all_usages if u.cached_prompt_tokens is not None]
    cost_usd = sum_usd(u.cost_usd for u in all_usages)
    at_most = sum_usd(u.cost_usd_at_most if u.cost_usd is None else u.cost_usd for u in all_usages)
    by_model: dict[str, list[float | None]] = {}
    for usage in all_usages:
        for model, cost in usage.cost_usd_by_model.items():
            by_model.setdefault(model, []).append(cost)
    with_models = [u for u in all_usages if u.models]
    totals: dict[str, int] = {name: sum(map(attrgetter(name), all_usages)) for name in _TOTALS}
    return Usage(
        **totals,
        cached_prompt_tokens=sum(cached) if cached else None,
        cost_usd=cost_usd,
        cost_usd_by_model={model: sum_usd(by_model[model]) for model in sorted(by_model)},
        llm_calls_by_phase=_sum_phases(u.llm_calls_by_phase for u in all_usages),
        prompt_tokens_by_phase=_sum_phases(u.prompt_tokens_by_phase for u in all_usages),
        output_tokens_by_phase=_sum_phases(u.output_tokens_by_phase for u in all_usages),
        models=tuple(sorted({model for u in all_usages for model in u.models})),
        is_counted=all(u.is_counted for u in all_usages),
        completion_models=_join_known([u.completion_models for u in with_models]),
        embedding_models=_join_known([u.embedding_models for u in with_models]),
        calls_reporting_cached_tokens=sum_known(
            u.calls_reporting_cached_tokens for u in all_usages
        ),
        cost_usd_at_most=at_most if cost_usd is None else None,
        left_out=tuple(sorted({name for u in all_usages for name in u.left_out})),
    )


def _join_known(models: list[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    joined = tuple(sorted({name for names in models for name in names or ()}))
    return None if None in models else joined


def sum_known(values: Iterable[_Number | None]) -> _Number | None:
    """Return the sum of values; None if one is not known."""
    numbers = list(values)
    return None if None in numbers else cast("_Number", sum(cast("list[_Number]", numbers)))


def sum_usd(costs: Iterable[float | None]) -> float | None:
    """Return the sum of costs, the same in any order; None if one is not known."""
    amounts = list(costs)
    return None if None in amounts else fsum(cast("list[float]", amounts))


def _sum_phases(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total = Counter[str]()
    for count in counts:
        total.update(count)
    return dict(total)


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """Records a finished call as a journal keeps it: the reply and all attempts.

    ``reply`` is JSON-ready: the text of a completion or the vectors of an embedding.
    """

    reply: object
    attempts: tuple[CallAttempt, ...]


class CallJournal(Protocol):
    """Keeps finished calls, so that an interrupted search need not pay for them again."""

    def replay(self, key: str) -> RecordedCall | None:
        """Return the finished call with this key, None if there is none."""

    def start(self, key: str) -> None:
        """Note that the call is about to be sent."""

    def finish(self, key: str, call: RecordedCall) -> None:
        """Keep a call that was answered."""

    def abandon(self, key: str) -> None:
        """Note that the call has failed for good and is no longer in flight."""


@dataclass(frozen=True, slots=True)
class OutputBound:
    """Bounds the tokens of a reply, >= 1, and names the setting that does so.

    ``of_setup``: whether another value of the setting makes another run of an evaluation.
    """

    tokens: int
    setting: str
    of_setup: bool = True


@dataclass(frozen=True, slots=True)
class CallTime:
    """Bounds the seconds that a request may be in flight, > 0, and names the setting."""

    seconds: float
    setting: str | None = None

    def exceeded(self) -> str:
        """Return the sentence for a request that took longer."""
        raised = "" if self.setting is None else f"; raise {self.setting}"
        return f"no reply within {self.seconds:g} s{raised}"


class Limit(Protocol):
    """Limits the calls of a run together; see ``graphrag.query.client.rate_limit.CallLimit``."""

    patience_s: float | None


@dataclass(frozen=True, slots=True)
class Exchange:
    """Records one request to a model and its reply, as texts.

    - ``attempt``: its counted figures.
    - ``sent``: role and text of each message, or "input" and each text that was embedded.
    - ``settings``: JSON of the other parameters; "" without any.
    - ``reply``: None if none came.
    - ``began``: start in seconds, by a clock that only shows which exchange came first.
    """

    attempt: CallAttempt
    sent: tuple[tuple[str, str], ...]
    settings: str
    reply: str | None
    began: float


MOST_OF_A_TEXT, MOST_OF_A_SCOPE = 200_000, 4_000_000
"""Characters of exchanges that are kept: of one text, and of all texts of a search or a judging."""


class Exchanges:
    """Collects the exchanges of one scope.

    Of a long text, or if there are very many, only the beginning and the end are kept.
    """

    def __init__(self) -> None:
        self.listed: list[Exchange] = []
        self._left = MOST_OF_A_SCOPE

    def add(self, attempt: CallAttempt, request: Mapping[str, object], reply: object) -> None:
        """Add an exchange when it has ended; ``request`` as in ``ModelCaller.call``."""
        others = {name: request[name] for name in sorted(request) if name not in _SENT}
        extras = {name: value for name, value in others.items() if value is not None}
        began = time.perf_counter() - attempt.latency_s
        sent = tuple((role, self._bounded(text)) for role, text in _sent(request))
        settings = json.dumps(extras, default=str, ensure_ascii=False) if extras else ""
        reply_text = None if reply is None else self._bounded(_reply(reply))
        self.listed.append(
            Exchange(attempt=attempt, sent=sent, settings=settings, reply=reply_text, began=began)
        )

    def rename(self, names: Mapping[CallAttempt, CallAttempt]) -> None:
        """Replace attempts by others."""
        self.listed = [
            replace(entry, attempt=names.get(entry.attempt, entry.attempt)) for entry in self.listed
        ]

    def _bounded(self, text: str) -> str:
        most = min(MOST_OF_A_TEXT, self._left)
        self._left -= min(len(text), most)
        if len(text) <= most:
            return text
        left = f"\n[{len(text) - most:,} characters are left out here]\n"
        return f"{text[: most - most // 2]}{left}{text[len(text) - most // 2 :]}"


_SENT = ("messages", "input")


def _sent(request: Mapping[str, object]) -> Iterable[tuple[str, str]]:
    for text in cast("Sequence[object]", request.get("input", ())):
        yield "input", str(text)
    for message in cast("Sequence[Message]", request.get("messages", ())):
        yield str(message["role"]), _text(message["content"])


def _reply(reply: object) -> str:
    if not isinstance(reply, list):
        return _text(reply)
    vectors = cast("list[list[float]]", reply)
    return f"[vectors of {', '.join(str(len(vector)) for vector in vectors)} numbers]"


def _text(content: object) -> str:
    return content if isinstance(content, str) else json.dumps(content, default=str)


@dataclass(eq=False)
class CallRules:
    """Sets how the calls of one scope are made and observed.

    - ``limit``: gives a slot to each request in flight, as
      ``graphrag.query.client.rate_limit.CallLimit`` does; shared by the scopes of a run.
    - ``journal``: keeps finished calls and looks them up.
    - ``live``: whether streamed replies must reach the caller piece by piece. If False, a streamed
      request is sent as an ordinary one, whose usage figures and retries are exact.
    - ``bound``: of every completion that sets none itself; None for the provider's.
    - ``time``: of each request; None for ten minutes.
    - ``prompts``: a list that gets the messages of each completion; None if they are not needed.
    - ``exchanges``: collects requests and replies, those from the journal too.
    - ``watch``: called when a request that was sent has ended, with the attempt, the request, and
      the reply if one came. Not called for replies from the journal.
    """

    limit: Limit | None = None
    journal: CallJournal | None = None
    live: bool = False
    bound: OutputBound | None = None
    time: CallTime | None = None
    prompts: list[list[Message]] | None = None
    exchanges: Exchanges | None = None
    watch: Callable[[CallAttempt, Mapping[str, object], object], None] | None = None


@dataclass(eq=False)
class CallLog(CallRules):
    """Records the outcomes of the calls of one scope, and keeps the scope's rules.

    - ``attempts``: in the order in which they ended.
    - ``own_time``: a clock that stops while all calls of this scope wait for their turn.
    - ``not_asked``: why a call was not made, if that is unrelated to the question.
    - ``was_held_up``: whether a call waited for a service that was down: the latency is not known
      then.
    - ``replayed``: number of attempts that came from the journal; they count as when they were
      made.
    - ``counted``: the journal's keys of the finished calls whose attempts are among ``attempts``.
    - ``failures``: the calls that failed for good.
    - ``latest``: how the latest request that may be sent again failed; "" if none has.
    - ``has_uncounted``: whether something was asked that does not count its calls.
    """

    attempts: list[CallAttempt] = field(default_factory=list[CallAttempt])
    own_time: OwnTime = field(default_factory=OwnTime)
    not_asked: NotAskedError | None = None
    was_held_up: bool = False
    replayed: int = 0
    counted: set[str] = field(default_factory=set[str])
    failures: list[FailedCall] = field(default_factory=list[FailedCall])
    latest: str = ""
    has_uncounted: bool = False
    _asked: Counter[str] = field(default_factory=Counter[str])

    @property
    def abstained(self) -> bool:
        """Whether the last completion, which gives the response, is a refusal."""
        replies = (a for a in reversed(self.attempts) if a.kind == "completion" and not a.error)
        last = next(replies, None)
        return last is not None and last.abstained

    def name_phase(self, first: int, old: str, new: str) -> None:
        """Move attempts from phase ``old`` to ``new``, once their purpose is known.

        Only attempts from index ``first`` on are moved.
        """
        names = {a: replace(a, phase=new) for a in self.attempts[first:] if a.phase == old}
        self.attempts[first:] = [names.get(a, a) for a in self.attempts[first:]]
        if self.exchanges is not None:
            self.exchanges.rename(names)

    def ordinal(self, fingerprint: str) -> int:
        """Return how many equal requests were made before in this scope."""
        self._asked[fingerprint] += 1
        return self._asked[fingerprint] - 1

    def usage(self) -> Usage:
        """Return the usage recorded so far."""
        usages = [summarize_attempts(self.attempts)]
        if self.has_uncounted:
            usages.append(UNCOUNTED)
        return sum_usages(usages)


_scope: ContextVar[CallLog | None] = ContextVar("gtog_call_scope", default=None)
_phase: ContextVar[str] = ContextVar("gtog_call_phase", default="response")


@contextmanager
def set_variable(variable: ContextVar[Any], value: T) -> Generator[T]:
    """Set a context variable inside the ``with`` block, and in tasks started there."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


def measure_calls(log: CallLog | None = None) -> AbstractContextManager[CallLog]:
    """Record the model calls made inside the ``with`` block.

    Calls of tasks that are started inside it are recorded, too, so concurrent searches never mix.
    An inner block hides the outer one.
    """
    return set_variable(_scope, log or CallLog())


def phase(name: str) -> AbstractContextManager[str]:
    """Name the phase under which the calls made inside the ``with`` block are counted."""
    return set_variable(_phase, name)


def current_scope() -> CallLog | None:
    """Return the log of the innermost open scope, None if there is none."""
    return _scope.get()


def current_phase() -> str:
    """Return the phase under which calls are counted now."""
    return _phase.get()
