"""Labels and ratings by people."""
