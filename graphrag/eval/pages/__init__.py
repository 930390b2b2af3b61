"""The page of a run: one file that answers which method won, at what cost, and why."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
