"""Sends HTTP requests to a service; each event loop keeps a session and its connections."""

import asyncio
import atexit
import io
import json
import re
import threading
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import cache
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import aiohttp
from yarl import URL

from graphrag.query.client.call_errors import GarbledReplyError
from graphrag.query.client.direct.settings import DirectSettings, proxy_of

Json = Mapping[str, object]
T = TypeVar("T")
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
_WEB_PAGE, _TAG = "a web page", re.compile(r"<[^<>]*>")


class DirectError(RuntimeError):
    """Raised when a request was not answered; ``status_code`` is None without a reply.

    ``param`` is the parameter that the service names as the cause, or "". ``page`` is the text of a
    web page that came instead of a message, or "".
    """

    def __init__(
        self,
        message: str,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        param: str = "",
        page: str = "",
    ) -> None:
        super().__init__(message)
        self.status_code, self.param, self.page = status, param, page
        self.response = SimpleNamespace(headers=headers or {})


class APIConnectionError(DirectError):
    """Raised when there was no connection, or it was lost.

    ``via`` names another host that failed on the way to the service, such as a proxy or the target
    of a redirect; "" if there is none.
    """

    def __init__(self, via: str = "") -> None:
        super().__init__("Connection error.")
        self.via = via


def _kind(name: str, base: type[DirectError] = DirectError) -> type[DirectError]:
    return type(name, (base,), {"__module__": __name__})


TIMEOUT = _kind("Timeout")
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
    """Return the error for an HTTP reply with a status >= 400 and this body."""
    message, code, param = _read_error(text)
    kind = _kind_of(status, f"{text} {message}".lower(), code)
    message = message or text.strip()[:_SHOWN] or f"Error code: {status}"
    if code and not code.isdigit() and code not in message:
        message = f"{message} ({code})"
    page = _TAG.sub(" ", text) if message == _WEB_PAGE else ""
    return kind(message, status, headers, param, page)


def _read_error(text: str) -> tuple[str, str, str]:
    """Return the message, code and parameter in the body of an error; each may be ""."""
    try:
        body = json.loads(text)
    except ValueError:
        return _WEB_PAGE if text.lstrip()[:1] == "<" else "", "", ""
    if isinstance(body, list) and body:  # as Gemini sends it
        body = cast("list[object]", body)[0]
    if not isinstance(body, dict):
        return "", "", ""
    reply = cast("Json", body)
    error = reply.get("error") or reply
    if not isinstance(error, dict):
        return str(error), "", ""
    values = cast("Json", error)
    message = str(values.get("message") or values.get("detail") or "")
    return message, str(values.get("code") or ""), str(values.get("param") or "")


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


_MOST_BYTES = 32_000_000
"""Size limit of one reply after decompression: more than the longest text that is accepted, even if
all of it is escaped."""
_MOST_STREAMED_BYTES = 8 * _MOST_BYTES  # a piece of a few letters has some 300 bytes
_INFLATED_BYTES = 1 << 18  # at a time
_WARNED_OF = 1 << 20
_BODY = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_SESSIONS: dict[asyncio.AbstractEventLoop, tuple[aiohttp.ClientSession, AsyncGenerator[None]]] = {}
_LOCK = threading.Lock()


async def _session() -> aiohttp.ClientSession:
    loop = asyncio.get_running_loop()
    if loop in _SESSIONS:
        return _SESSIONS[loop][0]
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),  # see graphrag.query.client.rate_limit
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        headers={"Accept-Encoding": "gzip"},
        auto_decompress=False,  # see _pieces
    )
    # asyncio.run and the like close open generators, and so the session, before the loop.
    keeper = _keep_session(loop, session)
    with _LOCK:
        for gone in [old for old in _SESSIONS if old.is_closed()]:
            _discard_session(_SESSIONS.pop(gone)[0])
        _SESSIONS[loop] = session, keeper
    await anext(keeper)
    return session


async def _keep_session(
    loop: asyncio.AbstractEventLoop, session: aiohttp.ClientSession
) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        _SESSIONS.pop(loop, None)
        await session.close()


def _discard_session(session: aiohttp.ClientSession) -> None:
    """Drop a session whose loop is closed; its sockets were closed with the loop."""
    connector = session.connector
    session.detach()
    if connector is not None:
        with suppress(RuntimeError):
            connector._close()  # pyright: ignore[reportPrivateUsage]


@atexit.register
def close_sessions() -> None:
    """Close the sessions of loops that were never closed, as the process ends."""
    for loop, (session, _) in list(_SESSIONS.items()):
        with suppress(Exception):  # the process ends, and there is nobody left to warn
            if loop.is_running():
                asyncio.run_coroutine_threadsafe(session.close(), loop).result(1.0)
            elif not loop.is_closed():
                loop.run_until_complete(session.close())
        if not session.closed:
            _discard_session(session)


def wait_for(coroutine: Coroutine[object, object, T]) -> T:
    """Run a coroutine to its end and block, even if this thread's own loop is running."""
    return asyncio.run_coroutine_threadsafe(coroutine, _background()).result()


@cache
def _background() -> asyncio.AbstractEventLoop:
    """Return an event loop that runs in its own thread until the process ends."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="graphrag-waiting", daemon=True).start()
    return loop


async def post(service: DirectSettings, path: str, body: Json, most: int = _MOST_BYTES) -> Json:
    """Send a request and return the JSON object of its reply, of at most ``most`` bytes.

    The limit applies to the decompressed reply. The caller has to limit the time.
    """
    async with _ask(service, path, body) as response:
        return _object_of(await _read(response, most), response.headers)


async def stream(service: DirectSettings, path: str, body: Json) -> AsyncIterator[Json]:
    """Send a request and yield the events of its reply as they arrive.

    If the service does not stream, the full reply is the only event. Raises APIConnectionError if
    the stream breaks off, even silently, and GarbledReplyError if it is no valid reply.
    """
    async with _ask(service, path, body) as response:
        pending, before, is_complete, is_empty = bytearray(), bytearray(), False, True
        async for piece in _pieces(response, _MOST_STREAMED_BYTES):
            *lines, rest = piece.split(b"\n")
            if lines:
                lines[0], pending = bytes(pending) + lines[0], bytearray()
            pending += rest
            if (n_pending := len(pending) + len(before)) > _MOST_BYTES:
                raise _too_long(n_pending, _MOST_BYTES)
            for line in lines:
                name, _, data = line.strip().partition(b":")
                if name != b"data":
                    before += line + b"\n" if is_empty else b""
                    continue
                if data.strip() == b"[DONE]":
                    return
                event = _object_of(data, response.headers, "a piece of it")
                choices = cast("list[Json] | None", event.get("choices"))
                is_complete = is_complete or bool(choices and choices[0].get("finish_reason"))
                is_empty = False
                yield event
        if is_empty:
            yield _object_of(bytes(before + pending), response.headers)
        elif not is_complete:
            raise APIConnectionError


def _ask(
    service: DirectSettings, path: str, body: Json
) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
    data = _BODY.encode(body).encode()
    return _open_response(
        "POST",
        f"{service.base}{path}",
        data=data if len(data) < _WARNED_OF else io.BytesIO(data),
        headers=service.headers,
        params=service.query or None,
        proxy=service.proxy,
    )


@asynccontextmanager
async def _open_response(
    how: str, url: str, *, allow_redirects: bool = True, **options: Any
) -> AsyncGenerator[aiohttp.ClientResponse]:
    """Send a request; raise its errors, and those of the ``with`` block, as the classes above."""
    session, asked = await _session(), URL(url)
    try:
        async with session.request(
            how, asked, allow_redirects=allow_redirects, **options
        ) as response:
            if response.status >= (400 if allow_redirects else 300):
                text = (await _read(response, _MOST_BYTES)).decode("utf-8", "replace")
                raise error_of_reply(response.status, response.headers, text)
            yield response
    except TimeoutError as error:
        raise TIMEOUT("Request timed out.", 408) from error
    except aiohttp.TooManyRedirects as error:
        raise GarbledReplyError("it redirects without end", None, False, is_page=True) from error
    except (aiohttp.ClientError, OSError) as error:  # maybe from a redirect's target or a proxy
        at = getattr(error, "host", asked.host), getattr(error, "port", asked.port)
        is_direct = at == (asked.host, asked.port)
        raise APIConnectionError("" if is_direct else f"{at[0]}:{at[1]} on the way to ") from error


async def ask_json(url: str, body: object, headers: Mapping[str, str]) -> object:
    """Ask any service for JSON: by POST, or by GET if ``body`` is None.

    Redirects are not followed. Raises the same errors as a model call.
    """
    how, data = ("GET", None) if body is None else ("POST", json.dumps(body).encode())
    kind = {} if body is None else {"Content-Type": "application/json"}
    sent = {"Accept": "application/json", **kind, **headers}
    async with _open_response(
        how, url, allow_redirects=False, data=data, headers=sent, proxy=proxy_of(url)
    ) as response:
        content = await _read(response, _MOST_BYTES)
    return _read_json(content, may_pass=False)


async def _read(response: aiohttp.ClientResponse, most: int) -> bytes:
    if (announced := response.content_length or 0) > most:
        raise _too_long(announced, most)
    return b"".join([piece async for piece in _pieces(response, most)])


async def _pieces(response: aiohttp.ClientResponse, most: int) -> AsyncIterator[bytes]:
    """Yield a body decompressed as it arrives; raise an error past ``most`` bytes."""
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        msg = f"it is compressed as {encoding[:40]}, where only gzip was asked for"
        raise GarbledReplyError(msg, may_pass=False)
    received, size = response.content.iter_any(), 0
    async for piece in _inflated(received) if "gzip" in encoding else received:
        size += len(piece)
        if size > most:
            raise _too_long(size, most)
        yield piece


async def _inflated(received: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    inflater, is_empty = zlib.decompressobj(16 + zlib.MAX_WBITS), True
    async for packed in received:
        is_empty, goes_on = False, inflater.eof
        while not inflater.eof:
            try:
                piece = inflater.decompress(packed, _INFLATED_BYTES)
            except zlib.error as error:
                raise GarbledReplyError("it is marked as gzip, and is not") from error
            yield piece
            packed = inflater.unconsumed_tail
            if not packed and len(piece) < _INFLATED_BYTES:
                break
        if goes_on or inflater.unused_data:
            raise GarbledReplyError("it goes on after its gzip has ended")
    if not (is_empty or inflater.eof):
        raise GarbledReplyError("its gzip breaks off")


def _read_json(content: bytes, subject: str = "it", may_pass: bool = True) -> object:
    try:
        return json.loads(content.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        start = content.lstrip()[:1]
        kind = _WEB_PAGE if start == b"<" else "not JSON" if start else "empty"
        msg, is_page = f"{subject} is {kind}", kind != "not JSON"
        raise GarbledReplyError(msg, None, may_pass, is_page) from error


def _object_of(content: bytes, headers: Mapping[str, str], subject: str = "it") -> Json:
    """Return the JSON object of a reply; raise the error if it contains one."""
    reply = _read_json(content, subject)
    if not isinstance(reply, dict):
        raise GarbledReplyError("it is no JSON object")
    body = cast("Json", reply)
    if body.get("error") and not body.get("choices"):
        text = json.dumps(body)  # gateways send errors with status 200
        code = _read_error(text)[1]
        status = int(code) if code.isdigit() and 400 <= int(code) < 600 else 500
        raise error_of_reply(status, headers, text)
    return body


def _too_long(n_bytes: int, most: int) -> GarbledReplyError:
    """Return the error for a reply too long to be a model's; another try would be as long."""
    msg = f"it has {n_bytes:,} bytes or more, where {most:,} are taken"
    return GarbledReplyError(msg, may_pass=False)
