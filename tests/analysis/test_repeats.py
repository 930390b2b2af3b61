"""Repeated searches and verdicts, from the runner to the figures and the files."""

import json
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.clock_evaluation import ROWS, MakeEvaluation

from graphrag.eval import EvaluationConfig, JudgeResult, aggregate_results
from graphrag.eval.analysis import analyse_repeats
from graphrag.eval.config import JudgeSettings
from graphrag.eval.records import (
    EfficiencyMetrics,
    Failure,
    MetricScores,
    QueryResult,
    combine_repeats,
)
from graphrag.eval.reports.pair_lines import describe_repeats
from graphrag.eval.store import EvaluationStore
from graphrag.eval.testing import ScriptedJudge, ScriptedRunner, grade_by_containment
from graphrag.query.graph_index import SearchError
from graphrag.query.usage import Usage

SAMPLES = [
    {"id": f"q{i}", "imdb_key": "tt1", "question": f"Question {i}?", "answer": "yes"}
    for i in range(8)
]


def make_config(root: Path, **values: Any) -> EvaluationConfig:
    return EvaluationConfig(root=root, methods=("tog", "basic"), concurrency=1, **values)


async def test_every_search_is_repeated_and_the_means_of_questions_are_analysed(tmp_path: Path):
    asked = count()

    def answer(method: str, question: str, key: str) -> str:
        # tog answers every question rightly two times in three, basic always
        return "yes" if method == "basic" or next(asked) // len(SAMPLES) != 1 else "no"

    runner = ScriptedRunner(make_config(tmp_path, trials=3), answer)
    found = await runner.run_evaluation(SAMPLES)
    assert len(found) == 3 * 2 * len(SAMPLES) == len(runner.asked)
    results = aggregate_results(found)
    assert results.metadata["total_questions"] == len(SAMPLES)
    assert results.by_method["tog"]["correctness"] == 1  # of the first search
    assert results.counts["tog"]["n"] == len(SAMPLES)
    assert results.repeats is not None
    figures = {(f.method, f.metric): f for f in results.repeats.figures}
    tog = figures["tog", "correctness"]
    assert tog.mean.mean == pytest.approx(2 / 3)
    assert tog.mean.n == len(SAMPLES)
    assert tog.search_flip_rate == pytest.approx(2 / 3)
    assert tog.judge_flip_rate is None
    assert tog.variance.shares["search + judge"] == pytest.approx(1)
    assert tog.variance.best_repeat is None  # one verdict each: the search or the judge, who knows
    (compared,) = [c for c in results.repeats.comparisons if c.metric == "correctness"]
    assert compared.result.difference == pytest.approx(-1 / 3)
    assert compared.p_holm is not None
    assert compared.p_holm <= 0.05
    detailed = results.to_detailed_dict()["results"]
    assert len(detailed) == len(SAMPLES)
    assert [len(entry["trials"]["tog"]) for entry in detailed] == [2] * len(SAMPLES)
    assert list(results.to_pandas()["trial"].value_counts()) == [2 * len(SAMPLES)] * 3


async def test_a_failed_search_counts_0_in_its_trial_only(tmp_path: Path):
    asked = count()

    def answer(method: str, question: str, key: str) -> str:
        if next(asked) >= 2 * len(SAMPLES) and method == "tog":
            raise SearchError("503")
        return "yes"

    found = await ScriptedRunner(make_config(tmp_path, trials=2), answer).run_evaluation(SAMPLES)
    repeats = aggregate_results(found).repeats
    assert repeats is not None
    figures = {(f.method, f.metric): f for f in repeats.figures}
    assert figures["tog", "correctness"].mean.mean == 0.5
    assert figures["tog", "faithfulness"].mean.mean == 1
    assert figures["tog", "faithfulness"].search_flip_rate is None


async def test_verdicts_are_repeated_and_kept(tmp_path: Path):
    asked = count()

    def grade(metric: str, material: Any) -> JudgeResult:
        if metric == "correctness":
            return JudgeResult(int(next(asked) % 3 != 0), "said")
        return grade_by_containment(metric, material)

    config = make_config(tmp_path, judge=JudgeSettings(repeats=3))
    runner = ScriptedRunner(config, lambda *_: "yes", ScriptedJudge(grade))
    found = await runner.run_evaluation(SAMPLES)
    assert all(result.scores.correctness.score == 1 for result in found)
    assert all(sorted(result.scores.correctness.repeats) == [0, 1, 1] for result in found)
    repeats = aggregate_results(found).repeats
    assert repeats is not None
    figures = {(f.method, f.metric): f for f in repeats.figures}["tog", "correctness"]
    assert figures.mean.mean == pytest.approx(2 / 3)
    assert figures.judge_flip_rate == pytest.approx(2 / 3)
    with EvaluationStore(config.output_folder / "eval.db") as store:
        (run,) = store.runs()
        stored = store.verdicts(run.run_id)
    assert {found["correctness"].repeats for found in stored.values()} == {(0, 1, 1)}


async def test_a_failed_search_is_no_verdict_that_did_not_flip(tmp_path: Path):
    asked = count()

    def answer(method: str, question: str, key: str) -> str:
        if method == "tog" and int(question.split()[1][:-1]) % 2:
            raise SearchError("503")
        return "yes"

    def grade(metric: str, material: Any) -> JudgeResult:
        return JudgeResult(int(next(asked) % 3 != 0), "said")

    config = make_config(tmp_path, judge=JudgeSettings(repeats=3), metrics=("correctness",))
    found = await ScriptedRunner(config, answer, ScriptedJudge(grade)).run_evaluation(SAMPLES)
    repeats = aggregate_results(found, ["correctness"]).repeats
    assert repeats is not None
    figures = {f.method: f for f in repeats.figures}
    assert figures["basic"].judge_flip_rate == pytest.approx(2 / 3)
    assert figures["tog"].judge_flip_rate == pytest.approx(2 / 3)
    assert figures["tog"].mean.mean == pytest.approx(1 / 3)


async def test_without_repeats_there_is_no_section(tmp_path: Path):
    found = await ScriptedRunner(make_config(tmp_path), lambda *_: "yes").run_evaluation(SAMPLES)
    results = aggregate_results(found)
    assert results.repeats is None
    assert results.to_dict()["repeats"] is None


def searched(
    document: str, question: str, method: str, verdicts: list[int], trial: int = 0, **more: Any
) -> QueryResult:
    """Return a search that took four calls, and verdicts that took one each."""
    verdict = JudgeResult(int(2 * sum(verdicts) > len(verdicts)), "", None, tuple(verdicts))
    return QueryResult(
        imdb_key=document,
        question=question,
        method=method,
        response="said",
        scores=MetricScores(correctness=verdict),
        efficiency=EfficiencyMetrics(1.0, 4, 100, 10),
        sample_id=question,
        trial=trial,
        judge_usage=Usage(llm_calls=len(verdicts), **more),
    )


def test_the_same_ids_in_two_documents_are_different_questions():
    found = [
        searched(document, f"q{i}", method, [int(document == "a")] * 3)
        for document in ("a", "b")
        for i in range(20)
        for method in ("tog", "basic")
    ]
    repeats = analyse_repeats(found, ["tog", "basic"], ["correctness"])
    assert repeats is not None
    assert [figures.mean.n for figures in repeats.figures] == [40, 40]
    assert [figures.mean.mean for figures in repeats.figures] == [0.5, 0.5]
    (compared,) = repeats.comparisons
    assert (compared.result.n_pairs, compared.result.difference) == (40, 0)


def test_questions_that_one_method_alone_was_asked_are_dropped_and_counted():
    results = [
        QueryResult(
            imdb_key="A",
            question=f"Q{i}",
            method=method,
            response="x",
            scores=MetricScores(*[JudgeResult(1, "")] * 4),
            efficiency=EfficiencyMetrics(1.0, 1, 1, 1),
            trial=trial,
        )
        for method, asked in (("tog", range(10)), ("basic", range(5, 15)))
        for i in asked
        for trial in range(2)
    ]
    found = analyse_repeats(results, ["tog", "basic"], ["correctness"])
    assert found is not None
    (compared,) = found.comparisons
    assert (compared.result.n_pairs, compared.result.n_dropped_pairs) == (5, 10)
    assert (
        "(10 questions without both verdicts left out)"
        in describe_repeats(found, "correctness").pop()
    )


def test_questions_of_a_document_that_move_together_are_not_taken_as_independent():
    def repeated(n_documents: int) -> tuple[float, float | None]:
        found = [
            searched(f"d{i % n_documents}", f"q{i}", method, [(i % 15) % 2, 1, 0])
            for i in range(60)
            for method in ("tog", "basic")
            if method == "tog" or i % 15 < 10
        ]
        found += [
            searched(f"d{i % n_documents}", f"q{i}", "basic", [0, 0, 0])
            for i in range(60)
            if i % 15 >= 10
        ]
        repeats = analyse_repeats(found, ["tog", "basic"], ["correctness"])
        assert repeats is not None
        mean, result = repeats.figures[0].mean, repeats.comparisons[0].result
        assert mean.low is not None
        assert mean.high is not None
        assert result.n_pairs == 60
        return mean.high - mean.low, result.p

    clustered, alone = repeated(15), repeated(60)
    assert clustered[0] > 1.5 * alone[0]
    assert clustered[1] is not None
    assert alone[1] is not None
    assert clustered[1] > 10 * alone[1]


def test_no_limit_leaves_the_range_of_the_scores():
    found = [
        searched("a", f"q{i}", method, [int(method == "tog" and i < 2)] * 3)
        for i in range(3)
        for method in ("tog", "basic")
    ]
    repeats = analyse_repeats(found, ["tog", "basic"], ["correctness"])
    assert repeats is not None
    assert repeats.comparisons[0].result.high == 1
    assert repeats.figures[0].mean.low == 0


@pytest.mark.parametrize(
    ("more", "ratio"),
    [({}, 4.0), ({"cost_usd": None}, 4.0), ({"is_counted": False}, None)],
)
def test_what_a_search_costs_is_measured(more: dict[str, Any], ratio: float | None):
    found = [
        searched("a", f"q{i}", "tog", [1, 0, 1], trial, **more)
        for i in range(3)
        for trial in range(2)
    ]
    repeats = analyse_repeats(found, ["tog"], ["correctness"])
    assert repeats is not None
    assert repeats.figures[0].variance.cost_ratio == ratio


def test_money_goes_before_calls():
    found = [
        replace(
            searched("a", f"q{i}", "tog", [1, 0, 1], trial, cost_usd=0.01),
            usage=Usage(llm_calls=4, cost_usd=0.02),
        )
        for i in range(3)
        for trial in range(2)
    ]
    repeats = analyse_repeats(found, ["tog"], ["correctness"])
    assert repeats is not None
    assert repeats.figures[0].variance.cost_ratio == pytest.approx(3 * 0.02 / 0.01)


VERDICTS = st.lists(
    st.sampled_from(
        [
            JudgeResult(0, "wrong"),
            JudgeResult(1, "right"),
            JudgeResult(None, "Unscored", Failure("judge", "error", "503")),
        ]
    ),
    min_size=2,
    max_size=7,
)


@given(VERDICTS)
def test_the_majority_of_the_given_verdicts_counts(verdicts: list[JudgeResult]):
    combined = combine_repeats(verdicts)
    votes = [verdict.score for verdict in verdicts]
    ones, zeros = votes.count(1), votes.count(0)
    expected = None if ones == zeros else int(ones > zeros)
    assert combined.score == expected
    assert (combined.failure is None) == (expected is not None)
    assert combined.repeats == tuple(votes)
    if expected is not None:
        assert combined.reason == ("right" if expected else "wrong")


def test_the_command_repeats_and_shows_it(make_evaluation: MakeEvaluation):
    evaluation = make_evaluation(methods=["basic"], judge={"repeats": 3})
    result = evaluation.run("--repeat", "2", "--full", COLUMNS="200")
    assert result.exit_code == 0, result.output
    shown = " ".join(result.output.split())
    assert "Means of questions in % over 2 searches and 3 verdicts each" in shown
    _, _, further = shown.partition(
        "All that follows: offline baseline models; the first of 2 searches each."
    )
    assert "Efficiency of the searches" in further
    assert "Traced to the index, in % (95 % interval)" in further
    assert "3 verdicts each, all searches" in further
    summary = evaluation.read_results("summary")
    assert summary["metadata"]["n_planned"] == 2 * len(ROWS)
    assert {f["judge_flip_rate"] for f in summary["repeats"]["figures"]} == {0.0}
    assert "NaN" not in json.dumps(summary)
    again = evaluation.run("--repeat", "2", "--resume")
    assert "is finished: nothing is asked" in " ".join(again.output.split())
