"""Suites of test cases as a client of the package writes them."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from enum import Enum
from itertools import pairwise
from pathlib import Path
from unittest.mock import AsyncMock, MagicMock

import pytest
import yaml
from support.clock_evaluation import Evaluation, MakeEvaluation

import graphrag.eval
import graphrag.eval.suite
from graphrag.eval.errors import ConfigError, ResumeError, RunStoppedError
from graphrag.eval.ratings import Rating
from graphrag.eval.results.runs import read_rows
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.suite import (
    BaseEvaluator,
    EntityExtractionEvaluator,
    EvaluationFramework,
    EvaluationMetric,
    EvaluationReport,
    EvaluationResult,
    GraphConnectivityEvaluator,
    MetricRegression,
    ProcessingTimeEvaluator,
    ResponseCompletenessEvaluator,
    ResponseRelevanceEvaluator,
    TestCase,
    Thresholds,
    UserSatisfactionEvaluator,
    create_entity_extraction_test_cases,
    create_query_response_test_cases,
    project_components,
    read_suite,
    read_test_cases,
    run_suites,
    status_of,
)

NAMES = re.findall(
    r"\w+",
    """
    BaseEvaluator EntityExtractionEvaluator EvaluationFramework EvaluationMetric EvaluationReport
    EvaluationResult GraphConnectivityEvaluator MetricRegression ProcessingTimeEvaluator
    ResponseCompletenessEvaluator ResponseRelevanceEvaluator TestCase UserSatisfactionEvaluator
    create_entity_extraction_test_cases create_query_response_test_cases project_components
    read_test_cases
    """,
)
ENTITIES, RELEVANCE, COMPLETENESS, CONNECTIVITY, TIME, SATISFACTION = EvaluationMetric


def case(
    case_id: str = "c1", given: dict[str, object] | None = None, **expected: object
) -> TestCase:
    return TestCase(case_id, "a name", "a description", given or {}, expected)


def answering(answer: str) -> MagicMock:
    return MagicMock(process_query=AsyncMock(return_value={"answer": answer}))


def graph(entities: list[str], relationships: list[object]) -> dict[str, object]:
    return {"graph": {"entities": entities, "relationships": relationships}}


class Own(BaseEvaluator):
    """Scores satisfaction, breaks on the case "odd", and remembers what it is shown."""

    def __init__(self, score: float, max_score: float = 1.0) -> None:
        self.scores = (score, max_score)
        self.seen: dict[str, Mapping[str, object]] = {}

    async def evaluate(
        self, test_case: TestCase, system_output: Mapping[str, object]
    ) -> EvaluationResult:
        self.seen[test_case.id] = system_output
        if test_case.id == "odd":
            raise KeyError("broken")
        return EvaluationResult(SATISFACTION, *self.scores, {}, datetime.now())


def test_every_name_imports_from_the_evaluation_too():
    for name in NAMES:
        assert getattr(graphrag.eval, name) is getattr(graphrag.eval.suite, name)
    assert issubclass(EvaluationMetric, Enum)
    names = """ENTITY_EXTRACTION_ACCURACY RESPONSE_RELEVANCE RESPONSE_COMPLETENESS
    GRAPH_CONNECTIVITY QUERY_PROCESSING_TIME USER_SATISFACTION"""
    assert [metric.name for metric in EvaluationMetric] == names.split()
    assert all(metric.value == metric.name.lower() for metric in EvaluationMetric)


def test_results_cases_and_reports_are_made_by_position():
    at = datetime(2025, 1, 2, 3, 4, 5)
    result = EvaluationResult(RELEVANCE, 0.5, 1.0, {"a": 1}, at)
    assert result.test_case_id is None
    assert TestCase.__test__ is False
    assert case().metadata == {}
    assert case().metadata is not case().metadata
    report = EvaluationReport("s", at, [result], 0.5, 0, 1, {"avg_processing_time": 1.0}, ["do"])
    assert report.failures == {}
    values = report.to_dict()
    (written,) = values.pop("results")
    assert values == {
        "test_suite": "s",
        "timestamp": "2025-01-02T03:04:05",
        "overall_score": 0.5,
        "passed_tests": 0,
        "total_tests": 1,
        "recommendations": ["do"],
        "performance_metrics": {"avg_processing_time": 1.0},
        "failures": {},
    }
    assert (written["metric"], written["score"]) == ("response_relevance", 0.5)
    json.dumps([values, written], allow_nan=False)
    with pytest.raises(TypeError):
        BaseEvaluator()  # type: ignore[abstract]


EXTRACTED = {"extracted_entities": [{"name": "ada  lovelace"}, {"name": "Paris"}]}
NAMED = ["Ada Lovelace", "Analytical Engine", "Charles Babbage"]
ANSWER = "Babbage designed the engine. Nobody funded it."
ANSWERED = {"query_result": {"answer": ANSWER}}
KEYWORDS = ["Babbage", "engine", "fun"]  # no part of a word
ASPECTS = ["who designed it", "the cost of the metal parts", "public funding"]
SCORED: list[
    tuple[type[BaseEvaluator], dict[str, object], dict[str, object], float, dict[str, object]]
] = [
    (
        EntityExtractionEvaluator,
        {"entities": NAMED},
        EXTRACTED,
        0.4,  # 2 P R / (P + R) of 1/2 and 1/3
        {
            "precision": 1 / 2,
            "recall": pytest.approx(1 / 3),
            "f1_score": pytest.approx(0.4),
            "true_positives": 1,
            "false_positives": 1,
            "false_negatives": 2,
            "expected_entities": NAMED,
            "extracted_entities": ["ada  lovelace", "Paris"],
        },
    ),
    (
        ResponseRelevanceEvaluator,
        {"keywords": KEYWORDS},
        ANSWERED,
        2 / 3,
        {
            "matched_keywords": 2,
            "total_keywords": 3,
            "response_length": len(ANSWER),
            "expected_keywords": KEYWORDS,
        },
    ),
    (
        ResponseCompletenessEvaluator,
        {"aspects": ASPECTS},
        ANSWERED,
        2 / 3,
        {
            "covered_aspects": 2,
            "total_aspects": 3,
            "response_length": len(ANSWER),
            "expected_aspects": ASPECTS,
        },
    ),
    (
        GraphConnectivityEvaluator,
        {},
        graph(["a", "b", "c", "d"], [("a", "b"), ("b", "c")]),
        0.75,
        {"connectivity_ratio": 0.75, "isolated_entities": 1, "largest_component_size": 3},
    ),
    *(
        (
            ProcessingTimeEvaluator,
            {} if limit is None else {"max_processing_time": limit},
            {"processing_time": seconds},
            score,
            {
                "processing_time": seconds,
                "expected_max_time": limit or 5.0,
                "within_limit": score == 1.0,
            },
        )
        for seconds, limit, score in [
            (1.0, None, 1.0),
            (5.0, None, 1.0),
            (7.5, None, 0.5),
            (20.0, None, 0.0),
            (3.0, 2.0, 0.5),
        ]
    ),
]


@pytest.mark.parametrize(("evaluator", "expected", "output", "score", "details"), SCORED)
async def test_each_metric_has_its_formula_and_its_details(
    evaluator, expected, output, score, details
):
    found = await evaluator().evaluate(case(**expected), output)
    assert EvaluationFramework().evaluators[found.metric].__class__ is evaluator
    assert (found.score, found.max_score) == (pytest.approx(score), 1.0)
    assert found.details == details


async def test_what_is_undefined_has_its_score():
    for evaluator, expected, output, score in (
        (EntityExtractionEvaluator(), {"entities": []}, {"extracted_entities": []}, 1.0),
        (EntityExtractionEvaluator(), {"entities": ["A b"]}, {"extracted_entities": []}, 0.0),
        (EntityExtractionEvaluator(), {"entities": []}, EXTRACTED, 0.0),
        (ResponseRelevanceEvaluator(), {}, ANSWERED, 0.0),
        (ResponseCompletenessEvaluator(), {}, ANSWERED, 1.0),
        (ProcessingTimeEvaluator(), {}, {}, 1.0),
    ):
        result = await evaluator.evaluate(case(**expected), output)
        assert result.score == score
        assert result.details.get("f1_score", score) == score


@pytest.mark.parametrize(
    ("evaluator", "output", "problem"),
    [
        (EntityExtractionEvaluator, {}, "extracted_entities"),
        (ResponseRelevanceEvaluator, {}, "answer"),
        (GraphConnectivityEvaluator, {}, "graph"),
        (GraphConnectivityEvaluator, {"graph": None}, "graph"),
        (GraphConnectivityEvaluator, graph([], []), "graph"),
        *(
            (GraphConnectivityEvaluator, graph(["a", "b"], [edge]), "pair")
            for edge in ({"source": "a", "target": "b"}, "ab", ("a", None), ("a", "b", "c"), None)
        ),
    ],
)
async def test_what_cannot_be_scored_is_no_score(evaluator, output, problem):
    with pytest.raises(ValueError, match=problem):
        await evaluator().evaluate(case(entities=["A b"], keywords=["x"]), output)


async def test_satisfaction_is_the_mean_of_a_cases_ratings():
    ratings = [Rating("c1", "m", 5), Rating("c1", "m", 2), Rating("other", "m", 1)]
    found = await UserSatisfactionEvaluator(ratings).evaluate(case(), {})
    assert found.metric is SATISFACTION
    assert found.score == pytest.approx((1 + 0.25) / 2)
    assert found.details == {"mean_rating": 3.5, "n_ratings": 2}
    with pytest.raises(ValueError, match="c2"):
        await UserSatisfactionEvaluator(ratings).evaluate(case("c2"), {})


def test_a_framework_begins_with_the_five():
    framework = EvaluationFramework()
    assert {metric: type(each).__name__ for metric, each in framework.evaluators.items()} == {
        ENTITIES: "EntityExtractionEvaluator",
        RELEVANCE: "ResponseRelevanceEvaluator",
        COMPLETENESS: "ResponseCompletenessEvaluator",
        CONNECTIVITY: "GraphConnectivityEvaluator",
        TIME: "ProcessingTimeEvaluator",
    }
    assert framework.test_suites == framework.baseline_scores == {}
    assert framework.evaluation_history == []
    own = UserSatisfactionEvaluator([])
    framework.register_evaluator(SATISFACTION, own)
    assert framework.evaluators[SATISFACTION] is own
    framework.register_test_suite("s", iter([case("c1"), case("c2")]))
    assert [each.id for each in framework.test_suites["s"]] == ["c1", "c2"]
    with pytest.raises(ValueError, match="c1"):
        framework.register_test_suite("twice", [case(), case()])


async def test_a_suite_of_questions_is_asked_and_scored():
    framework = EvaluationFramework()
    question = {"query": "Who built it?", "context": {"hops": 2}, "language": "en"}
    cases = [
        case("good", question, keywords=["Babbage"], aspects=["who built it"]),
        case("half", question, keywords=["Babbage", "Lovelace"]),
        case("wrong", question, keywords=["Lovelace"], aspects=["patrons"]),
    ]
    framework.register_test_suite("questions", cases)
    agent = answering("Babbage built it.")
    report = await framework.run_evaluation("questions", {"graph_agent": agent})
    assert framework.evaluation_history == [report]
    agent.process_query.assert_awaited_with("Who built it?", {"hops": 2})
    scores = {(r.test_case_id, r.metric): r.score for r in report.results}
    assert scores == {
        ("good", RELEVANCE): 1.0,
        ("good", COMPLETENESS): 1.0,
        ("good", TIME): 1.0,
        ("half", RELEVANCE): 0.5,
        ("half", TIME): 1.0,
        ("wrong", RELEVANCE): 0.0,
        ("wrong", COMPLETENESS): 0.0,
        ("wrong", TIME): 1.0,
    }
    assert report.overall_score == pytest.approx(5.5 / 8)
    assert (report.passed_tests, report.total_tests) == (2, 3)  # 1.0, 0.75 and 0.33
    assert report.failures == {}
    assert isinstance(report.timestamp, datetime)
    times = report.performance_metrics
    assert 0 <= times["avg_processing_time"] <= times["max_processing_time"] < 1
    assert any("response_relevance" in text and "0.50" in text for text in report.recommendations)
    with pytest.raises(ValueError, match="nothing"):
        await framework.run_evaluation("nothing", {})


async def test_the_metrics_that_are_named_are_taken_alone():
    framework = EvaluationFramework()
    framework.register_test_suite(
        "s", [case("a", {"query": "Who?"}, keywords=["x"], aspects=["y"])]
    )
    components = {"graph_agent": answering("x")}
    report = await framework.run_evaluation("s", components, [RELEVANCE])
    assert [result.metric for result in report.results] == [RELEVANCE]
    assert report.recommendations
    with pytest.raises(ValueError, match="user_satisfaction"):
        await framework.run_evaluation("s", components, [SATISFACTION])
    framework.register_evaluator(SATISFACTION, Own(2.0))  # out of its range
    report = await framework.run_evaluation("s", components, [SATISFACTION])
    assert report.results == []
    assert "score" in report.failures["a"]
    assert (report.overall_score, report.passed_tests, report.total_tests) == (0.0, 0, 1)
    assert report.recommendations


async def test_a_case_is_run_by_the_first_component_that_fits():
    framework, watching = EvaluationFramework(), Own(3.0, 4.0)
    framework.register_evaluator(SATISFACTION, watching)
    cases = [
        case("text", {"query": "Who?", "text": "Ada wrote."}, entities=["Ada"]),
        case("document", {"document": "d.txt", "metadata": {"k": 1}}),
    ]
    framework.register_test_suite("s", cases)
    extractor = MagicMock(extract_entities=AsyncMock(return_value=[{"name": "Ada"}]))
    processor = MagicMock(process_document=AsyncMock(return_value={"chunks": 3}))
    components = {
        "graph_agent": None,
        "entity_extractor": extractor,
        "document_processor": processor,
        **graph(["a", "b"], [("a", "b")]),
    }
    report = await framework.run_evaluation("s", components)
    extractor.extract_entities.assert_awaited_once_with("Ada wrote.")
    processor.process_document.assert_awaited_once_with("d.txt", {"k": 1})
    assert watching.seen["text"]["extracted_entities"] == [{"name": "Ada"}]
    assert watching.seen["document"]["processed_document"] == {"chunks": 3}
    for output in watching.seen.values():
        assert output["success"] is True
        assert output["processing_time"] >= 0
        assert output["graph"] is components["graph"]
    assert {(r.test_case_id, r.metric) for r in report.results} == {
        ("text", ENTITIES),
        *((name, m) for name in watching.seen for m in (CONNECTIVITY, TIME, SATISFACTION)),
    }
    assert report.overall_score == pytest.approx((5 + 2 * 0.75) / 7)
    assert len(report.recommendations) == 1  # satisfaction, at 0.75
    assert "user_satisfaction" in report.recommendations[0]


async def test_a_failure_is_no_score():
    replies = [RuntimeError("the agent is down"), {"answer": 3}]
    agent = MagicMock(process_query=AsyncMock(side_effect=replies))
    framework, own = EvaluationFramework(), Own(1.0)
    framework.register_evaluator(SATISFACTION, own)
    cases = [
        case("raises", {"query": "Who?"}, keywords=["x"]),
        case("odd", {"query": "What?"}, keywords=["x"]),
        case("nobody", {"text": "x"}, entities=["x"]),
    ]
    framework.register_test_suite("s", cases)
    report = await framework.run_evaluation("s", {"graph_agent": agent, "entity_extractor": None})
    assert set(report.failures) == {"raises", "odd", "nobody"}
    assert "the agent is down" in report.failures["raises"]
    assert "answer" in report.failures["odd"]
    assert "broken" in report.failures["odd"]
    assert "entity_extractor" in report.failures["nobody"]
    assert [output["success"] for output in own.seen.values()] == [False, True, False]
    assert "the agent is down" in own.seen["raises"]["error"]
    assert {(r.test_case_id, r.metric) for r in report.results} == {
        ("raises", SATISFACTION),
        ("odd", TIME),
        ("nobody", SATISFACTION),
    }
    assert report.passed_tests == 0  # no case with a failure passes
    assert report.total_tests == 3


async def test_a_graph_is_scored_without_a_component_to_run():
    framework = EvaluationFramework()
    framework.register_test_suite("graph", [case("graph")])
    report = await framework.run_evaluation("graph", graph(["a", "b"], [("a", "b")]))
    assert [(r.metric, r.score) for r in report.results] == [(CONNECTIVITY, 1.0)]
    assert report.failures == {}
    assert report.performance_metrics == {"avg_processing_time": None, "max_processing_time": None}
    report = await framework.run_evaluation("graph", {})
    assert set(report.failures) == {"graph"}


def reported(scores: Mapping[EvaluationMetric, list[float]]) -> EvaluationReport:
    results = [
        EvaluationResult(metric, score, 1.0, {}, datetime.now(), f"c{number}")
        for metric, given in scores.items()
        for number, score in enumerate(given)
    ]
    return EvaluationReport("s", datetime.now(), results, 0.0, 0, 0, {}, [])


def test_a_report_is_compared_with_a_baseline():
    framework = EvaluationFramework()
    now = reported({RELEVANCE: [0.2] * 8, TIME: [1.0] * 8, CONNECTIVITY: [0.5]})
    assert framework.compare_with_baseline(now) == {}
    assert framework.detect_regressions(now) == []
    framework.set_baseline(reported({RELEVANCE: [0.9] * 8, TIME: [1.0] * 8, CONNECTIVITY: [0.9]}))
    assert framework.baseline_scores == {
        RELEVANCE: pytest.approx(0.9),
        TIME: 1.0,
        CONNECTIVITY: 0.9,
    }
    assert framework.compare_with_baseline(now) == {
        "response_relevance": pytest.approx(-0.7),
        "query_processing_time": 0.0,
        "graph_connectivity": pytest.approx(-0.4),
    }
    found = {each.metric: each for each in framework.detect_regressions(now)}
    assert found[RELEVANCE] == MetricRegression(
        RELEVANCE, pytest.approx(-0.7), pytest.approx(2 / 2**8), 8, True
    )
    assert found[TIME] == MetricRegression(TIME, 0.0, 1.0, 8, False)
    assert found[CONNECTIVITY] == MetricRegression(
        CONNECTIVITY, pytest.approx(-0.4), None, 1, False
    )
    # A rise is no regression, and few pairs prove none.
    framework = EvaluationFramework()
    framework.set_baseline(reported({RELEVANCE: [0.5] * 9, TIME: [1.0] * 3}))
    rise, few = framework.detect_regressions(reported({RELEVANCE: [1.0] * 9, TIME: [0.0] * 3}))
    assert (rise.n_pairs, rise.regressed, rise.p_holm) == (9, False, 1.0)
    assert (few.n_pairs, few.regressed, few.p_holm) == (3, False, pytest.approx(2 / 2**3))


def test_a_baseline_is_kept_for_each_metric_of_each_suite():
    framework = EvaluationFramework()
    framework.set_baseline(reported({RELEVANCE: [0.9] * 8}))
    framework.set_baseline(reported({TIME: [1.0] * 8}))
    framework.set_baseline(replace(reported({RELEVANCE: [0.5] * 8}), test_suite_name="other"))
    assert framework.baseline_scores == {RELEVANCE: pytest.approx(0.7), TIME: 1.0}
    now = reported({RELEVANCE: [0.2] * 8, TIME: [0.5] * 8})
    for suite, fall in (("s", -0.7), ("other", -0.3), ("a third", -0.5)):
        report = replace(now, test_suite_name=suite)
        assert framework.compare_with_baseline(report) == {
            "response_relevance": pytest.approx(fall),
            "query_processing_time": -0.5,
        }
    found = {each.metric: each for each in framework.detect_regressions(now)}
    assert found[RELEVANCE].difference == pytest.approx(-0.7)
    assert found[TIME].regressed
    (other,) = framework.detect_regressions(replace(now, test_suite_name="other"))
    assert (other.metric, other.n_pairs) == (RELEVANCE, 8)
    framework.set_baseline(reported({RELEVANCE: [0.2] * 8}))
    assert framework.compare_with_baseline(now)["response_relevance"] == 0


async def test_the_example_cases_run():
    texts, questions = create_entity_extraction_test_cases(), create_query_response_test_cases()
    assert [each.id for each in texts] == ["entity_001", "entity_002", "entity_003"]
    assert [each.id for each in questions] == ["query_001", "query_002", "query_003"]
    for each in texts:
        assert {"text", "language"} <= set(each.input_data)
        assert {"entities", "max_processing_time"} <= set(each.expected_output)
        assert all(name in each.input_data["text"] for name in each.expected_output["entities"])
    for each in questions:
        assert {"query", "language"} <= set(each.input_data)
        assert {"keywords", "aspects", "max_processing_time"} <= set(each.expected_output)
    assert all(a.input_data != b.input_data for a, b in pairwise([*texts, *questions]))
    framework = EvaluationFramework()
    framework.register_test_suite("texts", texts)
    names = [[{"name": name} for name in each.expected_output["entities"]] for each in texts]
    extractor = MagicMock(extract_entities=AsyncMock(side_effect=names))
    report = await framework.run_evaluation("texts", {"entity_extractor": extractor})
    assert (report.overall_score, report.passed_tests) == (1.0, 3)
    assert report.recommendations == ["No metric is below 0.8 on average."]


DONE, USAGE, INCOMPLETE, FAILED = 0, 2, 3, 100
RESULTS = "suite_results.json"
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
    assert set(report["performance_metrics"]) == {"avg_processing_time", "max_processing_time"}
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
    config = graphrag.eval.EvaluationConfig.from_yaml(evaluation.root / "eval_config.yaml")
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
    report = await framework.run_evaluation("graph_quality", graph(["a", "b"], []))
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


async def test_a_framework_reads_both_names_of_a_question_and_a_limit(tmp_path):
    expected = {"keywords": ["Idris"], "time_limit_s": 3.0}
    question = {"question": "Who built the clock?"}
    listed = [{"id": "c1", "input_data": question, "expected_output": expected}]
    (tmp_path / "asked.json").write_text(json.dumps(listed))
    named = {"test_suites": {"asked": {"test_cases_file": "asked.json"}}}
    (tmp_path / "evaluation.yml").write_text(yaml.safe_dump({"evaluation": named}))
    framework = EvaluationFramework.from_file(tmp_path / "evaluation.yml")
    agent = answering("Idris Vane.")
    report = await framework.run_evaluation("asked", {"graph_agent": agent})
    assert report.failures == {}
    agent.process_query.assert_awaited_once_with("Who built the clock?", {})
    assert [result.score for result in report.results] == [1.0, 1.0]
    assert report.results[1].details["expected_max_time"] == 3.0


@pytest.mark.parametrize(
    ("key", "slip", "meant"),
    [("expected_output", "keyword", "keywords"), ("input_data", "langauge", "language")],
)
def test_a_slip_in_a_key_that_is_looked_at_is_named(tmp_path, key, slip, meant):
    case = {"id": "c1", "input_data": {"query": "Who?"}, "expected_output": {"tone": "calm"}}
    (tmp_path / "own.json").write_text(json.dumps([case]))
    assert read_test_cases(tmp_path / "own.json")[0].expected_output == {"tone": "calm"}
    (tmp_path / "slip.json").write_text(json.dumps([{**case, key: {**case[key], slip: ["x"]}}]))
    with pytest.raises(ConfigError, match=f"{key} has '{slip}'; did you mean '{meant}'"):
        read_test_cases(tmp_path / "slip.json")


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
    config = graphrag.eval.EvaluationConfig.from_yaml(evaluation.root / "eval_config.yaml")
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
    assert {result.metric for result in report.results} == set(EvaluationMetric) - {SATISFACTION}
    with pytest.raises(ConfigError, match="did you mean 'clock'"):
        project_components(config, "basic", "clok")
    with pytest.raises(ConfigError):
        project_components(config, "basik")
