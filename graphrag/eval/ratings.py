"""What users say: ratings from 1 to 5, read from a file."""

from graphrag.eval.annotation.ratings import Rating, read_ratings

__all__ = ["Rating", "read_ratings"]
