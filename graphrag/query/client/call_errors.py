"""What becomes of one model call: an answer, or an error, what it says and whether it may pass."""

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
"""The longest wait that a service may ask for where no run says otherwise."""
_OVERLOADED_STATUS = {502, 503, 504, 529}
_NOT_THERE = {"ClientConnectorError", "ConnectionRefusedError", "ConnectError", "gaierror"}
_TO_CHECK = {401: "api_key", 403: "api_key", 404: "model and api_base"}
_TOO_LARGE = 413
_NO_CREDIT = re.compile(
    r"insufficient[_ ](?:quota|balance|credit)|exceeded_current_quota|credit balance is too low",
    re.IGNORECASE,
)
"""What services say of an account that has nothing left to pay with."""

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
    """One answered request: the JSON-ready reply and its tokens."""

    reply: object
    prompt_tokens: int
    output_tokens: int
    counted_by: CountedBy
    cached_prompt_tokens: int | None = None
    finish_reason: str | None = None
    abstained: bool = False


class CutOffReplyError(RuntimeError):
    """A structured reply, paid for and counted, broke off; ``content`` is as far as it came.

    Asking for it again would end at the same place. The message is one sentence. ``n_tokens``: the
    reply's, None where they are not known; ``context_is_full``: it was not its bound that it
    reached; ``of_setup``: what helps makes another run of an evaluation, as far as is known.
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
    """A request was not answered in its time; the message is one sentence."""


class FilteredReplyError(RuntimeError):
    """The service's own filter stopped a reply, paid for and counted; the message is a sentence."""

    def __init__(self) -> None:
        super().__init__("the service's content filter stopped the reply")


class UnstreamedReplyError(RuntimeError):
    """Nothing came of a streamed reply: the service streams none, and is asked for it whole."""

    status_code, param = 422, "stream"

    def __init__(self) -> None:
        super().__init__("the service streamed nothing")


class GarbledReplyError(RuntimeError):
    """What came is not what a model says; the message is one sentence.

    ``answer`` says what it cost, where that is known; ``may_pass`` whether the next may be another;
    ``is_page`` whether something else may be at the address.
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
    """Return an error's kind and message on one line of at most 300 characters, and the remedy.

    Keys and passwords in it are left out, whoever wrote them: services say which key they refuse.
    An error that says of a service no more than that there is none is named by the remedy alone.
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
    # litellm says its own kind in the message too, of some errors twice.
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
    # litellm's message leaves the provider's error code out; the error it was made from has it.
    said = f"{error} {error.__context__}"
    return _status(error) == 402 or _NO_CREDIT.search(said) is not None


def _kinds(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def read_failure(error: BaseException) -> FailedCall:
    """Return what an error says of the call that failed with it."""
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
    """Say whether a service refuses a request as it is; not for its content, or how long it is."""
    status = _status(error)
    is_refused = isinstance(status, int) and 400 <= status < 500 and not is_transient(error)
    return (
        is_refused
        and status != _TOO_LARGE
        and not _kinds(error) & {_NO_ROOM, "ContentPolicyViolationError"}
    )


def name_remedy(failed: FailedCall, budget: str) -> str:
    """Return the cause of a failure and, where a context was too small, which budget to lower."""
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
    """Return (prompt, output, cached prompt) tokens of a provider's usage figures.

    ``usage``: an object or a mapping with the names of OpenAI or of Anthropic. A figure that is not
    told, or negative, is None; a total tells the one that is missing beside another. Thoughts are
    output, also where the figures hold them apart. GarbledReplyError as of :func:`told_count`.
    """

    def count(*names: str, figures: object = usage) -> int | None:
        values = (told_count(name, _figure(figures, name)) for name in names)
        return next((value for value in values if value is not None), None)

    # Clients fill in 0 for what is not told; no prompt has 0 tokens.
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
    told = count("cached_tokens", figures=details), count("prompt_cache_hit_tokens")
    cached = max((n for n in told if n is not None), default=None)
    # More cached tokens than there are can't be meant.
    n_cached = None if cached is None or prompt is None else min(cached, prompt)
    return prompt, output, n_cached


def _figure(figures: object, name: str) -> object:
    if isinstance(figures, Mapping):
        return cast("Mapping[str, object]", figures).get(name)
    return getattr(figures, name, None)


def told_count(name: str, value: object) -> int | None:
    """Return a count of a provider's usage figures; None if it is not told, or below 0.

    GarbledReplyError if it is more than any reply can take.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
        return None
    try:
        return read_count(name, value)
    except ImpossibleFigureError as error:
        raise GarbledReplyError(f"its usage says that {error}", may_pass=False) from error


@dataclass(frozen=True)
class RetryPolicy:
    """How often, after the first attempt, and how patiently a request is sent again.

    The n-th wait, in seconds, is drawn evenly from [0, min(max, base * 2**n)] ("full jitter") and
    is never shorter than the Retry-After which the provider sent.
    """

    max_retries: int = 5
    base_delay_s: float = 1.0
    max_delay_s: float = 60.0


def read_retry_policy(config: "ModelConfig") -> RetryPolicy:
    """Read a model's ``retry:`` section; what it leaves out keeps its default.

    The type ``immediate`` waits only as long as the provider asks for.
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
    """Return the wait in seconds which the provider asked for, 0 when it named none.

    It may be a number of milliseconds or seconds, or a date of HTTP (RFC 9110, section 10.2.3).
    """
    own = getattr(getattr(error, "response", None), "headers", None)
    of_litellm = getattr(error, "litellm_response_headers", None)
    headers = cast("Mapping[str, object]", (own if of_litellm is None else of_litellm) or {})
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        if (wait := _read_wait(headers.get(name), unit)) is not None:
            return wait
    return 0.0


def _read_wait(header: object, unit: float) -> float | None:
    text = str(header or "").strip()
    try:
        seconds = float(text) / unit
    except ValueError:
        try:
            date = parsedate_to_datetime(text)
        except ValueError:
            return None
        if date.tzinfo is None:  # "-0000", which says that the zone is not known
            date = date.replace(tzinfo=UTC)
        seconds = date.timestamp() - time.time()
    return max(0.0, seconds) if math.isfinite(seconds) else None


@dataclass(frozen=True, slots=True)
class Symptom:
    """What a failure that may pass says of the service.

    Whether it can't be this one request's, whether there are too many of them, and the seconds
    that the service asks to wait.
    """

    is_of_service: bool
    is_throttled: bool
    wait_s: float


def read_symptom(error: BaseException) -> Symptom:
    """Read what a failure says of the service, and those that it was made from say."""
    wait_s = retry_after_s(error)
    statuses = {getattr(cause, "status_code", None) for cause in _error_chain(error)}
    too_many = bool(statuses & {429, 529}) or (503 in statuses and wait_s > 0)
    overloaded = bool(statuses & _OVERLOADED_STATUS) or (too_many and wait_s > 0)
    return Symptom(_is_not_there(error) or overloaded, too_many, wait_s)


def _error_chain(error: BaseException) -> list[BaseException]:
    """Return an error and those that it was made from."""
    errors: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in errors:
        errors.append(current)
        current = current.__cause__ or current.__context__
    return errors


def _is_not_there(error: BaseException) -> bool:
    """Say whether no connection to the service came about."""
    names = {type(cause).__name__ for cause in _error_chain(error)}
    return bool(names & _NOT_THERE) or "Cannot connect to host" in str(error)


class _Advice(str):
    """A note on an error that stands in place of its message, or ``goes_on`` where that ends."""

    goes_on = False


def advise(error: BaseException, kind: CallKind, config: "ModelConfig") -> None:
    """Put on an error what its sentence is to say of the service: its address, what to look at.

    The errors of the clients name neither, and who describes an error knows only the error.
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
    """Say that there was no connection to a service, with what mends that, or that it was lost."""
    if _is_not_there(error):
        return f"no connection to {getattr(error, 'via', '')}{service}; {remedy}"
    return f"the connection to {service} was lost before the reply was whole; ask again"


def add_advice(error: BaseException, advice: str, goes_on: bool = False) -> None:
    """Put on an error what is said in place of its message, or goes on where that ends."""
    note = _Advice(advice)
    note.goes_on = goes_on
    error.add_note(note)


def _is_wrong_provider(error: BaseException) -> bool:
    """Say whether litellm can't tell where to send a request; none was sent then."""
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
    """Return the service tier that a model's settings ask for, None for the provider's own."""
    return tier if isinstance(tier := config.call_args.get("service_tier"), str) else None


def name_service(config: "ModelConfig") -> str:
    """Return the model and the address of its service, without a password or a key in it."""
    model = f"{config.model_provider}/{config.model}"
    if config.api_base is None:
        return model
    parts = urlsplit(config.api_base)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path} ({model})" if host else f"{model} (api_base)"
