"""Suites of test cases: read, run, scored by an evaluator of one's choice, and reported."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
