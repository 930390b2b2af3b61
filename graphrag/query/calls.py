"""Sending one model call: limit, rate, journal, attempts and retries.

The clients below graphrag retry unseen and know nothing of a limit that several models share.
Here a request is sent exactly once, counted whatever becomes of it, and retried in the open.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from aiolimiter import AsyncLimiter
from graphrag_llm.config.types import RetryType
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_random_exponential

from graphrag.query.service_advice import advise, is_wrong_provider, read_advice
from graphrag.query.usage import (
    CallAttempt,
    CallLog,
    CountedBy,
    RecordedCall,
    current_phase,
    current_scope,
)
from graphrag.redaction import know_settings, redact, redact_data

if TYPE_CHECKING:
    from graphrag_llm.config import ModelConfig

T = TypeVar("T")

_RETRIED_STATUS = {408, 409, 425, 429}
_REFUSED_STATUS = {401, 403, 404}
_TRANSPORT_ERRORS = {
    "APIConnectionError",
    "APITimeoutError",
    "ConnectError",
    "ReadError",
    "ReadTimeout",
    "RemoteProtocolError",
}


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently a request is sent again.

    Attributes
    ----------
    max_retries : int
        Attempts after the first, >= 0.
    base_delay_s, max_delay_s : float
        Seconds. The n-th wait is drawn evenly from [0, min(max, base * 2**n)] ("full jitter")
        and is never shorter than the Retry-After which the provider sent.
    """

    max_retries: int = 5
    base_delay_s: float = 1.0
    max_delay_s: float = 60.0


def read_retry_policy(config: "ModelConfig") -> RetryPolicy:
    """Read a model's ``retry:`` section; what it leaves out keeps its default.

    The type ``immediate`` waits only as long as the provider asks for.
    """
    default = RetryPolicy()
    if config.retry is None:
        return default
    if config.retry.type == RetryType.Immediate:
        return RetryPolicy(_or(config.retry.max_retries, default.max_retries), 0.0, 0.0)
    return RetryPolicy(
        max_retries=_or(config.retry.max_retries, default.max_retries),
        base_delay_s=_or(config.retry.base_delay, default.base_delay_s),
        max_delay_s=_or(config.retry.max_delay, default.max_delay_s),
    )


def _or(value: T | None, default: T) -> T:
    return default if value is None else value


@dataclass(frozen=True, slots=True)
class Answer:
    """One answered request: the JSON-ready reply and its tokens."""

    reply: Any
    prompt_tokens: int
    output_tokens: int
    counted_by: CountedBy
    cached_prompt_tokens: int = 0
    finish_reason: str | None = None
    abstained: bool = False


class CutOffReplyError(RuntimeError):
    """A structured reply, paid for and counted, broke off before it was complete.

    Asking for it again would end at the same place. The message is one sentence.

    Attributes
    ----------
    content : str
        The reply as far as it came.
    """

    def __init__(self, content: str, reason: str) -> None:
        super().__init__(reason)
        self.content = content


_LONGEST_READ = 20_000
CONTEXT_IS_FULL = "the model's context is too small"
"""Part of every sentence about a request or reply that the context had no room for."""


def describe_error(error: BaseException) -> str:
    """Return an error's kind and message on one line of at most 300 characters, and the remedy.

    Keys and passwords in it are left out, whoever wrote them: services say which key they refuse.
    An error that says of a service no more than that there is none is named by the remedy alone.
    """
    text = redact(" ".join(str(error)[:_LONGEST_READ].split()))
    if isinstance(error, CutOffReplyError):
        return text
    if has_no_room(error):
        said = text.rpartition("Exception - ")[2].rpartition("Error: ")[2]
        return f"{CONTEXT_IS_FULL} for the request ({said[:200]})"
    advice = read_advice(error)
    if advice is not None and not advice.startswith(";"):
        return advice
    named = f"{type(error).__name__}: {text}"[:300] if text else type(error).__name__
    return f"{named}{advice or ''}"


def is_refusal(error: BaseException) -> bool:
    """Say whether every further request to this model would fail for the same reason."""
    if is_wrong_provider(error):
        return True
    status = getattr(error, "status_code", None)
    # litellm's message leaves the provider's error code out; the error it was made from has it.
    return status in _REFUSED_STATUS or "insufficient_quota" in f"{error} {error.__context__}"


def has_no_room(error: BaseException) -> bool:
    """Say whether a request was refused because it is longer than the model's context."""
    return any(kind.__name__ == "ContextWindowExceededError" for kind in type(error).__mro__)


def name_remedy(cause: str, budget: str) -> str:
    """Return the cause of a failure and, where a context was too small, which budget to lower.

    Parameters
    ----------
    cause : str
        One sentence, as of :func:`describe_error`.
    budget : str
        The settings to lower, e.g. ``local_search.max_context_tokens``.
    """
    return f"{cause}; lower {budget}" if CONTEXT_IS_FULL in cause else cause


def is_transient(error: BaseException) -> bool:
    """Say whether sending the same request again may succeed."""
    if is_refusal(error):
        return False
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and status in _RETRIED_STATUS:
        return True
    if isinstance(status, int) and status < 500:
        return False
    named = any(kind.__name__ in _TRANSPORT_ERRORS for kind in type(error).__mro__)
    return isinstance(status, int) or named or isinstance(error, ConnectionError | TimeoutError)


def retry_after_s(error: BaseException) -> float:
    """Return the wait in seconds which the provider asked for, 0 when it named none."""
    headers: Any = getattr(error, "litellm_response_headers", None)
    if headers is None:
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) / unit)
        except (KeyError, TypeError, ValueError):
            continue  # absent, or an HTTP date: the policy's own wait is used
    return 0.0


class ModelCaller:
    """Sends the calls of one model.

    Parameters
    ----------
    kind : {"completion", "embedding"}
    config : ModelConfig
        Names the model; its ``rate_limit:`` section is kept without blocking the loop.
    retry : RetryPolicy
    """

    def __init__(
        self, kind: Literal["completion", "embedding"], config: "ModelConfig", retry: RetryPolicy
    ) -> None:
        know_settings(config.model_dump())
        self.kind: Literal["completion", "embedding"] = kind
        self.model = f"{config.model_provider}/{config.model}"
        self._config = config
        self._retry = retry
        self._identity = {"kind": kind, "model": self.model, "call_args": config.call_args}
        self._rate = config.rate_limit
        self._limiters: tuple[AsyncLimiter | None, AsyncLimiter | None] | None = None
        self._limiters_loop: asyncio.AbstractEventLoop | None = None

    async def call(
        self,
        request: Mapping[str, Any],
        send: Callable[[], Awaitable[Answer]],
        count_tokens: Callable[[], int],
    ) -> RecordedCall:
        """Return the reply to a request, from the journal or by sending it.

        Parameters
        ----------
        request : mapping
            Everything that gives the request its meaning; JSON-ready.
        send : callable
            Sends it once.
        count_tokens : callable
            Counts the prompt's tokens; asked only when a token rate is configured.

        Raises
        ------
        Exception
            Whatever the last attempt raised.
        """
        scope = current_scope() or CallLog()
        with scope.own_time.call():
            return await self._call(request, send, count_tokens, scope)

    async def _call(
        self,
        request: Mapping[str, Any],
        send: Callable[[], Awaitable[Answer]],
        count_tokens: Callable[[], int],
        scope: CallLog,
    ) -> RecordedCall:
        journal, key = scope.journal, ""
        if journal is not None:
            key = self._key(request, scope)
            recorded = journal.replay(key)
            if recorded is not None:
                scope.attempts.extend(recorded.attempts)
                scope.replayed += 1
                return recorded
        attempts: list[CallAttempt] = []

        async def sending() -> Answer:
            if journal is not None:
                journal.start(key)
            return await send()

        try:
            reply = await self._with_retries(sending, count_tokens, scope, attempts)
        except Exception as error:
            if journal is not None:
                journal.abandon(key)
            scope.failures.append(describe_error(error))
            raise
        finally:
            scope.attempts.extend(attempts)
        call = RecordedCall(reply, tuple(attempts))
        if journal is not None:
            journal.finish(key, call)
        return call

    async def _with_retries(
        self,
        send: Callable[[], Awaitable[Answer]],
        count_tokens: Callable[[], int],
        scope: CallLog,
        attempts: list[CallAttempt],
    ) -> Any:
        async for attempt in self.retrying(is_transient):
            with attempt:
                await self.keep_rate(count_tokens, scope)
                async with self.place(scope):
                    return await self._send_once(send, attempts)
        return None

    def retrying(self, may_retry: Callable[[BaseException], bool]) -> AsyncRetrying:
        """Return the attempts that the retry policy allows, the last error raised as it is."""
        return AsyncRetrying(
            stop=stop_after_attempt(self._retry.max_retries + 1),
            wait=self._wait,
            retry=retry_if_exception(may_retry),
            reraise=True,
        )

    @asynccontextmanager
    async def place(self, scope: CallLog) -> AsyncGenerator[None]:
        """Hold a place under the scope's limit; waiting for it is not the scope's own time."""
        if scope.limit is None:
            yield
            return
        with scope.own_time.waiting():
            await scope.limit.acquire()
        try:
            yield
        finally:
            scope.limit.release()

    async def _send_once(
        self, send: Callable[[], Awaitable[Answer]], attempts: list[CallAttempt]
    ) -> Any:
        started = time.perf_counter()
        try:
            answer = _without_keys(await send())
        except BaseException as error:
            attempts.append(self.attempt(started, error=self.describe(error)))
            raise
        attempts.append(self.attempt(started, answer))
        return answer.reply

    def describe(self, error: BaseException) -> str:
        """Return the sentence of a request's error, and put what it says of the service on it."""
        advise(error, self.kind, self._config)
        return describe_error(error)

    def attempt(
        self, started: float, answer: Answer | None = None, error: str | None = None
    ) -> CallAttempt:
        """Record one attempt that began at ``started`` (perf_counter seconds) and ends now."""
        return CallAttempt(
            kind=self.kind,
            model=self.model,
            phase=current_phase(),
            prompt_tokens=answer.prompt_tokens if answer else 0,
            output_tokens=answer.output_tokens if answer else 0,
            counted_by=answer.counted_by if answer else "nobody",
            latency_s=time.perf_counter() - started,
            cached_prompt_tokens=answer.cached_prompt_tokens if answer else 0,
            error=error,
            finish_reason=answer.finish_reason if answer else None,
            abstained=answer is not None and answer.abstained,
        )

    async def keep_rate(self, count_tokens: Callable[[], int], scope: CallLog) -> None:
        """Wait until the configured rate allows one more request; it is not the scope's time."""
        if self._rate is None:
            return
        loop = asyncio.get_running_loop()
        if self._limiters is None or self._limiters_loop is not loop:
            period = float(self._rate.period_in_seconds or 60)
            self._limiters = (
                _limiter(self._rate.requests_per_period, period),
                _limiter(self._rate.tokens_per_period, period),
            )
            self._limiters_loop = loop
        requests, tokens = self._limiters
        with scope.own_time.waiting():
            if requests is not None:
                await requests.acquire()
            if tokens is not None:
                await tokens.acquire(min(count_tokens(), tokens.max_rate))

    def _wait(self, state: RetryCallState) -> float:
        backoff = wait_random_exponential(self._retry.base_delay_s, self._retry.max_delay_s)(state)
        error = state.outcome.exception() if state.outcome else None
        return max(backoff, retry_after_s(error) if error else 0.0)

    def _key(self, request: Mapping[str, Any], scope: CallLog) -> str:
        text = json.dumps({**self._identity, **request}, sort_keys=True, default=str)
        fingerprint = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        return f"{fingerprint}-{scope.ordinal(fingerprint)}"


def _without_keys(answer: Answer) -> Answer:
    """Return an answer in which the service does not repeat a key: it is kept and shown."""
    if not isinstance(answer.reply, str):
        return answer
    return replace(answer, reply=redact_data(answer.reply))


def _limiter(rate: int | None, period_s: float) -> AsyncLimiter | None:
    return AsyncLimiter(rate, period_s) if rate else None


def read_usage(usage: Any, output: bool) -> tuple[int, int, int]:
    """Return (prompt, output, cached prompt) tokens of a provider's usage figures, 0 if absent."""
    if usage is None:
        return 0, 0, 0
    details: Any = getattr(usage, "prompt_tokens_details", None)
    cached = cast("int | None", getattr(details, "cached_tokens", None)) or 0
    answered = cast("int | None", getattr(usage, "completion_tokens", None)) or 0
    return int(usage.prompt_tokens or 0), int(answered if output else 0), int(cached)
