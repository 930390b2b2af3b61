"""What an evaluation keeps: runs, responses, verdicts and judgements, in SQLite."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
