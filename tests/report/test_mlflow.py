"""``show --mlflow``: one run of MLflow, its figures, its answers with verdicts, its files."""

import json
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.clock_evaluation import ROWS, Evaluation
from support.clock_fixtures import maker
from support.commands import each

# In a process of its own, as MLflow changes warnings and logging for good: in one, as it takes
# four seconds to import. What is shown there is read as the last of its lines but one.
READ = """
from mlflow import MlflowClient
c = MlflowClient()
(e,) = c.search_experiments(filter_string="name = 'graphrag-eval'")
print(json.dumps([{
    "id": r.info.run_id, "status": r.info.status, "tags": r.data.tags, "params": r.data.params,
    "metrics": r.data.metrics, "files": sorted(f.path for f in c.list_artifacts(r.info.run_id)),
    "traces": [{
        "tags": t.info.tags, "state": str(t.info.state), "response": t.data.response,
        "feedback": {a.name: [a.value, a.rationale, a.source.source_type, a.source.source_id]
                     for a in t.info.assessments},
    } for t in c.search_traces(locations=[e.experiment_id], run_id=r.info.run_id)],
} for r in c.search_runs([e.experiment_id])]))
"""


ADDRESSES = {
    "": "No MLflow server is named, and a store on this machine needs all of MLflow; set ",
    "http://user:pa55word@127.0.0.1:9": "can't take the run",
}
Shown = tuple[Evaluation, dict[str, Any], list[tuple[int, str, str]]]


@pytest.fixture(scope="module")
def shown(built_project: Path, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """Show a run to addresses that take none and to a store in files.

    Return the run's evaluation, the one run that MLflow has then, and how each command ended.
    """
    evaluation = maker(built_project, tmp_path_factory.mktemp("mlflow"))(
        methods=["tog", "basic"], metrics=["correctness", "relevance"]
    )
    evaluation.write_rows(ROWS[:3])
    assert evaluation.run("-q").exit_code == 0
    store = f"file://{evaluation.root / 'mlruns'}"
    files = {"MLFLOW_TRACKING_URI": store, "MLFLOW_ALLOW_FILE_STORE": "true"}
    none = {"MLFLOW_ALLOW_FILE_STORE": "false", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
    # The store comes last, as MLflow stays with one that took a run.
    variables = [*({**none, "MLFLOW_TRACKING_URI": address} for address in ADDRESSES), files]
    words = ("eval", "show", "latest", "--mlflow", "--root", evaluation.root)
    python, _, program, given = each(*[words] * 3, env=variables)
    done = subprocess.run(
        [python, "-c", program + READ, given],
        env={**os.environ, "COLUMNS": "300", **files},
        cwd=evaluation.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *_, ended, runs = done.stdout.splitlines()
    (run,) = json.loads(runs)
    return evaluation, run, [(code, out, err) for code, out, err in json.loads(ended)]


@pytest.mark.slow
def test_a_run_is_logged_with_its_figures_verdicts_and_files(shown):
    evaluation, run, (*_, (code, _, said)) = shown
    assert code == 0, said
    run_id = evaluation.runs()[0].run_id
    assert f"Run {run_id} is run {run['id']} of MLflow, with 6 answers" in said
    assert (run["status"], run["tags"]["gtog.run_id"]) == ("FINISHED", run_id)
    assert run["tags"]["gtog.embedded_models"]
    assert run["params"]["methods"] == "tog, basic"
    assert run["params"]["judge.model"] == "offline/rules"
    assert run["files"] == ["report.html", "rows.csv"]

    summary = evaluation.read_json("eval_results_summary.json")
    for method, of in summary["outcomes"].items():
        for metric in ("correctness", "relevance"):
            shown = of[metric]["given_answer"]
            logged_as = [
                run["metrics"].get(f"{method}/{metric}{suffix}")
                for suffix in ("", ".low", ".high", ".n")
            ]
            assert logged_as == [shown[name] for name in ("mean", "low", "high", "n")]
        tokens = summary["efficiency"][method]["avg_prompt_tokens"]
        assert run["metrics"][f"{method}/avg_prompt_tokens"] == tokens

    assert len(run["traces"]) == 6
    detailed = evaluation.read_json("eval_results_detailed.json")
    stored, sent = Counter[tuple[Any, ...]](), Counter[tuple[Any, ...]]()
    for question in detailed["results"]:
        for method, answer in question["methods"].items():
            for metric in ("correctness", "relevance"):
                verdict = answer["scores"][metric], answer["reasons"][metric]
                stored[question["id"], method, metric, *verdict] += 1
    for trace in run["traces"]:
        place = trace["tags"]["question_id"], trace["tags"]["method"]
        for metric, (value, reason, kind, judge) in trace["feedback"].items():
            sent[*place, metric, value, reason] += 1
            assert (kind, judge) == ("CODE", "offline/rules")  # rules, not a language model
    assert sent == stored


@pytest.mark.slow
def test_a_server_that_is_not_there_is_one_sentence(shown):
    for (code, _, said), sentence in zip(shown[2][:-1], ADDRESSES.values(), strict=True):
        assert code == 1, said
        assert sentence in said
        assert "Traceback" not in said
        assert "pa55word" not in said
