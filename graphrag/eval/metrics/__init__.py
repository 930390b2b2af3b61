"""What a judge gives: verdicts, grades and preferences, one family a module."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
