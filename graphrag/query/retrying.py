"""When and how often a request is sent again, and what a failure says of the service."""

import math
import time
from collections.abc import Generator
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from graphrag_llm.config import ModelConfig

T = TypeVar("T")

LONGEST_WAIT_S = 300.0
"""The longest wait that a service may ask for where no run says otherwise."""
_OVERLOADED_STATUS = {502, 503, 504, 529}
_NOT_THERE = {"ClientConnectorError", "ConnectionRefusedError", "ConnectError", "gaierror"}


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
    from graphrag_llm.config.types import RetryType

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


def retry_after_s(error: BaseException) -> float:
    """Return the wait in seconds which the provider asked for, 0 when it named none.

    It may be a number of milliseconds or seconds, or a date of HTTP (RFC 9110, section 10.2.3).
    """
    headers: Any = getattr(error, "litellm_response_headers", None)
    if headers is None:
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        wait = _read_wait(headers.get(name), unit)
        if wait is not None:
            return wait
    return 0.0


def _read_wait(given: object, unit: float) -> float | None:
    text = str(given or "").strip()
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

    Attributes
    ----------
    is_of_service : bool
        Whether it can't be this one request's failure.
    is_throttled : bool
        Whether there are too many requests.
    wait_s : float
        Seconds that the service asks to wait, 0 when it names none.
    """

    is_of_service: bool
    is_throttled: bool
    wait_s: float


def read_symptom(error: BaseException) -> Symptom:
    """Read what a failure says of the service."""
    wait_s, statuses = retry_after_s(error), set[object]()
    names = set[str]()
    for each in _chain(error):
        statuses.add(getattr(each, "status_code", None))
        names.add(type(each).__name__)
    too_many = bool(statuses & {429, 529}) or (503 in statuses and wait_s > 0)
    gone = bool(names & _NOT_THERE) or "Cannot connect to host" in str(error)
    overloaded = bool(statuses & _OVERLOADED_STATUS) or (too_many and wait_s > 0)
    return Symptom(gone or overloaded, too_many, wait_s)


def _chain(error: BaseException) -> Generator[BaseException]:
    """Give an error and those that it was made from; clients wrap what they got."""
    seen = set[int]()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        yield each
        each = each.__cause__ or each.__context__
