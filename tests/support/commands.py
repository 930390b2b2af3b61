"""Commands called as functions, and run as processes and environments apart from this one."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphrag.eval.cli.terminal import explained


def code_of(command: Callable[..., int], *arguments: Any, **flags: Any) -> int:
    """Return the exit code that a command ends with, errors among them."""
    return explained(lambda: command(*arguments, **flags))


_EACH = """
import json, sys
sys.argv[0] = "graphrag"
from graphrag.cli.main import app
from typer.testing import CliRunner
ended = [CliRunner().invoke(app, words, env=more) for words, more in json.loads(sys.argv[1])]
print(json.dumps([[each.exit_code, each.stdout, each.stderr] for each in ended]))
"""


def each(*commands: Sequence[object], env: Sequence[Mapping[str, str]] = ()) -> list[str]:
    """Return the command that runs ``graphrag`` with these words, one after the other.

    One process imports once what they share. Each may have variables of its own; ``ends`` reads
    what the process prints.
    """
    words = [[str(word) for word in command] for command in commands]
    variables = env or [{}] * len(words)
    given = list(zip(words, variables, strict=True))
    return [sys.executable, "-c", _EACH, json.dumps(given)]


def ends(process: subprocess.CompletedProcess[str]) -> list[tuple[int, str, str]]:
    """Return of each command how it ended and what it said on its two outputs."""
    assert process.returncode == 0, process.stderr
    return [(code, out, err) for code, out, err in json.loads(process.stdout.splitlines()[-1])]


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
