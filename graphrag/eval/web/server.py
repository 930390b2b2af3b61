"""The server: one socket on this machine's own address, one token, until it is ended."""

import errno
import secrets
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphrag.eval.errors import UsageError
from graphrag.eval.web.guard import TOKEN, Guard
from graphrag.eval.web.viewed import Viewed

if TYPE_CHECKING:
    import uvicorn

_HOST = "127.0.0.1"
_LET_GO_S = 1


@dataclass(frozen=True, slots=True)
class Listener:
    """A port of 127.0.0.1 that is held, and the token that opens what is served there.

    Attributes
    ----------
    socket : socket
    token : str
        A new one each time.
    """

    socket: socket.socket
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)

    @classmethod
    def on(cls, port: int) -> "Listener":
        """Take a port; 0 is any free one.

        Raises
        ------
        UsageError
            If it is taken, or not for this user.
        """
        try:
            return cls(socket.create_server((_HOST, port)))
        except OSError as error:
            why = "is taken" if error.errno == errno.EADDRINUSE else "can't be used"
            msg = (
                f"Port {port} of {_HOST} {why}; name another with --port, or leave it out and a "
                "free one is taken."
            )
            raise UsageError(msg) from error

    @property
    def port(self) -> int:
        """The port."""
        return self.socket.getsockname()[1]

    @property
    def address(self) -> str:
        """The address that opens the pages, with its token."""
        return f"http://{_HOST}:{self.port}/?{TOKEN}={self.token}"


def serve(viewed: Viewed, listener: Listener) -> None:
    """Serve until SIGINT, which is raised again as KeyboardInterrupt, or SIGTERM."""
    make_server(viewed, listener).run(sockets=[listener.socket])


def make_server(viewed: Viewed, listener: Listener) -> "uvicorn.Server":
    """Return the server, which is still to be run on the listener's socket."""
    import uvicorn

    from graphrag.eval.web.app import make_app

    app = Guard(make_app(viewed), listener.port, listener.token)
    config = uvicorn.Config(
        app,
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
    return uvicorn.Server(config)
