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
    """A request was not answered; ``status_code`` is None without a reply."""

    def __init__(
        self, message: str, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status_code = status
        self.response = SimpleNamespace(headers=headers or {})


class APIConnectionError(DirectError):
    """There was no connection, or it was lost."""

    def __init__(self) -> None:
        super().__init__("Connection error.")


class APITimeoutError(DirectError):
    """There was no answer in time."""


def _kind(name: str, base: type[DirectError] = DirectError) -> type[DirectError]:
    return type(name, (base,), {"__module__": __name__})


TIMEOUT = _kind("Timeout", APITimeoutError)
_BAD_REQUEST = _kind("BadRequestError")
_NO_ROOM = _kind("ContextWindowExceededError", _BAD_REQUEST)
_FILTERED = _kind("ContentPolicyViolationError", _BAD_REQUEST)
_FAILED, _OTHER = _kind("InternalServerError"), _kind("APIError")
_BY_STATUS = {
    400: _BAD_REQUEST,
    401: _kind("AuthenticationError"),
    403: _kind("PermissionDeniedError"),
    404: _kind("NotFoundError"),
    408: TIMEOUT,
    422: _BAD_REQUEST,
    429: _kind("RateLimitError"),
    502: _kind("BadGatewayError"),
    503: _kind("ServiceUnavailableError"),
    504: TIMEOUT,
}


def error_of_reply(status: int, headers: Mapping[str, str], text: str) -> DirectError:
    """Return the error that a reply of HTTP with status >= 400 and this body tells of."""
    try:
        body: Any = json.loads(text)
    except ValueError:
        body = None
    message, code = _read(body)
    told = message or text.strip()[:_SHOWN] or f"Error code: {status}"
    kind = _kind_of(status, f"{text} {message}".lower(), code)
    if code and not code.isdigit() and code not in told:
        told = f"{told} ({code})"
    return kind(told, status, headers)


def error_in_reply(body: Mapping[str, Any], headers: Mapping[str, str]) -> DirectError:
    """Return the error that stands in place of an answer; gateways send them with status 200."""
    error: Any = body.get("error")
    code: Any = cast("Mapping[str, Any]", error).get("code") if isinstance(error, Mapping) else None
    status = int(code) if str(code).isdigit() and 400 <= int(code) < 600 else 500
    return error_of_reply(status, headers, json.dumps(body))


def _read(body: Any) -> tuple[str, str]:
    """Return the message and the code of an error's body, "" where there is none."""
    if not isinstance(body, Mapping):
        return "", ""
    whole = cast("Mapping[str, Any]", body)
    error: Any = whole.get("error") or whole
    if not isinstance(error, Mapping):
        return str(error), ""
    values = cast("Mapping[str, Any]", error)
    message = values.get("message") or values.get("detail") or ""
    return str(message), str(values.get("code") or "")


def _kind_of(status: int, text: str, code: str) -> type[DirectError]:
    if status in {400, 413, 422, 500} and _names_full_context(text):
        return _NO_ROOM
    if status == 400 and code in {"content_policy_violation", "content_filter"}:
        return _FILTERED
    return _BY_STATUS.get(status, _FAILED if status >= 500 else _OTHER)


def _names_full_context(text: str) -> bool:
    if "string_above_max_length" in text:
        return False
    limited = "maximum input length is" in text and "tokens" in text
    compared = "current length is" in text and "while limit is" in text
    return limited or compared or any(phrase in text for phrase in _FULL_CONTEXT)
