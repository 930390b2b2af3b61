"""eval.db: every response and verdict, committed as it arrives."""
