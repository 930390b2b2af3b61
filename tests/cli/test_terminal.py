"""What the commands print is printed as it is."""

import json
import os
import re
import subprocess
import sys
from errno import ENOSPC
from itertools import pairwise

import pytest
import yaml
from support.clock_evaluation import ROWS

from graphrag.eval.cli.terminal import ERROR, USAGE, explained
from graphrag.eval.report.progress import Pulse
from graphrag.text.console import open_console
from graphrag.text.input_files import InputFileError


def test_a_console_takes_no_text_for_markup_emoji_or_numbers(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    text = "[red]7[/red] of 9 :smile:"
    open_console().print(text)
    assert capsys.readouterr().out == f"{text}\n"


STEP = re.compile(r"(\S.*?) \.\.\.\.*(?: \(\d+ s\)(?: \.+)?)?")

HEAVY = ("litellm", "pandas", "numpy", "scipy", "statsmodels", "lancedb", "openai")
"""What takes longer to import than an error may take to be told."""

LOOK = """
import json, sys
sys.argv = ["graphrag", "eval"]
from graphrag.cli.main import app
codes = []
for arguments in json.load(sys.stdin):
    try:
        app(["eval", *arguments])
    except SystemExit as end:
        codes.append(end.code)
print(json.dumps([codes, sorted({name.partition(".")[0] for name in sys.modules})]))
"""
LONG = "long" * 75
WRONG = {
    ("--root", "nowhere"): "nowhere does not exist; check --root",
    ("--root", "no_project.yaml"): "no_project.yaml is a file; name its folder by --root.",
    ("--methods", "togg"): "unknown name 'togg'",
    ("--metrics", "corectness"): "unknown name 'corectness'",
    ("--limit", "0"): "--limit",
    ("--imdb-key", "dock"): "--imdb-key dock: no question is asked of it",
    ("--config", "no_questions.yaml"): "nothing.json",
    ("--config", "no_project.yaml"): "The project folder",
    ("show", "2020"): "There is no run in",
    ("compare", "2020", "2021"): "There is no run in",
    ("--config", "other_index.yaml"): "which other_index.yaml does not configure",
    ("--config", "not_built.yaml"): "Error: Index bare is not indexed: entities, relationships",
    ("show", "latest"): "There is no run in",
    ("compare", "latest"): "There is no run in",
    ("compare", "a.json", "b.json"): "a.json does not exist; name a run",
    ("show", "--html", "a.html"): "There is no run in",
    ("view", "--root", "nowhere"): "nowhere does not exist; check --root",
    ("view", "--labels", "latest"): "There is no run in",
    (
        "judge",
        "--labels",
        "none.csv",
    ): "none.csv does not exist; name the CSV that you filled in, or the "
    "one that the page's button Download CSV saved, often in ~/Downloads.",
    ("validate", "--root", "nowhere"): "The project folder nowhere does not exist",
    ("validate", "--root", "bare"): "is not indexed: documents, text_units",
    ("suite", "other"): "There is no suite other",
    ("history", "--root", "nowhere"): "nowhere does not exist; check --root",
    ("dashboard", "--root", "nowhere"): "nowhere does not exist; check --root",
    ("--output", LONG): f"{LONG} can't be used (File name too long); name another file or folder.",
    ("--root", LONG): f"{LONG} can't be used (File name too long)",
    ("show", LONG): f"{LONG} can't be used (File name too long)",
    ("--config", "latin.yaml"): "latin.yaml can't be read: it is not UTF-8; save it so.",
}


def test_an_error_before_the_first_call_imports_nothing_heavy(make_evaluation):
    evaluation = make_evaluation()
    config = yaml.safe_load((evaluation.root / "eval_config.yaml").read_text(encoding="utf-8"))
    for name, changes in (
        ("no_questions", {"dataset": {"path": "nothing.json"}}),
        ("no_project", {"indexes": {"clock": "no_clock"}}),
        ("other_index", {"dataset": {"path": "other.json"}}),
        ("not_built", {"indexes": {"bare": "bare"}, "dataset": {"path": "bare.json"}}),
    ):
        text = yaml.safe_dump({**config, **changes})
        (evaluation.root / f"{name}.yaml").write_text(text, encoding="utf-8")
    asked = [{"id": "q1", "imdb_key": "clok", "question": "Who?", "answer": "Ada"}]
    (evaluation.root / "other.json").write_text(json.dumps(asked), encoding="utf-8")
    asked[0]["imdb_key"] = "bare"
    (evaluation.root / "bare.json").write_text(json.dumps(asked), encoding="utf-8")
    (evaluation.root / "latin.yaml").write_text("caf\u00e9: 1", encoding="latin-1")
    (evaluation.root / "bare").mkdir()
    (evaluation.root / "bare" / "settings.yaml").write_text("{}", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", LOOK],
        input=json.dumps(list(WRONG)),
        cwd=evaluation.root,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "300"},
    )
    codes, modules = json.loads(done.stdout.splitlines()[-1])
    assert codes == [2] * len(WRONG), done.stderr
    for said in WRONG.values():
        assert said in done.stderr
    assert set(HEAVY) & set(modules) == set()


@pytest.mark.parametrize(("says_new", "gap_s", "last"), [(True, 10, "120"), (False, 60, "(120 s)")])
def test_a_pipe_hears_of_a_long_step_every_ten_seconds(says_new, gap_s, last):
    """Of one that has nothing new to tell, every minute how long it has taken so far."""
    now, lines = 0.0, [("", 0.0)]
    pulse = Pulse(lambda line: lines.append((line, now)), "Reading", lambda: now)
    pulse.print_now("Reading")
    for second in range(1, 121):
        now = float(second)
        pulse.update(f"Reading {second}" if says_new else "Reading")
        now += 0.5  # the thread that beats looks once a second, whenever that is
        pulse.beat()
    at = [when for _, when in lines]
    gaps = [later - earlier for earlier, later in pairwise(at)]
    assert max(gaps) <= gap_s + 1
    assert min(gaps[1:]) >= gap_s, "no more than is read"
    assert lines[-1][0].endswith(last)


def test_an_index_of_which_nothing_is_asked_need_not_be_there(make_evaluation):
    evaluation = make_evaluation(methods=["basic"])
    keys = ("clock", "bare")
    rows = zip(ROWS, keys, strict=False)
    evaluation.write_rows([{**row, "imdb_key": key} for row, key in rows])
    evaluation.configure(indexes={"clock": str(evaluation.project), "bare": "bare"})
    evaluation.done("--limit", "1", "--dry-run")
    assert "bare" in evaluation.run("--limit", "2", "--dry-run").stderr


def steps_of(stderr: str) -> list[str]:
    """Return what a pipe was told of the steps, without the dots of those that lasted."""
    return [found[1] for line in stderr.splitlines() if (found := STEP.fullmatch(line))]


def test_every_step_of_a_run_is_said_in_a_pipe(make_evaluation):
    evaluation = make_evaluation(methods=["basic"])
    ran = evaluation.done("--limit", "2")
    assert steps_of(ran.stderr) == [
        "Starting",
        "Reading the indexes",
        "Opening the judge",
        "Reading what was searched",
        "Computing the figures of 2 results",
        "Writing the files",
    ]
    shown = [line.rstrip(" .") for line in ran.stderr.splitlines()]
    assert "0/2" in shown
    assert any(line.startswith("2/2 ") for line in shown)
    assert not any(line.strip(" .") == "" for line in ran.stderr.splitlines())
    # What is quiet, or read by a program, says no step.
    for command in (("--limit", "1"), ("show", "latest")):
        assert evaluation.run(*command, "-q").stderr == "", command
    listed = evaluation.run("history", "--json")
    assert listed.stderr == ""
    assert len(json.loads(listed.stdout)) == 2


def test_help_loads_nothing_that_only_a_run_needs():
    said = subprocess.run(
        [sys.executable, "-c", LOOK],
        input=json.dumps([["--help"]]),
        capture_output=True,
        text=True,
        check=True,
    )
    (code,), loaded = json.loads(said.stdout.splitlines()[-1])
    assert code == 0
    assert not {*HEAVY, "aiofiles", "dotenv", "filelock"} & {*loaded}


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (PermissionError(13, "Permission denied", "there"), USAGE, "Error: there can't be used ("),
        # Of a socket or a process, which no other file would mend.
        (PermissionError(13, "Permission denied"), ERROR, "Unexpected error: PermissionError: "),
        (OSError(ENOSPC, "No space left on device"), ERROR, "Error: a disk is full ("),
        (InputFileError(ENOSPC, "make room there"), ERROR, "Error: make room there\n"),
    ],
    ids=["path", "no-path", "full", "told"],
)
def test_another_path_is_asked_for_only_where_one_is_refused(error, code, said, capsys):
    def refuse() -> int:
        raise error

    assert explained(refuse) == code
    assert capsys.readouterr().err.startswith(said)
