"""Whether a built index is sound, phase by phase, before questions are paid for.

Reads only the index's tables and its vector store; asks no model. Every check's meaning is in
docs/retrieval.md.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
