"""Sends one model's calls: looks in the journal, waits for a slot, sends, retries, records.

A slot lets a request be in flight; each model has a queue of requests for slots (see
``rate_limit``). A scope is the log of a group of calls (``CallLog``).
"""

import asyncio
import hashlib
import json
import logging
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from graphrag.query.client.active_time import OwnTime
from graphrag.query.client.call_errors import (
    LONGEST_WAIT_S,
    Answer,
    GarbledReplyError,
    NoReplyError,
    RetryPolicy,
    advise,
    asked_tier,
    describe_error,
    is_transient,
    name_service,
    read_failure,
    read_symptom,
    retry_after_s,
)
from graphrag.query.client.rate_limit import CallLimit, ModelQueue, ServiceDownError, Slot, Spending
from graphrag.query.client.refused_parameters import adapt, was_sent
from graphrag.query.client.thoughts import without_thoughts
from graphrag.query.client.usage import (
    CallAttempt,
    CallKind,
    CallLog,
    CallTime,
    NotAskedError,
    RecordedCall,
    current_phase,
    current_scope,
)
from graphrag.text.redaction import know_settings, redact_data

if TYPE_CHECKING:
    from graphrag_llm.config import ModelConfig

_log = logging.getLogger(__name__)
_KEY = json.JSONEncoder(sort_keys=True, default=str)
_NO_ANSWER = Answer(reply=None, prompt_tokens=0, output_tokens=0, counted_by="nobody")
_UNBOUNDED_S = CallTime(600.0)
"""Time limit of a request outside of a run: as long as the clients wait for a silent service."""


@dataclass(slots=True)
class _Call:
    """One call under way: how it is sent, where it is counted, and the attempts so far."""

    request: Mapping[str, object]
    send: Callable[[frozenset[str]], Awaitable[Answer]]
    count_tokens: Callable[[], int]
    received: Callable[[], Answer | None]
    scope: CallLog
    left_out: frozenset[str] = frozenset()
    key: str = ""
    mark: object = field(default_factory=object)
    attempts: list[CallAttempt] = field(default_factory=list[CallAttempt])


class ModelCaller:
    """Sends the calls of one model.

    It keeps the model's ``rate_limit:`` section for all calls of a run together, without blocking
    the event loop. ``settings`` are the parameters of every request; None means ``call_args``.
    """

    def __init__(
        self,
        kind: CallKind,
        config: "ModelConfig",
        retry: RetryPolicy,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        know_settings(config.model_dump())
        self.kind: CallKind = kind
        self.model = f"{config.model_provider}/{config.model}"
        self._config, self._tier = config, asked_tier(config)
        self._retry = retry
        self._settings = config.call_args if settings is None else settings
        self._identity = {"kind": kind, "model": self.model, "call_args": config.call_args}
        self._service = name_service(config)
        self._own_limit = CallLimit()
        self._queue_key = (kind, self.model, config.api_base)

    async def call(
        self,
        request: Mapping[str, object],
        send: Callable[[frozenset[str]], Awaitable[Answer]],
        count_tokens: Callable[[], int],
        received: Callable[[], Answer | None] = lambda: None,
    ) -> RecordedCall:
        """Return the reply to a request, from the journal or by sending it.

        - ``request``: everything that gives the request its meaning, JSON-ready.
        - ``send``: sends it once, without the parameters that it is given, because the model
          refuses them.
        - ``count_tokens``: counts the prompt's tokens; only called under a token rate or a cost
          bound.
        - ``received``: returns the part of a streamed reply that has arrived, None if none has. A
          reply that breaks off after its beginning was passed on is not asked for again.

        Raises NotAskedError if the service is down, asks for a longer wait than allowed, or too
        little is left of the allowed cost; else the error of the last attempt.
        """
        scope = current_scope() or CallLog()
        with scope.own_time.call():
            return await self._call(
                _Call(
                    request=request,
                    send=send,
                    count_tokens=count_tokens,
                    received=received,
                    scope=scope,
                )
            )

    async def _call(self, call: _Call) -> RecordedCall:
        scope, journal = call.scope, call.scope.journal
        if journal is not None:
            text = _KEY.encode({**self._identity, **call.request})
            fingerprint = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
            call.key = f"{fingerprint}-{scope.ordinal(fingerprint)}"
            recorded = journal.replay(call.key)
            if recorded is not None:
                scope.attempts.extend(recorded.attempts)
                if scope.exchanges is not None:
                    for attempt in recorded.attempts:
                        reply = _spoken(recorded.reply) if attempt.error is None else None
                        scope.exchanges.add(attempt, call.request, reply)
                scope.replayed += len(recorded.attempts)
                scope.counted.add(call.key)
                return recorded
        try:
            reply = await self._with_retries(call)
        except Exception as error:
            if journal is not None:
                journal.abandon(call.key)
            self.note_failure(error, scope)
            raise
        finally:
            scope.attempts.extend(call.attempts)
        recorded = RecordedCall(reply, tuple(call.attempts))
        if journal is not None:
            # Nothing is awaited between giving the slot back and this line. So the next call in
            # that slot is noted after this reply, and no more can be lost than there are slots.
            scope.counted.add(call.key)
            journal.finish(call.key, recorded)
        return recorded

    def note_failure(self, error: Exception, scope: CallLog) -> None:
        """Record in a scope that one of its calls failed for good."""
        scope.failures.append(read_failure(error))
        if isinstance(error, NotAskedError):
            scope.not_asked = error

    async def _with_retries(self, call: _Call) -> object:
        n_failed = 0
        while True:
            try:
                async with self.admitted(call.mark, call.count_tokens, call.scope) as slot:
                    return await self._send(call, slot)
            except Exception as error:
                if call.received() is not None:
                    raise
                if self._concede(error, call):
                    continue
                n_failed = await self.wait_to_retry(error, n_failed, call.scope)

    def _concede(self, error: Exception, call: _Call) -> bool:
        """Leave out of a call what its model refuses; return whether to send it again."""
        refused = self.queue(call.scope).refused
        left_out = refused.concede(error, call.request, self._settings, call.left_out)
        if left_out is None:
            return False
        call.left_out = left_out
        return True

    async def wait_to_retry(self, error: Exception, n_failed: int, scope: CallLog) -> int:
        """Wait before a request is sent again; return how many failures count so far.

        Failures of a service that is down and waited for don't count. The queue does the waiting
        for the service, and for the time that it asks for. Raises the error itself if sending again
        is no use, ServiceDownError if the service is not waited for.
        """
        if not is_transient(error):
            raise error
        limit, queue = self._find_queue(scope)
        is_run = limit.patience_s is not None
        asked_s, longest_s = retry_after_s(error), limit.patience_s or LONGEST_WAIT_S
        if asked_s > longest_s:
            reason = f"{queue.name} asks to wait {asked_s:,.0f} s, longer than "
            reason += f"the {longest_s:,.0f} s of patience_s" if is_run else f"{longest_s:,.0f} s"
            raise limit.give_up(queue, reason) if is_run else ServiceDownError(reason) from error
        scope.latest = queue.latest = describe_error(error)
        if is_run and queue.outage.is_waited_for:
            return n_failed
        if n_failed >= self._retry.max_retries:
            if is_run and queue.outage.is_down:
                raise limit.give_up(queue, queue.latest) from error
            raise error
        most_s = min(self._retry.max_delay_s, self._retry.base_delay_s * 2.0**n_failed)
        await asyncio.sleep(random.uniform(0.0, most_s))
        return n_failed + 1

    def queue(self, scope: CallLog) -> ModelQueue:
        """Return the model's queue in which a scope's calls are sent."""
        return self._find_queue(scope)[1]

    def _find_queue(self, scope: CallLog) -> tuple[CallLimit, ModelQueue]:
        limit = scope.limit if isinstance(scope.limit, CallLimit) else self._own_limit
        return limit, limit.queue(self._queue_key, self._service, self._config.rate_limit)

    @asynccontextmanager
    async def admitted(
        self, request: Hashable, count_tokens: Callable[[], int], scope: CallLog
    ) -> AsyncGenerator[Slot]:
        """Occupy a slot of the scope's limit inside the ``async with`` block.

        The scope's clock stops while the call waits for its slot, and during a request that tests
        whether a service is back; a search that waited for that has no known latency. ``request``
        is the same for every attempt of one call.
        """
        limit, queue = self._find_queue(scope)
        is_free = queue.tokens_rate is None and limit.spending.most_usd is None
        tokens = 0 if is_free else count_tokens()
        usd = limit.spending.estimate_usd(self.kind, self.model, tokens, self._tier)
        outage, own_time = queue.outage, scope.own_time
        with ExitStack() as stack:
            with own_time.waiting():
                slot = await limit.acquire(queue, request, tokens)
                stack.callback(limit.release, slot)
                await limit.spending.wait_for(usd)
                stack.callback(limit.spending.give_back, usd)
            slot.usd = usd
            if outage.is_waited_for:
                stack.enter_context(own_time.waiting())
            try:
                yield slot
            except Exception as error:
                if is_transient(error):
                    queue.failed(slot, read_symptom(error))
                else:  # it answered, and would answer the same again
                    outage.answered()
                raise
            finally:
                scope.was_held_up = scope.was_held_up or outage.is_waited_for

    def afford(self, count_tokens: Callable[[], int], scope: CallLog) -> Spending:
        """Return the run's spending, for a call that is sent without waiting for a slot.

        Raises AllowanceSpentError if too little is left for the call.
        """
        spending = self._find_queue(scope)[0].spending
        if spending.left_usd is not None:
            usd = spending.estimate_usd(self.kind, self.model, count_tokens(), self._tier)
            if usd > spending.left_usd:
                raise spending.refuse(usd)
        return spending

    async def _send(self, call: _Call, slot: Slot) -> object:
        attempts, refused = call.attempts, slot.queue.refused
        journal, spending = call.scope.journal, self._find_queue(call.scope)[0].spending
        call.left_out |= refused.left_out
        if journal is not None:
            journal.start(call.key)
        started = time.perf_counter()
        try:
            answer = await self._send_in_time(call)
        except BaseException as error:
            if not was_sent(error):
                raise
            advise(error, self.kind, self._config)
            paid = error.answer if isinstance(error, GarbledReplyError) else None
            self._record_attempt(call, started, paid or call.received(), describe_error(error))
            _log.debug("%s failed: %s", self.model, attempts[-1].error)
            spending.count(attempts[-1])
            if isinstance(error, NoReplyError | asyncio.CancelledError):
                spending.unanswered_usd += slot.usd
            raise
        self._record_attempt(call, started, answer)
        refused.confirm(call.request, call.left_out)
        spending.count(attempts[-1])
        slot.queue.answered(slot, answer.prompt_tokens + answer.output_tokens)
        return answer.reply

    async def _send_in_time(self, call: _Call) -> Answer:
        allowed = self.time(call.scope)
        timer: asyncio.Timeout | None = None
        try:
            async with OwnTime().deadline(allowed.seconds) as timer:
                answer = await call.send(call.left_out)
        except TimeoutError as error:
            if timer is not None and timer.expired():
                raise NoReplyError(allowed.exceeded()) from error
            raise
        if isinstance(answer.reply, str):  # without keys, because it is kept and shown
            return replace(answer, reply=redact_data(answer.reply))
        return answer

    def time(self, scope: CallLog) -> CallTime:
        """Return the time limit of one request: the model's own ``timeout``, else the scope's."""
        own: object = self._config.call_args.get("timeout")
        if isinstance(own, int | float) and own > 0:
            return CallTime(float(own), f"call_args.timeout of {self.model} in settings.yaml")
        return scope.time or _UNBOUNDED_S

    def _record_attempt(
        self, call: _Call, started: float, answer: Answer | None, error: str | None = None
    ) -> None:
        """Record an attempt that began at ``started`` (perf_counter seconds) and ends now."""
        result = answer or _NO_ANSWER
        attempt = CallAttempt(
            kind=self.kind,
            model=self.model,
            phase="embedding" if self.kind == "embedding" else current_phase(),
            prompt_tokens=result.prompt_tokens,
            output_tokens=result.output_tokens,
            counted_by=result.counted_by,
            latency_s=time.perf_counter() - started,
            cached_prompt_tokens=result.cached_prompt_tokens,
            error=error,
            finish_reason=result.finish_reason,
            abstained=result.abstained,
            service_tier=self._tier,
            left_out=tuple(sorted(call.left_out)),
        )
        call.attempts.append(attempt)
        request, reply = adapt(call.request, call.left_out), _spoken(result.reply)
        if call.scope.exchanges is not None:
            call.scope.exchanges.add(attempt, request, reply)
        if call.scope.watch is not None:
            call.scope.watch(attempt, request, reply)


def _spoken(reply: object) -> object:
    return without_thoughts(reply) if isinstance(reply, str) else reply
