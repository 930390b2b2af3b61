"""What every run leaves behind, and ``graphrag eval show``, which makes it again from eval.db."""

import asyncio
import json
import re
import shutil
import sqlite3
import sys
from pathlib import Path
from typing import Any

from support.clock_evaluation import ROWS, Evaluation, flat, in_process
from typer.main import get_command

from graphrag.eval.cli.app import app as eval_app
from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.runner.evaluation_runner import EvaluationRunner
from graphrag.eval.store.records import Run

ERROR, USAGE = 1, 2
FILES = ("eval_results_summary.json", "eval_results_detailed.json", "retrieval_results.json")
LABEL = "(offline baseline models)"


def files_in(folder: Path) -> dict[str, str]:
    return {name: (folder / name).read_text(encoding="utf-8") for name in FILES}


def own_folder(evaluation: Evaluation, run: Run) -> Path:
    return evaluation.output / "runs" / run.run_id


def test_a_later_run_leaves_the_files_of_an_earlier_one(finished_copy):
    evaluation = finished_copy
    (first,) = evaluation.runs()
    before = files_in(evaluation.output)
    assert files_in(own_folder(evaluation, first)) == before
    shutil.rmtree(evaluation.output / "runs")  # then they are set aside
    second = evaluation.done("--limit", "1")
    assert files_in(own_folder(evaluation, first)) == before
    on_top = files_in(evaluation.output)
    metadata = json.loads(on_top[FILES[0]])["metadata"]
    assert metadata["run_id"] == evaluation.runs()[0].run_id
    assert metadata["asked"] == {"questions": 1, "methods": ["tog", "basic"]}
    assert (
        f"Until now these files showed run {first.run_id} ({len(ROWS)} questions), whose files "
        f"are kept in {own_folder(evaluation, first)}"
    ) in flat(second.stderr)
    # Shown again, the older one leaves the newest on top.
    shutil.rmtree(evaluation.output / "runs")
    shown = evaluation.run("show", first.run_id, "--full", COLUMNS="160")
    assert str(own_folder(evaluation, first)) in flat(shown.stdout)
    assert files_in(own_folder(evaluation, first)) == before
    assert files_in(evaluation.output) == on_top


def test_files_that_no_store_holds_are_kept_too(make_evaluation):
    evaluation = make_evaluation(output={"save_intermediate": False}, methods=["basic"])
    kept: list[dict[str, str]] = []
    for _ in range(2):
        evaluation.done("--limit", "1")
        kept.append(files_in(evaluation.output))
    folders = sorted((evaluation.output / "runs").iterdir())
    assert {tuple(files_in(folder).items()) for folder in folders} == {
        tuple(each.items()) for each in kept
    }
    assert not evaluation.store_path.exists()
    assert "There is no run in" in evaluation.run("show", folders[0].name).output


def test_show_prints_and_writes_what_the_run_did(make_evaluation):
    evaluation = make_evaluation(
        measures={"criteria": [{"metric": "judge_score", "minimum": 0.5, "target": 0.9}]},
        judge={"rubric": True, "quality": True, "pairwise": True},
        trials=2,
    )
    ran = evaluation.done("--full", COLUMNS="160")
    (run,) = evaluation.runs()
    before = files_in(evaluation.output)
    for name in ("latest", run.run_id, run.run_id[:-3]):
        for path in (*evaluation.output.glob("*.json"), *own_folder(evaluation, run).glob("*")):
            path.unlink()
        shown = evaluation.done("show", name, "--full", COLUMNS="160")
        assert shown.stdout == ran.stdout
        assert files_in(evaluation.output) == files_in(own_folder(evaluation, run)) == before
    (evaluation.root / "eval_config.yaml").unlink()  # what was kept of the run is enough
    shown = evaluation.run("show", "--full", "--output", str(evaluation.output), COLUMNS="160")
    assert shown.stdout == ran.stdout
    assert files_in(evaluation.output) == before


def test_without_the_index_what_was_measured_on_it_is_left_as_it_was(finished_copy):
    evaluation = finished_copy
    (run,) = evaluation.runs()
    before = files_in(evaluation.output)
    assert json.loads(before[FILES[0]])["measures"] != {}
    shutil.rmtree(evaluation.project / "output")
    shown = evaluation.done("show", "latest")
    assert "index clock is not the one that was searched any more" in flat(shown.stderr)
    assert "left as they are" in flat(shown.stderr)
    assert files_in(evaluation.output) == files_in(own_folder(evaluation, run)) == before
    to = evaluation.root / "elsewhere"
    to.mkdir()
    shutil.copy(evaluation.store_path, to)
    evaluation.done("show", "latest", "--output", str(to), "-q")
    summary = json.loads(files_in(to)[FILES[0]])
    assert summary["measures"] == {}
    assert "index clock is not the one" in (to / "report.html").read_text("utf-8")
    assert summary["by_method"] == json.loads(before[FILES[0]])["by_method"]


def test_settings_that_can_not_be_read_any_more_are_not_called_another_index(finished_copy):
    evaluation = finished_copy
    evaluation.write_settings("tog_search: [")
    told = flat(evaluation.done("show", "latest").stderr)
    assert "index clock can't be read any more (" in told
    assert "settings.yaml is not valid YAML: line" in told
    assert "is not the one that was searched" not in told


def test_an_unfinished_run_shows_what_is_there(finished_copy):
    evaluation = finished_copy
    (run,) = evaluation.runs()
    with sqlite3.connect(evaluation.store_path) as connection:  # killed in its last question
        connection.execute("UPDATE runs SET status = 'unfinished'")
        connection.execute("DELETE FROM verdicts WHERE unit = (SELECT max(unit) FROM responses)")
    connection.close()
    shown = evaluation.done("show", "latest")
    assert f"run {run.run_id} is unfinished: 11 of 12 results are there" in flat(shown.stderr)
    assert "incomplete: 11 of 12" in flat(shown.stdout)
    metadata = json.loads(files_in(evaluation.output)[FILES[0]])["metadata"]
    assert (metadata["is_complete"], metadata["n_done"]) == (False, 11)


def test_an_answer_that_waits_for_a_verdict_counts_in_no_comparison(finished_copy):
    evaluation = finished_copy
    old = evaluation.runs()[0].run_id
    evaluation.done("compare", "latest", "--pin")
    evaluation.done("-q")
    new = evaluation.runs()[0].run_id
    waits = "(SELECT unit FROM responses WHERE sample_id = 'q1' AND method = 'tog')"
    with sqlite3.connect(evaluation.store_path) as connection:
        connection.execute("UPDATE runs SET status = 'unfinished' WHERE run_id = ?", (new,))
        left = f"metric = 'completeness' AND run_id = ? AND unit IN {waits}"
        connection.execute(f"DELETE FROM verdicts WHERE {left}", (new,))
    connection.close()
    to = evaluation.root / "compared.json"

    def compared(*sides: str) -> dict[str, dict[str, Any]]:
        evaluation.run("compare", *sides, "--margin", "0.9", "--json", str(to))
        items = {item["method"]: item for item in json.loads(to.read_text("utf-8"))["items"]}
        pairs = {method: item["difference"]["n_pairs"] for method, item in items.items()}
        assert pairs == {"tog": 5, "basic": 6}
        return {method: item["decision"] for method, item in items.items()}

    of_new, of_baseline = compared(new, "pinned"), compared(old, new)
    assert of_new["tog"]["coverage"] == of_baseline["tog"]["baseline_coverage"] == 5 / 6
    evaluation.done("compare", new, "--pin")
    assert compared(old, "pinned") == of_baseline
    assert of_baseline["basic"]["outcome"] == "pass"
    assert of_baseline["tog"]["outcome"] == "inconclusive"
    assert "83.3% of the verdicts asked of it in the baseline" in of_baseline["tog"]["reason"]


def test_of_a_run_without_a_result_there_is_nothing_to_show(finished_copy):
    with sqlite3.connect(finished_copy.store_path) as connection:  # refused at its first request
        connection.execute("UPDATE runs SET status = 'unfinished'")
        connection.execute("DELETE FROM responses")
    connection.close()
    run_id = finished_copy.runs()[0].run_id
    for flags in ([], ["--failed"], ["--failed", "--method", "tog"], ["--question", "q1"]):
        assert "There is nothing to show yet." in finished_copy.done("show", run_id, *flags).stderr


def test_responses_without_verdicts_are_shown_as_they_were(make_evaluation):
    evaluation = make_evaluation()
    ran = evaluation.run("--skip-judge", COLUMNS="160")
    shown = evaluation.run("show", "latest", COLUMNS="160")
    assert shown.stdout == ran.stdout
    assert "is not judged: 12 of 12 results are there" in flat(shown.stderr)


def test_latest_is_of_the_command_not_of_a_notebook(make_evaluation):
    evaluation = make_evaluation()
    config = EvaluationConfig.from_yaml(evaluation.root / "eval_config.yaml")

    def ask_in_python() -> None:
        asyncio.run(EvaluationRunner(config).run_evaluation(ROWS[:2]))

    ask_in_python()
    alone = evaluation.run("show", "latest")
    assert "2 questions, finished) by Python." in flat(alone.stderr)
    evaluation.done("-q", "--limit", "2")
    ask_in_python()
    before = files_in(evaluation.output)
    judged = evaluation.done("judge", "latest", "--metrics", "completeness", COLUMNS="160")
    judging, notebook, command, _ = evaluation.runs()
    assert [run.origin for run in (judging, notebook, command)] == ["judge", "python", "command"]
    # A judging has files of its own.
    assert files_in(evaluation.output) == files_in(own_folder(evaluation, command)) == before
    assert evaluation.run("show", judging.run_id, COLUMNS="160").stdout == judged.stdout
    shown = flat(evaluation.run("show", "latest").stderr)
    assert f"latest is run {command.run_id}" in shown
    assert f"2 questions, finished); newer, but not taken: {judging.run_id}" in shown
    listed = evaluation.run("show", COLUMNS="160").output
    for words in ("by Python", "by graphrag eval judge", "by graphrag eval "):
        assert words in listed
    compared = evaluation.run("compare", "latest", notebook.run_id)
    assert f"latest is run {command.run_id}" in flat(compared.stderr)
    evaluation.done("show", notebook.run_id)
    assert json.loads(files_in(own_folder(evaluation, notebook))[FILES[0]])["measures"] != {}
    resumed = evaluation.run("--limit", "2", "--retry-errors")
    assert f"Resuming run {command.run_id}" in flat(resumed.stderr)


def test_the_tables_are_shown_when_the_files_cant_be_written(make_evaluation):
    evaluation = make_evaluation(methods=["basic"])
    evaluation.output.mkdir(parents=True)
    (evaluation.output / "runs").write_text("in the way", encoding="utf-8")
    result = evaluation.done("--full", code=ERROR)
    assert "Score: correctness" in result.stdout
    (run,) = evaluation.runs()
    assert f"The run is kept; write them again with: graphrag eval show {run.run_id}" in flat(
        result.stderr
    )
    (evaluation.output / "runs").unlink()
    evaluation.done("show", "latest")
    assert files_in(evaluation.output) == files_in(own_folder(evaluation, run))


def test_wrong_use_is_one_sentence(finished):
    (run,) = finished.runs()
    for flags, sentences in {
        ("nothing",): ("has no run 'nothing'", "graphrag eval show --root /"),
        (f"{run.run_id[:-1]}x",): (f"did you mean {run.run_id}?",),
        ("--config", "no.yaml"): ("no.yaml does not exist", "check --config"),
        ("latest", "--output", "nowhere"): ("There is no run in",),
        ("--question", "q7"): ("has no question 'q7'",),
        ("--question", "WHO"): (
            "3 questions of run",
            "begin with 'WHO'; give more of the text, or an id: q1: Who built the tower clock of "
            "Ashcombe?; q3: Who stole the silver pendulum?; q5: Whom is Clara Reed married to?",
        ),
        ("--failed", "--method", "togg"): ("did you mean 'tog'? It has tog, basic.",),
        ("--method", "tog"): ("--method goes with --failed, --question or --changed",),
        ("--failed", "--export", "a.csv"): ("write no file",),
        ("--export", "a.xlsx"): ("name a file that ends in .csv.",),
        ("--export", "a.Parquet"): ("Parquet is gone since version 2.0.0; name a file", "read_csv"),
    }.items():
        result = finished.done("show", *flags, code=USAGE)
        for sentence in sentences:
            assert sentence in flat(result.stderr)
        if flags[0] == "--question":
            assert "Reading run" not in result.stderr, "what is wrong is said before the wait"


def test_a_question_is_shown_with_verdicts_evidence_and_way(finished):
    before = files_in(finished.output)
    shown = finished.done("show", "--question", "q1", COLUMNS="200")
    for words in (
        "q1 of clock: Who built the tower clock of Ashcombe?",
        "Expected: Idris Vane",
        f"tog {LABEL}: ",
        f"basic {LABEL}: ",
        "correctness: right: The response holds",
        "evidence: found, first at rank ",
        "Way",
    ):
        assert words in shown.stdout
    assert re.search(r"call 1 read Sources \([\d, ]+\)", shown.stdout)
    assert re.search(r"the answer cites Sources \(\d+\), first read in call 1", shown.stdout)
    assert ROWS[1]["question"] not in shown.stdout
    assert files_in(finished.output) == before


def test_failed_lists_what_the_best_has_wrong_and_then_where_methods_differ(
    finished_copy, monkeypatch
):
    evaluation = finished_copy
    with sqlite3.connect(evaluation.store_path) as connection:
        connection.execute("UPDATE verdicts SET score = 1")
        wrong = "SELECT unit FROM responses WHERE method = 'basic' OR sample_id = 'q4'"
        connection.execute(f"UPDATE verdicts SET score = 0 WHERE unit IN ({wrong})")
    connection.close()
    listed = evaluation.done("show", "--failed", COLUMNS="200").stdout.splitlines()
    ids = [line.split()[0] for line in listed]
    assert ids[:6] == ["q4", "q1", "q2", "q3", "q5", "q6"]
    assert "tog wrong (also failed: faithfulness, " in listed[0]
    assert not any("tog wrong" in line for line in listed[1:6])
    assert listed[6] == (
        "tog has 1 of 6 questions wrong, failed or unscored; it has 5 right that others have not "
        f"{LABEL}."
    )
    assert "--failed --method NAME" in listed[8]
    with monkeypatch.context() as patch:
        patch.setattr("graphrag.eval.cli.show_run._MOST_LISTED", 4)
        few = evaluation.done("show", "--failed", COLUMNS="200").stdout.splitlines()
    assert few[:4] == listed[:4]
    assert few[4].startswith("... and 2 more questions; the answers to all of them with: graphrag")
    assert "--export rows.csv" in few[4]
    assert few[5:] == listed[6:]
    of_basic = evaluation.done("show", "--failed", "--method", "basic", COLUMNS="200").stdout
    assert [line.split()[0] for line in of_basic.splitlines()[:6]] == [f"q{n}" for n in range(1, 7)]
    assert "tog wrong" not in of_basic
    assert f"basic has 6 of 6 questions wrong, failed or unscored {LABEL}." in of_basic
    full = evaluation.done("show", "--failed", "--method", "basic", "--full", COLUMNS="200").stdout
    assert (full.count(f"basic {LABEL}: "), full.count(f"tog {LABEL}: ")) == (6, 0)
    full = evaluation.done("show", "--failed", "--full", COLUMNS="200").stdout
    assert full.index("q4 of clock") < full.index("q1 of clock")
    shown = evaluation.done("show", "--question", "who  STOLE", COLUMNS="200").stdout
    assert "q3 of clock: Who stole the silver pendulum?" in shown
    assert "q1 of clock" not in shown


def test_what_flipped_is_named_and_shown_beside_what_it_was(finished_copy):
    evaluation = finished_copy
    evaluation.done("--methods", "basic", "-q")
    new, old = evaluation.runs()
    with sqlite3.connect(evaluation.store_path) as connection:
        for run, name, score in ((new, "q1", 0), (old, "q1", 1), (new, "q3", 1), (old, "q3", 0)):
            connection.execute(
                "UPDATE verdicts SET score = ? WHERE run_id = ? AND metric = 'correctness' AND "
                "unit IN (SELECT unit FROM responses WHERE run_id = ? AND sample_id = ?)",
                (score, run.run_id, run.run_id, name),
            )
    connection.close()
    to = evaluation.root / "compared.json"
    brief = evaluation.run("compare", new.run_id, old.run_id, "--json", str(to), COLUMNS="300")
    named = "Newly wrong: basic, correctness: q1 of clock: Who built the tower clock of Ashcombe?"
    assert named in flat(brief.stdout)
    assert "Newly right" not in brief.stdout
    line = f"Look at them with: graphrag eval show {new.run_id} --changed {old.run_id} --root "
    assert line in flat(brief.stdout)
    full = evaluation.run("compare", new.run_id, old.run_id, "--full", COLUMNS="300")
    assert "Newly right: basic, correctness: q3 of clock: " in flat(full.stdout)
    (item,) = json.loads(to.read_text(encoding="utf-8"))["items"]
    flips = [(flip["question_id"], flip["newly"]) for flip in item["flips"]]
    assert flips == [("q1", "wrong"), ("q3", "right")]
    assert (item["decision"]["newly_wrong"], item["decision"]["newly_right"]) == (1, 1)
    shown = evaluation.done("show", new.run_id, "--changed", old.run_id, COLUMNS="200")
    assert shown.stdout.count(f"basic, in the baseline {LABEL}: ") == 2
    assert "q2 of clock" not in shown.stdout
    failed = evaluation.run("show", new.run_id, "--failed", COLUMNS="200").stdout
    assert "q1  Who built the tower clock of Ashcombe?  basic wrong" in failed
    assert (
        f"basic has {failed.count('  basic wrong')} of 6 questions wrong, failed or uns" in failed
    )
    assert f"unscored {LABEL}." in failed
    whole = evaluation.run("show", new.run_id, "--failed", "--full", COLUMNS="200").stdout
    assert "q1 of clock" in whole


def test_the_terminal_is_readable_at_80_columns_and_says_the_label_once(finished):
    shown = finished.done("show", "latest", COLUMNS="80")
    tables = shown.stdout.partition("Score: ")[2].partition("The run took")[0]
    rows = [line for line in tables.splitlines() if not line.endswith(".")]  # a pipe wraps none
    assert [line for line in rows if len(line) > 80] == []
    assert "…" not in shown.stdout
    assert shown.stdout.count(LABEL) == 1
    assert "$" not in tables
    (run,) = finished.runs()
    assert f"show {run.run_id} --full --root {finished.root}" in flat(shown.stdout)


def test_results_are_kept_once(finished):
    (run,) = finished.runs()
    for name in (*FILES, "report.html"):
        assert (finished.output / name).samefile(own_folder(finished, run) / name), name


def test_every_command_has_a_quiet_form_and_there_is_a_version():
    shown = in_process("--version")
    assert shown.stdout.startswith("gtog ")
    assert " over graphrag 3.3" in shown.stdout
    group: Any = get_command(eval_app)
    for command in (group, *group.commands.values()):
        assert any("-q" in parameter.opts for parameter in command.params), command.name


def test_a_missing_extra_is_named_before_the_work(finished, monkeypatch):
    monkeypatch.setattr(
        "graphrag.installation.requires",
        lambda _: [f"nowhere-at-all>=2; extra == '{extra}'" for extra in ("audit", "ray")],
    )
    sheet = finished.root / "labels.csv"
    sheet.write_text("", encoding="utf-8")
    for flags, pip, install in (
        (("judge", "--labels", str(sheet)), object(), f"{sys.executable} -m pip install"),
        (("--workers", "2"), None, f"uv pip install --python {sys.executable}"),
    ):
        monkeypatch.setattr("graphrag.installation.find_spec", lambda _, pip=pip: pip)
        refused = finished.done(*flags, code=USAGE)
        assert f'which is missing: {install} "nowhere-at-all>=2"' in flat(refused.stderr)


def test_the_help_fits_one_screen():
    shown = in_process("--help", COLUMNS="80")
    lines = shown.stdout.strip().splitlines()
    assert len(lines) <= 40
    assert "Exit codes: 0 done;" in shown.stdout
    assert not any("GRAPHRAG_EVAL" in line for line in lines)


def test_the_output_of_drafts_is_a_file():
    shown = flat(in_process("draft", "--help", COLUMNS="100").stdout)
    assert "Write to this FILE.json." in shown
    assert "Folder of the results" not in shown
