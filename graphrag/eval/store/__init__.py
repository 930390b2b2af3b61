"""Keeps runs in eval.db: every response and verdict is committed as it arrives."""
