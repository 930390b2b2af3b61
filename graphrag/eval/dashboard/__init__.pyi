from .page import write_dashboard

__all__ = ["write_dashboard"]
