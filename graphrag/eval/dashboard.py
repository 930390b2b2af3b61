"""One page of every figure of every run over time, and of what production code recorded."""

from graphrag.eval.web.runs import write_dashboard

__all__ = ["write_dashboard"]
