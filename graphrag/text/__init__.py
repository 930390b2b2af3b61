"""Texts made comparable: words, sentences, and the tables that searches show to a model."""
