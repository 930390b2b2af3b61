"""Where to go: edges are scored, pruned and followed, or two entities joined."""
