"""Who is answered: the browser of the person who started the server, and nobody else.

A page of another site can send requests to 127.0.0.1, under a name of its own too (DNS
rebinding), and other users of the machine can connect to the port. So each request has to name
this server as its host, come from its own pages, and bring the token that was printed.
"""

import hmac
import re
from html import unescape

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN = "token"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_OWN_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')


def own_policy(html: str) -> dict[str, str]:
    """Return the headers that hold a page to the policy that it brings itself."""
    found = _OWN_POLICY.search(html)
    return {} if found is None else {"Content-Security-Policy": unescape(found[1])}


class Guard:
    """Refuses what does not come from the server's own pages; puts headers on every answer.

    Parameters
    ----------
    app : ASGI application
    port : int
        At which the server listens on 127.0.0.1.
    token : str
        What the first address has to hold; a cookie that no other site's request brings does
        afterwards.
    """

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self._app = app
        self._token = token
        self._cookie = f"graphrag-eval-view-{port}"
        names = ("127.0.0.1", "localhost")
        self._hosts = {f"{name}:{port}" for name in names} | ({*names} if port == 80 else set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return
        answer = self._refuse(scope) or self._let_in(scope) or self._app

        async def send_held(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                policy = headers.get("Content-Security-Policy", _POLICY)
                headers["Content-Security-Policy"] = f"{policy}; frame-ancestors 'none'"
            await send(message)

        await answer(scope, receive, send_held)

    def _refuse(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return _no("This server answers to 127.0.0.1 and localhost alone.")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return _no("Another site led here; type or paste the address that was printed.")
        if scope["method"] in ("GET", "HEAD"):
            return None
        if headers.getlist("origin") != [f"http://{hosts[0]}"]:
            return _no("Only the pages of this server can change anything.")
        return None

    def _let_in(self, scope: Scope) -> Response | None:
        """Let a known browser pass, and make one known that brings the token."""
        given = QueryParams(scope["query_string"]).get(TOKEN, "")
        if scope["method"] != "GET" or not self._fits(given):
            if self._is_known(Headers(scope=scope).get("cookie", "")):
                return None
            return _no("Open the address that graphrag eval view printed, with its token.")
        # A path that begins with two slashes would lead to another host.
        answer = RedirectResponse("/" + scope["path"].lstrip("/\\"), status_code=303)
        answer.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
        return answer

    def _is_known(self, cookies: str) -> bool:
        pairs = (each.strip().partition("=") for each in cookies.split(";"))
        return any(name == self._cookie and self._fits(value) for name, _, value in pairs)

    def _fits(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())


def _no(text: str) -> Response:
    return PlainTextResponse(f"{text}\n", status_code=403)
