"""Two runs, question by question: what differs, and whether a release may pass."""
