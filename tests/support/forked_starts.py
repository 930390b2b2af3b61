"""Starts of Python that have imported large packages already, but nothing of the release or ours.

The server has not run ``site``, which puts the overlay in place. A start is forked from it, and
runs ``site`` under its own variables as any interpreter does. So what is started this way meets
the hook, the release and this project as in a process of its own, in half a second and not in up
to eight; but which packages it imports can't be told from it.
"""

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

# What the release imports where nothing lies over it.
_IMPORTED = [
    "pandas",
    "litellm",
    "nltk",
    "spacy",
    "textblob",
    "devtools",
    "networkx",
    "typer.testing",
]

_SERVER = """
import gc, json, os, sys, threading
packages, imported = json.loads(sys.argv[1])
before = [*sys.path]
sys.path.append(packages)
for name in imported:
    __import__(name)
assert not [name for name in sys.modules if name.startswith("graphrag")]
assert threading.active_count() == 1, "a fork would lack a thread"
gc.freeze()
print("ready", flush=True)
for line in sys.stdin:
    start = json.loads(line)
    if os.fork() == 0:
        break
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
else:
    os._exit(0)
for number, path in ((1, start["out"]), (2, start["err"])):
    os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
os.chdir(start["cwd"])
os.environ.clear()
os.environ.update(start["env"])
kind, what, *words = start["words"]
sys.argv[:] = [what if kind == "script" else kind, *words]
folders = [each for each in start["env"].get("PYTHONPATH", "").split(os.pathsep) if each]
sys.path[:] = [os.path.dirname(what) if kind == "script" else "", *folders, *before[1:]]
sys.path_importer_cache.clear()
import site
site.main()
import runpy
if kind == "-m":
    runpy.run_module(what, run_name="__main__", alter_sys=True)
elif kind == "script":
    runpy.run_path(what, run_name="__main__")
else:
    exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
"""


class ForkedStarts:
    """Runs ``python -c CODE``, ``python -m MODULE`` and the environment's own scripts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        given = json.dumps([sysconfig.get_path("purelib"), _IMPORTED])
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        self._server = subprocess.Popen(
            [sys.executable, "-S", "-W", "ignore", "-c", _SERVER, given],
            env={**kept, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self, words: Sequence[object], cwd: Path, env: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        program, *rest = map(str, words)
        given = rest if program == sys.executable else ["script", program, *rest]
        out, err = self._folder / "out.txt", self._folder / "err.txt"
        start = {
            "words": given,
            "cwd": str(cwd),
            "env": dict(env),
            "out": str(out),
            "err": str(err),
        }
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(start) + "\n")
        self._server.stdin.flush()
        while (line := self._server.stdout.readline().strip()) == "ready":
            continue
        said = [path.read_text(encoding="utf-8") for path in (out, err)]
        return subprocess.CompletedProcess([program, *rest], int(line), *said)

    def __enter__(self) -> "ForkedStarts":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.stdout.close()
        self._server.wait(10)
