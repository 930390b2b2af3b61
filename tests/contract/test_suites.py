"""Suites of a project: their files, the command, evaluation.yml, the project's components."""

import json
from datetime import datetime
from pathlib import Path

import pytest
import yaml
from support.clock_evaluation import Evaluation, MakeEvaluation

from graphrag.eval import EvaluationConfig
from graphrag.eval.errors import ConfigError, ResumeError, RunStoppedError
from graphrag.eval.results.runs import read_rows
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.suite import (
    EvaluationFramework,
    EvaluationMetric,
    TestCase,
    Thresholds,
    project_components,
    read_suite,
    read_test_cases,
    run_suites,
    status_of,
)

DONE, USAGE, FAILED = 0, 2, 100
RESULTS = "suite_results.json"
GRAPH = {"graph": {"entities": ["a", "b"], "relationships": []}}
PASSAGE = "Idris Vane is married to Clara Reed."
TEXT_CASE: dict[str, object] = {
    "id": "t1",
    "name": "The couple",
    "description": "Two names",
    "input_data": {"text": PASSAGE, "language": "en", "context": {"chapter": 1}},
    "expected_output": {"entities": ["Idris Vane", "Clara Reed"], "max_processing_time": 60},
    "metadata": {"source": "clock"},
}
QUERY_CASE: dict[str, object] = {
    "id": "q1",
    "name": "The builder",
    "description": "",
    "input_data": {"query": "Who built the tower clock of Ashcombe?", "language": "en"},
    "expected_output": {
        "keywords": ["Idris Vane"],
        "aspects": ["built the tower clock"],
        "max_processing_time": 60,
    },
}


@pytest.fixture
def evaluation(make_evaluation: MakeEvaluation) -> Evaluation:
    made = make_evaluation()
    made.configure(methods=["basic"])
    return made


@pytest.mark.parametrize("name", ["texts.json", "texts.yaml", "texts.yml"])
def test_a_list_of_cases_is_a_suite_of_its_files_name(tmp_path, name):
    def add(name: str, cases: object) -> Path:
        path = tmp_path / name
        dump = json.dumps if path.suffix == ".json" else yaml.safe_dump
        path.write_text(dump(cases), encoding="utf-8")
        return path

    suite = read_suite(add(name, [TEXT_CASE]))
    assert (suite.name, suite.evaluator) == ("texts", "entity_extraction")
    assert (suite.thresholds.passing, suite.thresholds.warning) == (0.7, 0.5)
    assert read_test_cases(tmp_path / name) == [TestCase(**TEXT_CASE)]
    for case in (QUERY_CASE, {**QUERY_CASE, "input_data": {"question": "Who?"}}):
        assert read_suite(add("queries.json", [case])).evaluator == "query_response"
    for bad in ([], ["text"], [{"id": "x", "input_data": {"txt": "x"}}]):
        with pytest.raises(ConfigError, match="first case"):
            read_suite(add("bad.json", bad))


def test_suites_run_by_the_command_and_report_what_each_metric_says(evaluation):
    half = {**TEXT_CASE, "expected_output": {"entities": ["Idris Vane", "Otto Frank"]}}
    by_name = {
        "graph": {"evaluator": "graph_connectivity", "cases": [{"id": "graph"}]},
        **{
            name: {"evaluator": name, "cases": [QUERY_CASE]}
            for name in ("response_relevance", "response_completeness", "query_processing_time")
        },
        **{
            name: {"evaluator": "entity_extraction", "thresholds": thresholds, "cases": [half]}
            for name, thresholds in (
                ("strict", {"passing": 0.7, "warning": 0.4}),
                ("loose", {"passing": 0.4, "warning": 0.7}),
            )
        },
    }
    evaluation.write_suite("texts.json", [TEXT_CASE])
    evaluation.write_suite("queries.json", [QUERY_CASE])
    for name, values in by_name.items():
        evaluation.write_suite(f"{name}.yaml", values)
    done = evaluation.run("suite", "all")
    assert done.exit_code == FAILED, done.output  # what is strict
    suites = {suite["name"]: suite for suite in evaluation.read_json(RESULTS)["suites"]}
    found = {name: suite["cases"][0] for name, suite in suites.items()}
    share = found["graph"]["parts"]["graph_connectivity"]
    assert {name: case["parts"] for name, case in found.items()} == {
        "queries": {"keywords": 1.0, "aspects": 1.0, "time": 1.0},
        "texts": {"entities": 1.0, "time": 1.0},
        "graph": {"graph_connectivity": share},
        "response_relevance": {"response_relevance": 1.0},
        "response_completeness": {"response_completeness": 1.0},
        "query_processing_time": {"query_processing_time": 1.0},
        "strict": {"entities": 0.5},
        "loose": {"entities": 0.5},
    }
    assert 0 < share == found["graph"]["score"] <= 1
    assert "isolated_entities" in found["graph"]["reason"]
    for name, passed in (("strict", 0), ("loose", 1)):
        assert (found[name]["status"], suites[name]["passed"]) == ("warning", passed)
    assert evaluation.run("suite", "loose").exit_code == DONE
    assert evaluation.run("suite", "texts", "--output", "report.json").exit_code == DONE
    report = json.loads((evaluation.root / "report.json").read_text(encoding="utf-8"))
    keys = "test_suite timestamp overall_score passed_tests total_tests recommendations"
    assert {*keys.split(), "performance_metrics", "failures", "results"} <= set(report)
    assert report["test_suite"] == "texts"
    (kept,) = evaluation.read_json(RESULTS)["suites"]
    assert report["overall_score"] == kept["score"]["mean"] == 1.0
    assert (report["passed_tests"], report["total_tests"]) == (1, 1)
    times = report["performance_metrics"]
    assert set(times) == {"avg_processing_time", "max_processing_time", "n_timed"}
    assert times["n_timed"] == 1
    assert report["results"][0]["metric"] == "entity_extraction_accuracy"
    assert datetime.fromisoformat(report["timestamp"])
    twice = {**QUERY_CASE, "input_data": {"query": "Who?", "question": "Who?"}}
    evaluation.write_suite("queries.json", [twice])
    refused = evaluation.run("suite", "queries")
    assert refused.exit_code == USAGE
    assert "not both" in refused.output


@pytest.mark.parametrize(("passing", "warning"), [(0.7, 0.5), (0.5, 0.7)])
def test_the_status_follows_the_higher_and_the_lower_threshold(passing, warning):
    thresholds = Thresholds(passing=passing, warning=warning)
    found = [status_of(score, thresholds) for score in (0.7, 0.69, 0.5, 0.49)]
    assert found == ["passed", "warning", "warning", "failed"]


def test_every_index_is_checked_before_the_first_case_is_paid(evaluation):
    indexes = {"clock": "clock", "gone": "gone", "lost": "lost"}
    evaluation.configure(indexes=indexes)
    asked = [
        {**QUERY_CASE, "id": key, "input_data": {"query": "Who?", "index": key}} for key in indexes
    ]
    evaluation.write_suite("asked.json", asked)
    refused = evaluation.run("suite", "asked", COLUMNS="200")
    assert refused.exit_code == USAGE
    assert "Index gone" in refused.output
    assert "Index lost" in refused.output
    assert not evaluation.store_path.exists() or not list(evaluation.output.glob("runs/*"))
    evaluation.write_suite("asked.json", [QUERY_CASE])
    refused = evaluation.run("suite", "asked", COLUMNS="200")
    assert refused.exit_code == USAGE
    assert "'q1' names no index" in refused.output


SCRIPTED = """
from datetime import datetime
from pathlib import Path

from graphrag.eval.suite import BaseEvaluator, EvaluationMetric, EvaluationResult


class Scripted(BaseEvaluator):
    async def evaluate(self, test_case, system_output):
        log = Path(__file__).with_name("asked.txt")
        with log.open("a") as file:
            file.write(test_case.id + "\\n")
        score = float(test_case.input_data["score"])
        if score < 0:
            raise KeyboardInterrupt
        details = {"parts": {"style": score, "facts": 1.0}}
        metric = EvaluationMetric.USER_SATISFACTION
        return EvaluationResult(metric, 1.0, 1.0, details, datetime.now())
"""


def scripted(evaluation: Evaluation, name: str, scores: list[float]) -> Path:
    module = f"scripted_{evaluation.root.parent.name}_{evaluation.root.name}".replace("-", "_")
    (evaluation.root / f"{module}.py").write_text(SCRIPTED, encoding="utf-8")
    cases = [{"id": f"c{n}", "input_data": {"score": score}} for n, score in enumerate(scores)]
    values = {"evaluator": f"{module}:Scripted", "cases": cases}
    return evaluation.write_suite(f"{name}.yaml", values)


def test_a_part_that_fell_is_a_regression(evaluation):
    evaluation.configure(concurrency=1)
    scripted(evaluation, "style", [0.9] * 8)
    first = evaluation.run("suite", "style", "--set-baseline", "--margin", "0.99")
    assert first.exit_code == DONE, first.output
    assert "Pinned" in first.output
    assert "regressions" not in evaluation.read_json(RESULTS)
    same = evaluation.run(
        "suite", "--test-suite", "style", "--baseline", "pinned", "--margin", "0.9"
    )
    assert same.exit_code == DONE, same.output
    regressions = evaluation.read_json(RESULTS)["regressions"]
    assert [each["regressed"] for each in regressions] == [False, False]
    scripted(evaluation, "style", [0.3] * 8)
    fell = evaluation.run("suite", "--baseline", "pinned", "--margin", "0.99", COLUMNS="200")
    assert fell.exit_code == FAILED, fell.output
    assert "Regressed: style of style" in fell.output
    style, facts = evaluation.read_json(RESULTS)["regressions"]
    assert style == {
        "suite": "style",
        "method": style["method"],
        "metric": "style",
        "difference": pytest.approx(-0.6),
        "p_holm": pytest.approx(2 / 2**8),
        "n_pairs": 8,
        "regressed": True,
    }
    assert (facts["metric"], facts["difference"], facts["regressed"]) == ("facts", 0.0, False)
    shown = evaluation.run("show", "latest")
    assert shown.exit_code == DONE, shown.output
    assert evaluation.read_json(RESULTS)["regressions"][0]["regressed"] is True


async def test_a_stopped_run_is_continued_without_paying_twice(evaluation):
    evaluation.configure(concurrency=1)
    suite = read_suite(scripted(evaluation, "cut", [0.9, 0.8, 0.7]))
    config = EvaluationConfig.from_yaml(evaluation.root / "eval_config.yaml")
    evaluation.output.mkdir(parents=True, exist_ok=True)

    def stop(done: int, total: int, latest: object) -> None:
        if done == 2:
            raise RunStoppedError("the service refuses")

    with EvaluationStore(evaluation.store_path) as store:
        with pytest.raises(ResumeError, match="no unfinished run"):
            await run_suites([suite], config, store=store, resume=True)
        with pytest.raises(RunStoppedError):
            await run_suites([suite], config, store=store, on_case=stop)
        done: list[int] = []
        outcome = await run_suites(
            [suite], config, store=store, on_case=lambda n, total, _: done.append(n), resume=True
        )
    assert (evaluation.root / "asked.txt").read_text().split() == ["c0", "c1", "c2"]
    assert done == [3]
    assert [each.parts["style"] for each in outcome.reports[0].results] == [0.9, 0.8, 0.7]
    assert any(outcome.run_id in note for note in outcome.notes)
    with EvaluationStore(evaluation.store_path) as store:
        assert [run.run_id for run in store.runs()] == [outcome.run_id]
    rows = read_rows("latest", evaluation.store_path)
    assert rows.metadata.status == "finished"
    assert len(rows.rows) == 3


def test_resume_is_a_flag_of_the_command(evaluation):
    evaluation.configure(concurrency=1)
    scripted(evaluation, "cut", [0.9, -1])
    assert evaluation.run("suite", "cut").exit_code == 130
    scripted(evaluation, "cut", [0.9, 1])
    refused = evaluation.run("suite", "cut", "--resume", COLUMNS="300")
    assert refused.exit_code == USAGE
    assert "set up differently" in refused.output
    scripted(evaluation, "cut", [0.9, -1])
    module = next(evaluation.root.glob("scripted_*.py"))
    asked = module.with_name("asked.txt").read_text().split()
    assert evaluation.run("suite", "cut", "--resume").exit_code == 130
    assert module.with_name("asked.txt").read_text().split() == [*asked, "c1"]


def add_evaluation_file(evaluation: Evaluation, **changes: object) -> Path:
    folder = evaluation.root / "test_cases"
    folder.mkdir(exist_ok=True)
    (folder / "entity_extraction.json").write_text(json.dumps([TEXT_CASE]), encoding="utf-8")
    values = {
        "test_suites": {
            "entity_extraction": {"test_cases_file": "test_cases/entity_extraction.json"},
            "graph_quality": {"enabled": True},
            "left_out": {"enabled": False, "test_cases_file": "nowhere.json"},
        },
        **changes,
    }
    path = evaluation.root / "evaluation.yml"
    path.write_text(yaml.safe_dump({"evaluation": values}), encoding="utf-8")
    return path


async def test_a_framework_is_made_of_a_file(evaluation):
    limit = {"max_query_time": 9.0, "max_extraction_time": 3.0}
    scores = {"passing_score": 0.8, "warning_score": 0.4}
    path = add_evaluation_file(evaluation, performance=limit, thresholds=scores)
    without = {**TEXT_CASE, "id": "t2", "expected_output": {"entities": ["x"]}}
    cases = path.parent / "test_cases" / "entity_extraction.json"
    cases.write_text(json.dumps([TEXT_CASE, without]), encoding="utf-8")
    framework = EvaluationFramework.from_file(path)
    assert (framework.passing_score, framework.warning_score) == (0.8, 0.4)
    assert list(framework.test_suites) == ["entity_extraction", "graph_quality"]
    limits = [
        each.expected_output["max_processing_time"]
        for each in framework.test_suites["entity_extraction"]
    ]
    assert limits == [60, 3.0]
    assert [each.id for each in framework.test_suites["graph_quality"]] == ["graph"]
    report = await framework.run_evaluation("graph_quality", GRAPH)
    assert report.overall_score == 0.5
    assert (
        EvaluationFramework.from_file(add_evaluation_file(evaluation, enabled=False)).test_suites
        == {}
    )
    with pytest.raises(ConfigError, match="did you mean 'thresholds'"):
        EvaluationFramework.from_file(add_evaluation_file(evaluation, tresholds={}))
    defaults = path.parent / "defaults.yml"
    defaults.write_text("evaluation: {}", encoding="utf-8")
    assert EvaluationFramework.from_file(defaults).passing_score == 0.7


def test_the_command_runs_what_the_evaluation_file_enables(evaluation):
    evaluation.write_suite("other.json", [TEXT_CASE])
    indexes = {"clock": "clock", "again": "clock"}
    evaluation.configure(indexes=indexes)
    named = {**TEXT_CASE, "input_data": {"text": PASSAGE, "index": "clock"}}
    add_evaluation_file(evaluation, thresholds={"passing_score": 0.1})
    cases = evaluation.root / "test_cases" / "entity_extraction.json"
    cases.write_text(json.dumps([named]), encoding="utf-8")
    done = evaluation.run("suite", "--set-baseline", "--output", "r.json", COLUMNS="200")
    assert done.exit_code == DONE, done.output
    folder = evaluation.root / "evaluation_results"
    written = json.loads((folder / "suite_results.json").read_text(encoding="utf-8"))
    assert [suite["name"] for suite in written["suites"]] == ["entity_extraction", "graph_quality"]
    cases_of_graph = {case["id"] for case in written["suites"][1]["cases"]}
    assert cases_of_graph == {"graph_clock", "graph_again"}
    assert [each["thresholds"]["passing"] for each in written["suites"]] == [0.1, 0.1]
    assert not evaluation.output.exists()
    reports = json.loads((evaluation.root / "r.json").read_text(encoding="utf-8"))["suites"]
    assert [each["test_suite"] for each in reports] == ["entity_extraction", "graph_quality"]
    add_evaluation_file(
        evaluation, thresholds={"passing_score": 0.1}, reporting={"save_detailed_results": False}
    )
    cases.write_text(json.dumps([named]), encoding="utf-8")
    again = evaluation.run("suite", "all", COLUMNS="200")
    assert again.exit_code == DONE, again.output
    written = json.loads((folder / "suite_results.json").read_text(encoding="utf-8"))
    assert all("cases" not in suite for suite in written["suites"])
    assert [each["regressed"] for each in written["regressions"]] == [False] * 3
    add_evaluation_file(evaluation, enabled=False)
    assert "nothing ran" in evaluation.run("suite").output


async def test_a_configured_project_gives_components(evaluation):
    config = EvaluationConfig.from_yaml(evaluation.root / "eval_config.yaml")
    components = project_components(config, "basic")
    assert set(components) == {"graph_agent", "entity_extractor", "document_processor", "graph"}
    answer = await components["graph_agent"].process_query("Who built the tower clock?", {})
    assert set(answer) == {"answer", "context"}
    assert "Idris Vane" in answer["answer"]
    assert answer["context"]
    found = await components["entity_extractor"].extract_entities(PASSAGE)
    assert {"IDRIS VANE", "CLARA REED"} == {each["name"].upper() for each in found}
    assert all(each["type"] for each in found)
    names = set(components["graph"]["entities"])
    assert len(names) > 5
    assert all(len(pair) == 2 for pair in components["graph"]["relationships"])
    framework = EvaluationFramework()
    both = [TestCase(**{"metadata": {}, **each}) for each in (TEXT_CASE, QUERY_CASE)]
    framework.register_test_suite("both", both)
    report = await framework.run_evaluation("both", components)
    assert report.failures == {}
    assert {result.metric for result in report.results} == set(EvaluationMetric) - {
        EvaluationMetric.USER_SATISFACTION
    }
    evaluation.configure(methods=["tog", "basic"], judge={"pairwise": [["tog", "basic"]]})
    config = EvaluationConfig.from_yaml(evaluation.root / "eval_config.yaml")
    assert set(project_components(config, "basic")) == set(components)
    with pytest.raises(ConfigError, match="did you mean 'clock'"):
        project_components(config, "basic", "clok")
    with pytest.raises(ConfigError):
        project_components(config, "basik")
