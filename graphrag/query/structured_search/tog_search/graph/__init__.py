"""A memory-mapped graph that knows no question: built from an index's tables, kept, looked up."""
