"""Re-exports ``write_dashboard``, which writes a page with every figure of every run over time."""

from graphrag.eval.web.runs import write_dashboard

__all__ = ["write_dashboard"]
