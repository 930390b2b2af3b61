"""Serves the pages on 127.0.0.1 and refuses requests from anybody but the user.

A page of another site can send requests to 127.0.0.1, even under a name of its own (DNS rebinding),
and other users of the machine can connect to the port. Therefore each request has to name this
server as its host, come from its own pages, and bring the token that was printed.
"""

import errno
import hmac
import logging
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from typing import TYPE_CHECKING, TypeVar, cast

from anyio.to_thread import run_sync
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphrag.eval.annotation.review import RowChanged
from graphrag.eval.errors import ChangedElsewhere, EvalError, UsageError
from graphrag.eval.web.page import render
from graphrag.query.client.call_errors import describe_error
from graphrag.text.redaction import redact

if TYPE_CHECKING:
    import uvicorn

_Change = TypeVar("_Change")
_HOST = "127.0.0.1"
_TOKEN = "token"
_LET_GO_S = 1
_POLICY = "default-src 'none'; base-uri 'none'"
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_OWN_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')


@dataclass(frozen=True, slots=True)
class Listener:
    """An open port of 127.0.0.1, and the new token that gives access to its pages."""

    socket: socket.socket
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)

    @classmethod
    def on(cls, port: int) -> "Listener":
        """Open a port; 0 is any free one. Raises UsageError if it is taken or not allowed."""
        try:
            return cls(socket.create_server((_HOST, port)))
        except OSError as error:
            why = "is taken" if error.errno == errno.EADDRINUSE else "can't be used"
            raise UsageError(
                f"Port {port} of {_HOST} {why}; name another with --port, or leave it out and a "
                "free one is taken."
            ) from error

    @property
    def port(self) -> int:
        """The port."""
        return self.socket.getsockname()[1]

    @property
    def address(self) -> str:
        """The address that opens the pages, with its token."""
        return f"http://{_HOST}:{self.port}/?{_TOKEN}={self.token}"


def make_server(app: ASGIApp, listener: Listener) -> "uvicorn.Server":
    """Return the server, to be run on the listener's socket until ``should_exit`` is set."""
    import uvicorn

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Generator[None]:
            """Take no signals: they are the command's."""
            yield

    config = uvicorn.Config(
        Guard(app, listener.port, listener.token),
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_LET_GO_S,
    )
    server = Server(config)
    # Requests are cut off while it ends; that is no error to log.
    logging.getLogger("uvicorn.error").addFilter(lambda _: not server.should_exit)
    return server


def own_policy(html: str) -> dict[str, str]:
    """Return the header with the content security policy that the page itself contains."""
    match = _OWN_POLICY.search(html)
    return {} if match is None else {"Content-Security-Policy": unescape(match[1])}


class NotFound(UsageError):
    """Raised if the thing that an address names does not exist."""


def in_words(answer: Callable[[], Response | str], as_json: bool = False) -> Response:
    """Return an answer's page; an error becomes a page of one sentence, without a traceback."""
    try:
        page = answer()
    except EvalError as error:
        kinds = {NotFound: 404, RowChanged: 409, UsageError: 400}
        statuses = (status for kind, status in kinds.items() if isinstance(error, kind))
        return _sentence(str(error), next(statuses, 500), as_json)
    except Exception as error:
        return _sentence(f"Unexpected error: {describe_error(error)}.", 500, as_json)
    return HTMLResponse(page, headers=own_policy(page)) if isinstance(page, str) else page


async def answer_not_found(_: Request, error: Exception) -> Response:
    """Return the page for an address that does not exist."""
    return _sentence("There is no such page here.", cast("HTTPException", error).status_code)


def _sentence(text: str, status: int, as_json: bool = False) -> Response:
    if as_json:
        return JSONResponse({"error": redact(text)}, status_code=status)
    page = render("error.html.j2", asks=True, text=redact(text))
    return HTMLResponse(page, status, own_policy(page))


def body_handler(
    kind: type[_Change],
    keep: Callable[[Request, _Change], object],
    most_bytes: int,
    names: tuple[str, str],
) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that keeps a request's body, and answers with the kept value.

    The body must be of type ``kind``. If somebody else changed the same thing, the answer is 409
    with the current value. ``names``: the body in two errors: if it is not valid, and if it is
    longer than ``most_bytes``.
    """
    adapter = TypeAdapter(kind)

    def respond(request: Request, body: bytes) -> Response:
        try:
            kept = keep(request, adapter.validate_json(body))
        except ValidationError as error:
            raise UsageError(f"That is no {names[0]} of this page.") from error
        except ChangedElsewhere as error:
            return JSONResponse(to_jsonable_python(error.current), status_code=409)
        return JSONResponse(to_jsonable_python(kept))

    async def answer(request: Request) -> Response:
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > most_bytes:
                return JSONResponse({"error": f"The {names[1]} is too long."}, status_code=413)
        return await run_sync(in_words, lambda: respond(request, body), True)

    return answer


class Guard:
    """Refuses requests that are not from the server's own pages; adds headers to every answer.

    The server listens on ``port`` of 127.0.0.1. The first request must have the ``token`` in its
    address. Later requests have it in a cookie, which requests from other sites do not carry.
    """

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self._app, self._token = app, token
        self._cookie = f"graphrag-eval-view-{port}"
        names = (_HOST, "localhost")
        self._hosts = {f"{name}:{port}" for name in names} | ({*names} if port == 80 else set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return
        answer = self._refuse(scope) or self._admit(scope) or self._app

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                policy = headers.get("Content-Security-Policy", _POLICY)
                headers["Content-Security-Policy"] = f"{policy}; frame-ancestors 'none'"
            await send(message)

        await answer(scope, receive, send_guarded)

    def _refuse(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return _forbid("This server answers to 127.0.0.1 and localhost alone.")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return _forbid("Another site led here; type or paste the address that was printed.")
        if scope["method"] in ("GET", "HEAD"):
            return None
        if headers.getlist("origin") != [f"http://{hosts[0]}"]:
            return _forbid("Only the pages of this server can change anything.")
        return None

    def _admit(self, scope: Scope) -> Response | None:
        """Return None for a known browser; let a browser with the token in, refuse others."""
        token = QueryParams(scope["query_string"]).get(_TOKEN, "")
        if scope["method"] != "GET" or not self._is_token(token):
            cookies = Headers(scope=scope).get("cookie", "").split(";")
            pairs = (cookie.strip().partition("=") for cookie in cookies)
            if any(name == self._cookie and self._is_token(value) for name, _, value in pairs):
                return None
            return _forbid("Open the address that graphrag eval view printed, with its token.")
        # A path that begins with two slashes would lead to another host.
        answer = RedirectResponse("/" + scope["path"].lstrip("/\\"), status_code=303)
        answer.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
        return answer

    def _is_token(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self._token.encode())


def _forbid(text: str) -> Response:
    return PlainTextResponse(f"{text}\n", status_code=403)
