"""Exceptions of model calls, and functions that describe and classify any provider's errors.

Also the record of an answered call, its usage figures, and the retry settings of a model.
"""

import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from graphrag.config.models.strict_section import nearest
from graphrag.query.client.checked_numbers import ImpossibleFigureError, read_count
from graphrag.query.client.usage import CallKind, CountedBy, FailedCall, NotAskedError, OutputBound
from graphrag.text.redaction import redact

if TYPE_CHECKING:
    from graphrag_llm.config import ModelConfig

LONGEST_WAIT_S = 300.0
"""The longest wait that a service may ask for, in seconds, unless a run sets its own."""
_OVERLOADED_STATUS = {502, 503, 504, 529}
_NOT_THERE = {"ClientConnectorError", "ConnectionRefusedError", "ConnectError", "gaierror"}
_TO_CHECK = {401: "api_key", 403: "api_key", 404: "model and api_base"}
_TOO_LARGE = 413
_NO_CREDIT = re.compile(
    r"insufficient[_ ](?:quota|balance|credit)|exceeded_current_quota|credit balance is too low",
    re.IGNORECASE,
)
"""Wordings of services for an account that has no money left."""

_LONGEST_READ = 20_000

_RETRIED_STATUS = {408, 409, 425, 429}
_REFUSED_STATUS = {401, 402, 403, 404}
_TRANSPORT_ERRORS = {
    "APIConnectionError",
    "APITimeoutError",
    "ConnectError",
    "ReadError",
    "ReadTimeout",
    "RemoteProtocolError",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """Records one answered request: the JSON-ready reply and its token counts."""

    reply: object
    prompt_tokens: int
    output_tokens: int
    counted_by: CountedBy
    cached_prompt_tokens: int | None = None
    finish_reason: str | None = None
    abstained: bool = False


class CutOffReplyError(RuntimeError):
    """Raised when a structured reply broke off; ``content`` is the text that arrived.

    The reply is paid for and counted. The same request would break off at the same point again. The
    message is one sentence.

    - ``n_tokens``: tokens of the reply, None if not known.
    - ``context_is_full``: whether the reply ended before it reached its bound, so that the model's
      context is full or the service has a bound of its own.
    - ``of_setup``: whether raising the setting that would help makes another run of an evaluation;
      True if that is not known.
    """

    def __init__(self, content: str, n_tokens: int | None, bound: OutputBound | None) -> None:
        reached = n_tokens is not None and bound is not None and n_tokens >= bound.tokens
        self.content, self.n_tokens = content, n_tokens
        self.of_setup = bound is None or not reached or bound.of_setup
        self.context_is_full = n_tokens is not None and not reached
        if n_tokens is None:
            remedy = "" if bound is None else f"; raise {bound.setting}, now {bound.tokens}"
            super().__init__(f"the reply was cut off{remedy}")
        elif bound is not None and reached:
            super().__init__(f"the reply was cut off at {n_tokens} tokens; raise {bound.setting}")
        else:
            why = f": {_CONTEXT_IS_FULL}, or the service has a bound of its own"
            if bound is not None:
                why = f" of {bound.tokens} that it may have{why}"
            super().__init__(f"the reply was cut off after {n_tokens} tokens{why}")


class NoReplyError(RuntimeError):
    """Raised when no reply came within the time limit; the message is one sentence."""


class FilteredReplyError(RuntimeError):
    """Raised when the service's content filter stopped a reply; the message is one sentence.

    The reply is paid for and counted.
    """

    def __init__(self) -> None:
        super().__init__("the service's content filter stopped the reply")


class UnstreamedReplyError(RuntimeError):
    """Raised when a streamed reply is empty: the request is then sent again without streaming."""

    status_code, param = 422, "stream"

    def __init__(self) -> None:
        super().__init__("the service streamed nothing")


class GarbledReplyError(RuntimeError):
    """Raised when a reply is damaged or is not a model's text; the message is one sentence.

    - ``answer``: what the reply cost, None if not known.
    - ``may_pass``: whether sending the request again may help.
    - ``is_page``: whether something other than the service may be at the address.
    """

    def __init__(
        self,
        reason: str,
        answer: Answer | None = None,
        may_pass: bool = True,
        is_page: bool = False,
    ) -> None:
        super().__init__(f"the service's reply is garbled: {reason}")
        self.answer, self.may_pass, self.is_page = answer, may_pass, is_page


_CONTEXT_IS_FULL = "the model's context is too small"
_NO_ROOM = "ContextWindowExceededError"
_SENTENCES = (
    CutOffReplyError,
    FilteredReplyError,
    NoReplyError,
    GarbledReplyError,
    NotAskedError,
    ImpossibleFigureError,
)


def describe_error(error: BaseException) -> str:
    """Return an error's kind and message on one line, and the remedy, without keys and passwords.

    Keys are removed because services quote the key that they refuse. Kind and message have at most
    300 characters, unless the message is one of this project's own sentences. If there was no
    connection or the provider is unknown, the line is the remedy alone.
    """
    text = redact(" ".join(str(error)[:_LONGEST_READ].split()))
    notes: list[str] = getattr(error, "__notes__", [])
    advice = next((note for note in notes if isinstance(note, _Advice)), None)
    if isinstance(error, _SENTENCES):
        return f"{text}{advice or ''}"
    if _NO_ROOM in _kinds(error):
        return f"{_CONTEXT_IS_FULL} for the request ({_detail(text)})"
    if _status(error) == _TOO_LARGE:
        return f"the service takes no request as large ({_detail(text)})"
    if advice is not None and not advice.goes_on:
        return str(advice)
    name = type(error).__name__
    # litellm repeats the kind of its error in the message, of some errors twice.
    text = text.removeprefix(f"litellm.{name}: ").removeprefix(f"{name}: ")
    line = f"{name}: {text}"[:300] if text else name
    return f"{line}{advice or ''}"


def _detail(text: str) -> str:
    return text.rpartition("Exception - ")[2].rpartition("Error: ")[2][:200]


def _status(error: BaseException) -> object:
    return getattr(error, "status_code", None)


def is_refusal(error: BaseException) -> bool:
    """Say whether every further request to this model would fail for the same reason."""
    if _is_wrong_provider(error):
        return True
    return _status(error) in _REFUSED_STATUS or _has_no_credit(error)


def _has_no_credit(error: BaseException) -> bool:
    # litellm's message leaves out the provider's error code, which the error behind it has.
    text = f"{error} {error.__context__}"
    return _status(error) == 402 or _NO_CREDIT.search(text) is not None


def _kinds(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def read_failure(error: BaseException) -> FailedCall:
    """Return the record of a failed call, read from its error."""
    is_full = isinstance(error, CutOffReplyError) and error.context_is_full
    is_full = is_full or _NO_ROOM in _kinds(error) or _status(error) == _TOO_LARGE
    kind = type(error).__name__ if is_bad_request(error) else ""
    return FailedCall(
        cause=describe_error(error),
        context_is_full=is_full,
        refused=is_refusal(error),
        refusal=kind,
    )


def is_bad_request(error: BaseException) -> bool:
    """Say whether a service refuses a request for a reason other than its content or length.

    Such a refusal has a 4xx status, and sending the request again doesn't help.
    """
    status = _status(error)
    is_refused = isinstance(status, int) and 400 <= status < 500 and not is_transient(error)
    return (
        is_refused
        and status != _TOO_LARGE
        and not _kinds(error) & {_NO_ROOM, "ContentPolicyViolationError"}
    )


def name_remedy(failed: FailedCall, budget: str) -> str:
    """Return a failure's cause and, if a context was too small, which budget to lower."""
    return f"{failed.cause}; lower {budget}" if failed.context_is_full else failed.cause


def is_transient(error: BaseException) -> bool:
    """Say whether sending the same request again may succeed."""
    if is_refusal(error):
        return False
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return status in _RETRIED_STATUS or status >= 500
    if isinstance(error, GarbledReplyError):
        return error.may_pass
    is_lost = bool(_kinds(error) & _TRANSPORT_ERRORS)
    return is_lost or isinstance(error, NoReplyError | ConnectionError | TimeoutError)


def read_usage(usage: object) -> tuple[int | None, int | None, int | None]:
    """Return the (prompt, output, cached prompt) tokens in a provider's usage figures.

    ``usage`` is an object or a mapping with OpenAI's or Anthropic's names. A missing or negative
    figure is None; if only the prompt's or the output's is missing, it is computed from the total.
    Thoughts count as output, even if the provider lists them apart. Raises GarbledReplyError as
    :func:`reported_count` does.
    """

    def count(*names: str, figures: object = usage) -> int | None:
        values = (reported_count(name, _figure(figures, name)) for name in names)
        return next((value for value in values if value is not None), None)

    # Clients fill in 0 for an unknown count; no prompt has 0 tokens.
    prompt = count("prompt_tokens", "input_tokens") or None
    output = count("completion_tokens", "output_tokens")
    total = count("total_tokens") or None
    thoughts = count("reasoning_tokens", figures=_figure(usage, "completion_tokens_details"))
    if total is not None and prompt is not None and not output:
        output = max(0, total - prompt)
    elif total is not None and output is not None and prompt is None:
        prompt = max(0, total - output) or None
    elif total is not None and thoughts and total == (prompt or 0) + (output or 0) + thoughts:
        output = (output or 0) + thoughts
    details = _figure(usage, "prompt_tokens_details") or usage
    counts = count("cached_tokens", figures=details), count("prompt_cache_hit_tokens")
    cached = max((n for n in counts if n is not None), default=None)
    # There can't be more cached tokens than tokens.
    n_cached = None if cached is None or prompt is None else min(cached, prompt)
    return prompt, output, n_cached


def _figure(figures: object, name: str) -> object:
    if isinstance(figures, Mapping):
        return cast("Mapping[str, object]", figures).get(name)
    return getattr(figures, name, None)


def reported_count(name: str, value: object) -> int | None:
    """Return a count in a provider's usage figures; None if it is missing or negative.

    Raises GarbledReplyError if it is more than any reply can take, or not a whole number.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
        return None
    try:
        return read_count(name, value)
    except ImpossibleFigureError as error:
        raise GarbledReplyError(f"its usage says that {error}", may_pass=False) from error


@dataclass(frozen=True)
class RetryPolicy:
    """Sets how often a failed request is sent again, and how long to wait before that.

    The n-th wait, in seconds, is drawn evenly from [0, min(max, base * 2**n)] ("full jitter") and
    is never shorter than the Retry-After that the provider sent.
    """

    max_retries: int = 5
    base_delay_s: float = 1.0
    max_delay_s: float = 60.0


def read_retry_policy(config: "ModelConfig") -> RetryPolicy:
    """Read a model's ``retry:`` section; missing values keep their defaults.

    The type ``immediate`` waits only as long as the provider asks.
    """
    retry = config.retry
    if retry is None:
        return RetryPolicy()
    at_once = retry.type == "immediate"
    base_s, most_s = (0.0, 0.0) if at_once else (retry.base_delay, retry.max_delay)
    return RetryPolicy(
        RetryPolicy.max_retries if retry.max_retries is None else retry.max_retries,
        RetryPolicy.base_delay_s if base_s is None else base_s,
        RetryPolicy.max_delay_s if most_s is None else most_s,
    )


def retry_after_s(error: BaseException) -> float:
    """Return the seconds that the provider asked to wait, 0 if it named none.

    The header may contain milliseconds, seconds, or an HTTP date (RFC 9110, section 10.2.3).
    """
    own = getattr(getattr(error, "response", None), "headers", None)
    of_litellm = getattr(error, "litellm_response_headers", None)
    headers = cast("Mapping[str, object]", (own if of_litellm is None else of_litellm) or {})
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        if (wait := _read_wait(headers.get(name), unit)) is not None:
            return wait
    return 0.0


def _read_wait(value: object, unit: float) -> float | None:
    text = str(value or "").strip()
    try:
        seconds = float(text) / unit
    except ValueError:
        try:
            date = parsedate_to_datetime(text)
        except ValueError:
            return None
        if date.tzinfo is None:  # "-0000": the zone is not known
            date = date.replace(tzinfo=UTC)
        seconds = date.timestamp() - time.time()
    return max(0.0, seconds) if math.isfinite(seconds) else None


@dataclass(frozen=True, slots=True)
class Symptom:
    """Records what a failure that may pass shows about the service.

    - ``is_of_service``: whether this one request can't be the cause.
    - ``is_throttled``: whether the service gets too many requests.
    - ``wait_s``: seconds that the service asks to wait.
    """

    is_of_service: bool
    is_throttled: bool
    wait_s: float


def read_symptom(error: BaseException) -> Symptom:
    """Read the symptom of a failure from its error and the errors that caused it."""
    wait_s = retry_after_s(error)
    statuses = {getattr(cause, "status_code", None) for cause in _error_chain(error)}
    too_many = bool(statuses & {429, 529}) or (503 in statuses and wait_s > 0)
    overloaded = bool(statuses & _OVERLOADED_STATUS) or (too_many and wait_s > 0)
    return Symptom(_is_not_there(error) or overloaded, too_many, wait_s)


def _error_chain(error: BaseException) -> list[BaseException]:
    """Return an error and the errors that caused it, the latest first."""
    errors: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in errors:
        errors.append(current)
        current = current.__cause__ or current.__context__
    return errors


def _is_not_there(error: BaseException) -> bool:
    """Say whether no connection to the service could be made."""
    names = {type(cause).__name__ for cause in _error_chain(error)}
    return bool(names & _NOT_THERE) or "Cannot connect to host" in str(error)


class _Advice(str):
    """A note on an error that replaces its message or, with ``goes_on``, follows it."""

    goes_on = False


def advise(error: BaseException, kind: CallKind, config: "ModelConfig") -> None:
    """Add a note to an error that names the service's address and the setting to check.

    The clients' errors name neither, and :func:`describe_error` gets only the error.
    """
    where = f"under {kind}_models in settings.yaml"
    status = _status(error)
    to_check = _TO_CHECK.get(cast("int", status))
    if _has_no_credit(error):
        to_check = "what its account has left to pay with, and api_key"
    elif isinstance(error, GarbledReplyError) and error.is_page:
        to_check = "api_base"
    elif to_check is None and is_bad_request(error):
        to_check = "call_args"
    lost = any(sign in str(error) for sign in ("Connection error.", "Cannot connect to host"))
    lost = lost and not _kinds(error) & {"APITimeoutError", "Timeout"}
    if _is_wrong_provider(error):
        add_advice(error, _describe_provider(kind, config.model_provider, where))
    elif lost:
        remedy = f"start the service, or check api_base {where}"
        if config.api_base is None:
            remedy = f"check the network, or set api_base {where}"
        add_advice(error, describe_loss(error, name_service(config), remedy))
    elif to_check is not None or (isinstance(status, int) and status >= 500):
        remedy = "" if to_check is None else f": check {to_check} {where}"
        add_advice(error, f"; {name_service(config)} was asked{remedy}", goes_on=True)


def describe_loss(error: BaseException, service: str, remedy: str) -> str:
    """Return a sentence: no connection to a service, and the remedy; or the connection was lost."""
    if _is_not_there(error):
        return f"no connection to {getattr(error, 'via', '')}{service}; {remedy}"
    return f"the connection to {service} was lost before the reply was complete; ask again"


def add_advice(error: BaseException, advice: str, goes_on: bool = False) -> None:
    """Add a note to an error that replaces its message or, with ``goes_on``, follows it."""
    note = _Advice(advice)
    note.goes_on = goes_on
    error.add_note(note)


def _is_wrong_provider(error: BaseException) -> bool:
    """Say whether litellm does not know the provider; then no request was sent."""
    return "LiteLLMUnknownProvider" in _kinds(error) or "LLM Provider NOT provided" in str(error)


def _describe_provider(kind: str, provider: str, where: str) -> str:
    import litellm

    providers = sorted({str(getattr(entry, "value", entry)) for entry in litellm.provider_list})
    if provider in providers:
        return f"{provider} offers no {kind}s: correct model_provider {where}"
    hint = nearest(provider, providers)
    correct = f"{' C' if hint else '; c'}orrect model_provider {where}"
    return f"there is no provider {provider!r}{hint}{correct}"


def asked_tier(config: "ModelConfig") -> str | None:
    """Return the service tier that a model's settings ask for, None for the provider's default."""
    return tier if isinstance(tier := config.call_args.get("service_tier"), str) else None


def name_service(config: "ModelConfig") -> str:
    """Return a model and the address of its service, without passwords and keys."""
    model = f"{config.model_provider}/{config.model}"
    if config.api_base is None:
        return model
    parts = urlsplit(config.api_base)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path} ({model})" if host else f"{model} (api_base)"
