"""Reads the parts of a built GraphRAG index: tables, texts, vectors, settings."""
