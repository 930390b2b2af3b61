"""Reads and checks the questions of an evaluation."""
