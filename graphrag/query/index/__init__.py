"""Reads what a built GraphRAG index holds: tables, texts, vectors, settings."""
