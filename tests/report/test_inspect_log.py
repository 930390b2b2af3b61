"""The log of a run that Inspect reads, read by Inspect itself."""

import json
import subprocess
import sys
from dataclasses import replace
from math import isclose, isnan
from statistics import fmean
from typing import Any

import pytest

from graphrag.eval.errors import UsageError
from graphrag.eval.records import (
    EfficiencyMetrics,
    Failure,
    JudgeResult,
    MetricScores,
    QueryResult,
    failed_search_scores,
)
from graphrag.eval.report.files import render_rows, tabulate_rows
from graphrag.eval.report.inspect_log import check_inspect_path, inspect_pieces, place_log
from graphrag.eval.results.evaluation_results import EvaluationResults, aggregate_results
from graphrag.query.usage import Usage

LABEL = "offline baseline models: searches and judge"


def render_inspect(results: EvaluationResults, retrieval: dict[str, object]) -> str:
    return "".join(inspect_pieces(results, retrieval))


SEARCH = Usage(
    llm_calls=2,
    prompt_tokens=100,
    output_tokens=20,
    cached_prompt_tokens=40,
    embedding_calls=1,
    embedding_tokens=7,
    cost_usd=0.012,
    cost_usd_by_model={"a/chat": 0.01, "a/embed": 0.002},
    models=("a/chat", "a/embed"),
    completion_models=("a/chat",),
    embedding_models=("a/embed",),
)
JUDGE = Usage(
    llm_calls=1,
    prompt_tokens=50,
    output_tokens=5,
    cost_usd=None,
    cost_usd_by_model={"a/chat": None},
    models=("a/chat",),
    completion_models=("a/chat",),
    embedding_models=(),
)
NO_VERDICT = JudgeResult(None, "Unscored: no JSON", Failure("judge", "unreadable", "no JSON"))


def answered(question: int, method: str, score: int | None, **changes: object) -> QueryResult:
    verdict = NO_VERDICT if score is None else JudgeResult(score, f"because {score} \u0000<b>|")
    result = QueryResult(
        imdb_key="clock",
        question=f"Question {question}?",
        method=method,
        response="An answer",
        scores=MetricScores.of({"correctness": verdict}),
        efficiency=EfficiencyMetrics.of(1.5, SEARCH),
        ground_truth="Idris Vane",
        context_text="A context",
        sample_id=f"q{question}",
        usage=SEARCH,
        judge_usage=JUDGE,
    )
    return replace(result, **changes)  # type: ignore[arg-type]


@pytest.fixture
def results() -> EvaluationResults:
    failed = answered(
        3,
        "tog",
        0,
        response="ERROR: down",
        scores=failed_search_scores(),
        failure=Failure("search", "timeout", "no answer in 300 s"),
        judge_usage=None,
    )
    found = [
        answered(1, "tog", 1),
        answered(2, "tog", None),
        failed,
        answered(1, "basic", 0),
        answered(2, "basic", 1),
        answered(3, "basic", 1),
        answered(3, "basic", 0, trial=1),
    ]
    made = aggregate_results(found, ("correctness",))
    described = {**made.metadata, "run_id": "r1", "embedded_models": LABEL, "is_complete": True}
    return replace(made, metadata=described)


RETRIEVAL = {
    "results": [{"id": "q1", "imdb_key": "clock", "methods": {"tog": {"measures": {"mrr": 0.5}}}}]
}


def test_the_log_has_a_sample_for_each_question_method_and_trial(results):
    log = json.loads(render_inspect(results, RETRIEVAL))
    samples = {(each["id"], each["epoch"]): each for each in log["samples"]}
    assert len(samples) == len(log["samples"]) == 7
    first = samples["clock/q1/tog", 1]
    assert first["scores"]["correctness"]["value"] == 1
    assert first["scores"]["correctness"]["explanation"].startswith("because 1")
    assert first["metadata"]["measures"] == {"mrr": 0.5}
    assert first["model_usage"]["a/chat"] == {
        "input_tokens": 110,
        "input_tokens_cache_read": 40,
        "output_tokens": 25,
        "total_tokens": 175,
        "total_cost": None,  # the judge's price is not known
    }
    assert first["model_usage"]["a/embed"]["total_cost"] == 0.002
    assert {role: used["total_tokens"] for role, used in first["role_usage"].items()} == {
        "search": 127,
        "judge": 55,
    }
    unscored = samples["clock/q2/tog", 1]
    assert unscored["scores"] == {}
    assert unscored["metadata"]["unscored"]["correctness"]["state"] == "judge_unparseable"
    failed = samples["clock/q3/tog", 1]
    assert failed["error"]["message"] == "timeout: no answer in 300 s"
    assert log["eval"]["metadata"]["embedded_models"] == LABEL


def test_the_mean_of_the_samples_is_the_mean_of_the_run(results):
    log = json.loads(render_inspect(results, RETRIEVAL))
    (score,) = log["results"]["scores"]
    for method in ("tog", "basic"):
        values: dict[str, list[float]] = {}
        for each in log["samples"]:
            if each["metadata"]["method"] == method and each["scores"]:
                of_question = values.setdefault(each["id"], [])
                of_question.append(each["scores"]["correctness"]["value"])
        mean = fmean(map(fmean, values.values()))
        assert isclose(score["metrics"][method]["value"], mean)
        assert isclose(results.by_method[method]["correctness"] or 0, mean)


def test_what_the_tables_leave_out_is_no_score(results):
    both = MetricScores.of(dict.fromkeys(("correctness", "faithfulness"), JudgeResult(1, "so")))
    found = [
        answered(1, "tog", 1, scores=both),
        answered(2, "tog", 1, scores=both, abstained=True),
        *(result for result in results.results if result.failure is not None),
    ]
    made = aggregate_results(found, ("correctness", "faithfulness"))
    log = json.loads(render_inspect(made, {"results": []}))
    means = {each["name"]: each["metrics"]["tog"]["value"] for each in log["results"]["scores"]}
    assert means == {"correctness": 2 / 3, "faithfulness": 1}
    _, abstained, failed = log["samples"]
    for sample, state in ((abstained, "abstained"), (failed, "search_failed")):
        assert list(sample["scores"]) == ["correctness"]
        assert sample["metadata"]["unscored"]["faithfulness"]["state"] == state


def test_the_table_has_every_row_with_verdicts_usage_and_its_own_measures(results):
    elsewhere = answered(1, "tog", 0, imdb_key="other", usage=None)  # the same id and method
    table = tabulate_rows(replace(results, results=[*results.results, elsewhere]), RETRIEVAL)
    assert len(table) == 8
    rows = {(r.imdb_key, r.sample_id, r.method, r.trial): r for r in table.itertuples()}
    first = rows["clock", "q1", "tog", 0]
    assert (first.mrr, first.correctness, first.cost_usd) == (0.5, 1, 0.012)
    assert (first.embedding_tokens, first.judge_llm_calls) == (7, 1)
    assert (first.judge_prompt_tokens, first.judge_output_tokens) == (50, 5)
    other = rows["other", "q1", "tog", 0]
    assert isnan(other.mrr)
    assert isnan(other.embedding_tokens)
    failed = rows["clock", "q3", "tog", 0]
    assert (failed.failure_kind, failed.correctness_state) == ("timeout", "search_failed")
    assert isnan(failed.judge_llm_calls)
    assert list(table["run_id"].unique()) == ["r1"]
    assert list(table["embedded_models"].unique()) == [LABEL]
    for suffix in (".csv", ".parquet"):
        assert render_rows(table, suffix)


def test_a_log_in_a_folder_is_named_as_inspect_lists_it(results, tmp_path):
    named = place_log(tmp_path, results)
    stamp = results.metadata["timestamp"].replace(":", "-")
    assert named == tmp_path / f"{stamp}_graphrag-eval_r1.json"
    assert place_log(tmp_path / "x.json", results) == tmp_path / "x.json"
    with pytest.raises(UsageError, match=r"ends in \.json"):
        check_inspect_path(tmp_path / "x.eval")


READ = """
import json, sys
from inspect_ai.log import list_eval_logs, read_eval_log, read_eval_log_sample
from inspect_ai.analysis import samples_df
folder = sys.argv[1]
(info,) = list_eval_logs(folder)
log = read_eval_log(info)
sample = read_eval_log_sample(info, "clock/q1/tog", 1)
frame = samples_df(folder, quiet=True)
print(json.dumps({
    "status": log.status, "version": log.version, "samples": len(log.samples),
    "label": log.metadata["embedded_models"],
    "means": {k: v.value for k, v in log.results.scores[0].metrics.items()},
    "score": sample.scores["correctness"].as_int(), "answer": sample.output.completion,
    "tokens": sample.model_usage["a/chat"].total_tokens,
    "frame": [len(frame), int(frame["score_correctness"].sum())],
    "errors": int((frame["error"].fillna("") != "").sum()),
}))
"""


@pytest.mark.slow
def test_inspect_reads_the_log_and_its_viewer_shows_it(results, tmp_path):
    logs, site = tmp_path / "logs", tmp_path / "site"
    logs.mkdir()
    place_log(logs, results).write_text(render_inspect(results, RETRIEVAL), encoding="utf-8")
    # In an environment of its own: Inspect asks for other releases of what we use.
    inspect = ["uv", "run", "-q", "--no-project", "--isolated", "--python", sys.executable]
    inspect += [word for name in ("inspect-ai", "pandas", "pyarrow") for word in ("--with", name)]
    bundle = ["inspect", "view", "bundle", "--log-dir", str(logs), "--output-dir", str(site)]
    shown = subprocess.run([*inspect, *bundle], capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    listed = json.loads((site / "logs" / "listing.json").read_text(encoding="utf-8"))
    assert len(listed) == 1
    command = [*inspect, "python", "-c", READ, str(logs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "status": "success",
        "version": 2,
        "samples": 7,
        "label": LABEL,
        "means": {"tog": 0.5, "basic": 0.5},
        "score": 1,
        "answer": "An answer",
        "tokens": 175,
        "frame": [7, 3],
        "errors": 1,
    }


def test_a_sum_with_an_unknown_part_is_no_sum_and_what_was_not_counted_no_zero(results):
    def log_of(*found: QueryResult) -> dict[str, Any]:
        return json.loads(render_inspect(replace(results, results=found), {"results": []}))

    (sample,) = log_of(answered(1, "mine", 1, usage=Usage(is_counted=False)))["samples"]
    assert set(sample["role_usage"]) == {"judge"}
    log = log_of(answered(1, "tog", 1), answered(2, "tog", 1, usage=None))
    assert log["stats"]["model_usage"] == {}
    assert set(log["stats"]["role_usage"]) == {"judge"}
    assert log["stats"]["role_usage"]["judge"]["total_tokens"] == 110
    assert log["eval"]["metadata"]["n_usage_unknown"] == {"search": 1, "judge": 0}
    first, second = log["samples"]
    assert set(first["model_usage"]) == {"a/chat", "a/embed"}
    assert second["model_usage"] == {}
    assert set(second["role_usage"]) == {"judge"}
    # A response that nobody judged took nothing of a judge.
    log = log_of(answered(1, "tog", 1, scores=MetricScores.of({}), judge_usage=None))
    assert set(log["stats"]["role_usage"]) == {"search"}
    assert log["stats"]["model_usage"]["a/chat"]["total_tokens"] == 120
    assert log["eval"]["metadata"]["n_usage_unknown"] == {"search": 0, "judge": 0}
