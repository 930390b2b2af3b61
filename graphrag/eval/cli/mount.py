"""Adds ``graphrag eval`` to the released command line, and imports its commands when needed."""

from functools import cache

import typer
from typer.core import TyperGroup
from typer.main import get_command

from graphrag.cli.fitness import refuse_if_unfit


class EvalGroup(TyperGroup):
    """Imports the ``eval`` commands when one of them, or its help, is asked for."""

    def make_context(  # pyright: ignore
        self,
        info_name: str | None,
        args: list[str],
        parent: typer.Context | None = None,
        **extra: object,
    ) -> typer.Context:
        """Import the commands, and return the context of their group."""
        refuse_if_unfit()
        return _read_commands().make_context(info_name, args, parent, **extra)  # pyright: ignore


@cache  # made from all signatures: longer than a small command takes
def _read_commands() -> TyperGroup:
    from graphrag.eval.cli.app import app

    group = get_command(app)
    assert isinstance(group, TyperGroup)
    return group


def add_eval_commands(released: typer.Typer) -> None:
    """Add ``graphrag eval`` to the command line of the released ``graphrag``."""
    text = "Compare search methods over a list of questions."
    released.add_typer(typer.Typer(cls=EvalGroup, help=text), name="eval")
