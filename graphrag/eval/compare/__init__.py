"""Compares two runs question by question, and decides whether the new one may pass."""
