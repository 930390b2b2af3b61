"""The questions of an evaluation: read from a file or from rows, and checked."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
