"""What goes wrong between here and a service, in kinds named as litellm and openai name them.

What :mod:`graphrag.query.calls` says of an error goes by its class's name, its status and its
headers, so that both ways of asking are told apart by nothing else.
"""

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

_FULL_CONTEXT = (
    "context_length_exceeded",
    "exceed context limit",
    "this model's maximum context length is",
    "string too long. expected a string with maximum length",
    "model's maximum context limit",
    "is longer than the model's context length",
    "input tokens exceed the configured limit",
    "`inputs` tokens + `max_new_tokens` must be",
    "exceeds the available context size",
    "exceeds the maximum number of tokens allowed",
)
_SHOWN = 1000


class DirectError(RuntimeError):
    """A request was not answered.

    Attributes
    ----------
    status_code : int or None
        Of HTTP; None without a reply.
    response : object
        Its ``headers``, a mapping.
    """

    def __init__(
        self, message: str, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status_code = status
        self.response = SimpleNamespace(headers=headers or {})


class APIError(DirectError):
    """The service said something else than an answer."""


class BadRequestError(APIError):
    """The request is not valid."""


class ContextWindowExceededError(BadRequestError):
    """The request is longer than the model's context."""


class ContentPolicyViolationError(BadRequestError):
    """The service does not pass the request on to the model."""


class AuthenticationError(APIError):
    """The key is refused."""


class PermissionDeniedError(APIError):
    """The key does not allow this."""


class NotFoundError(APIError):
    """There is no such model or address."""


class RateLimitError(APIError):
    """There are too many requests, or no credit is left."""


class InternalServerError(APIError):
    """The service failed."""


class BadGatewayError(APIError):
    """What stands before the service can't reach it."""


class ServiceUnavailableError(APIError):
    """The service is overloaded or down."""


class APITimeoutError(DirectError):
    """There was no answer in time."""


class Timeout(APITimeoutError):
    """As litellm calls it."""


class APIConnectionError(DirectError):
    """There was no connection, or it was lost."""


class LostConnectionError(APIConnectionError):
    """As above, under a name that the release's retries do not pass over."""

    def __init__(self) -> None:
        super().__init__("Connection error.")


_BY_STATUS: dict[int, type[DirectError]] = {
    400: BadRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    408: Timeout,
    422: BadRequestError,
    429: RateLimitError,
    500: InternalServerError,
    502: BadGatewayError,
    503: ServiceUnavailableError,
    504: Timeout,
}


def error_of_reply(status: int, headers: Mapping[str, str], text: str) -> DirectError:
    """Return the error that a reply of HTTP tells of.

    Parameters
    ----------
    status : int
        Of the reply, >= 400.
    headers : mapping
        Of the reply; any case.
    text : str
        Its body.
    """
    try:
        body: Any = json.loads(text)
    except ValueError:
        body = None
    message, code = _read(body)
    said = message or text.strip()[:_SHOWN] or f"Error code: {status}"
    kind = _kind(status, f"{text} {message}".lower(), code)
    if code and not code.isdigit() and code not in said:
        said = f"{said} ({code})"
    return kind(said, status, headers)


def error_in_reply(body: Mapping[str, Any], headers: Mapping[str, str]) -> DirectError:
    """Return the error that stands in place of an answer; gateways send them with status 200."""
    given: Any = body.get("error")
    code: Any = cast("Mapping[str, Any]", given).get("code") if isinstance(given, Mapping) else None
    status = int(code) if str(code).isdigit() and 400 <= int(code) < 600 else 500
    return error_of_reply(status, headers, json.dumps(body))


def _read(body: Any) -> tuple[str, str]:
    """Return the message and the code of an error's body, "" where there is none."""
    if not isinstance(body, Mapping):
        return "", ""
    given = cast("Mapping[str, Any]", body)
    error: Any = given.get("error") or given
    if not isinstance(error, Mapping):
        return str(error), ""
    told = cast("Mapping[str, Any]", error)
    message = told.get("message") or told.get("detail") or ""
    return str(message), str(told.get("code") or "")


def _kind(status: int, said: str, code: str) -> type[DirectError]:
    if status in {400, 413, 422, 500} and _names_full_context(said):
        return ContextWindowExceededError
    if status == 400 and code in {"content_policy_violation", "content_filter"}:
        return ContentPolicyViolationError
    return _BY_STATUS.get(status, InternalServerError if status >= 500 else APIError)


def _names_full_context(said: str) -> bool:
    if "string_above_max_length" in said:
        return False
    limited = "maximum input length is" in said and "tokens" in said
    compared = "current length is" in said and "while limit is" in said
    return limited or compared or any(phrase in said for phrase in _FULL_CONTEXT)
