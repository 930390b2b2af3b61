"""Computes the figures of one run from its rows; exports what users import of them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
