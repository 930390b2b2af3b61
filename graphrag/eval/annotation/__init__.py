"""Collects people's labels of responses, ratings of answers and reviews of questions."""
