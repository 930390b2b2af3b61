"""What people say: labels that the judge is held against, and ratings of users."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
