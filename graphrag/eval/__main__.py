"""Runs the commands of ``graphrag eval`` as ``python -m graphrag.eval``, however installed."""

from graphrag.eval.cli.app import app

app(prog_name="python -m graphrag.eval")
