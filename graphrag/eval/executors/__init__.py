"""Where the searches and verdicts of a run are made: in other processes, or on other machines."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
