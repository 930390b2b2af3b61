"""What people say: labels and ratings, held against the judge."""
