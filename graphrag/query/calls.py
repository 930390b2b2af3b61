"""What becomes of one model call: an answer, or an error and what is to be said of it."""

from dataclasses import dataclass
from typing import Any, cast

from graphrag.query.retrying import RetryPolicy as RetryPolicy
from graphrag.query.retrying import read_retry_policy as read_retry_policy
from graphrag.query.retrying import retry_after_s as retry_after_s
from graphrag.query.service_advice import is_wrong_provider, read_advice
from graphrag.query.spending import NotAskedError
from graphrag.query.usage import CountedBy
from graphrag.redaction import redact

_LONGEST_READ = 20_000

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
class Answer:
    """One answered request: the JSON-ready reply and its tokens."""

    reply: Any
    prompt_tokens: int
    output_tokens: int
    counted_by: CountedBy
    cached_prompt_tokens: int | None = None
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


class NoReplyError(RuntimeError):
    """A request was not answered in its time; the message is one sentence."""


class GarbledReplyError(RuntimeError):
    """What came is not what a model says; the message is one sentence.

    Attributes
    ----------
    answer : Answer or None
        What it cost; None when that is not known.
    may_pass : bool
        Whether the next reply may be another.
    """

    def __init__(self, reason: str, answer: Answer | None = None, may_pass: bool = True) -> None:
        super().__init__(f"the service's reply is garbled: {reason}")
        self.answer = answer
        self.may_pass = may_pass


CONTEXT_IS_FULL = "the model's context is too small"
"""Part of every sentence about a request or reply that the context had no room for."""


_SENTENCES = (CutOffReplyError, NoReplyError, GarbledReplyError, NotAskedError)


def describe_error(error: BaseException) -> str:
    """Return an error's kind and message on one line of at most 300 characters, and the remedy.

    Keys and passwords in it are left out, whoever wrote them: services say which key they refuse.
    An error that says of a service no more than that there is none is named by the remedy alone.
    """
    text = redact(" ".join(str(error)[:_LONGEST_READ].split()))
    if isinstance(error, _SENTENCES):
        return text
    if has_no_room(error):
        said = text.rpartition("Exception - ")[2].rpartition("Error: ")[2]
        return f"{CONTEXT_IS_FULL} for the request ({said[:200]})"
    advice = read_advice(error)
    if advice is not None and not advice.startswith(";"):
        return advice
    name = type(error).__name__
    # litellm says its own kind in the message too, of some errors twice.
    text = text.removeprefix(f"litellm.{name}: ").removeprefix(f"{name}: ")
    named = f"{name}: {text}"[:300] if text else name
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
    if isinstance(error, GarbledReplyError):
        return error.may_pass
    if isinstance(error, NoReplyError):
        return True
    named = any(kind.__name__ in _TRANSPORT_ERRORS for kind in type(error).__mro__)
    return isinstance(status, int) or named or isinstance(error, ConnectionError | TimeoutError)


def read_usage(usage: Any, output: bool) -> tuple[int, int, int | None]:
    """Return (prompt, output, cached prompt) tokens of a provider's usage figures.

    Those that are absent, or negative, are 0, but cached ones None: most services do not say.
    """
    if usage is None:
        return 0, 0, None
    details: Any = getattr(usage, "prompt_tokens_details", None)
    cached = cast("int | None", getattr(details, "cached_tokens", None))
    prompt = max(0, int(usage.prompt_tokens or 0))
    answered = cast("int | None", getattr(usage, "completion_tokens", None)) or 0
    # More cached tokens than there are, or less than none, can't be meant.
    known = None if cached is None or cached < 0 else min(int(cached), prompt)
    return prompt, max(0, int(answered if output else 0)), known
