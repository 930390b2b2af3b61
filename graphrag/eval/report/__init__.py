"""What a run answered, as text for a terminal and as files."""
