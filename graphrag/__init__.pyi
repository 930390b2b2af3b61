"""Read by pyright alone, and only in an editable install; see docs/design.md."""
