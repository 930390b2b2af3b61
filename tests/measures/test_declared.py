"""A measure is one file: added as docs/adding.md says, in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

from support.clock_evaluation import MakeEvaluation

from graphrag.eval.scorers.measuring import list_forms

BREVITY = """
from graphrag.eval.scorers.measure_declaration import Measure
from graphrag.eval.scorers.response import MeasureInput


def _brevity(given: MeasureInput) -> float | None:
    return 1 / len(given.said.split()) if given.said else None


def _brevity_of_list(given: MeasureInput, k: int) -> float:
    return 1 / k


MEASURES = (
    Measure(
        name="answer_brevity",
        kind="share",
        group="traced",
        source="a test",
        compute=_brevity,
        compute_at=_brevity_of_list,
        heading="how brief",
        shows_cutoff=True,
    ),
)
"""
BESIDE = """
import sys
from graphrag.eval.scorers import declared

declared.__path__.append(sys.argv.pop(1))
"""
EVALUATE = f"""{BESIDE}
from graphrag.cli.main import app

app()
"""
LIST = f"""{BESIDE}
from graphrag.eval.scorers.measuring import list_forms

list_forms((1,))
"""


def run_with(
    folder: Path, text: str, script: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run a script as if a file with this text lay beside the measures."""
    (folder / "brevity.py").write_text(text, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-c", script, str(folder), *arguments],
        env={**os.environ, "COLUMNS": "250"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_measure_is_added_by_one_file(make_evaluation: MakeEvaluation, tmp_path: Path):
    evaluation = make_evaluation(methods=["basic"])
    criterion = {"metric": "answer_brevity_at_4", "minimum": 0.2, "target": 0.3}
    evaluation.configure(measures={"cutoffs": [2, 4, 8], "criteria": [criterion]})
    root = str(evaluation.root)
    result = run_with(tmp_path, BREVITY, EVALUATE, "eval", "--full", "--root", root)
    assert result.returncode == 0, result.stderr
    found = evaluation.read_results("summary")
    measures = found["measures"]["basic"]["measures"]
    assert 0 < measures["answer_brevity"]["estimate"]["mean"] < 1
    assert measures["answer_brevity_at_4"]["estimate"]["mean"] == 0.25
    assert found["criteria"][0]["result"] == "met minimum"
    report = json.loads((evaluation.output / "retrieval_results.json").read_text("utf-8"))
    assert report["summary"]["averages"]["basic"]["answer_brevity_at_8"]["mean"] == 0.125
    _, _, table = result.stdout.partition("Traced to the index")
    table, _, _ = table.partition("┡")
    assert "how brief" in table
    assert "how brief at 4" in table
    assert "how brief at 8" not in table


def test_two_files_do_not_declare_one_measure(tmp_path: Path):
    text = BREVITY.replace("answer_brevity", "time_score")
    result = run_with(tmp_path, text, LIST)
    assert result.returncode == 1
    assert "measures declared twice: time_score" in result.stderr


def test_every_measure_is_declared_whole():
    forms = list_forms((1, 5))
    names = [form.name for form in forms]
    assert len(set(names)) == len(names)
    assert {"recall", "recall_at_1", "recall_at_5", "mrr", "combined_score"} <= set(names)
    assert "mrr_at_5" not in names
    assert all(form.measure.source and form.heading for form in forms)
