"""Exports ``app``, the ``graphrag eval`` commands; each command has a module of its own.

A command's module parses its flags. Code that needs heavy libraries is in another module, which the
command imports when it runs.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
