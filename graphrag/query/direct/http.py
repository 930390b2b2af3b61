"""Requests to a service: one session an event loop, its connections kept between requests.

As many connections are open as requests are in flight; how many those are is decided where
requests get their place (:mod:`graphrag.query.limits`), so a second limit here could only be wrong.
"""

import asyncio
import atexit
import io
import json
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from functools import cache
from typing import Any, TypeVar, cast

import aiohttp
from yarl import URL

from graphrag.query.calls import GarbledReplyError
from graphrag.query.direct.errors import (
    TIMEOUT,
    APIConnectionError,
    error_in_reply,
    error_of_reply,
)
from graphrag.query.direct.settings import DirectSettings

_MOST_BYTES = 64_000_000
"""Of one completion: several times the longest that is taken, in any encoding."""
_WARNED_OF = 1 << 20
_PATHS = ("/chat/completions", "/embeddings")
_BODY = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
T = TypeVar("T")
_SESSIONS: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}
_LOCK = threading.Lock()
_kept: set[AsyncGenerator[None]] = set()


async def _session() -> aiohttp.ClientSession:
    loop = asyncio.get_running_loop()
    found = _SESSIONS.get(loop)
    if found is not None and not found.closed:
        return found
    opened = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
    )
    with _LOCK:
        for gone in [each for each in _SESSIONS if each.is_closed()]:
            _drop(_SESSIONS.pop(gone))
        _SESSIONS[loop] = opened
    # asyncio.run and its like close what generators hold before they close the loop.
    holder = _hold(loop, opened)
    _kept.add(holder)
    await anext(holder)
    return opened


async def _hold(
    loop: asyncio.AbstractEventLoop, session: aiohttp.ClientSession
) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        _SESSIONS.pop(loop, None)
        await session.close()


def _drop(session: aiohttp.ClientSession) -> None:
    """Give up a session whose loop is closed: its sockets were closed with it."""
    connector = session.connector
    session.detach()
    if connector is not None:
        with suppress(RuntimeError):
            connector._close()  # pyright: ignore[reportPrivateUsage]


@atexit.register
def close_sessions() -> None:
    """Close what is left, of loops that were never closed."""
    for loop, session in list(_SESSIONS.items()):
        with suppress(Exception):  # the process ends, and there is nobody left to tell
            if loop.is_running():
                asyncio.run_coroutine_threadsafe(session.close(), loop).result(1.0)
            elif not loop.is_closed():
                loop.run_until_complete(session.close())
        if not session.closed:
            _drop(session)


def wait_for(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also where this thread's loop is running."""
    return asyncio.run_coroutine_threadsafe(coroutine, _background()).result()


@cache
def _background() -> asyncio.AbstractEventLoop:
    """Return a loop that runs in a thread of its own until the process ends."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="graphrag-waiting", daemon=True).start()
    return loop


class DirectService:
    """One model's service; how long a request may take is seen to by who sends it."""

    def __init__(self, settings: DirectSettings) -> None:
        self._settings = settings
        self._urls = {path: URL(f"{settings.base}{path}") for path in _PATHS}

    async def post(self, path: str, body: Mapping[str, Any], most: int | None = _MOST_BYTES) -> Any:
        """Send a request and return what came: a JSON object of at most so many bytes."""
        session = await _session()
        with _NAMED_ERRORS:
            async with self._asked(session, path, body) as response:
                await _check_status(response)
                text = (await _read(response, most)).decode("utf-8", "replace")
                try:
                    reply: Any = json.loads(text)
                except (ValueError, RecursionError) as error:
                    msg = "it is not JSON"
                    raise GarbledReplyError(msg) from error
                return _checked(reply, response.headers)

    async def stream(self, path: str, body: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Send a request and give the events of its reply as they come.

        Raises
        ------
        APIConnectionError
            Also where the stream ends without saying so.
        """
        session = await _session()
        with _NAMED_ERRORS:
            async with self._asked(session, path, body) as response:
                await _check_status(response)
                held, is_whole = b"", False
                async for piece in response.content.iter_any():
                    *lines, held = (held + piece).split(b"\n")
                    if len(held) > _MOST_BYTES:
                        raise _too_long(len(held), _MOST_BYTES)
                    for line in lines:
                        said = line.strip()
                        if not said.startswith(b"data:"):
                            continue
                        data = said[5:].strip()
                        if data == b"[DONE]":
                            return
                        try:
                            given: Any = json.loads(data.decode("utf-8", "replace"))
                        except (ValueError, RecursionError) as error:
                            msg = "a piece of it is not JSON"
                            raise GarbledReplyError(msg) from error
                        event = _checked(given, response.headers)
                        is_whole = is_whole or _ends(event)
                        yield event
                if not is_whole:
                    raise APIConnectionError

    def _asked(
        self, session: aiohttp.ClientSession, path: str, body: Mapping[str, Any]
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        given = self._settings
        data = _BODY.encode(body).encode()
        return session.post(
            self._urls[path],
            data=data if len(data) < _WARNED_OF else io.BytesIO(data),
            headers=given.headers,
            params=given.query or None,
            proxy=given.proxy,
        )


class _NamedErrors:
    """Gives what goes wrong inside the ``with`` block the names of :mod:`.errors`."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, TimeoutError):
            msg = "Request timed out."
            raise TIMEOUT(msg, 408) from error
        if isinstance(error, aiohttp.ClientError | ConnectionError | OSError):
            raise APIConnectionError from error


_NAMED_ERRORS = _NamedErrors()


async def _check_status(response: aiohttp.ClientResponse) -> None:
    if response.status >= 400:
        text = (await _read(response, _MOST_BYTES)).decode("utf-8", "replace")
        raise error_of_reply(response.status, response.headers, text)


async def _read(response: aiohttp.ClientResponse, most: int | None) -> bytes:
    announced = response.content_length
    if most is None or (announced is not None and announced <= most):
        return await response.read()
    if announced is not None:
        raise _too_long(announced, most)
    pieces: list[bytes] = []
    size = 0
    async for piece in response.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        if size > most:
            raise _too_long(size, most)
    return b"".join(pieces)


def _checked(reply: Any, headers: Mapping[str, str]) -> dict[str, Any]:
    if not isinstance(reply, dict):
        msg = "it is no JSON object"
        raise GarbledReplyError(msg)
    body = cast("dict[str, Any]", reply)
    if body.get("error") and not body.get("choices"):
        raise error_in_reply(body, headers)
    return body


def _ends(event: Mapping[str, Any]) -> bool:
    choices: Any = event.get("choices")
    return bool(choices) and bool(choices[0].get("finish_reason"))


def _too_long(n_bytes: int, most: int | None) -> GarbledReplyError:
    """Return the error of a reply that no model writes; asked again it would be as long."""
    msg = f"it has {n_bytes:,} bytes or more, where {most or _MOST_BYTES:,} are taken"
    return GarbledReplyError(msg, may_pass=False)
