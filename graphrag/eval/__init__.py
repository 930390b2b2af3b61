"""Evaluates which GraphRAG search method answers best, and at what cost.

Names load when they are first used, so that ``graphrag --help`` stays fast.
"""

import lazy_loader

import graphrag_overlay
from graphrag.installation import ask_overlay

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

# Without .pth processing (pip install --target, python -S) the overlay is not active yet.
graphrag_overlay.activate()
ask_overlay(graphrag_overlay.trouble)
