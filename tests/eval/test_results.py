from dataclasses import replace
from math import inf, nan

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag.eval.dataset.dataset_reader import fold_wording
from graphrag.eval.errors import UsageError
from graphrag.eval.report.formatting import has_two_means, mean_cell
from graphrag.eval.results.evaluation_results import aggregate_results
from graphrag.eval.types.metric_definitions import METRICS
from graphrag.eval.types.query_results import EfficiencyMetrics, QueryResult
from graphrag.eval.types.verdicts import Failure, JudgeResult, MetricScores, failed_search_scores
from graphrag.query.client.usage import Usage


def result(method="tog", key="a", question="Who?", score=1, latency=1.0, **changes):
    verdict = JudgeResult(score, "r", None if score is not None else Failure("judge", "error", "x"))
    values = {
        "imdb_key": key,
        "question": question,
        "method": method,
        "response": "Ann",
        "scores": MetricScores(*[verdict] * 4),
        "efficiency": EfficiencyMetrics(latency, 2, 100, 10),
        "ground_truth": "Ann",
        "sample_id": f"{key}-{question}",
        "usage": Usage(2, 100, 10, 1, 5, models=("openai/gpt-4o",)),
    }
    return QueryResult(**{**values, **changes})


def failed(method="tog", question="Why?"):
    return result(
        method,
        question=question,
        response="ERROR: no response",
        scores=failed_search_scores(),
        latency=30.0,
        failure=Failure("search", "timeout", "no response"),
    )


def test_a_failed_search_counts_0_and_an_unscored_verdict_is_left_out():
    results = aggregate_results(
        [result(question="1"), result(question="2", score=None), failed(question="3")]
    )
    assert results.by_method["tog"] == dict.fromkeys(METRICS, 0.5)
    counts = results.counts["tog"]
    assert (counts["n"], counts["n_search_failed"]) == (3, 1)
    assert counts["n_scored"]["correctness"] == counts["n_unscored"]["correctness"] == 1


def test_both_means_are_told_where_one_of_several_searches_failed():
    searches = [result(question="1", trial=n) for n in range(2)]
    lost = replace(failed(question="1"), trial=2)
    results = aggregate_results([*searches, lost])
    relevance = results.analysis.outcomes["tog"]["relevance"]
    assert relevance.mean.mean == 1
    assert results.by_method["tog"]["relevance"] == pytest.approx(2 / 3)
    assert has_two_means(relevance)
    assert not has_two_means(aggregate_results(searches).analysis.outcomes["tog"]["relevance"])


def test_what_failed_searches_alone_leave_without_a_verdict_was_not_judged():
    outcomes = aggregate_results([failed(), result("own", score=None)]).analysis.outcomes
    assert mean_cell(outcomes["tog"]["relevance"]) == "not judged"
    assert mean_cell(outcomes["own"]["relevance"]) == "unscored"


def test_a_failed_search_counts_0_only_in_what_was_asked():
    asked = ["relevance", "correctness"]
    results = aggregate_results([failed(question="1"), failed(question="2")], asked)
    means = {"correctness": 0.0, "faithfulness": None, "relevance": 0.0, "completeness": None}
    assert results.by_method["tog"] == results.by_movie["a"]["tog"] == means
    assert results.summaries()[0].means == means
    outcomes = results.analysis.outcomes["tog"]
    assert outcomes["correctness"].end_to_end.mean == 0
    assert outcomes["completeness"].end_to_end.mean is None
    assert results.analysis.outcomes_by_document["a"]["tog"]["completeness"].bounds is None
    for entry in results.to_detailed_dict()["results"]:
        assert entry["methods"]["tog"]["scores"] == dict.fromkeys(METRICS, 0)


rows = st.lists(
    st.builds(
        result,
        method=st.sampled_from(["tog", "basic"]),
        key=st.sampled_from(["a", "b"]),
        question=st.text(min_size=1, max_size=5),
        score=st.sampled_from([0, 1, None]),
    ),
    max_size=12,
    unique_by=lambda made: (made.imdb_key, made.method, fold_wording(made.question)),
)


def test_what_was_planned_comes_from_the_plan():
    planned = {"tog": {"a": 5, "b": 2}}
    analysis = aggregate_results([result(question="1")], planned=planned).analysis
    told = analysis.outcomes["tog"]["correctness"]
    assert (told.n_planned, told.n_scored, told.n_not_run) == (7, 1, 6)
    by_document = analysis.outcomes_by_document["a"]["tog"]["correctness"]
    assert (by_document.n_planned, by_document.n_not_run) == (5, 4)
    with pytest.raises(ValueError, match="0 outcomes were planned, 1 are accounted for"):
        aggregate_results([result()], planned={"tog": {"a": 0}})


@pytest.mark.parametrize(
    "again",
    [
        {"sample_id": "q1", "question": "Another?"},
        {"sample_id": "q2", "question": " who? "},
        {"sample_id": "", "question": "Who?"},
    ],
)
def test_a_question_twice_is_refused(again):
    with pytest.raises(UsageError, match=r"tog has 2 results for .* of 'a' in trial 0"):
        aggregate_results([result(sample_id="q1"), result(**again)])
    aggregate_results([result(sample_id="q1"), result(**again, trial=1)])


def test_calls_while_exploring_are_the_mean_of_all_searches_or_not_known():
    walked = Usage(4, 100, 10, llm_calls_by_phase={"exploration": 3, "reasoning": 1})
    results = aggregate_results(
        [
            result(usage=walked),
            result(question="Why?"),
            result("own", usage=walked),
            result("own", question="Why?", usage=Usage(is_counted=False)),
        ]
    )
    assert results.efficiency["tog"]["avg_exploring_calls"] == 1.5
    assert results.efficiency["own"]["avg_exploring_calls"] is None


def test_what_nobody_counted_has_no_cost():
    results = aggregate_results([result(judge_usage=Usage()), result("basic", usage=None)])
    assert results.metadata["cost_usd"] is None
    assert results.efficiency["tog"]["cost_usd"] == 0
    assert results.efficiency["tog"]["judge_cost_usd"] == 0
    assert results.efficiency["basic"]["cost_usd"] is None
    assert results.efficiency["basic"]["judge_cost_usd"] is None
    assert results.efficiency["basic"]["avg_embedding_calls"] is None


def test_a_count_that_is_no_number_is_refused():
    for wrong in (nan, -50):
        with pytest.raises(ValueError, match=rf"the tokens of tog on 'a-Who.' can't be {wrong}"):
            aggregate_results([result(efficiency=EfficiencyMetrics(1.0, 1, wrong, 0))])
    with pytest.raises(ValueError, match=r"the latency_s of tog on 'a-Who.' can't be -1"):
        aggregate_results([result(latency=-1.0)])
    with pytest.raises(ValueError, match=r"the cost_usd of tog on 'a-Who.' can't be inf"):
        aggregate_results([result(usage=Usage(cost_usd=inf))])


@settings(max_examples=30, deadline=None)
@given(rows, st.randoms())
def test_means_lie_between_0_and_1_whatever_the_order_and_the_table_has_them(results, random):
    results = [*results, failed("tog", "failed?")]
    found = aggregate_results(results, ["completeness", "correctness"])
    shuffled = random.sample(results, len(results))
    assert aggregate_results(shuffled, found.metrics).by_method == found.by_method
    means = found.to_pandas().astype(dict.fromkeys(found.metrics, float)).groupby("method")
    for method in found.metadata["methods"]:
        for metric in found.metrics:
            mean, told = means[metric].mean()[method], found.by_method[method][metric]
            assert (pd.isna(mean) and told is None) or mean == pytest.approx(told)
            assert told is None or 0 <= told <= 1
