"""The runs of a store in a browser: served on this machine, to the person who started it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
