"""Renders HTML pages of runs, comparisons, labels and reviews; serves them on this machine."""
