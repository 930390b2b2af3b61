"""Handles texts: words, languages, encodings, messages, secrets, and files that keep them."""
