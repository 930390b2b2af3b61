from .app import make_app
from .server import Listener, make_server, serve
from .viewed import Viewed

__all__ = ["Listener", "Viewed", "make_app", "make_server", "serve"]
