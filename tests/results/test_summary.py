"""Figures with intervals, from results to both files, the terminal and pandas."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from graphrag.eval.report.run import list_run
from graphrag.eval.report.table import show
from graphrag.eval.results.evaluation_results import aggregate_results
from graphrag.eval.types.metric_definitions import METRICS
from graphrag.eval.types.query_results import EfficiencyMetrics, QueryResult
from graphrag.eval.types.verdicts import Failure, JudgeResult, MetricScores, failed_search_scores
from graphrag.query.client.usage import Usage

ENDS = ("right", "wrong", "search failed", "judge failed", "unreadable", "not judged", "abstains")


def verdict(end):
    if end in ("right", "wrong", "abstains"):
        return JudgeResult(int(end == "right"), "r")
    kind = {"judge failed": "error", "unreadable": "unreadable"}.get(end)
    return JudgeResult(None, "r", Failure("judge", kind, "x") if kind else None)


def result(end="right", question="q", method="tog", key="a", latency=1.0):
    failed = end == "search failed"
    return QueryResult(
        imdb_key=key,
        question=question,
        method=method,
        response="Ann",
        scores=failed_search_scores() if failed else MetricScores(*[verdict(end)] * 4),
        efficiency=EfficiencyMetrics(latency, 2, 100, 10),
        sample_id=f"{key}-{question}",
        failure=Failure("search", "timeout", "late") if failed else None,
        usage=Usage(2, 100, 10, cost_usd=0.5, models=("openai/gpt-4o",)),
        abstained=end == "abstains",
    )


def results_of(ends, method="tog"):
    return [result(end, str(n), method) for n, end in enumerate(ends)]


@settings(deadline=None)  # the first call loads scipy and statsmodels
@given(st.lists(st.sampled_from(ENDS), min_size=1, max_size=30))
def test_every_state_is_counted_and_the_counts_add_up(ends):
    outcomes = aggregate_results(results_of(ends)).analysis.outcomes["tog"]
    for metric, found in outcomes.items():
        abstained = ends.count("abstains") if metric == "faithfulness" else 0
        assert found.n_planned == len(ends)
        assert found.n_search_failed == ends.count("search failed")
        assert found.n_judge_failed == ends.count("judge failed")
        assert found.n_judge_unparseable == ends.count("unreadable")
        assert found.n_not_judged == ends.count("not judged")
        assert found.n_abstained == abstained
        scored = ends.count("right") + ends.count("wrong") + ends.count("abstains") - abstained
        assert found.n_scored == scored


def test_the_first_metric_says_what_holds_of_all_pairs_together():
    ends = {
        "tog": ["right"] * 600 + ["wrong"] * 400,
        "local": ["wrong"] * 20 + ["right"] * 600 + ["wrong"] * 380,
        "basic": ["right"] * 500 + ["wrong"] * 500,
    }
    results = [each for method, of in ends.items() for each in results_of(of, method)]
    added_up = aggregate_results(results)
    found = added_up.analysis.comparisons
    assert [c.metric for c in found[::3]] == list(METRICS)
    assert [c.in_family for c in found] == [c.result.p_holm is not None for c in found]
    assert [c.in_family for c in found].count(True) == 3
    same, better, *others = json.loads(added_up.to_json())["comparisons"]
    assert same["verdict"] == "equivalent within ±5 points"
    assert same["is_equivalent"]
    assert same["p_equivalence"] < 0.05 < same["p_holm"]
    assert same["low_simultaneous"] < same["low"] < 0 < same["high"] < same["high_simultaneous"]
    assert better["verdict"] == "tog better than basic"
    assert 0 < better["low_simultaneous"] < better["low"]
    assert all(each["low_simultaneous"] is each["p_equivalence"] is None for each in others[1:])
    assert not any("equivalent" in each["verdict"] for each in others[1:])
    strict = aggregate_results(results, equivalence_margin=0.01).analysis.comparisons[0]
    assert strict.verdict.startswith("unknown: no difference shown; the smallest that")


def test_efficiency_counts_every_attempt_and_a_timeout_as_censored():
    results = [result("right", "1", latency=1.0), result("search failed", "2", latency=9.0)]
    figures = aggregate_results([*results, result("wrong", "3")]).analysis.efficiency["tog"]
    assert (figures.latency_p95.n, figures.latency_p95.n_censored) == (3, 1)
    assert figures.latency_p95.value is None
    assert figures.cost_per_correct.value == 1.5
    nothing_right = aggregate_results(results_of(["wrong"])).analysis.efficiency["tog"]
    assert nothing_right.cost_per_correct.value is None
    many = [result("right", str(n), latency=float(n)) for n in range(101)]
    figures = aggregate_results(many).analysis.efficiency["tog"]
    assert figures.latency_median.value == pytest.approx(50)
    assert figures.latency_p95.value == pytest.approx(95)
    with pytest.raises(ValueError, match=r"the latency_s of tog on 'a-q' can't be -1\.0"):
        aggregate_results([result(latency=-1.0)])


def test_a_method_that_does_not_count_tokens_is_neither_best_nor_beaten():
    uncounted = replace(result(method="mine"), efficiency=EfficiencyMetrics(1.0, None, None, None))
    results = aggregate_results([result(), uncounted])
    assert results.analysis.efficiency["tog"].is_pareto is True
    assert results.analysis.efficiency["mine"].is_pareto is None
    assert '"is_pareto": null' in results.to_json()


def test_the_terminal_says_when_methods_were_asked_different_questions():
    console = Console(record=True, width=120)
    same = results_of(["right", "wrong"])
    show(
        console,
        list_run(aggregate_results([*same, *results_of(["right", "wrong"], "oracle")]), full=True),
    )
    assert "same questions" not in console.export_text()
    show(console, list_run(aggregate_results([*same, result("right", "0", "oracle")]), full=True))
    told = " ".join(console.export_text().split())
    assert "were not asked the same questions" in told
    assert "on those that both were: tog and oracle share 1 of 2." in told
    assert "Missing: 1 of 2 searches are not made of oracle." in told


@given(st.lists(st.sampled_from(ENDS), max_size=6))
def test_files_hold_no_nan_and_the_states(ends):
    results = aggregate_results([*results_of(ends), *results_of(ends, "basic")])

    def refuse(name):
        raise AssertionError(name)

    summary = json.loads(results.to_json(), parse_constant=refuse)
    assert set(summary) >= {"outcomes", "outcomes_by_movie", "comparisons", "efficiency_figures"}
    detailed = json.loads(results.to_detailed_json(), parse_constant=refuse)
    for entry, end in zip(detailed["results"], ends, strict=True):
        state = entry["methods"]["tog"]["states"]["correctness"]
        assert (state == "search_failed") == (end == "search failed")
    if ends:
        assert (
            results.to_pandas()["correctness_state"][0]
            == (detailed["results"][0]["methods"]["tog"]["states"]["correctness"])
        )


def test_the_terminal_says_how_sure_a_mean_is():
    results = [
        *[result("right", str(n), "tog", "ab"[n % 2]) for n in range(20)],
        *[result("wrong", str(n), "basic", "ab"[n % 2]) for n in range(20)],
    ]
    console = Console(record=True, width=120)
    show(console, list_run(aggregate_results(results), full=True))
    shown = console.export_text()
    assert "100 (" in shown
    assert "tog - basic: +100.0 (" in shown
    assert "tog better than basic" in shown
    assert "generalisation to new documents, low power" in shown


def test_equal_ends_are_all_counted_for_their_own_method_and_document():
    ends = ["right"] * 5 + ["wrong"] * 2 + ["search failed"] * 3 + ["judge failed"] * 4
    other = ["right"] * 2 + ["wrong"] * 12
    results = [
        *(result(end, str(n), "tog", "a", float(n)) for n, end in enumerate(ends)),
        *(result(end, str(n), "basic", "a") for n, end in enumerate(other)),
        *(result("right", str(n), "tog", "b", 99.0) for n in range(3)),
    ]
    found = aggregate_results(results)
    tog, basic = found.summaries()
    assert (tog.count, tog.n_search_failed, basic.count, basic.n_search_failed) == (17, 3, 14, 0)
    assert (tog.n_scored["correctness"], tog.n_unscored["correctness"]) == (10, 4)
    assert found.counts["tog"]["n_scored"] == tog.n_scored
    assert found.by_method == {"tog": tog.means, "basic": basic.means}
    assert tog.means["relevance"] == pytest.approx(8 / 13)
    assert basic.means["relevance"] == pytest.approx(2 / 14)
    assert found.by_movie["a"]["tog"]["correctness"] == pytest.approx(5 / 10)
    on = found.analysis.outcomes_by_document
    assert {document: list(methods) for document, methods in on.items()} == {
        "a": ["tog", "basic"],
        "b": ["tog"],
    }
    assert on["a"]["tog"]["correctness"].n_planned == 14
    assert on["b"]["tog"]["correctness"].n_scored == 3
    view = found.analysis.comparisons[0].result.by_document
    assert view is not None
    # of the first 10 questions, tog is right on 5 and basic on 2
    assert [(d.document, d.n, d.mean) for d in view.documents] == [("a", 10, pytest.approx(0.3))]
