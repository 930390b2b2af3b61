"""Repeated searches and verdicts, from the runner to the figures and the files."""

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.clock_evaluation import ROWS, flat

from graphrag.eval.config.evaluation import EvaluationConfig
from graphrag.eval.config.sections import JudgeSettings
from graphrag.eval.results.analysis import Analysis, RepeatFigures
from graphrag.eval.results.evaluation_results import EvaluationResults, aggregate_results
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.testing import ScriptedJudge, ScriptedRunner
from graphrag.eval.types.query_results import EfficiencyMetrics, QueryResult
from graphrag.eval.types.verdicts import Failure, JudgeResult, MetricScores, combine_repeats
from graphrag.query.graph_index import SearchError

SAMPLES = [
    {"id": f"q{i}", "imdb_key": "tt1", "question": f"Question {i}?", "answer": "yes"}
    for i in range(8)
]


def make_config(root: Path, **values: Any) -> EvaluationConfig:
    return EvaluationConfig(root=root, methods=("tog", "basic"), concurrency=1, **values)


def flips_of(results: EvaluationResults) -> dict[tuple[str, str], RepeatFigures]:
    assert results.repeats is not None
    return {(f.method, f.metric): f for f in results.repeats.figures}


async def test_every_search_is_repeated_and_the_means_of_questions_are_analysed(tmp_path):
    asked = count()

    def answer(method: str, question: str, key: str) -> str:
        # tog answers every question rightly two times in three, basic always
        return "yes" if method == "basic" or next(asked) // len(SAMPLES) != 1 else "no"

    runner = ScriptedRunner(make_config(tmp_path, trials=3), answer)
    found = await runner.run_evaluation(SAMPLES)
    assert len(found) == 3 * 2 * len(SAMPLES) == len(runner.asked)
    results = aggregate_results(found)
    assert results.metadata["total_questions"] == len(SAMPLES)
    assert results.by_method["tog"]["correctness"] == pytest.approx(2 / 3)
    assert results.counts["tog"]["n"] == 3 * len(SAMPLES)
    assert results.analysis is not None
    mean = results.analysis.outcomes["tog"]["correctness"].mean
    assert (mean.mean, mean.n) == (pytest.approx(2 / 3), len(SAMPLES))
    tog = flips_of(results)["tog", "correctness"]
    assert tog.search_flip_rate == pytest.approx(2 / 3)
    assert tog.judge_flip_rate is None
    compared = results.analysis.comparisons[0]
    assert compared.result.difference == pytest.approx(-1 / 3)
    assert compared.verdict == "basic better than tog"
    detailed = results.to_detailed_dict()["results"]
    assert len(detailed) == len(SAMPLES)
    assert [len(entry["trials"]["tog"]) for entry in detailed] == [2] * len(SAMPLES)
    assert list(results.to_pandas()["trial"].value_counts()) == [2 * len(SAMPLES)] * 3


async def test_a_failed_search_counts_0_in_its_trial_only(tmp_path):
    asked = count()

    def answer(method: str, question: str, key: str) -> str:
        if next(asked) >= 2 * len(SAMPLES) and method == "tog":
            raise SearchError("503")
        return "yes"

    found = await ScriptedRunner(make_config(tmp_path, trials=2), answer).run_evaluation(SAMPLES)
    results = aggregate_results(found)
    figures, analysis = flips_of(results), results.analysis
    assert analysis is not None
    assert analysis.outcomes["tog"]["correctness"].mean.mean == 0.5
    assert analysis.outcomes["tog"]["faithfulness"].mean.mean == 1
    once = aggregate_results([each for each in found if each.trial == 0])
    assert (once.repeats, once.to_dict()["repeats"]) == (None, None)
    assert results.by_method["tog"]["faithfulness"] == 0.5
    assert figures["tog", "faithfulness"].search_flip_rate is None


async def test_verdicts_are_repeated_and_kept_and_a_failed_search_flips_none(tmp_path):
    asked = count()

    def answer(method: str, question: str, key: str) -> str:
        if method == "tog" and int(question.split()[1][:-1]) % 2:
            raise SearchError("503")
        return "yes"

    def grade(metric: str, material: Any) -> JudgeResult:
        return JudgeResult(int(next(asked) % 3 != 0), "said")

    config = make_config(tmp_path, judge=JudgeSettings(repeats=3), metrics=("correctness",))
    found = await ScriptedRunner(config, answer, ScriptedJudge(grade)).run_evaluation(SAMPLES)
    verdicts = [result.scores.correctness for result in found if result.failure is None]
    assert {verdict.score for verdict in verdicts} == {1}
    assert {tuple(sorted(verdict.repeats)) for verdict in verdicts} == {(0, 1, 1)}
    figures = flips_of(aggregate_results(found, ["correctness"]))
    for method in ("basic", "tog"):
        assert figures[method, "correctness"].judge_flip_rate == pytest.approx(2 / 3)
    with EvaluationStore(config.output_folder / "eval.db") as store:
        (run,) = store.runs()
        stored = store.verdicts(run.run_id)
    assert {found["correctness"].repeats for found in stored.values()} == {(0, 1, 1)}


def searched(document: str, question: str, method: str, score: int, trial: int = 0) -> QueryResult:
    return QueryResult(
        imdb_key=document,
        question=question,
        method=method,
        response="said",
        scores=MetricScores(correctness=JudgeResult(score, "")),
        efficiency=EfficiencyMetrics(1.0, 4, 100, 10),
        sample_id=question,
        trial=trial,
    )


def trials_of(answers: dict[tuple[str, str], list[int]], document: str = "a") -> list[QueryResult]:
    """Return searches of (method, question) with these scores, one a trial."""
    return [
        searched(document, question, method, score, trial)
        for (method, question), scores in answers.items()
        for trial, score in enumerate(scores)
    ]


def analysed(results: list[QueryResult]) -> Analysis:
    analysis = aggregate_results(results, ["correctness"]).analysis
    assert analysis is not None
    return analysis


def test_questions_that_one_method_alone_was_asked_are_dropped_and_counted():
    answers = {("tog", f"q{i}"): [1, 0] for i in range(10)}
    answers |= {("basic", f"q{i}"): [1, 1] for i in range(5, 15)}
    (compared,) = analysed(trials_of(answers)).comparisons
    assert (compared.result.n_pairs, compared.result.n_dropped_pairs) == (5, 20)  # searches
    twice = [each for document in ("a", "b") for each in trials_of(answers, document)]
    assert analysed(twice).comparisons[0].result.n_pairs == 10  # ids may be alike in documents
    assert compared.result.coverage == pytest.approx(1 / 3)
    assert compared.verdict.startswith("undecided: 33 %")


def test_item_means_are_compared_and_not_their_rows():
    """Three times as many rows of the same questions are no surer than the questions are."""
    scores = {"tog": [[1, 1, 0], [1, 0, 0], [1, 1, 1]], "basic": [[0, 1, 0], [0, 0, 0], [1, 1, 0]]}
    answers = {(method, f"q{i}"): of[i % 3] for method, of in scores.items() for i in range(30)}
    (compared,) = analysed(trials_of(answers)).comparisons
    result, family = compared.result, compared.family
    assert family is not None
    assert result.n_pairs == 30
    assert result.difference == pytest.approx(1 / 3)
    assert (result.interval, result.test[:20]) == ("t", "sign-flip by questio")
    assert result.low is None  # all differences are alike: a t interval would have no width
    answers["tog", "q0"] = [0, 0, 0]
    (compared,) = analysed(trials_of(answers)).comparisons
    result, family = compared.result, compared.family
    assert family is not None
    assert result.low is not None
    assert result.low < 0.31 < (result.high or 0)
    assert compared.verdict == "tog better than basic"
    assert family.low_simultaneous == pytest.approx(result.low)
    assert family.p_equivalence == 1
    assert result.detectable_at_80 is not None


def test_half_right_answers_that_are_alike_are_no_difference():
    answers = {(method, f"q{i}"): [1, i % 2] for method in ("tog", "basic") for i in range(12)}
    answers |= {("basic", f"q{i}"): [0, 0] for i in range(1, 12, 2)}
    (compared,) = analysed(trials_of(answers)).comparisons
    assert (compared.result.n10, compared.result.n01, compared.result.n_pairs) == (6, 0, 12)
    assert compared.result.test == "mcnemar, exact"
    assert compared.family is not None
    assert compared.family.low_simultaneous == pytest.approx(compared.result.low)


def test_item_means_that_differ_little_are_shown_to():
    answers = {(method, f"q{i}"): [1, i % 2] for method in ("tog", "basic") for i in range(400)}
    for i in range(8):
        answers["tog", f"q{i}"] = [0, 1]
        answers["basic", f"q{i}"] = [1, 1] if i % 4 else [0, 0]
    (compared,) = analysed(trials_of(answers)).comparisons
    assert compared.result.interval == "t"
    assert compared.verdict == "equivalent within ±5 points"


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
def test_the_majority_of_the_given_verdicts_counts(verdicts):
    combined = combine_repeats(verdicts)
    votes = [verdict.score for verdict in verdicts]
    ones, zeros = votes.count(1), votes.count(0)
    expected = None if ones == zeros else int(ones > zeros)
    assert combined.score == expected
    assert (combined.failure is None) == (expected is not None)
    assert combined.repeats == tuple(votes)
    if expected is not None:
        assert combined.reason == ("right" if expected else "wrong")


def test_the_command_repeats_and_shows_it(make_evaluation):
    evaluation = make_evaluation(methods=["basic"], judge={"repeats": 3})
    shown = flat(evaluation.done("--repeat", "2", "--full", COLUMNS="200").output)
    assert "What repeats change, over 2 searches and 3 verdicts each" in shown
    assert "Each question was searched 2 times: searches are counted" in shown
    assert f"{len(ROWS)} questions, each searched 2 times, on 1 index, all" in shown
    _, _, further = shown.partition("(offline baseline models): ")
    assert "Efficiency of the searches" in further
    assert "Traced to the index, in % (95 % interval)" in further
    assert "the first search of each question." in further
    summary = evaluation.read_results("summary")
    assert summary["metadata"]["n_planned"] == 2 * len(ROWS)
    assert {f["judge_flip_rate"] for f in summary["repeats"]["figures"]} == {0.0}
    assert "NaN" not in json.dumps(summary)
    again = evaluation.run("--repeat", "2", "--resume")
    assert "is finished: nothing is asked" in flat(again.output)
