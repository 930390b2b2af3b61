"""Rank metrics, the combined score, success criteria, and how a measure is declared."""

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import RR, P, Qrel, R, ScoredDoc, Success
from pydantic import ValidationError

from graphrag.eval.config.sections import MeasuresSettings, SuccessCriterion
from graphrag.eval.metrics import measures
from graphrag.eval.metrics.measure_means import summarize_measures
from graphrag.eval.metrics.measures import (
    MeasuredAnswer,
    MeasureInput,
    combined_score,
    list_forms,
    rank_sources,
)
from graphrag.eval.metrics.quote_matching import Evidence
from graphrag.eval.results.run_figures import check_criteria

ids = st.integers(0, 15).map("u{}".format)


def item(*units: str) -> Evidence:
    return Evidence("x", "quote", frozenset(units), bool(units))


@settings(max_examples=60, deadline=None)
@given(st.lists(ids, max_size=20), st.sets(ids, min_size=1, max_size=5), st.integers(1, 12))
def test_the_rank_metrics_are_those_of_ir_measures(ranked, relevant, k):
    ranking = rank_sources([item(unit) for unit in sorted(relevant)], ranked)
    unique = list(dict.fromkeys(ranked))
    run = [ScoredDoc("q", unit, -float(rank)) for rank, unit in enumerate(unique)]
    qrels = [Qrel("q", unit, 1) for unit in relevant]
    wanted = ir_measures.calc_aggregate([P @ k, R @ k, Success @ k, RR, R @ 1000], qrels, run)
    assert ranking.precision(k) == pytest.approx(wanted[P @ k])
    assert ranking.recall(k) == pytest.approx(wanted[R @ k])
    assert ranking.hit_rate(k) == wanted[Success @ k]
    assert ranking.mrr() == pytest.approx(wanted[RR])
    assert ranking.recall() == pytest.approx(wanted[R @ 1000])


def test_a_source_is_found_where_the_first_of_its_units_stands():
    ranking = rank_sources([item("a", "b"), item("c")], ["x", "b", "x", "a", "c"])
    assert (ranking.mrr(), ranking.recall(), ranking.hit_rate()) == (0.5, 1, 1)
    assert [ranking.recall(k) for k in (2, 4)] == [0.5, 1]
    assert [ranking.precision(k) for k in (2, 4, None)] == [0.5, 0.75, 0.75]
    assert rank_sources([item(), item("a")], ["a"]).recall() == 0.5


@pytest.mark.parametrize("missing", [None, []])
def test_a_missing_list_is_0_and_a_missing_label_is_no_score(missing):
    ranking = rank_sources([item("a")], missing)
    scores = [score(k) for score in (ranking.hit_rate, ranking.recall) for k in (None, 1)]
    assert {*scores, ranking.mrr(), ranking.precision(), ranking.precision(3)} == {0.0}
    assert rank_sources([], ["a"]) is None


@pytest.mark.parametrize(
    ("parts", "exponents", "score"),
    [
        ((1, 1, 1000), {}, 1),
        ((0.5, 0.81, 4000), {}, 0.25 * 0.729 / 2),
        ((1, 0, 10), {}, 0),
        ((1, 1, 0), {}, None),
        ((1, None, 10), {}, None),
        ((None, 1, 10), {}, None),
        ((1, 1, None), {}, None),
        ((0.5, 0.5, 2000), {"alpha": 1, "beta": 0, "gamma": 0}, 0.5),
        ((0.5, 0.5, 2000), {"alpha": 0, "beta": 1, "gamma": 0}, 0.5),
        ((0.5, 0.5, 2000), {"alpha": 0, "beta": 0, "gamma": 2}, 0.25),
        ((1, 1, 10**9), {"beta": 0}, 1),  # finite up to the largest exponent
        ((1, 1, 1), {"beta": 50}, 1e150),
        ((1, 1, 10**9), {"beta": 50}, 1e-300),
    ],
)
def test_the_combined_score_is_its_formula_or_undefined(parts, exponents, score):
    found = combined_score(*parts, MeasuresSettings(**exponents))
    assert found == (None if score is None else pytest.approx(score, rel=1e-9))


@pytest.mark.parametrize("name", ["alpha", "beta", "gamma"])
def test_an_exponent_that_gives_no_finite_score_is_refused_by_name(name):
    for value in (-1, 51, float("nan"), float("inf")):
        with pytest.raises(ValidationError, match=name):
            MeasuresSettings(**{name: value})


def summarize(*tokens: int, judge: float | None = 1):
    forms = list_forms(())
    rows = [
        MeasuredAnswer(
            *("s", "k", "tog", forms),
            {
                **dict.fromkeys([form.name for form in forms]),
                **{"hit_rate": 1, "judge_score": judge},
                "combined_score": combined_score(1, judge, n),
            },
            *(1, 0, True, n),
        )
        for n in tokens
    ]
    return rows


def test_both_aggregations_can_rank_methods_in_opposite_order():
    steady = summarize_measures(summarize(1000, 1000))["tog"].combined
    rows = [*summarize(400, 4000), *summarize(10, judge=None)]
    uneven = summarize_measures(rows)["tog"].combined
    assert uneven.mean_of_scores > steady.mean_of_scores
    assert uneven.score_of_means < steady.score_of_means
    assert uneven.score_of_means == combined_score(1, 1, 2200)
    assert (uneven.n, uneven.n_excluded) == (2, 1)
    nothing = summarize_measures(summarize(1, judge=None))["tog"].combined
    assert nothing.mean_of_scores is nothing.score_of_means is None


def test_criteria_are_met_missed_or_not_measured():
    slow = SuccessCriterion(metric="seconds", minimum=4, target=2, lower_is_better=True)
    assert [slow.check(v) for v in (1.9, 2, 4)] == ["met target", "met minimum", "missed"]
    strict = SuccessCriterion(metric="recall", minimum=0.3)
    assert strict.check(0.1 + 0.2) == "missed"  # a digit above, as floats add it up
    results = check_criteria([slow], {"tog": {"seconds": 1.0}, "basic": {}})
    assert [each.result for each in results] == ["met target", "not measured"]
    for fields in ({"minimum": 0.9}, {"minimum": 0.1, "lower_is_better": True}, {"goal": 1}):
        with pytest.raises(ValidationError):
            SuccessCriterion(**{"metric": "recall", "minimum": 0.2, "target": 0.5, **fields})


def test_every_measure_is_declared_whole():
    forms = list_forms((1, 5))
    names = [form.name for form in forms]
    assert len(set(names)) == len(names)
    assert {"recall", "recall_at_1", "recall_at_5", "mrr", "combined_score"} <= set(names)
    assert "mrr_at_5" not in names
    assert all(form.measure.source and form.heading for form in forms)


def brevity(given: MeasureInput, k: int | None = None) -> float | None:
    return 1 / (k or len(given.response.split())) if given.response else None


def test_a_measure_is_added_by_one_entry(make_evaluation, monkeypatch):
    added = measures.Measure(
        *("answer_brevity", "share", "traced", "a test", brevity),
        heading="how brief",
        at_k=True,
        shows_cutoff=True,
    )
    monkeypatch.setattr(measures, "MEASURES", (*measures.MEASURES, added))
    evaluation = make_evaluation(methods=["basic"])
    criterion = {"metric": "answer_brevity_at_4", "minimum": 0.2, "target": 0.3}
    evaluation.configure(measures={"cutoffs": [2, 4, 8], "criteria": [criterion]})
    result = evaluation.run("--full", COLUMNS="250")
    assert result.exit_code == 0, result.output
    summary = evaluation.read_results("summary")
    values = summary["measures"]["basic"]["measures"]
    assert 0 < values["answer_brevity"]["estimate"]["mean"] < 1
    assert values["answer_brevity_at_4"]["estimate"]["mean"] == 0.25
    assert summary["criteria"][0]["result"] == "met minimum"
    assert values["answer_brevity_at_8"]["estimate"]["mean"] == 0.125
    table = result.output.partition("Traced to the index")[2].partition("┡")[0]
    assert "how brief" in table
    assert "how brief at 4" in table
    assert "how brief at 8" not in table
