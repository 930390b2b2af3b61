"""Every metric and measure; what a judge gives: verdicts, grades and preferences."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
