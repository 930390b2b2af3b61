"""Shell scripts whose ``graphrag`` runs in the process of the tests.

Each start of the real command would import its libraries anew, which takes longer than all that
the scripts do. The stub hands arguments, folder and environment over and gives back what came.
"""

import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

_STUB = """\
#!{python} -IS
import json, os, socket, sys
given = dict(arguments=sys.argv[1:], folder=os.getcwd(), environment=dict(os.environ))
with socket.socket(socket.AF_UNIX) as asked:
    asked.connect({address!r})
    asked.sendall(json.dumps(given).encode() + b"\\n")
    found = json.loads(asked.makefile().readline())
sys.stdout.write(found["stdout"])
sys.stderr.write(found["stderr"])
sys.exit(found["code"])
"""


@dataclass(frozen=True)
class Done:
    """How a script ended, and what it printed."""

    code: int
    stdout: str
    stderr: str


def write_stub(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


class Shell:
    """A folder of stubs that come first on PATH; ``graphrag`` among them runs here."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stubs = folder / "stubs"
        self._address = str(folder / "graphrag.socket")
        self.put_graphrag(self.stubs)

    def put_graphrag(self, folder: Path) -> None:
        write_stub(folder / "graphrag", _STUB.format(python=sys.executable, address=self._address))

    def run(self, script: str, cwd: Path, variables: dict[str, str]) -> Done:
        """Run a script as GitHub's runner does: bash -eo pipefail."""
        path = self.folder / "script.sh"
        path.write_text(script, encoding="utf-8")
        out, err = self.folder / "stdout", self.folder / "stderr"
        line = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(path)]
        found = {"PATH": f"{self.stubs}:/usr/local/bin:/usr/bin:/bin", "HOME": str(self.folder)}
        with (
            socket.socket(socket.AF_UNIX) as server,
            out.open("w") as stdout,
            err.open("w") as stderr,
        ):
            server.bind(self._address)
            server.listen()
            server.settimeout(0.02)
            try:
                process = subprocess.Popen(
                    line, cwd=cwd, env={**found, **variables}, stdout=stdout, stderr=stderr
                )
                while process.poll() is None:
                    _serve(server)
            finally:
                os.unlink(self._address)
        return Done(
            process.returncode, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8")
        )


def _serve(server: socket.socket) -> None:
    """Run one command, if one was asked for."""
    from graphrag.cli.main import app

    try:
        asked, _ = server.accept()
    except TimeoutError:
        return
    with asked:
        asked.settimeout(30)
        given = json.loads(asked.makefile().readline())
        absent: dict[str, str | None] = dict.fromkeys(os.environ.keys() - given["environment"])
        here = Path.cwd()
        os.chdir(given["folder"])
        try:
            environment = {**absent, **given["environment"]}
            done = CliRunner().invoke(app, given["arguments"], env=environment)
        finally:
            os.chdir(here)
        found = {"code": done.exit_code, "stdout": done.stdout, "stderr": done.stderr}
        asked.sendall(json.dumps(found).encode() + b"\n")
