"""What README and docs say is run here, on a copy of the shipped project."""

import ast
import asyncio
import contextlib
import csv
import gzip
import json
import lzma
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from copy import deepcopy
from io import StringIO
from pathlib import Path

import pytest
from support.chromium import open_browser
from support.released_commands import undone
from typer.main import get_command
from typer.testing import CliRunner

from graphrag.cli.main import app as released_app
from graphrag.config.project_settings import read_settings
from graphrag.eval.cli.app import app

GRAPHRAG = Path(sys.executable).with_name("graphrag")
KEY = "tt0097576"


def run(command, folder, **variables):
    """Run a command line of the docs in another folder, in this process."""
    program, *words = shlex.split(command)
    assert program == "graphrag", command
    with undone(), contextlib.chdir(folder):
        done = CliRunner().invoke(released_app, words, env=variables)
    return done


def blocks(path, language):
    text = path.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def commands(project_root):
    lines = [
        line for block in blocks(project_root / "README.md", "bash") for line in block.split("\n")
    ]
    return [line for line in lines if line]


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
    """Run the README's first command by a shell, in the environment of the tests."""
    line = commands(project_root)[0].removeprefix("pip install uv && ").removeprefix("uv run ")
    assert line.startswith("graphrag "), line
    done = subprocess.run(
        line.replace("graphrag", str(GRAPHRAG), 1),
        cwd=project,
        env={**os.environ, "GRAPHRAG_EVAL_LIMIT": "2", "GRAPHRAG_EVAL_IMDB_KEY": KEY},
        shell=True,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
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


def test_the_commands_for_a_project_of_ones_own(my_project, project_root, monkeypatch):
    page = project_root / "docs" / "own_project.md"
    own = [line for block in blocks(page, "bash") for line in block.splitlines()]
    assert len(own) == 4
    for command in own:
        done = run(command, my_project)
        assert done.exit_code == 0, (command, done.output)
        if " init " in command:
            questions = my_project / "my_project" / "eval" / "questions.csv"
            with questions.open("a", encoding="utf-8") as file:
                file.write("q1,Who steals the diary?,Elsa,,\n")
    code, *_ = blocks(project_root / "docs" / "api.md", "python")
    monkeypatch.chdir(my_project)
    assert len(asyncio.run(execute(code, {}))["results"]) == 5


@pytest.mark.slow
def test_the_settings_for_ones_own_machine_make_a_project_that_answers(project_root, tmp_path):
    page = (project_root / "docs" / "own_project.md").read_text(encoding="utf-8")
    (tmp_path / "texts").mkdir()
    text = (
        "The audit office wrote the report about the harbor of Lynmouth. Marta Quill leads the "
        "audit office. Tom Reed repairs the lighthouse of Lynmouth. "
    )
    (tmp_path / "texts" / "report.md").write_text(text, encoding="utf-8")

    def done(command):
        made = run(command, tmp_path)
        assert made.exit_code == 0, made.output
        return made.stdout

    line = "graphrag eval init --offline --input my_texts --root my_project"
    assert line in page
    done(line.replace("my_texts", "texts"))
    asked = "graphrag query --root my_project --method tog 'Who wrote the report?'"
    assert "audit office" in done(asked)
    # One line is another model: it replaces one line of the settings.
    page = (project_root / "docs" / "start.md").read_text(encoding="utf-8")
    (other,) = re.findall(r"^  default_completion_model: .*YOUR-KEY.*$", page, re.MULTILINE)
    settings = tmp_path / "my_project" / "settings.yaml"
    text = settings.read_text(encoding="utf-8")
    settings.write_text(
        re.sub(r"^  default_completion_model: .*$", other, text, flags=re.MULTILINE), "utf-8"
    )
    config = read_settings(settings.parent)
    assert config.completion_models["default_completion_model"].model == "gpt-4o"


async def execute(code, names):
    """Run a block of Python, which may await."""
    compiled = compile(code, "docs", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    made = eval(compiled, names)
    if made is not None:
        await made
    return names


async def test_the_python_of_the_pages_runs(built, project, project_root, monkeypatch):
    monkeypatch.chdir(project)
    given = {
        "root": project / KEY,
        "question": "Who steals the diary?",
        "document": "Elsa steals the diary.",
        "chunks": [{"id": "1", "text": "Elsa steals the diary.", "keywords": ["diary"]}],
        "entities": [{"name": "Elsa", "type": "person", "mentions": ["1"], "confidence": 0.9}],
        "relationships": [],
    }
    made = {}
    for name in ("judging", "ci", "retrieval", "suites", "api"):
        for code in blocks(project_root / "docs" / f"{name}.md", "python"):
            if "my_project" not in code:  # run above
                made |= await execute(code, dict(given))
    report, regressions = await made["score"]()
    assert report["total_tests"] == 3
    assert not any(each.regressed for each in regressions)
    answer = {"query_result": {"answer": "word " * 25}}
    assert (await made["Length"]().evaluate(None, answer)).score == 0.5
    assert made["many"][0].overall_score is not None
    assert made["report"].total_checks == 17
    assert (project / "dashboard.html").exists()


def test_the_commands_of_the_other_pages_run(built, project, project_root):
    results = project / "eval" / "results"
    n_run = 0
    for name in ("labels", "ci", "numbers"):
        for block in blocks(project_root / "docs" / f"{name}.md", "sh"):
            for line in block.splitlines():
                command = line.partition(" #")[0].replace(" RUN ", " latest ")
                command = command.replace("~/Downloads/", "")
                done = run(command, project, GRAPHRAG_EVAL_LIMIT="2")
                assert done.exit_code in (0, 3, 100), (command, done.output)
                n_run += 1
                if "view --labels" in command:
                    filled = project / "audit_correctness_labels.csv"
                    sheet = (results / "audit_correctness.csv").read_text(encoding="utf-8-sig")
                    rows = list(csv.DictReader(StringIO(sheet, newline="")))
                    with filled.open("w", encoding="utf-8", newline="") as file:
                        writer = csv.DictWriter(file, rows[0].keys())
                        writer.writeheader()
                        writer.writerows([{**row, "label": "1"} for row in rows])
    assert n_run == 8


@pytest.mark.slow
def test_the_story_of_the_handbook_ends_as_it_says(project_root, tmp_path):
    page = project_root / "docs" / "start.md"
    (script,) = blocks(page, "python")
    (tmp_path / "make_handbook.py").write_text(script, encoding="utf-8")
    path = f"{GRAPHRAG.parent}{os.pathsep}{os.environ['PATH']}"
    printed = ""
    files, *ours = blocks(page, "bash")
    bash = ["bash", "-euo", "pipefail", "-c", files]
    subprocess.run(bash, cwd=tmp_path, env={**os.environ, "PATH": path}, timeout=300, check=True)
    for command in [line for block in ours for line in block.splitlines()]:
        done = run(command, tmp_path)
        assert done.exit_code == 0, (command, done.output)
        printed += done.stdout
    (sample,) = blocks(page, "text")
    for line in sample.splitlines()[:2]:  # the third has seconds
        assert line in printed
    assert len(list((tmp_path / "input").iterdir())) == 80


def test_the_flags_that_docs_name_are_there(project_root):
    group = get_command(app)
    flags = {
        name: {flag for each in command.params for flag in each.opts}
        for name, command in {"": group, **group.commands}.items()
    }
    wrong, n_seen = set(), 0
    for page in [*project_root.glob("*.md"), *project_root.glob("docs/*.md")]:
        if page.name == "CHANGELOG.md":
            continue
        for command in re.findall(
            r"(?:graphrag|gtog) eval\b([^`\n|#&;]*)", page.read_text("utf-8")
        ):
            name = command.split()[0] if command.split() and command.split()[0] in flags else ""
            named = set(re.findall(r"(?<!\S)--[a-z][a-z-]+", command)) - {"--help"}
            wrong |= {f"{page.name}: {name} {flag}" for flag in named - flags[name]}
            n_seen += len(named)
    assert wrong == set()
    assert n_seen > 50


@pytest.mark.slow
def test_the_site_is_searched_from_a_folder_without_a_network(project_root, tmp_path):
    pytest.importorskip("mkdocs", reason="the extra docs is not installed")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path],
        cwd=project_root,
        check=True,
    )
    asked = []
    with open_browser() as browser:
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "index.html").as_uri())
        page.click("input.md-search__input")
        page.keyboard.type("margin")
        page.wait_for_selector(".md-search-result__item")
        page.goto((tmp_path / "commands.html").as_uri())
        assert "--accept-index-change" in page.inner_text("article")
    assert {url.partition(":")[0] for url in asked} <= {"file", "data"}


def test_the_run_with_a_language_model_is_told_as_its_rows_are(project_root, capsys):
    folder = project_root / "docs" / "real_run"
    runpy.run_path(str(folder / "match.py"), run_name="__main__")
    printed = capsys.readouterr().out
    told = (folder / "index.md").read_text(encoding="utf-8")
    assert printed.strip() in told
    shares = re.findall(r"^(\w+) .* (\d+) \([^)]*\)$", printed, flags=re.MULTILINE)[:5]
    assert all(f"{share} % with `{method}`" in told for method, share in shares)
    readme = (project_root / "README.md").read_text(encoding="utf-8")
    table = [line.strip("|").split("|") for line in readme.splitlines() if line[:1] == "|"]
    heads, *_, small = [[cell.strip() for cell in row] for row in table]
    assert "real_run" in small[0]
    row = dict(zip(heads, small, strict=True))
    assert [row[f"`{method}`"] for method, _ in shares] == [f"{share} %" for _, share in shares]
    with (folder / "rows.csv").open(encoding="utf-8") as file:
        asked = {row["sample_id"] for row in csv.DictReader(file)}
    assert f"| questions | {len(asked)}: " in told
    judged = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert judged["metadata"]["total_questions"] == len(asked)
    # McNemar's test of the labels, with Holm, and the limits of the run's own answer agree.
    tests = re.findall(r"^(\w+) \d+, (\w+) \d+ \(n \d+\) +<? ?([\d.]+)$", printed, re.MULTILINE)
    assert len(tests) == len(judged["comparisons"]) == 10
    for (a, b, p), compared in zip(tests, judged["comparisons"], strict=True):
        of = compared["corrected"]
        assert (a, b) == (compared["a"], compared["b"])
        assert of["p_holm"] == pytest.approx(float(p), abs=1e-4)
        assert (of["low_simultaneous"] <= 0 <= of["high_simultaneous"]) == (float(p) > 0.05)


def test_the_run_with_a_large_language_model_is_told_as_its_rows_are(project_root, capsys):
    folder = project_root / "docs" / "large_run"
    runpy.run_path(str(folder / "table.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed.strip() in (folder / "index.md").read_text(encoding="utf-8")
    with gzip.open(folder / "requests.jsonl.gz", "rt", encoding="utf-8") as file:
        replies = [json.loads(line) for line in file]
    assert f"({len(replies)})" in (folder / "index.md").read_text(encoding="utf-8")
    assert all(row["request"] and row["reply"] for row in replies)


def test_the_runs_over_a_graph_by_a_model_are_told_as_their_files_are(project_root):
    folder = project_root / "docs" / "graph_run"
    with lzma.open(folder / "requests.jsonl.xz", "rt", encoding="utf-8") as file:
        replies = [json.loads(line) for line in file]
    assert f"all {len(replies):,} requests" in (folder / "index.md").read_text(encoding="utf-8")
    assert all(row["request"] and row["reply"] for row in replies)
    law = project_root / "docs" / "law_run" / "questions.json"
    rows = json.loads(law.read_text(encoding="utf-8"))
    kinds = Counter(row["tags"]["kind"] for row in rows)
    assert kinds == {"one clause": 14, "two clauses": 14, "number": 7, "not in it": 5}
    assert all(bool(row["evidence"]) == row.get("answerable", True) for row in rows)


def test_links_between_documents_lead_somewhere(project_root):
    for document in [*project_root.glob("*.md"), *(project_root / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), (document.name, target)


def test_the_notebook_runs(built, project):
    import nbformat  # here, as every worker imports what is above
    from nbclient import NotebookClient

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
    for text, words in zip(texts, (*shown, "looked_up", "|", "reason"), strict=True):
        assert words in text
    assert "(offline baseline models): " in texts[1]


def test_the_files_that_docs_name_are_there(project_root):
    files = subprocess.run(
        ["git", "ls-files"], cwd=project_root, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    made_up = {"my_rag.py", "my_judges.py", "my_scorers.py", "my_measures.py", "make_handbook.py"}
    missing = {
        f"{page.name}: {name}"
        for page in [*project_root.glob("*.md"), *project_root.glob("docs/*.md")]
        if page.name != "CHANGELOG.md"
        for name in re.findall(r"`([\w./]+\.(?:py|pyi))`", page.read_text(encoding="utf-8"))
        if not any(f"/{each}".endswith(f"/{name}") for each in files) and name not in made_up
    }
    assert missing == set()
