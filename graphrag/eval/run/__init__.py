"""What a run does: units of work, who is asked, who judges, what is refused beforehand."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
