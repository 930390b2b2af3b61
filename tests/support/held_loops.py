"""Shorter waits for a method that holds the event loop, in a process of its own."""

from graphrag.eval import plug_ins
from graphrag.eval.cli import interrupts
from graphrag.eval.runner import held_loop


def shorten(named_s: float = 0.5, let_go_s: float = 2, finish_s: float = 1) -> None:
    plug_ins.NAMED_AFTER_S = named_s
    held_loop.LET_GO_S = interrupts.LET_GO_S = let_go_s
    interrupts.FINISH_S = finish_s


def shorten_but_the_finish() -> None:
    shorten(finish_s=60)
