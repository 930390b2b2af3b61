from .opening import Workers, open_executor

__all__ = ["Workers", "open_executor"]
