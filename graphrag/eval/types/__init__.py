"""The data that an evaluation passes on: answers, verdicts, metrics, and code of the user's own."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
