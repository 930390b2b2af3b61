"""Questions: read and checked."""
