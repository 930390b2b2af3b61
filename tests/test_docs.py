"""What README and docs say is run here, on a copy of the shipped project."""

import ast
import asyncio
import os
import re
import shutil
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from typer.testing import CliRunner

from graphrag.eval.cli.app import app

GRAPHRAG = Path(sys.executable).with_name("graphrag")
KEY = "tt0097576"


def run(command, folder, **variables):
    """Run a command line of the docs in the environment of the tests."""
    line = command.removeprefix("pip install uv && ").removeprefix("uv run ")
    assert line.startswith("graphrag "), command
    return subprocess.run(
        line.replace("graphrag", str(GRAPHRAG), 1),
        cwd=folder,
        env={**os.environ, **variables},
        shell=True,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def blocks(path, language):
    text = path.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def commands(project_root):
    lines = [
        line for block in blocks(project_root / "README.md", "bash") for line in block.split("\n")
    ]
    return [line for line in lines if line and "pytest" not in line]


@pytest.fixture(scope="module")
def project(project_root, tmp_path_factory):
    """Copy the shipped project, with one film so that the tests stay quick."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("eval", KEY, "docs"):
        ignored = shutil.ignore_patterns("results", "output", "cache", "logs")
        shutil.copytree(project_root / name, folder / name, ignore=ignored)
    config = (project_root / "eval_config.yaml").read_text(encoding="utf-8")
    lines = [line for line in config.splitlines() if not re.match(r"  tt(?!0097576)", line)]
    (folder / "eval_config.yaml").write_text("\n".join(lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def built(project, project_root):
    """Run the README's first command."""
    first = commands(project_root)[0]
    done = run(first, project, GRAPHRAG_EVAL_LIMIT="2", GRAPHRAG_EVAL_IMDB_KEY=KEY)
    assert done.returncode == 0, done.stderr
    return done


def test_the_main_command_prints_what_the_readme_shows(built, project_root):
    (sample,) = blocks(project_root / "README.md", "text")
    for text in (sample, built.stdout):
        assert re.match(r"(WINNER|TIED|TOO FEW) \(offline baseline models\): ", text)
        assert "\nThe run took " in text
    headings = set(re.findall(r"^([A-Z][a-z ]+):", sample, flags=re.MULTILINE))
    assert headings >= {"Cost", "Next", "Score", "Report", "Files in", "All tables"}
    for heading in headings:
        assert f"\n{heading}:" in built.stdout, heading


def test_a_run_writes_its_page(built, project):
    results = project / "eval" / "results"
    assert "Report:" in built.stdout
    written = (results / "report.html").read_text(encoding="utf-8")
    (own,) = results.glob("runs/*/report.html")
    assert own.read_text(encoding="utf-8") == written
    assert "Ask the same again" in written


@pytest.fixture
def my_project(built, project, tmp_path):
    shutil.copytree(project / KEY, tmp_path / "my_project")
    return tmp_path


async def test_the_commands_for_a_project_of_ones_own(my_project, project_root):
    own = [line for line in commands(project_root) if "my_project" in line]
    assert len(own) == 4
    for command in own:
        done = await asyncio.to_thread(run, command, my_project)
        assert done.returncode == 0, (command, done.stderr)
        if " init " in command:
            questions = my_project / "my_project" / "eval" / "questions.csv"
            with questions.open("a", encoding="utf-8") as file:
                file.write("q1,Who steals the diary?,Elsa,,\n")
    (code,) = blocks(project_root / "README.md", "python")
    compiled = compile(code, "README", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    os.chdir(my_project)
    names = {}
    await eval(compiled, names)
    assert len(names["results"]) == 3


def test_every_flag_of_the_readme_is_in_the_help(project_root):
    commands = (
        "init",
        "draft",
        "validate",
        "show",
        "view",
        "compare",
        "judge",
        "suite",
        "monitor",
        "methods",
    )
    shown = CliRunner(env={"COLUMNS": "200"})
    helps = [shown.invoke(app, [*command.split(), "--help"]).stdout for command in ("", *commands)]
    text = (project_root / "README.md").read_text(encoding="utf-8")
    table = text[text.index("## Commands") : text.index("## How far")]
    flags = set(re.findall(r"--[a-z][a-z-]+", table))
    assert flags
    for command in commands:
        assert f"graphrag eval {command}" in table
        assert re.search(rf"│ {command} ", helps[0]), command
    assert flags <= set(re.findall(r"--[a-z][a-z-]+", " ".join(helps)))


def test_links_between_documents_lead_somewhere(project_root):
    for document in [project_root / "README.md", *(project_root / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), (document.name, target)


def test_the_notebook_runs(built, project):
    notebook = nbformat.read(project / "docs" / "notebook.ipynb", as_version=4)
    runs = sorted((project / "eval" / "results").glob("**/*"))
    shipped = [deepcopy(cell) for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs for cell in shipped)
    client = NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(project / "docs")}}
    )
    client.execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for before, now in zip(shipped, cells, strict=True):
        kinds = [[output.output_type for output in cell.outputs] for cell in (before, now)]
        assert kinds[0] == kinds[1]
        assert "stderr" not in [output.get("name") for output in now.outputs]
    assert sorted((project / "eval" / "results").glob("**/*")) == runs
    texts = [str(cell.outputs) for cell in cells[1:]]
    shown = ("Evaluating 8/8", "<table", "ground_truth", "offline/")
    for text, words in zip(texts, (*shown, "pruned", "|", "reason"), strict=True):
        assert words in text
    assert "(offline baseline models): " in texts[1]


def test_the_files_that_docs_name_are_there(project_root):
    files = subprocess.run(
        ["git", "ls-files"], cwd=project_root, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    made_up = {"my_rag.py"}
    missing = {
        f"{page.name}: {name}"
        for page in [*project_root.glob("*.md"), *project_root.glob("docs/*.md")]
        if page.name != "CHANGELOG.md"
        for name in re.findall(r"`([\w./]+\.(?:py|pyi))`", page.read_text(encoding="utf-8"))
        if not any(f"/{each}".endswith(f"/{name}") for each in files) and name not in made_up
    }
    assert missing == set()
