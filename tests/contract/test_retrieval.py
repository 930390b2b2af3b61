"""The retrieval strategy as clients use it: sources without answers, criteria, one number."""

import json
import re
from collections.abc import Sequence
from dataclasses import fields
from unittest.mock import AsyncMock, MagicMock

import pytest
from support.clock_evaluation import ROWS, Evaluation, MakeEvaluation

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.config.sections import MeasuresSettings, SuccessCriterion
from graphrag.eval.dataset.dataset_reader import parse_samples, read_samples
from graphrag.eval.errors import DatasetError
from graphrag.eval.metrics import QualityEvaluation, QualityJudge

DONE, USAGE, INCOMPLETE = 0, 2, 3
SOURCES = {
    "q1": ["Idris Vane built the tower clock of Ashcombe."],
    "q2": ["Petra Holm owns the Ashcombe Bank."],
    "q3": ["Tobias Reed stole the silver pendulum of the tower clock."],
    "q4": ["Inspector Nadia Sorrel arrested Magnus Crowe in Port Ellery."],
}
LABELLED = [{**row, "expected_sources": SOURCES.get(row["id"], [])} for row in ROWS]
UNANSWERED = [
    {"question": row["question"], "expected_sources": SOURCES[row["id"]]} for row in ROWS[:2]
]
SUMMARY = [
    "avg_hit_rate",
    "avg_mrr",
    "avg_judge_score",
    "avg_combined_score",
    "best_combined_score",
    "avg_num_tokens",
    "total_tokens",
]
RESULT = ["question", "hit_rate", "mrr", "judge_score", "num_tokens", "combined_score"]


def mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def combined(row: dict[str, float | None]) -> float | None:
    if None in (row["hit_rate"], row["judge_score"]):
        return None
    return row["hit_rate"] ** 2.0 * row["judge_score"] ** 1.5 / (row["num_tokens"] / 1000) ** 0.5


def test_a_row_may_name_sources_and_no_answer():
    row = {"question": "Who built the clock?", "expected_sources": ["clock.txt"]}
    rows = [row, {**row, "question": "Who broke it?", "answer": ""}]
    (sample, other) = parse_samples(rows, only_key="clock")
    assert (sample.ground_truth, sample.expected_sources) == ("", ("clock.txt",))
    assert other.ground_truth == ""


@pytest.mark.parametrize(
    "row",
    [
        {"question": "Who built the clock?"},
        {"question": "Who built the clock?", "answer": "", "expected_sources": []},
        {"question": "Who built the clock?", "expected_sources": [" "]},
        {"question": "Who built the clock?", "answer": None, "evidence": ["Idris built it."]},
    ],
)
def test_a_row_with_neither_is_refused(row):
    rows = [{"question": "A?", "answer": "a", "expected_sources": ["x"]}, row]
    with pytest.raises(DatasetError, match=r"row 2.*answer.*expected_sources"):
        parse_samples(rows, only_key="clock")


def test_two_rows_that_expect_other_sources_contradict_each_other():
    rows = [{"question": "Who?", "expected_sources": [name]} for name in ("a.txt", "b.txt")]
    with pytest.raises(DatasetError, match=r"rows 1 .* and 2 .*different"):
        parse_samples(rows, only_key="clock")


def test_only_correctness_is_left_out_without_an_answer(make_evaluation, server):
    evaluation = make_evaluation(server.base_url, methods=["basic"])
    evaluation.write_rows([*UNANSWERED, ROWS[2]])
    before = len(server.records)
    result = evaluation.run(COLUMNS="200")
    assert result.exit_code == DONE, result.output
    asked = [r for r in server.records[before:] if r.endpoint == "chat"]
    assert len(asked) == 3 + 3 * 4 - 2  # a search each, and no call for correctness of the two
    first, _, answered = evaluation.read_results()["results"]
    found = first["methods"]["basic"]
    assert first["ground_truth"] == ""
    assert found["scores"]["correctness"] is None
    assert found["states"]["correctness"] == "not_judged"
    assert all(found["scores"][m] in (0, 1) for m in ("faithfulness", "relevance", "completeness"))
    assert answered["methods"]["basic"]["scores"]["correctness"] in (0, 1)
    summary = evaluation.read_results("summary")
    measures = summary["measures"]["basic"]["measures"]
    assert measures["hit_rate"]["estimate"]["n"] == 2
    assert summary["counts"]["basic"]["n_not_judged"]["correctness"] == 2
    assert "2 of 3 questions have no answer" in " ".join(result.output.split())
    dry = evaluation.run("--dry-run", COLUMNS="200")
    assert "Judge calls:      10," in dry.output
    assert evaluation.run("--skip-judge", "-q").exit_code == DONE
    before = len(server.records)
    assert evaluation.run("--resume", "-q").exit_code == DONE
    assert len([r for r in server.records[before:] if r.endpoint == "chat"]) == 10


def test_nothing_is_wrong_and_no_threshold_passes_where_nothing_is_right(make_evaluation):
    evaluation = make_evaluation(methods=["fails"], variants={"fails": {"function": "own:fail"}})
    (evaluation.root / "own.py").write_text(
        'async def fail(question):\n    raise ValueError("no")\n', encoding="utf-8"
    )
    evaluation.write_rows(UNANSWERED)
    evaluation.run(COLUMNS="200")
    summary = evaluation.read_results("summary")
    assert summary["by_method"]["fails"]["correctness"] is None
    assert summary["by_method"]["fails"]["completeness"] == 0
    assert evaluation.read_json("evaluation.json")["summary"]["avg_judge_score"] is None
    evaluation.configure(methods=["basic"], variants={}, thresholds={"correctness": 0.9})
    result = evaluation.run(COLUMNS="200")
    assert result.exit_code == INCOMPLETE
    assert "correctness" in result.output


@pytest.fixture
def labelled(make_evaluation: MakeEvaluation) -> Evaluation:
    evaluation = make_evaluation(methods=["tog", "basic"])
    evaluation.write_rows(LABELLED)
    return evaluation


def check_evaluation(found, judged_by: str) -> None:
    assert list(found)[:5] == ["timestamp", "num_questions", "summary", "metadata", "results"]
    assert found["num_questions"] == len(LABELLED)
    assert [row["question"] for row in found["results"]] == [row["question"] for row in ROWS]
    assert all(set(RESULT) <= set(row) for row in found["results"])
    assert set(SUMMARY) <= set(found["summary"])
    rows, summary = found["results"], found["summary"]
    for row in rows:
        assert row["combined_score"] == (
            None if combined(row) is None else pytest.approx(combined(row))
        )
    for name in ("hit_rate", "mrr", "judge_score", "combined_score", "num_tokens"):
        assert summary[f"avg_{name}"] == pytest.approx(mean([row[name] for row in rows]))
    scores = [row["combined_score"] for row in rows if row["combined_score"] is not None]
    assert summary["best_combined_score"] == max(scores)
    assert summary["total_tokens"] == sum(row["num_tokens"] for row in rows)
    assert found["metadata"]["judge_score"] == judged_by
    assert found["metadata"]["ground_truth_file"] == "questions.json"
    assert found["metadata"]["embedded_models"] == "offline baseline models"
    assert [row["hit_rate"] for row in rows[4:]] == [None, None]


def test_each_of_several_methods_has_a_file_and_is_held_to_the_criteria(labelled):
    result = labelled.run("--full", COLUMNS="200")
    assert result.exit_code == DONE, result.output
    detailed = labelled.read_results()["results"]
    criteria = labelled.read_results("summary")["criteria"]
    values = {(c["method"], c["metric"]): c["value"] for c in criteria}
    assert len(values) == 8
    for method in ("tog", "basic"):
        found = labelled.read_json(f"evaluation_{method}.json")
        check_evaluation(found, "correctness")
        assert found["metadata"]["search_mode"] == method
        assert found["metadata"]["judge_model"].startswith("offline/")
        scores = [entry["methods"][method]["scores"]["correctness"] for entry in detailed]
        assert [row["judge_score"] for row in found["results"]] == scores
        for metric in ("hit_rate", "mrr", "judge_score", "combined_score"):
            assert values[method, metric] == pytest.approx(found["summary"][f"avg_{metric}"])
    assert re.search(r"hit_rate above 0\.8, target 0\.9\W+1\.000 met target", result.output)
    assert not (labelled.output / "evaluation.json").exists()
    folder = labelled.newest_folder
    kept = {"evaluation_tog.json", "evaluation_basic.json"}
    assert {path.name for path in folder.glob("evaluation*.json")} == kept
    # show makes the files again, and no other run's stay.
    first = {name: (labelled.output / name).read_text() for name in kept}
    (labelled.output / "evaluation_notes.json").write_text("mine", encoding="utf-8")
    for name in first:
        (labelled.output / name).unlink()
    assert labelled.run("show", "latest", "-q").exit_code == DONE
    assert {name: (labelled.output / name).read_text() for name in kept} == first
    assert labelled.run("-q", "--methods", "basic").exit_code == DONE
    names = {path.name for path in labelled.output.glob("evaluation*.json")}
    assert names == {"evaluation.json", "evaluation_notes.json"}
    assert {path.name for path in folder.glob("evaluation*.json")} == kept


def test_the_quality_judge_s_score_counts_where_it_is_asked(labelled):
    labelled.configure(judge={"quality": True}, methods=["basic"])
    partly = {**LABELLED[0], "answer": "Idris Vane and four masons from Port Ellery"}
    labelled.write_rows([partly, *LABELLED[1:]])
    assert labelled.run("-q").exit_code == DONE
    found = labelled.read_json("evaluation.json")
    check_evaluation(found, "quality")
    scores = [row["judge_score"] for row in found["results"]]
    assert any(0 < score < 1 for score in scores)
    summary = labelled.read_results("summary")
    assert mean(scores) == pytest.approx(summary["quality"]["basic"]["overall_score"]["mean"])
    measures = summary["measures"]["basic"]["measures"]
    averages = found["summary"]
    for name in ("hit_rate", "mrr", "judge_score", "combined_score"):
        assert averages[f"avg_{name}"] == pytest.approx(measures[name]["estimate"]["mean"])
    assert averages["avg_combined_score"] > 0
    assert summary["measures"]["basic"]["combined"]["mean_of_scores"] == pytest.approx(
        averages["avg_combined_score"]
    )


def test_a_method_s_name_is_a_file_s_name(make_evaluation):
    variants = {"tog/wide": {"method": "tog", "width": 5}}
    evaluation = make_evaluation(methods=["basic", "tog/wide"], variants=variants)
    assert evaluation.run("-q", "--limit", "1").exit_code == DONE
    found = evaluation.read_json("evaluation_tog%2Fwide.json")
    assert found["metadata"]["search_mode"] == "tog/wide"


async def test_the_quality_judge_says_overall_score():
    names = [each.name for each in fields(QualityEvaluation)]
    assert names[:5] == ["overall_score", "accuracy", "completeness", "relevance", "reasoning"]
    reply = {"overall_score": 0.5, "accuracy": 1, "completeness": 0, "relevance": 0.25}
    answer = MagicMock()
    answer.content = json.dumps({**reply, "reasoning": "so"})
    model = MagicMock()
    model.completion_async = AsyncMock(return_value=answer)
    found = await QualityJudge(model).evaluate("Who?", "Idris Vane")
    assert found.overall_score == 0.5
    assert {name: found.to_dict()[name] for name in reply} == reply
    assert QualityEvaluation.from_dict(found.to_dict()) == found


def test_the_default_criteria():
    given = {c.metric: (c.minimum, c.target) for c in MeasuresSettings().criteria}
    assert given == {
        "hit_rate": (0.80, 0.90),
        "mrr": (0.70, 0.85),
        "judge_score": (0.75, 0.85),
        "combined_score": (None, 1.20),
    }
    assert EvaluationConfig().measures.criteria == MeasuresSettings().criteria
    named = SuccessCriterion(metric="mrr")
    assert (named.minimum, named.target) == (0.70, 0.85)
    alone = SuccessCriterion(metric="mrr", minimum=0.9)
    assert (alone.minimum, alone.target) == (0.9, None)
    with pytest.raises(ValueError, match="minimum or a target"):
        SuccessCriterion(metric="recall")


@pytest.mark.parametrize(
    ("minimum", "target", "value", "result"),
    [
        (0.8, 0.9, 0.8, "missed"),
        (0.8, 0.9, 0.81, "met minimum"),
        (0.8, 0.9, 0.9, "met minimum"),
        (0.8, 0.9, 0.91, "met target"),
        (None, 1.2, 1.2, "missed target"),
        (None, 1.2, 1.3, "met target"),
        (0.8, None, 0.9, "met minimum"),
        (0.3, None, 0.1 + 0.2, "missed"),  # which is 0.30000000000000004
        (0.8, 0.9, None, "not measured"),
    ],
)
def test_a_criterion_is_met_above_its_bounds(minimum, target, value, result):
    criterion = SuccessCriterion(metric="hit_rate", minimum=minimum, target=target)
    assert criterion.check(value) == result


def test_what_a_judge_says_can_be_a_criterion(labelled):
    labelled.configure(
        judge={"quality": True, "rubric": True},
        methods=["basic"],
        measures={
            "criteria": [
                {"metric": "correctness", "minimum": 0.0, "target": 0.1},
                {"metric": "rubric.coherence", "minimum": 1.0, "target": 6.0},
                {"metric": "quality.accuracy", "minimum": 0.99},
                {"metric": "recall_at_5", "minimum": 0.1, "target": 0.2},
                {"metric": "avg_latency", "minimum": 60.0, "target": 50.0, "lower_is_better": True},
            ]
        },
    )
    assert labelled.run("-q").exit_code == DONE
    summary = labelled.read_results("summary")
    found = {c["metric"]: c for c in summary["criteria"]}
    assert found["correctness"]["value"] == summary["by_method"]["basic"]["correctness"]
    assert found["rubric.coherence"]["result"] == "met minimum"
    assert found["quality.accuracy"]["value"] == summary["quality"]["basic"]["accuracy"]["mean"]
    assert found["recall_at_5"]["result"] == "met target"
    assert found["avg_latency"]["result"] == "met target"


def test_a_criterion_that_nothing_can_measure_is_refused(labelled):
    for metric, said in {
        "hit_rat": "hit_rate",
        "corectness": "correctness",
        "recall_at_7": "recall",
        "rubric.coherence": "judge.rubric",
        "quality.accuracy": "judge.quality",
        "aspect_coverage": "aspects",
        "time_score": "time_limit_s",
    }.items():
        criterion = {"metric": metric, "minimum": 0.1, "target": 0.2}
        labelled.configure(measures={"criteria": [criterion]})
        result = labelled.run(COLUMNS="200")
        assert result.exit_code == USAGE
        assert metric in result.output
        assert said in result.output
        assert not labelled.store_path.exists()


def test_sources_are_needed_by_a_criterion_that_was_named(make_evaluation):
    evaluation = make_evaluation(methods=["basic"])
    assert evaluation.run("-q").exit_code == DONE  # no question names a source: by default no error
    evaluation.configure(measures={"criteria": [{"metric": "hit_rate", "minimum": 0.5}]})
    result = evaluation.run(COLUMNS="200")
    assert result.exit_code == USAGE
    assert "expected_sources" in result.output
    judged = [{"metric": "judge_score", "minimum": 0.5}]
    evaluation.configure(measures={"criteria": judged})
    result = evaluation.run("--skip-judge", COLUMNS="200")
    assert result.exit_code == USAGE
    assert "judge_score" in result.output


def test_the_shipped_questions_name_their_sources(project_root):
    rows = json.loads((project_root / "eval" / "qa_eval.json").read_text(encoding="utf-8"))
    assert len(rows) == 359
    for row in rows:
        assert row["expected_sources"] == row["evidence"]
    samples = read_samples(project_root / "eval" / "qa_eval.json")
    assert all(sample.expected_sources for sample in samples)
