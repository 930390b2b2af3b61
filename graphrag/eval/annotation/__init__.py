"""Collects what people say: labels of responses, ratings of answers, reviews of questions."""
