"""Commands called as functions, and run as processes and environments apart from this one."""

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphrag.eval.cli.terminal import explained


def code_of(command: Callable[..., int], *arguments: Any, **flags: Any) -> int:
    """Return the exit code that a command ends with, errors among them."""
    return explained(lambda: command(*arguments, **flags))


_OUTSIDE = ("PYTHON", "VIRTUAL_ENV", "UV_PROJECT", "GRAPHRAG", "OPENAI", "COLUMNS", "_TYPER")


def run_apart(*command: object, cwd: Path | None = None, **variables: str) -> str:
    """Run a command, perhaps of another environment, to its success; return what it prints."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OUTSIDE)}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**kept, "LITELLM_LOCAL_MODEL_COST_MAP": "True", **variables},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def copy_compiled(site: Path) -> None:
    """Copy what is compiled here already; Python compiles again what its source does not fit."""
    here = Path(sysconfig.get_path("purelib"))
    for top in site.iterdir():
        for folder in (here / top.name).rglob("__pycache__"):
            there = site / folder.relative_to(here)
            if there.parent.is_dir():
                shutil.copytree(folder, there, dirs_exist_ok=True)
