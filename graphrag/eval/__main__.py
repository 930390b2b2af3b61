"""Runs ``python -m graphrag.eval``: the commands of ``graphrag eval``, however installed."""

import graphrag_overlay
from graphrag.eval.cli.app import app
from graphrag.installation import ask_first

ask_first(graphrag_overlay.trouble)
app(prog_name="python -m graphrag.eval")
