"""Commands called as functions."""

from collections.abc import Callable
from typing import Any

from graphrag.eval.cli.terminal import explained


def code_of(command: Callable[..., int], *arguments: Any, **flags: Any) -> int:
    """Return the exit code that a command ends with, errors among them."""
    return explained(lambda: command(*arguments, **flags))
