"""The settings of an evaluation, read from eval_config.yaml."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
