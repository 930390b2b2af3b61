"""Suites of test cases over a client's own components: run, scored, held to a baseline."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from enum import Enum
from itertools import pairwise
from unittest.mock import AsyncMock, MagicMock

import pytest
import yaml

import graphrag.eval
import graphrag.eval.suite
from graphrag.eval.errors import ConfigError
from graphrag.eval.ratings import Rating
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
    UserSatisfactionEvaluator,
    create_entity_extraction_test_cases,
    create_query_response_test_cases,
    read_test_cases,
)

NAMES = """
BaseEvaluator EntityExtractionEvaluator EvaluationFramework EvaluationMetric EvaluationReport
EvaluationResult GraphConnectivityEvaluator MetricRegression ProcessingTimeEvaluator
ResponseCompletenessEvaluator ResponseRelevanceEvaluator TestCase UserSatisfactionEvaluator
create_entity_extraction_test_cases create_query_response_test_cases project_components
read_test_cases
"""
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
    for name in NAMES.split():
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
        (EntityExtractionEvaluator(), {"entities": [{"name": "paris"}, "x"]}, EXTRACTED, 0.5),
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
    assert times["n_timed"] == 3
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
    times = {"avg_processing_time": None, "max_processing_time": None}
    assert report.performance_metrics == {**times, "n_timed": 0}
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
