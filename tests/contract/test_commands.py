"""The configuration file and the command as a client meets them."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from support.clock_evaluation import ROWS, Evaluation, MakeEvaluation
from support.openai_server import LocalServer
from support.projects import server_settings
from typer.testing import CliRunner

from graphrag.eval import EvaluationConfig

DONE, USAGE = 0, 2
METRICS = {"correctness", "faithfulness", "relevance", "completeness"}
ONE = ("--limit", "1", "--methods", "basic")


def said(result) -> str:
    return " ".join(result.output.split())


def invoke(*words: str | Path):
    from graphrag.cli.main import app

    return CliRunner().invoke(app, ["eval", *(str(word) for word in words)])


# The file


def test_the_keys_of_the_file(tmp_path):
    path = tmp_path / "eval_config.yaml"
    path.write_text(
        "dataset: {path: qa.json}\nindexes: {a: pa}\nmethods: [tog, local, basic]\n"
        "output: {dir: out, save_intermediate: false}\njudge: {model: m, temperature: 0.2}\n",
        encoding="utf-8",
    )
    config = EvaluationConfig.from_yaml(path)
    assert (config.dataset.path, config.indexes) == ("qa.json", {"a": "pa"})
    assert (config.output.dir, config.output.save_intermediate) == ("out", False)
    assert (config.judge.model, config.judge.temperature) == ("m", 0.2)
    path.write_text("indexes: {a: pa}\n", encoding="utf-8")
    config = EvaluationConfig.from_yaml(path)
    assert config.methods == ["tog", "local", "basic"]
    assert (config.output.dir, config.output.save_intermediate) == ("eval/results", True)
    assert (config.judge.model, config.judge.temperature) == (None, 0.0)


# Who judges


def judge_models(server: LocalServer, n_before: int) -> set[str]:
    """Return the models that were asked for verdicts: calls whose prompt asks for a score."""
    return {
        record.model
        for record in server.records[n_before:]
        if record.endpoint != "embeddings"
        and any('"score"' in str(m.get("content")) for m in record.messages)
    }


ANOTHER = """\
  careful:
    model_provider: openai
    model: gpt-4.1
    api_base: {url}
    api_key: test
"""


def test_the_judge_that_is_named_judges(make_evaluation, server):
    evaluation = make_evaluation(server.base_url)
    settings = server_settings(server.base_url)
    another = ANOTHER.format(url=server.base_url)
    evaluation.write_settings(
        settings.replace("embedding_models:", another + "embedding_models:", 1)
    )
    for name, asked in {
        "careful": "gpt-4.1",
        "gpt-4.1": "gpt-4.1",
        "openai/gpt-4.1-mini": "gpt-4.1-mini",
        "gpt-5.1": "gpt-5.1",
        None: "gpt-4o",
    }.items():
        evaluation.configure(judge={"model": name})
        n_before = len(server.records)
        result = evaluation.run(*ONE)
        assert result.exit_code == DONE, result.output
        assert judge_models(server, n_before) == {asked}
        judge = evaluation.read_results("summary")["metadata"]["judge"]
        assert judge["model"] == f"openai/{asked}"


def test_a_judge_that_no_model_or_two_models_could_be_is_refused(make_evaluation, server):
    evaluation = make_evaluation(judge={"model": "gpt-5.1"})
    result = evaluation.run(*ONE)
    assert result.exit_code == USAGE
    assert "completion_models" in said(result)
    evaluation.configure(judge={"model": "gpt-4.1"})
    two = ANOTHER.format(url=server.base_url) + ANOTHER.replace("careful", "other").format(
        url="http://127.0.0.1:9/v1"
    )
    evaluation.write_settings(
        server_settings(server.base_url).replace("embedding_models:", two + "embedding_models:", 1)
    )
    result = evaluation.run(*ONE)
    assert result.exit_code == USAGE
    assert "careful and other" in said(result)
    assert not evaluation.store_path.exists()


def test_another_name_is_warned_of_and_not_asked_of_an_azure_deployment(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, judge={"model": "default_completion_modle"})
    result = evaluation.run("--dry-run", *ONE)
    assert result.exit_code == DONE, result.output
    assert "did you mean 'default_completion_model'" in said(result)
    evaluation.configure(judge={"model": "gpt-5.1"})
    settings = server_settings(server.base_url)
    azure = "model_provider: azure\n    azure_deployment_name: mine\n    api_version: v1"
    evaluation.write_settings(settings.replace("model_provider: openai", azure, 1))
    from graphrag.config.project_settings import read_settings
    from graphrag.eval.runner.judging import judge_model
    from graphrag.query.index.header import IndexHeader

    config = EvaluationConfig.from_yaml(evaluation.root / "eval_config.yaml")
    header = IndexHeader(read_settings(evaluation.project))
    chosen = judge_model(config, {"clock": header})
    assert (chosen.model, chosen.azure_deployment_name) == ("gpt-5.1", None)


# Where --config leads


@pytest.fixture
def evaluated(make_evaluation: MakeEvaluation) -> Evaluation:
    made = make_evaluation()
    made.write_rows(ROWS[:2])
    (made.root / "eval_config.yaml").rename(made.root / "other.yaml")
    return made


def test_a_configuration_is_looked_for_below_the_root_and_then_here(
    evaluated, tmp_path, monkeypatch
):
    below, here = evaluated.root / "other.yaml", tmp_path / "here" / "other.yaml"
    here.parent.mkdir()
    monkeypatch.chdir(here.parent)
    flags = ("--root", evaluated.root, "--config")
    for words in (
        ("--dry-run",),
        ("validate", "--fix"),
        ("judge", "latest"),
        ("compare", "latest", "--pin"),
        ("view", "--labels", "latest"),
    ):
        missing = invoke(*flags, "other2.yaml", *words)
        assert missing.exit_code == USAGE, missing.output
        assert "other2.yaml" in said(missing)
        below_root = invoke(*flags, "other.yaml", *words)
        shutil.move(below, here)
        only_here = invoke(*flags, "other.yaml", *words)
        assert "other.yaml does not exist" not in said(below_root) + said(only_here)
        assert only_here.exit_code == below_root.exit_code, only_here.output
        shutil.move(here, below)
    here.write_text("methods: [nonsense]\n", encoding="utf-8")
    root_first = invoke(*flags, "other.yaml", "--dry-run")
    assert root_first.exit_code == DONE, root_first.output


# The command and its files


def test_the_command_and_its_files(make_evaluation):
    evaluation = make_evaluation()
    evaluation.write_rows([{**row, "imdb_key": "clock"} for row in ROWS[:2]])
    root = str(evaluation.root)
    given = invoke(
        *("--root", root, "--config", "eval_config.yaml", "--methods", "tog,basic"),
        *("--imdb-key", "clock"),
    )
    assert given.exit_code == DONE, given.output
    summary = evaluation.read_json("eval_results_summary.json")
    assert set(summary["by_method"]["tog"]) >= METRICS
    assert set(summary["by_movie"]["clock"]["basic"]) >= METRICS
    figures = {"latency", "llm_calls", "prompt_tokens", "output_tokens"}
    assert set(summary["efficiency"]["tog"]) >= {f"avg_{name}" for name in figures}
    detailed = evaluation.read_json("eval_results_detailed.json")
    assert detailed["metadata"]["total_questions"] == 2
    assert detailed["metadata"]["methods"] == ["tog", "basic"]
    assert detailed["metadata"]["timestamp"]
    assert len(detailed["results"]) == 2
    entry = detailed["results"][0]
    assert (entry["imdb_key"], entry["ground_truth"]) == ("clock", ROWS[0]["answer"])
    assert list(entry["methods"]) == ["tog", "basic"]
    told = entry["methods"]["tog"]
    assert set(told["scores"]) >= METRICS
    assert set(told["efficiency"]) >= figures
    again = invoke("--root", root, "--resume")
    assert again.exit_code == DONE, again.output
    assert "is finished: nothing is asked" in said(again)


# Without a judge


def test_retrieval_is_measured_without_a_judge(make_evaluation, server):
    evaluation = make_evaluation(
        server.base_url, judge={"rubric": True, "quality": True}, thresholds={"correctness": 0.9}
    )
    quoted = {**ROWS[0], "evidence": ["Idris Vane"]}
    evaluation.write_rows([quoted, *ROWS[1:2]])
    n_before = len(server.records)
    result = evaluation.run("--metrics", "none", "--methods", "basic", "--full")
    assert result.exit_code == DONE, result.output
    assert judge_models(server, n_before) == set()
    n_completions = sum(r.endpoint != "embeddings" for r in server.records[n_before:])
    assert n_completions == 2
    assert "No judge is asked" in said(result)
    assert "hit rate" in said(result)
    assert "Mean scores" not in said(result)
    summary = evaluation.read_results("summary")
    assert summary["metadata"]["metrics"] == []
    assert summary["metadata"]["judge"] == {"model": None}
    assert set(summary["by_method"]["basic"].values()) == {None}
    assert summary["measures"]["basic"]
    shown = evaluation.run("show", "latest")
    assert shown.exit_code == DONE, shown.output
    line = next(line for line in result.output.splitlines() if "Judge these" in line)
    judged = evaluation.run(*shlex.split(line.partition(": ")[2])[2:])
    assert judged.exit_code == DONE, judged.output
    again = evaluation.run("judge", "latest", "--metrics", "none")
    assert again.exit_code == USAGE
    assert "nothing to judge" in said(again)


def test_metrics_are_chosen_by_name(make_evaluation):
    evaluation = make_evaluation(metrics=[], judge={"model": "gpt-5.1"})
    result = evaluation.run(*ONE)  # without a metric, a judge that can't be had is not missed
    assert result.exit_code == DONE, result.output
    assert evaluation.run("compare", "latest", "latest").exit_code == USAGE
    evaluation.configure(judge={"model": None})
    result = evaluation.run("--metrics", "relevance", *ONE)
    assert result.exit_code == DONE, result.output
    assert evaluation.read_results("summary")["metadata"]["metrics"] == ["relevance"]
    wrong = evaluation.run("--metrics", "relevanc", *ONE)
    assert (wrong.exit_code, "did you mean 'relevance'" in said(wrong)) == (USAGE, True)


# Every row as a table


def test_every_row_goes_into_a_table(make_evaluation, tmp_path):
    evaluation = make_evaluation(trials=2, judge={"rubric": True})
    quoted = {**ROWS[0], "evidence": ["Idris Vane"]}
    evaluation.write_rows([quoted, ROWS[1]])
    assert evaluation.run().exit_code == DONE
    csv = tmp_path / "new" / "rows.csv"
    result = evaluation.run("show", "latest", "--export", str(csv))
    assert result.exit_code == DONE, result.output
    assert "Wrote 8 rows" in said(result)
    table = pd.read_csv(csv)
    keys = table[["sample_id", "method", "trial"]].to_records(index=False).tolist()
    assert sorted(keys) == sorted(
        (sample, method, trial)
        for sample in ("q1", "q2")
        for method in ("tog", "basic")
        for trial in (0, 1)
    )
    assert {"question", "response", "correctness", "correctness_state"} <= set(table)
    assert {"correctness_reason", "latency", "prompt_tokens", "cost_usd"} <= set(table)
    assert {"rubric_relevance", "rubric_relevance_reasoning"} <= set(table)
    assert table["embedded_models"].notna().all()
    assert not [name for name in table if name.endswith(("_x", "_y"))]
    first = table[(table["sample_id"] == "q1") & (table["trial"] == 0)]
    assert first["hit_rate"].isin([0, 1]).all()
    assert table[table["trial"] == 1]["hit_rate"].isna().all()
    refused = evaluation.run("show", "--export", "rows.xlsx")
    assert (refused.exit_code, ".csv" in said(refused)) == (USAGE, True)
    report = evaluation.read_json("retrieval_results.json")
    by_method = report["results"][0]["methods"]
    for row in first.itertuples():
        assert row.hit_rate == by_method[row.method]["measures"]["hit_rate"]
        assert row.mrr == by_method[row.method]["measures"]["mrr"]


# What stands in a pipe


@pytest.mark.slow  # a process of its own, by the slowest method
def test_no_progress_bars_stand_in_a_pipe(make_evaluation):
    evaluation = make_evaluation()
    program = Path(sys.executable).with_name("graphrag")
    words = ["eval", "--root", evaluation.root, "--methods", "drift", "--limit", "1"]
    ended = subprocess.run([program, *words], capture_output=True, text=True, check=True)
    assert "1/1" in ended.stderr
    assert "it/s" not in ended.stderr + ended.stdout
    assert "\r" not in ended.stderr + ended.stdout
    assert len(ended.stderr.splitlines()) < 14, ended.stderr
