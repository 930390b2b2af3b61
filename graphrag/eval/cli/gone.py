"""Answers removed commands and flags with their replacement, and exit code 2."""

import os
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from graphrag.eval.cli.terminal import USAGE
from graphrag.text.console import say

GONE_COMMANDS: Mapping[str, str] = {
    "methods": "a name in eval_config.yaml that is wrong lists what there is, and docs/methods.md "
    "explains how to name code of your own",
    "monitor": "run graphrag eval, then graphrag eval compare latest pinned, from cron: exit code "
    "100 is the alarm",
}
"""Name of a removed command -> its replacement: a clause without a full stop."""

GONE_FLAGS: Mapping[str, str] = {
    "judge --ratings": "put ratings into a column of the dataset: show --full has the scores of "
    "each value that 20 questions have",
    "show --mlflow": "graphrag eval --otel sends spans, which MLflow's server takes, and "
    "show --export rows.csv writes every row",
    "init --like": "copy the folder without its output, and change settings.yaml of the copy",
    "init --method": "name the workflows in settings.yaml of the copy",
    "init --set": "change settings.yaml of the copy",
    "judge --repeats": "set judge.repeats in eval_config.yaml",
    "show --to": "copy the folder of the run, runs/ID in the folder of the results",
    "validate --markdown": "--json writes the report; graphrag.eval.validation.validate_index(root)"
    ".detailed_report() returns it as Markdown",
}
"""A removed flag, of a command as in ``judge --repeats`` or of ``graphrag eval`` itself -> its
replacement."""


class Command(TyperCommand):
    """A typer command that explains its removed flags."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; a removed flag ends in a sentence and exit code 2."""
        return _parse(super().parse_args, f"{self.name} ", ctx, args)


class Group(TyperGroup):
    """A typer group that explains its removed commands and its own removed flags."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; a removed flag ends in a sentence and exit code 2."""
        return _parse(super().parse_args, "", ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that is named; a removed one ends in a sentence and exit code 2."""
        if args[0] in GONE_COMMANDS:
            _refuse(args[0], GONE_COMMANDS[args[0]])
        return super().resolve_command(ctx, args)


def _parse(
    parse: Callable[[Any, list[str]], list[str]], prefix: str, ctx: Any, args: list[str]
) -> list[str]:
    for name, instead in GONE_FLAGS.items():
        before, _, flag = name.partition("--")
        variable = f"{ctx.auto_envvar_prefix}_{flag}".upper().replace("-", "_")
        if before == prefix and variable in os.environ:
            _refuse(variable, instead)
    try:
        return parse(ctx, args)
    except Exception as error:  # typer has no public name for its class
        flag = getattr(error, "option_name", "")
        if f"{prefix}{flag}" in GONE_FLAGS:
            _refuse(flag, GONE_FLAGS[f"{prefix}{flag}"])
        raise


def _refuse(name: str, instead: str) -> NoReturn:
    say(f"Error: {name} is gone since version 2.0.0; {instead}.", "red", stderr=True)
    raise typer.Exit(USAGE)
