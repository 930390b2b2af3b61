"""The sentence before the tables: which method to take, and how sure that is."""

import json

import pytest
from rich.console import Console

from graphrag.eval import (
    EfficiencyMetrics,
    EvaluationResults,
    JudgeResult,
    MetricScores,
    QueryResult,
    aggregate_results,
)
from graphrag.eval.reports import show_results
from graphrag.query.usage import Usage

TOKENS = {"tog": 9000, "local": 4000, "basic": 1000}


def evaluate(right: dict[str, range], n: int = 100, usd: float = 0.0) -> EvaluationResults:
    """Return results in which each method answers a range of n questions rightly."""
    return aggregate_results(
        [
            QueryResult(
                imdb_key="a",
                question=f"Q{i}",
                method=method,
                response="x",
                scores=MetricScores(*[JudgeResult(int(i in given), "")] * 4),
                efficiency=EfficiencyMetrics(1.0, 1, TOKENS[method], 0),
                usage=Usage(cost_usd=usd * TOKENS[method]),
                judge_usage=Usage(),
            )
            for i in range(n)
            for method, given in right.items()
        ]
    )


def first_lines(results: EvaluationResults) -> str:
    console = Console(record=True, width=400)
    show_results(console, results)
    return console.export_text().partition("Mean scores")[0]


def test_a_method_that_beats_all_others_is_named_first_with_its_price():
    results = evaluate({"tog": range(80), "local": range(50), "basic": range(40)})
    shown = first_lines(results)
    assert shown.startswith("Answer: use tog, the best on correctness (80.0 %); local is 17.")
    assert "points behind, basic is" in shown
    assert "tog takes 9,000 tokens a question; local 4,000 tokens, basic 1,000 tokens." in shown
    best = json.loads(results.to_json())["best"]
    assert best == {
        "winner": "tog",
        "contenders": ["tog"],
        "beaten": {"local": "tog", "basic": "tog"},
    }


def test_the_cheapest_is_taken_when_it_is_shown_to_lose_little():
    right = {"tog": range(1200), "basic": range(2, 1200)}
    shown = first_lines(evaluate(right, 2000))
    assert shown.startswith("Answer: use basic: on correctness it is shown to lose less than 5 po")
    assert "and none is shown to be better (tog 60.0 %, basic 59.9 %)" in shown


def test_without_a_winner_the_answer_is_undecided():
    right = {"tog": range(60), "local": range(3, 60), "basic": range(10)}
    shown = first_lines(evaluate(right, usd=1e-6))
    assert shown.startswith("Answer: undecided. With 100 questions no method is shown to be the be")
    assert "local, the cheapest of these, may be up to 8.6 points worse than tog or" in shown
    assert "Shown to be worse: basic (than tog)." in shown
    assert "local takes $0.0040 a question; tog $0.0090, basic $0.0010." in shown


def test_one_method_has_its_score_and_how_sure_it_is():
    shown = first_lines(evaluate({"basic": range(60)}))
    assert shown == (
        "Answer: basic has 60.0 % correctness (50.2 to 69.1 at 95 % confidence), over 100 "
        "questions.\n"
    )


@pytest.mark.parametrize("methods", [["tog"], ["tog", "basic"]])
def test_without_a_verdict_there_is_no_answer(methods):
    results = evaluate(dict.fromkeys(methods, range(0)), n=0)
    assert first_lines(results) == ""
    unjudged = aggregate_results(
        [
            QueryResult("a", "Q", m, "x", MetricScores(), EfficiencyMetrics(1.0, 1, 1, 1))
            for m in methods
        ]
    )
    assert first_lines(unjudged) == "Answer: none, as no response has a verdict on correctness.\n"
