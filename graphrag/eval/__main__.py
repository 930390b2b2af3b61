"""Runs ``python -m graphrag.eval``: the commands of ``graphrag eval``, however installed."""

from graphrag.eval.cli.app import app

app(prog_name="python -m graphrag.eval")
