"""Checks a built index phase by phase, before you pay for questions to it.

It reads only the index's tables and its vector store, and asks no model. docs/retrieval.md explains
every check.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
