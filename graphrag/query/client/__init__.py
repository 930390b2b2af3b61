"""Asks models: every call is counted, bounded, retried and journaled."""
