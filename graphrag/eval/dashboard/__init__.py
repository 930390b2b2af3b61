"""One page of every figure of every run over time, and of what production code recorded."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
