"""The hook of .pre-commit-hooks.yaml: without an index, a key and a network."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support.projects import server_settings

CLOSED = """
import sys
def look(event, given):
    if event in ("socket.connect", "socket.getaddrinfo"):
        raise OSError("the network is closed")
sys.addaudithook(look)
"""


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (None, "eval_config.yaml and its 1 question are valid."),
        (("questions.csv", "clock", "clack"), "'clack'"),
        (("eval_config.yaml", "methods", "methodes"), "methods"),
        (("eval_config.yaml", "questions.csv", "question.csv"), "question.csv"),
    ],
)
def test_the_hook_says_what_is_wrong_before_it_is_committed(
    change, sentence, tmp_path, project_root
):
    (hook,) = yaml.safe_load((project_root / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hook["pass_filenames"] is False
    root = tmp_path / "mine"
    (root / "clock").mkdir(parents=True)
    settings = server_settings("http://127.0.0.1:9").replace("api_key: test", "api_key: ${NO_KEY}")
    (root / "clock" / "settings.yaml").write_text(settings, encoding="utf-8")
    (root / "questions.csv").write_text("question,answer,index\nWho?,Idris,clock\n")
    config = {"dataset": {"path": "questions.csv"}, "indexes": {"clock": "clock", "b": "b"}}
    (root / "eval_config.yaml").write_text(yaml.safe_dump({**config, "methods": ["tog"]}))
    if change is not None:
        file, old, new = root / change[0], *change[1:]
        file.write_text(file.read_text().replace(old, new))
    (tmp_path / "sitecustomize.py").write_text(CLOSED, encoding="utf-8")
    command, *words = shlex.split(hook["entry"])
    done = subprocess.run(
        [Path(sys.executable).with_name(command), *words],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == (0 if change is None else 2), said
    assert sentence in said
    assert "Traceback" not in said
    assert not (root / "eval").exists()
