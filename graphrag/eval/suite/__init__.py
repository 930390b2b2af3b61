"""Reads suites of test cases, runs them, scores each case by an evaluator, and reports."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
