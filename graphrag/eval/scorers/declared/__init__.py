"""The measures of a response: each file declares one, or a few that share their work."""
