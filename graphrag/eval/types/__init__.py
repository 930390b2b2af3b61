"""What an evaluation passes on: answers, verdicts, and the metrics that they are judged on."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
