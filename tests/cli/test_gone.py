"""What a command or flag of an earlier version says, which the README and --help name no more."""

import json
import sqlite3
from contextlib import closing

import pytest
from support.clock_evaluation import flat, in_process

from graphrag.eval.cli.gone import GONE_COMMANDS, GONE_FLAGS

USAGE = 2


@pytest.mark.parametrize("name", GONE_COMMANDS)
@pytest.mark.parametrize("more", [(), ("--help",), ("latest", "--every", "6h")])
def test_a_gone_command_says_what_to_do_instead(name, more):
    refused = in_process(name, *more)
    assert (refused.exit_code, refused.stdout) == (USAGE, "")
    assert flat(refused.stderr) == f"Error: {name} {_GONE} {GONE_COMMANDS[name]}."


@pytest.mark.parametrize("name", GONE_FLAGS)
def test_a_gone_flag_says_what_to_do_instead(name):
    *command, flag = name.split()
    sentence = f"{_GONE} {GONE_FLAGS[name]}."
    for words in ([flag, "5"], [f"{flag}=5"], ["--quiet", flag]):
        refused = in_process(*command, *words)
        assert (refused.exit_code, refused.stdout) == (USAGE, "")
        assert flat(refused.stderr) == f"Error: {flag} {sentence}"
    variable = "_".join(["GRAPHRAG_EVAL", *command, flag.strip("-").replace("-", "_")]).upper()
    refused = in_process(*command, **{variable: "5"})
    assert (refused.exit_code, refused.stdout) == (USAGE, "")
    assert flat(refused.stderr) == f"Error: {variable} {sentence}"


def test_what_never_was_a_flag_or_a_command_is_called_that():
    for words in (("validate", "--markdwn"), ("validatte",), ("show", "--markdown")):
        refused = in_process(*words)
        assert refused.exit_code == USAGE
        assert "No such" in refused.stderr
        assert "is gone" not in refused.stderr


def test_the_help_names_nothing_that_is_gone():
    for command in ([], *([name.split()[0]] for name in GONE_FLAGS if " " in name)):
        shown = in_process(*command, "--help").stdout
        for name in (*GONE_COMMANDS, *GONE_FLAGS):
            *of, word = name.split()
            assert of not in ([], command) or f"│ {word} " not in shown, (command, name)


@pytest.mark.parametrize("width", ["80", "100"])
def test_the_help_fits_a_screen_of_40_lines(width):
    shown = in_process("--help", COLUMNS=width).stdout
    assert "--resume" in shown
    assert "compare" in shown
    assert len(shown.splitlines()) <= 40


def test_a_round_of_a_watch_is_a_run_like_others_but_is_not_gone_on_with(make_evaluation):
    evaluation = make_evaluation(methods=["basic"], metrics=["correctness"])
    evaluation.done("--limit", "3", "-q")
    evaluation.done("--limit", "3", "-q")
    after, before = (run.run_id for run in evaluation.runs())
    note = {"baseline": before, "pass_number": 1, "round_number": 1, "of_baseline": False}
    marked = "json_set(details, '$.origin', 'monitor', '$.watch', json(?))"
    with closing(sqlite3.connect(evaluation.store_path)) as db, db:
        set_details = f"UPDATE runs SET details = {marked}, status = ? WHERE run_id = ?"
        db.execute(set_details, (json.dumps(note), "finished", after))
    listed = json.loads(evaluation.done("show", "--json").output)
    assert [run["origin"] for run in listed] == ["graphrag eval monitor", "graphrag eval"]
    assert listed[0]["means"] == listed[1]["means"]
    evaluation.done("show", after, "--full")
    evaluation.done("compare", after, before, code=3)  # three questions
    evaluation.done("view", "--export", str(evaluation.root / "page.html"))
    assert after in (evaluation.root / "page.html").read_text("utf-8")
    said = flat(evaluation.run("compare", "latest", before).output)
    assert f"latest is run {before}" in said
    with closing(sqlite3.connect(evaluation.store_path)) as db, db:
        db.execute(set_details, (json.dumps(note), "unfinished", after))
    assert f"Run {before} is finished" in flat(evaluation.done("--limit", "3", "--resume").output)
    assert evaluation.runs()[0].status == "unfinished"


_GONE = "is gone since version 2.0.0;"
