"""The ``graphrag eval`` commands, one file a command; what needs libraries stands in another."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
