"""The settings that docs/own_machine.md gives for a project of one's own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

GRAPHRAG = Path(sys.executable).with_name("graphrag")
TEXT = (
    "The audit office wrote the report about the harbour of Lynmouth. "
    "Marta Quill leads the audit office. Tom Reed repairs the lighthouse of Lynmouth. "
)


def run(*words):
    done = subprocess.run(
        [GRAPHRAG, *words], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_block_of_the_docs_makes_a_project_that_answers(project_root, tmp_path):
    text = (project_root / "docs" / "own_machine.md").read_text(encoding="utf-8")
    block, *_ = re.findall(r"^```yaml\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    project = tmp_path / "my_project"
    (project / "input").mkdir(parents=True)
    (project / "input" / "report.txt").write_text(TEXT, encoding="utf-8")
    run("init", "--root", project, "--model", "none", "--embedding", "none")
    settings = yaml.safe_load((project / "settings.yaml").read_text(encoding="utf-8"))
    pasted = yaml.safe_load(block)
    assert settings.keys() >= pasted.keys()
    (project / "settings.yaml").write_text(yaml.safe_dump(settings | pasted), encoding="utf-8")

    run("index", "--root", project)
    answer = run("query", "--root", project, "--method", "tog", "Who wrote the report?")

    assert "audit office" in answer
