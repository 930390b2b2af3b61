"""Ends gtog's commands if the project can't run."""

import sys

import typer

from graphrag.installation import problem
from graphrag.text.terminal_escape import strip_controls


def refuse_if_unfit() -> None:
    """End a command whose requirements are missing: one sentence, exit code 2."""
    sentence = problem()
    if sentence is not None:
        sys.stderr.write(f"Error: {strip_controls(sentence)}\n")
        raise typer.Exit(2)
