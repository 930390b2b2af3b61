"""What a judge is asked: each metric is declared in a file of its own, and found by being there."""
