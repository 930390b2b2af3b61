"""Texts: made comparable, read as the tables that searches show to a model, and put together."""
