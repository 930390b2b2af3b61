"""Re-exports the ratings of answers by users, for ``UserSatisfactionEvaluator``."""

from graphrag.eval.annotation.ratings import Rating, read_ratings

__all__ = ["Rating", "read_ratings"]
