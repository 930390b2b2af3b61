"""Repeated searches and verdicts, from the runner to the figures and the files."""

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.clock_evaluation import ROWS, MakeEvaluation

from graphrag.eval import EvaluationConfig, JudgeResult, aggregate_results
from graphrag.eval.config import JudgeSettings
from graphrag.eval.records import Failure, combine_repeats
from graphrag.eval.store import EvaluationStore
from graphrag.eval.testing import ScriptedJudge, ScriptedRunner, grade_by_containment
from graphrag.query.graph_index import SearchError

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
    assert tog.variance.shares["search"] == pytest.approx(1)
    assert tog.variance.best_repeat == "search"
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
    result = evaluation.run("--repeat", "2", COLUMNS="200")
    assert result.exit_code == 0, result.output
    shown = " ".join(result.output.split())
    assert "Means of questions in % over 2 searches and 3 verdicts each" in shown
    first = "(offline baseline models; the first of 2 searches each)"
    assert f"Efficiency of the searches {first}" in shown
    assert f"Traced to the index, in % (95 % interval) {first}" in shown
    assert "3 verdicts each (offline baseline models)" in shown
    summary = evaluation.read_results("summary")
    assert summary["metadata"]["n_planned"] == 2 * len(ROWS)
    assert {f["judge_flip_rate"] for f in summary["repeats"]["figures"]} == {0.0}
    assert "NaN" not in json.dumps(summary)
    again = evaluation.run("--repeat", "2", "--resume")
    assert "no unfinished run" in " ".join(again.output.split())
