"""Shorter waits for what holds everything up, in a process of its own."""

import sys

from graphrag.eval.cli import run_end
from graphrag.eval.records import plug_ins
from graphrag.eval.runner import held_loop


def shorten(named_s: float = 0.5, let_go_s: float = 2, finish_s: float = 1) -> None:
    plug_ins.NAMED_AFTER_S = named_s
    held_loop.LET_GO_S = run_end.LET_GO_S = let_go_s
    run_end.FINISH_S = finish_s


def shorten_but_the_finish() -> None:
    shorten(finish_s=60)


def shorten_where(folder: str) -> None:
    """Shorten the waits where packages lie in a folder."""
    shorten()
    sys.path.insert(0, folder)
