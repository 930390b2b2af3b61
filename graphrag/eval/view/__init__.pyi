from .app import make_app
from .pages import Viewed
from .server import Listener, serve

__all__ = ["Listener", "Viewed", "make_app", "serve"]
