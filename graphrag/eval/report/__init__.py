"""Reports of runs and comparisons, as text for a terminal, as Markdown, and as files."""
