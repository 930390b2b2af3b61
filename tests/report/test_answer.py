"""The sentence before the tables: which method to take, and how sure that is."""

import json

import pytest
from rich.console import Console

from graphrag.eval.records import (
    EfficiencyMetrics,
    Failure,
    JudgeResult,
    MetricScores,
    QueryResult,
    failed_search_scores,
)
from graphrag.eval.report.run import list_results
from graphrag.eval.report.table import show
from graphrag.eval.results.evaluation_results import EvaluationResults, aggregate_results
from graphrag.query.usage import Usage

SPEAKS_OF_ONE = (
    "Every p and interval speaks of this document alone. Other documents may rank the methods "
    "otherwise: of methods that are equal in general, a few documents show a difference in up to "
    "61 % of runs.\n"
)
NOTHING = EfficiencyMetrics(1.0, 1, 1, 1)
TOKENS = {"tog": 9000, "local": 4000, "basic": 1000, "a": 9000, "b": 1000}


def evaluate(
    right: dict[str, range],
    n: int = 100,
    usd: float = 0.0,
    asked: dict[str, range] | None = None,
    unread: dict[str, range] | None = None,
) -> EvaluationResults:
    """Return results in which each method answers a range of n questions rightly.

    A method is ``asked`` all unless a range is given; its ``unread`` ones have no verdict.
    """
    return aggregate_results(
        [
            QueryResult(
                imdb_key="a",
                question=f"Q{i}",
                method=method,
                response="x",
                scores=MetricScores(
                    *[
                        JudgeResult(None, "", Failure("judge", "error", "503"))
                        if i in (unread or {}).get(method, ())
                        else JudgeResult(int(i in given), "")
                    ]
                    * 4
                ),
                efficiency=EfficiencyMetrics(1.0, 1, TOKENS[method], 0),
                usage=Usage(cost_usd=usd * TOKENS[method]),
                judge_usage=Usage(),
            )
            for i in range(n)
            for method, given in right.items()
            if i in (asked or {}).get(method, range(n))
        ]
    )


def first_lines(results: EvaluationResults) -> str:
    console = Console(record=True, width=400)
    show(console, list_results(results))
    return console.export_text().partition("Score: ")[0]


def test_a_method_that_beats_all_others_is_named_first_with_its_price():
    results = evaluate({"tog": range(80), "local": range(50), "basic": range(40)})
    shown = first_lines(results)
    assert shown.startswith("Answer: use tog, the best on correctness (80.0 %); local is 17.")
    assert "points behind, basic is" in shown
    assert (
        "; it takes 9,000 tokens a question, 2.2 times local (4,000 tokens), 9 times basic (1,000 "
        "tokens).\n"
    ) in shown
    best = json.loads(results.to_json())["best"]
    assert best == {
        "winner": "tog",
        "contenders": ["tog"],
        "beaten": {"local": "tog", "basic": "tog"},
    }


def test_the_same_price_is_no_multiple(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(TOKENS, "basic", 9001)
    shown = first_lines(evaluate({"tog": range(90), "basic": range(10)}))
    assert "it takes 9,000 tokens a question, as much as basic (9,001 tokens)" in shown


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
    assert (
        "it takes $0.0040 a question, 0.44 times tog ($0.0090), 4 times basic ($0.0010)." in shown
    )


def test_one_method_has_its_score_and_how_sure_it_is():
    shown = first_lines(evaluate({"basic": range(60)}))
    assert shown == (
        "Answer: basic has 60.0 % correctness (50.2 to 69.1 at 95 % confidence), over 100 "
        f"questions.\n{SPEAKS_OF_ONE}"
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
    none = "Answer: none, as no response has a verdict on correctness.\n"
    assert first_lines(unjudged) == none + SPEAKS_OF_ONE


def test_the_cheapest_with_the_highest_score_is_not_taken_on_a_few_questions():
    shown = first_lines(evaluate({"tog": range(0), "basic": range(1)}, n=1))
    assert shown.startswith("Answer: undecided. With 1 question no method is shown to be the best")
    assert "basic, the cheapest of these, may be up to 73.4 points worse than tog or 100.0" in shown


def test_a_higher_mean_on_other_questions_is_no_reason_to_take_a_method():
    """On the questions that both were asked tog is right in 60 and basic in 30 of 100."""
    right = {"tog": range(60), "basic": range(30, 300)}
    results = evaluate(right, n=300, asked={"tog": range(100)})
    shown = first_lines(results)
    assert shown.startswith("Answer: undecided. Less than 95 % of the planned pairs have verdicts")
    assert "Missing: 200 of 300 searches are not made of tog." in shown
    assert "compared on those that both were: tog and basic share 100 of 300." in shown


def test_methods_that_were_asked_nothing_in_common_are_not_compared():
    right = {"tog": range(50), "basic": range(100, 200)}
    asked = {"tog": range(100), "basic": range(100, 200)}
    shown = first_lines(evaluate(right, n=200, asked=asked))
    assert shown.startswith("Answer: undecided.")
    assert "tog and basic share 0 of 200." in shown


def test_the_cheapest_is_held_against_every_contender():
    """Local has not the highest mean, but was asked little: it may be far better than basic."""
    right = {"tog": range(2, 2000), "local": range(1, 40), "basic": range(3, 2000)}
    shown = first_lines(evaluate(right, n=2000, asked={"local": range(40)}))
    assert shown.startswith("Answer: undecided.")
    assert "tog and local share 40 of 2,000" in shown


def test_missing_verdicts_may_all_be_losses():
    right = dict.fromkeys(("tog", "basic"), range(2000))
    shown = first_lines(evaluate(right, n=2000, unread={"basic": range(200)}))
    assert shown.startswith("Answer: undecided.")
    little = first_lines(evaluate(right, n=2000, unread={"basic": range(20)}))
    assert little.startswith("Answer: use basic")


def test_a_method_without_any_verdict_is_not_beaten():
    right = dict.fromkeys(("tog", "basic"), range(100))
    shown = first_lines(evaluate(right, unread={"tog": range(100)}))
    assert shown.startswith("Answer: undecided.")
    assert "Missing: 100 of 100 verdicts are missing of tog." in shown


def test_where_everything_is_wrong_nothing_is_recommended():
    shown = first_lines(evaluate({"tog": range(0), "basic": range(0)}))
    assert shown == f"Answer: none, as correctness is 0.0 % for every method.\n{SPEAKS_OF_ONE}"


def test_a_winner_needs_the_verdicts():
    """B is worse wherever both have a verdict; half of its verdicts are missing."""
    right = {"a": range(60), "b": range(0)}
    for n_missing in (30, 4):
        shown = first_lines(evaluate(right, n=60, unread={"b": range(n_missing)}))
        assert shown.startswith("Answer: undecided. Less than 95 % of the planned pairs")
        assert f"Missing: {n_missing} of 60 verdicts are missing of b." in shown
    shown = first_lines(evaluate(right, n=60, unread={"b": range(3)}))
    assert shown.startswith("Answer: use a")


def test_where_every_search_failed_it_says_so():
    results = [
        QueryResult(
            imdb_key="a",
            question=f"Q{i}",
            method=method,
            response="ERROR: x",
            scores=failed_search_scores(),
            efficiency=NOTHING,
            failure=Failure("search", "error", "x"),
        )
        for i in range(5)
        for method in ("tog", "basic")
    ]
    shown = first_lines(aggregate_results(results))
    assert shown.startswith("Answer: none, as every search failed (10 of 10).\n")


def test_a_row_for_each_of_many_documents_does_not_hide_the_answer():
    results = [
        QueryResult(f"d{i}", "Q", method, "x", MetricScores(*[JudgeResult(1, "")] * 4), NOTHING)
        for i in range(21)
        for method in ("tog", "basic")
    ]
    console = Console(record=True, width=400)
    show(console, list_results(aggregate_results(results)))
    shown = console.export_text()
    assert "d20" not in shown
    assert "The summary file has the means on each of the 21 indexes." in shown


def test_what_was_not_planned_is_refused_by_name():
    result = QueryResult("d", "Q", "tog", "x", MetricScores(), NOTHING)
    for planned in ({"basic": {"d": 1}}, {"tog": {"e": 1}}):
        with pytest.raises(ValueError, match="the plan asks tog nothing about 'd'"):
            aggregate_results([result], planned=planned)
